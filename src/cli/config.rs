//! `prwarden config` and the loading of the configuration for the other commands.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::args::{ConfigCommand, ConfigInit};
use super::exit::{Exit, Failed};
use super::{Ended, Globals, env, print};
use crate::config::{Config, show, template};
use crate::output::log::{self as logging, LogFlags};

/// `config init|check|show`.
pub(super) fn config(globals: &Globals, command: &ConfigCommand) -> Ended {
    match command {
        ConfigCommand::Init(args) => init(args),
        ConfigCommand::Check => {
            let config = load(globals)?;
            let file = config
                .file
                .as_deref()
                .map_or("defaults".into(), Path::to_string_lossy);
            print(&format!(
                "{file}: no problem found; it watches {}\n",
                config.watched()
            ))?;
            Ok(Exit::Success)
        }
        ConfigCommand::Show => {
            print(&show(&load(globals)?))?;
            Ok(Exit::Success)
        }
    }
}

fn init(args: &ConfigInit) -> Ended {
    let text = if args.full {
        template::full()
    } else {
        template::minimal()
    };
    if args.file.as_os_str() == "-" {
        print(&text)?;
        return Ok(Exit::Success);
    }
    let written = OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o640)
        .open(&args.file)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    let file = args.file.display();
    written.map_err(|error| {
        Failed::new(
            Exit::Failure,
            format!("cannot write {file}: {error}; nothing was overwritten"),
        )
    })?;
    print(&format!(
        "wrote {file}; name a repository and an allow-listed user id in it, then run: prwarden config check\n"
    ))?;
    Ok(Exit::Success)
}

/// Reads the configuration file that the options name or that stands in a usual place, and starts
/// the log by it.
///
/// # Errors
/// With every problem of the file, each with its place.
pub(super) fn load(globals: &Globals) -> Result<Config, Failed> {
    let Some(path) = Config::locate(globals.config.as_deref()) else {
        return Err(Failed::new(
            Exit::Config,
            "no configuration: neither --config nor /etc/prwarden/config.toml nor ./prwarden.toml; \
             `prwarden config init` writes one",
        ));
    };
    let (config, warnings) =
        Config::load(&path, &env).map_err(|errors| Failed::new(Exit::Config, errors))?;
    start_log(globals, &config)?;
    for warning in warnings {
        log::warn!("{warning}");
    }
    Ok(config)
}

/// Starts the log with the options on top of the environment on top of `config`.
pub(super) fn start_log(globals: &Globals, config: &Config) -> Result<(), Failed> {
    let flags = LogFlags {
        level: globals.log,
        format: globals.log_format,
    };
    logging::init(&config.log, flags, &env).map_err(|error| Failed::new(Exit::Usage, error))
}
