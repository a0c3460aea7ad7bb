//! `prwarden db`: look after the store.

use std::path::PathBuf;

use super::args::{DbCommand, StorePath};
use super::exit::{Exit, Failed};
use super::{Ended, Globals, config, print};
use crate::store::{Store, StoreError};

/// `db check|backup|migrate`.
pub(super) fn db(globals: &Globals, command: &DbCommand) -> Ended {
    match command {
        DbCommand::Check(args) => check(path(globals, args)?),
        DbCommand::Backup(args) => {
            let from = path(globals, &args.store)?;
            let store = Store::open_existing(&from).map_err(|error| failed(&error))?;
            store.backup(&args.to).map_err(|error| failed(&error))?;
            print(&format!(
                "{} copied to {}\n",
                from.display(),
                args.to.display()
            ))?;
            Ok(Exit::Success)
        }
        DbCommand::Migrate(args) => {
            let path = path(globals, args)?;
            if !path.exists() {
                return Err(Failed::new(
                    Exit::Failure,
                    format!("{} does not exist", path.display()),
                ));
            }
            let store = Store::open(&path).map_err(|error| failed(&error))?;
            let version = store.version().map_err(|error| failed(&error))?;
            print(&format!("{} is at version {version}\n", path.display()))?;
            Ok(Exit::Success)
        }
    }
}

fn check(path: PathBuf) -> Ended {
    let mut store = Store::open_existing(&path).map_err(|error| failed(&error))?;
    let problems = store.check().map_err(|error| failed(&error))?;
    if problems.is_empty() {
        print(&format!("{}: whole, no invariant broken\n", path.display()))?;
        return Ok(Exit::Success);
    }
    for problem in &problems {
        print(&format!("{problem}\n"))?;
    }
    Ok(Exit::Failure)
}

/// The store that the option names, else the configuration's.
fn path(globals: &Globals, args: &StorePath) -> Result<PathBuf, Failed> {
    match &args.store {
        Some(path) => Ok(path.clone()),
        None => Ok(config::load(globals)?.store_path),
    }
}

fn failed(error: &StoreError) -> Failed {
    Failed::new(Exit::Failure, error)
}
