//! SIGHUP: reads the configuration again and puts its budget in force.

use std::path::Path;

use crate::config::{Config, show};
use crate::context::Context;

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
    context.replace_budget(new.budget.clone());
    let old = Config {
        budget: new.budget.clone(),
        ..context.config.clone()
    };
    let rest = if show(&old) == show(&new) {
        ""
    } else {
        "; what else changed in the file needs a restart"
    };
    log::info!("the budget was reloaded from {}{rest}", file.display());
}
