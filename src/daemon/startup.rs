//! What `run` and `once` do before the first request: read secrets, open the store, find git, clear
//! what a dead process left.

use std::path::Path;
use std::sync::Arc;

use crate::budget::pool::{self, PoolError};
use crate::clock::{Clock, Stop};
use crate::config::{Config, ConfigError};
use crate::context::{Context, Served};
use crate::daemon::lock::{InstanceLock, LockError};
use crate::engine::Engine;
use crate::github::Client;
use crate::ids::{OwnerName, nonce};
use crate::process::{self, Identity};
use crate::store::{Store, StoreError, owners, watermarks};
use crate::workspace::{Workspace, WorkspaceError};

/// Why a daemon or cycle can't start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is nothing to watch, or a token can't be read.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The store can't be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// git or the cache directory can't be used.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// Another instance is at work, or the lock can't be taken.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The process can't take its place among those that share the store.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// The system refused something basic.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
}

/// A process that is ready to poll and review.
#[derive(Debug)]
pub struct Started {
    /// What its threads share.
    pub context: Arc<Context>,
    /// The first connection, for the poll thread.
    pub store: Store,
    /// Prefix of the names of this process's workers.
    pub process_name: String,
    _lock: InstanceLock,
}

/// Prepares everything. `env` reads an environment variable.
///
/// # Errors
/// Each with the place and the remedy; nothing was started.
pub fn start(
    config: Config,
    clock: Arc<dyn Clock>,
    drain: Stop,
    kill: Stop,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Started, StartError> {
    config.require_repositories()?;
    let supervisor = std::env::current_exe().map_err(|source| StartError::System {
        what: "cannot find our own program",
        source,
    })?;
    let first = config.repos.first().map(|repo| &repo.name);
    let shared_by = first.filter(|_| config.budget.pool.is_shared());
    let lock = match shared_by {
        Some(member) => InstanceLock::share(&config.store_path, member)?,
        None => InstanceLock::take(&config.store_path)?,
    };
    let mut store = Store::open(&config.store_path)?;
    if let Some(member) = shared_by {
        let (budget, now) = (&config.budget, clock.now());
        store.write_patiently(|txn| pool::join(txn, budget, member, now))??;
    }
    let workspace = Workspace::open(&config.workspace, Some(supervisor.clone()))?;
    let served = serve(&config, &clock, &kill, &supervisor, env)?;
    clear(&mut store, &config, &workspace)?;
    let context = Context::new(config, clock, drain, kill, workspace, served);
    let process_name = name_process()?;
    Ok(Started {
        context: Arc::new(context),
        store,
        process_name,
        _lock: lock,
    })
}

/// What each repository needs. Repositories with the same token share one client, and with it the
/// limits and the spacing of writes that GitHub keeps for a token.
fn serve(
    config: &Config,
    clock: &Arc<dyn Clock>,
    kill: &Stop,
    supervisor: &Path,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<Served>, StartError> {
    let tokens = config
        .repos
        .iter()
        .map(|repo| {
            let source = repo.token.as_ref().unwrap_or(&config.github.token);
            source.resolve(env)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let mut served: Vec<Served> = Vec::new();
    for (repo, token) in config.repos.iter().zip(&tokens) {
        let known = served.iter().find(|other| other.token == *token);
        let client = match known {
            Some(other) => other.client.clone(),
            None => Client::new(
                &config.github,
                token.clone(),
                Arc::clone(clock),
                kill.clone(),
            ),
        };
        let engine = Engine::new(&repo.rules.engine, supervisor).without(tokens.clone());
        served.push(Served {
            repo: repo.clone(),
            client,
            token: token.clone(),
            engine,
        });
    }
    Ok(served)
}

/// Takes over what an earlier process left: leases of the dead, stale checkouts, and the watermarks
/// of a store that knew only one repository.
fn clear(store: &mut Store, config: &Config, workspace: &Workspace) -> Result<(), StartError> {
    let identity = identity()?;
    let freed =
        store.write_patiently(|txn| owners::free_dead(txn, &identity.host, &process::is_alive))?;
    if freed > 0 {
        log::info!("{freed} leases of a process that is gone were freed");
    }
    if let Some(first) = config.repos.first() {
        store.write_patiently(|txn| watermarks::adopt_unqualified(txn, &first.name))?;
    }
    let swept = workspace.sweep()?;
    if !swept.is_empty() {
        log::info!("swept {swept}");
    }
    Ok(())
}

/// A name that no other start of any process has.
fn name_process() -> Result<String, StartError> {
    let nonce = nonce().map_err(|source| StartError::System {
        what: "no source of randomness",
        source,
    })?;
    let identity = identity()?;
    Ok(format!(
        "{}/{}/{}",
        identity.host,
        identity.pid,
        &nonce[..8]
    ))
}

fn identity() -> Result<Identity, StartError> {
    process::identity().map_err(|source| StartError::System {
        what: "cannot read /proc/self/stat",
        source,
    })
}

impl Started {
    /// Makes the name of worker `number` in its `life`th life and records which process is behind
    /// it, so that its leases can be freed as soon as that process is gone.
    ///
    /// # Errors
    /// When the store can't be written or the process can't be identified.
    pub fn name_worker(
        store: &mut Store,
        context: &Context,
        process_name: &str,
        number: u32,
        life: u32,
    ) -> Result<OwnerName, StartError> {
        let identity = identity()?;
        let name = OwnerName(format!("{process_name}/w{number}.{life}"));
        let now = context.clock.now();
        store.write_patiently(|txn| owners::register(txn, &name, &identity, now))?;
        Ok(name)
    }
}
