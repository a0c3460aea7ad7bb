//! `prwarden purge`: empties what reviews said, and keeps when and how they were made.

use super::args::Purge;
use super::exit::{Exit, Failed};
use super::{Ended, Globals, config, print};
use crate::clock::{Clock, SystemClock};
use crate::ids::{PrNumber, RepoName};
use crate::store::runs::{self, Stale};
use crate::store::{Store, StoreError};

pub(super) fn purge(globals: &Globals, args: &Purge) -> Ended {
    let config = config::load(globals)?;
    let failed = |error: StoreError| Failed::new(Exit::Failure, error);
    let mut store = Store::open_existing(&config.store_path).map_err(failed)?;
    let now = SystemClock.now();
    let targets: Vec<(RepoName, Stale<'_>)> = match &args.pull {
        Some(pull) => {
            let (repo, pr) = named(pull)?;
            vec![(repo, Stale::Pull(pr))]
        }
        None => {
            let before = now.minus(config.retention.max_age);
            let names = config.repos.iter().map(|repo| repo.name.clone());
            names.map(|name| (name, Stale::Before(before))).collect()
        }
    };
    let mut emptied = 0;
    for (repo, stale) in targets {
        emptied += store
            .write_patiently(|txn| runs::purge(txn, &repo, stale, now))
            .map_err(failed)?;
    }
    print(&format!("{emptied} runs emptied\n"))?;
    Ok(Exit::Success)
}

fn named(text: &str) -> Result<(RepoName, PrNumber), Failed> {
    let parsed = text.split_once('#').and_then(|(repo, number)| {
        let repo: RepoName = repo.parse().ok()?;
        Some((repo, number.parse().ok()?))
    });
    parsed.ok_or_else(|| {
        Failed::new(
            Exit::Usage,
            format!(
                "{:?} names no pull request; write it as OWNER/REPO#N",
                crate::output::clip(text)
            ),
        )
    })
}
