//! The validated configuration. Whoever holds one of these need not check it again.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use globset::GlobMatcher;
use serde::{Deserialize, Serialize};
use url::Url;

use super::convert::FORMATS;
use crate::ids::{MicroUsd, RepoName, Tokens, UserId};

/// Everything that the file says, with defaults filled in.
#[derive(Debug, Clone)]
pub struct Config {
    /// The file it came from; `None` for the embedded defaults.
    pub file: Option<PathBuf>,
    /// How to reach GitHub.
    pub github: GithubConfig,
    /// The repositories served, in the file's order; each name once.
    pub repos: Vec<RepoConfig>,
    /// The rules of a repository that overrides nothing.
    pub defaults: RepoRules,
    /// The poll thread.
    pub poll: PollConfig,
    /// What may be spent.
    pub budget: BudgetConfig,
    /// The worker pool.
    pub worker: WorkerConfig,
    /// The SQLite file.
    pub store_path: PathBuf,
    /// Mirrors and worktrees.
    pub workspace: WorkspaceConfig,
    /// How long what reviews say is kept.
    pub retention: RetentionConfig,
    /// The log on stderr.
    pub log: LogConfig,
}

/// `[github]`.
#[derive(Debug, Clone)]
pub struct GithubConfig {
    /// The API's root without a trailing slash, `https://api.github.com` by default.
    pub api_url: Url,
    /// The web host's root, which git clones from and links point to.
    pub web_url: Url,
    /// Where the token is.
    pub token: TokenSource,
    /// Extra trusted certificates (PEM), for a private CA.
    pub ca_file: Option<PathBuf>,
}

/// Where a token is read from. The token itself never stands in the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenSource {
    /// The environment variable of this name, else the systemd credential `github-token`.
    Env(String),
    /// A file that only its owner may read.
    File(PathBuf),
}

/// One `[[repo]]`.
#[derive(Debug, Clone)]
pub struct RepoConfig {
    /// `owner/name`.
    pub name: RepoName,
    /// Its own token instead of `[github]`'s.
    pub token: Option<TokenSource>,
    /// The file's sections with this repository's overrides on top.
    pub rules: RepoRules,
}

/// What may differ between repositories.
#[derive(Debug, Clone)]
pub struct RepoRules {
    /// Who and what starts a review.
    pub triggers: TriggerConfig,
    /// Which engine reviews.
    pub engine: EngineConfig,
    /// What the engine is told besides the change.
    pub review: ReviewConfig,
    /// How large a change may be.
    pub caps: SizeCaps,
    /// What is posted.
    pub publish: PublishConfig,
}

/// `[triggers]`.
#[derive(Debug, Clone)]
pub struct TriggerConfig {
    /// The accounts that may cause spending. Empty allows nobody.
    pub allowlist: BTreeSet<UserId>,
    /// The name people call.
    pub handle: Handle,
    /// A new head of a known pull request starts a review.
    pub on_push: bool,
    /// A draft that becomes ready starts a review.
    pub on_ready: bool,
    /// An edited comment counts by its time of edit.
    pub on_edit: bool,
    /// Pull requests that are not reviewed on their own.
    pub ignore: IgnoreRules,
    /// Labels that forbid a review even when a mention asks for one; compared without case.
    pub never: Vec<String>,
}

/// The name that a mention calls, without its `@`: letters, digits and single hyphens, at most 39.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handle(String);

impl Handle {
    /// The name without `@`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A text that can't be a handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a handle has at most 39 letters, digits and single hyphens, none at its ends")]
pub struct HandleError;

impl FromStr for Handle {
    type Err = HandleError;

    /// Reads the name with or without a leading `@`.
    fn from_str(text: &str) -> Result<Self, HandleError> {
        let name = text.strip_prefix('@').unwrap_or(text);
        let part = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric());
        if name.len() <= 39 && name.split('-').all(part) {
            Ok(Self(name.to_owned()))
        } else {
            Err(HandleError)
        }
    }
}

impl Default for Handle {
    fn default() -> Self {
        Self("prwarden".to_owned())
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}", self.0)
    }
}

/// `triggers.ignore`: any match ignores the pull request.
#[derive(Debug, Clone, Default)]
pub struct IgnoreRules {
    /// Label names, compared without case.
    pub labels: Vec<String>,
    /// Globs over the base branch.
    pub base: Vec<GlobMatcher>,
    /// Globs over the head branch.
    pub head: Vec<GlobMatcher>,
    /// Plain texts searched in the title without regard to case.
    pub title: Vec<String>,
}

/// `[poll]`.
#[derive(Debug, Clone)]
pub struct PollConfig {
    /// Interval while things happen.
    pub floor: Duration,
    /// Interval when nothing happens.
    pub ceiling: Duration,
    /// How far behind the watermark items are offered again.
    pub overlap: Duration,
    /// Polling requests of all repositories together.
    pub max_requests_per_hour: u32,
}

/// `[budget]`, the part that holds for the whole process, and what `[roles]` says of shares.
#[derive(Debug, Clone)]
pub struct BudgetConfig {
    /// Off: nothing is claimed.
    pub enabled: bool,
    /// Whose limits hold.
    pub pool: Pool,
    /// The plan's limits; `None` when no engine spends tokens, or when another process's limits hold.
    pub plan: Option<PlanBudget>,
    /// What each role may use of the week.
    pub shares: RoleShares,
    /// How often one pull request may be reviewed by an engine that spends.
    pub pacing: Pacing,
    /// What happens to a review for which no tokens are left.
    pub when_exhausted: WhenExhausted,
}

/// `budget.authority` and `budget.comply`: how several processes on one store share its ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pool {
    /// No other process works on the store.
    Alone,
    /// The limits of this process hold for all that comply.
    Authority,
    /// The limits that the authority published hold.
    Member,
    /// This process has limits of its own on the shared ledger.
    Apart,
}

impl Pool {
    /// Whether other processes may work on the store at the same time.
    pub fn is_shared(self) -> bool {
        self != Self::Alone
    }
}

/// `roles.<role>.share_pct`: percent of the agent's week, 1-100.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RoleShares {
    /// Of reviews.
    pub review: Option<u32>,
}

/// `budget.when_exhausted`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenExhausted {
    /// It waits for tokens.
    Wait,
    /// The built-in checks review alone, at no tokens, and the comment says so.
    Gate,
}

/// The keys of `[budget]` about one pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pacing {
    /// From one review's start to an automatic one's.
    pub review_interval: Duration,
    /// From one review's start to a requested one's; at most `review_interval`.
    pub mention_interval: Duration,
    /// Reviews in any 24 h.
    pub max_reviews: Option<u32>,
}

/// The operator's estimate of a plan, and the agent's share of it. Its JSON is what an authority
/// publishes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanBudget {
    /// Tokens in any 5 h.
    pub session_tokens: Tokens,
    /// Tokens in any 7 d.
    pub weekly_tokens: Tokens,
    /// Tokens reserved for each run.
    pub max_run_tokens: Tokens,
    /// Tokens reserved for each answer to a question; a quarter of a run's when it is not set.
    #[serde(default)]
    pub max_ask_tokens: Option<Tokens>,
    /// The agent's part of both windows, 1-100.
    pub reviewer_share_pct: u32,
    /// One account's part of the agent's week, 1-100.
    pub per_contributor_pct: Option<u32>,
    /// Limits in money beside those in tokens.
    #[serde(default)]
    pub money: Option<MoneyBudget>,
}

impl PlanBudget {
    /// What an answer to a question reserves.
    pub fn ask_tokens(&self) -> Tokens {
        let quarter = Tokens((self.max_run_tokens.0 / 4).max(1));
        self.max_ask_tokens.unwrap_or(quarter)
    }
}

/// Limits for accounts that pay by use, in millionths of a US dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoneyBudget {
    /// In any 24 h.
    pub daily_microusd: Option<MicroUsd>,
    /// In any 7 d.
    pub weekly_microusd: Option<MicroUsd>,
    /// Reserved for each run.
    pub max_run_microusd: MicroUsd,
}

/// The size gate; keys of `[budget]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizeCaps {
    /// Most files that survive the exclusions.
    pub max_changed_files: u32,
    /// Most added and removed lines in them.
    pub max_changed_lines: u32,
    /// Leave out lock files, vendored, generated and minified files.
    pub default_exclusions: bool,
    /// More git glob pathspecs to leave out.
    pub excluded_paths: Vec<String>,
}

/// `[worker]`.
#[derive(Debug, Clone)]
pub struct WorkerConfig {
    /// Threads, 1-16.
    pub count: u32,
    /// How long a claim is held before others may take it.
    pub lease: Duration,
    /// Attempts per trigger.
    pub max_attempts: u32,
    /// How long a stop waits for runs in flight.
    pub shutdown_grace: Duration,
}

/// `[engine]`.
#[derive(Debug, Clone)]
pub struct EngineConfig {
    /// Which adapter.
    pub kind: EngineKind,
    /// The tool's executable; the adapter's usual name when not given.
    pub binary: Option<PathBuf>,
    /// Program and arguments of a `command` engine.
    pub command: Vec<String>,
    /// More arguments for the tool.
    pub args: Vec<String>,
    /// The model's name.
    pub model: Option<String>,
    /// A text that the tool's `--version` should contain; another version warns.
    pub expected_version: Option<String>,
    /// For the whole run.
    pub timeout: Duration,
    /// Names of environment variables passed on.
    pub env: Vec<String>,
    /// Project rules read at the merge base and shown to the engine.
    pub standards_paths: Vec<String>,
}

/// `engine.kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineKind {
    /// Deterministic checks, no model.
    Builtin,
    /// The `claude` command-line tool.
    Claude,
    /// Any program that speaks the JSON contract.
    Command,
}

/// `[review]`.
#[derive(Debug, Clone, Default)]
pub struct ReviewConfig {
    /// The language of the prose.
    pub language: Option<String>,
    /// The operator's own instructions.
    pub instructions: Option<String>,
}

/// `[publish]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishConfig {
    /// How many comments a pull request gets.
    pub mode: PublishMode,
    /// Do everything but write to GitHub.
    pub dry_run: bool,
    /// Post a review whose head has moved on meanwhile, saying so.
    pub post_superseded: bool,
    /// Attempts to post before giving up.
    pub max_publish_attempts: u32,
}

/// `publish.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishMode {
    /// One comment, rewritten by each review.
    Sticky,
    /// Each review posts a comment of its own.
    PerReview,
}

/// `[retention]`.
#[derive(Debug, Clone)]
pub struct RetentionConfig {
    /// How long what a review says is kept when its pull request stays open.
    pub max_age: Duration,
}

/// `[workspace]`.
#[derive(Debug, Clone)]
pub struct WorkspaceConfig {
    /// Holds mirrors and worktrees; only its owner may enter.
    pub cache_dir: PathBuf,
    /// The git program: a path, or a name looked up in `PATH`.
    pub git: PathBuf,
    /// Free space below which nothing is checked out.
    pub min_free_mb: u64,
}

/// `[log]`.
#[derive(Debug, Clone)]
pub struct LogConfig {
    /// The least severe level that is written.
    pub level: log::LevelFilter,
    /// The form of a line.
    pub format: LogFormat,
}

/// `log.format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Text on a terminal, JSON elsewhere, with journald's priority prefix under it.
    Auto,
    /// Text for people.
    Text,
    /// One JSON object a line.
    Json,
}

/// A text that names no log format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a log format is auto, text or json")]
pub struct LogFormatError;

impl FromStr for LogFormat {
    type Err = LogFormatError;

    fn from_str(text: &str) -> Result<Self, LogFormatError> {
        let named = FORMATS.iter().find(|(name, _)| *name == text);
        named.map(|(_, format)| *format).ok_or(LogFormatError)
    }
}
