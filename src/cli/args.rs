//! The command line, defined once: parsing and `--help` come from here.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::config::LogFormat;
use crate::findings::Severity;

/// Reviews pull requests from a host that nothing can reach.
///
/// prwarden polls GitHub, lets only allow-listed people summon it, runs a review engine as a
/// subprocess over the untrusted checkout and leaves one comment.
#[derive(Debug, Parser)]
#[command(
    name = "prwarden",
    version,
    max_term_width = 100,
    subcommand_required = true
)]
pub struct Cli {
    /// Configuration file [default: /etc/prwarden/config.toml, else ./prwarden.toml]
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Least severe level that is logged: error, warn, info, debug or trace
    #[arg(long, global = true, value_name = "LEVEL")]
    pub log: Option<log::LevelFilter>,

    /// Form of log lines: auto, text or json
    #[arg(long, global = true, value_name = "FORM")]
    pub log_format: Option<LogFormat>,

    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Poll and review until told to stop
    Run,
    /// Poll each repository once, work off the queue, end: for cron
    Once(Once),
    /// Review a local branch; needs no configuration, token, network or store
    Review(Review),
    /// Show the whole chain on a GitHub double on this machine with a sample pull request
    Demo(Demo),
    /// Write, check or show the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Show how full the budget's windows are, when the next review fits, and what waits
    Status,
    /// Check what prwarden needs and say what to do about it
    Doctor,
    /// Look after the store
    #[command(subcommand)]
    Db(DbCommand),
    /// List the queue, or put a publication that was given up back
    #[command(subcommand)]
    Queue(QueueCommand),

    /// Empty what old reviews said; numbers of tokens and times stay
    Purge(Purge),

    /// The demo's engine; prwarden starts it by itself
    #[command(hide = true)]
    SampleEngine,
}

/// `queue ...`.
#[derive(Debug, Subcommand)]
pub enum QueueCommand {
    /// List what waits, what is worked on, and what could not be published
    List,
    /// Put a publication that was given up back into the queue
    Publish {
        /// The run's key, as `queue list` shows it
        #[arg(value_name = "KEY")]
        key: String,
    },
}

/// `purge`.
#[derive(Debug, Args)]
pub struct Purge {
    /// All of one pull request [default: whatever is older than retention.max_age_days]
    #[arg(long, value_name = "OWNER/REPO#N")]
    pub pull: Option<String>,
}

/// `once`.
#[derive(Debug, Args)]
pub struct Once {
    /// End the cycle after this time
    #[arg(long, value_name = "SECONDS", default_value_t = 3300, value_parser = clap::value_parser!(u64).range(1..))]
    pub max_seconds: u64,

    /// Start at most this many reviews
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_reviews: Option<u32>,
}

/// `review`.
#[derive(Debug, Args)]
pub struct Review {
    /// The commit or branch that the change starts from
    #[arg(long, value_name = "REF")]
    pub base: String,

    /// The commit or branch under review [default: HEAD]
    #[arg(long, value_name = "REF")]
    pub head: Option<String>,

    /// Form of the result
    #[arg(long, value_enum, value_name = "FORM", default_value_t = ReviewFormat::Text)]
    pub format: ReviewFormat,

    /// Exit with 1 when a finding is at least this grave
    #[arg(long, value_enum, value_name = "SEVERITY", default_value_t = FailOn::Blocker)]
    pub fail_on: FailOn,
}

/// `review --format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReviewFormat {
    /// For reading in a terminal
    Text,
    /// The comment as it would be posted
    Markdown,
    /// One JSON object
    Json,
    /// SARIF 2.1.0 for code scanning tools
    Sarif,
}

/// `review --fail-on`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Must not be merged
    Blocker,
    /// A defect that people will meet
    Major,
    /// Worth fixing
    Minor,
    /// A detail
    Nit,
    /// Findings never fail the command
    Never,
}

impl FailOn {
    /// The least grave severity that fails the command.
    pub fn threshold(self) -> Option<Severity> {
        match self {
            Self::Blocker => Some(Severity::Blocker),
            Self::Major => Some(Severity::Major),
            Self::Minor => Some(Severity::Minor),
            Self::Nit => Some(Severity::Nit),
            Self::Never => None,
        }
    }
}

/// `demo`.
#[derive(Debug, Args)]
pub struct Demo {
    /// Keep the demo's files in this new directory instead of removing them
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
}

/// `config ...`.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Write a commented configuration file
    Init(ConfigInit),
    /// Read the configuration and report every problem in it
    Check,
    /// Print the configuration in force, defaults included
    Show,
}

/// `config init`.
#[derive(Debug, Args)]
pub struct ConfigInit {
    /// Every key with its default instead of the few that must be set
    #[arg(long)]
    pub full: bool,

    /// Where to write; `-` is standard output
    #[arg(value_name = "FILE", default_value = "prwarden.toml")]
    pub file: PathBuf,
}

/// `db ...`.
#[derive(Debug, Subcommand)]
pub enum DbCommand {
    /// Check the file's integrity and prwarden's own invariants
    Check(StorePath),
    /// Copy the store while it is in use
    Backup(DbBackup),
    /// Bring the store to this version, with a backup beside it
    Migrate(StorePath),
}

/// Which store.
#[derive(Debug, Args)]
pub struct StorePath {
    /// The store [default: the configuration's]
    #[arg(long, value_name = "FILE")]
    pub store: Option<PathBuf>,
}

/// `db backup`.
#[derive(Debug, Args)]
pub struct DbBackup {
    /// Where to write the copy; must not exist
    #[arg(value_name = "FILE")]
    pub to: PathBuf,

    /// The store
    #[command(flatten)]
    pub store: StorePath,
}
