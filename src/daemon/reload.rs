//! SIGHUP: reads the configuration again and puts its budget and its rules of publishing in force.

use std::path::Path;

use crate::budget::pool;
use crate::config::{BudgetConfig, Config, Pool, show};
use crate::context::Context;
use crate::daemon::startup::StartError;
use crate::store::Store;

/// Reads `file` again. A file with a problem changes nothing; what needs a restart is said.
pub fn reload(context: &Context, file: &Path, env: &dyn Fn(&str) -> Option<String>) {
    let (new, warnings) = match Config::load(file, env) {
        Ok(loaded) => loaded,
        Err(errors) => {
            for error in errors.iter() {
                log::error!("not reloaded, the old configuration stays in force: {error}");
            }
            return;
        }
    };
    for warning in warnings {
        log::warn!("{warning}");
    }
    if new.budget.pool != context.config.budget.pool {
        log::error!(
            "not reloaded, the old configuration stays in force: budget.authority and budget.comply \
             need a restart"
        );
        return;
    }
    if let Err(error) = publish(context, &new.budget) {
        log::error!("not reloaded, the old configuration stays in force: {error}");
        return;
    }
    context.replace_budget(new.budget.clone());
    context.replace_publish(&new.repos);
    context.wake(context.config.worker.count as usize);
    let mut old = Config {
        budget: new.budget.clone(),
        ..context.config.clone()
    };
    old.defaults.publish = new.defaults.publish.clone();
    for repo in &mut old.repos {
        if let Some(other) = new.repos.iter().find(|other| other.name == repo.name) {
            repo.rules.publish = other.rules.publish.clone();
        }
    }
    let rest = if show(&old) == show(&new) {
        ""
    } else {
        "; what else changed in the file needs a restart"
    };
    log::info!(
        "the budget and the rules of publishing were reloaded from {}{rest}",
        file.display()
    );
}

/// An authority's limits reach those that comply at their next claim.
fn publish(context: &Context, budget: &BudgetConfig) -> Result<(), StartError> {
    let Some(first) = context.served.first() else {
        return Ok(());
    };
    if budget.pool != Pool::Authority {
        return Ok(());
    }
    let mut store = Store::open_existing(&context.store_path)?;
    let (me, now) = (&first.repo.name, context.clock.now());
    Ok(store.write_patiently(|txn| pool::join(txn, budget, me, now))??)
}
