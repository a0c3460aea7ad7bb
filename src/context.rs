//! What the threads of one process share: configuration, clients, engines, checkouts, clock, stops.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};

use crate::clock::{Clock, Stop};
use crate::config::{BudgetConfig, Config, PublishConfig, RepoConfig};
use crate::engine::Engine;
use crate::github::Client;
use crate::ids::RepoName;
use crate::secret::Secret;
use crate::worker::Told;
use crate::workspace::Workspace;

/// Shared by the poll thread and the workers; made once at start-up.
#[derive(Debug)]
pub struct Context {
    /// The configuration that the process started with; its budget is in [`Context::budget`].
    pub config: Config,
    /// The budget in force, which a reload replaces.
    budget: RwLock<Arc<BudgetConfig>>,
    /// What may be posted in each served repository, in their order; a reload replaces it.
    publish: RwLock<Arc<[PublishConfig]>>,
    /// Which refusals the operator was told.
    told: Mutex<Told>,
    /// Wakes a waiting worker: a row may be claimable now.
    wake: (Sender<()>, Receiver<()>),
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Set when nothing more is to be polled or claimed.
    pub drain: Stop,
    /// Set when runs in flight are to end at once.
    pub kill: Stop,
    /// Mirrors and checkouts.
    pub workspace: Workspace,
    /// The repositories served, in the configuration's order.
    pub served: Vec<Served>,
    /// The store's path, for each thread's own connection.
    pub store_path: PathBuf,
}

/// One repository with what talks to it and reviews it.
#[derive(Debug)]
pub struct Served {
    /// Its name and rules.
    pub repo: RepoConfig,
    /// The client that carries its token.
    pub client: Client,
    /// The token, which git needs for a private repository.
    pub token: Secret,
    /// The engine that its rules name.
    pub engine: Engine,
}

impl Context {
    /// The context of `config` before anything runs.
    pub fn new(
        config: Config,
        clock: Arc<dyn Clock>,
        drain: Stop,
        kill: Stop,
        workspace: Workspace,
        served: Vec<Served>,
    ) -> Self {
        Self {
            budget: RwLock::new(Arc::new(config.budget.clone())),
            publish: RwLock::new(
                served
                    .iter()
                    .map(|one| one.repo.rules.publish.clone())
                    .collect(),
            ),
            store_path: config.store_path.clone(),
            told: Mutex::default(),
            wake: bounded(config.worker.count as usize),
            config,
            clock,
            drain,
            kill,
            workspace,
            served,
        }
    }

    /// The budget in force.
    pub fn budget(&self) -> Arc<BudgetConfig> {
        Arc::clone(&self.budget.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts another budget in force, from the next claim on.
    pub fn replace_budget(&self, budget: BudgetConfig) {
        *self.budget.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(budget);
    }

    /// What may be posted in a served repository.
    pub fn publish(&self, served: &Served) -> PublishConfig {
        let rules = self.publish.read().unwrap_or_else(PoisonError::into_inner);
        let place = self
            .served
            .iter()
            .position(|one| one.repo.name == served.repo.name);
        let own = place.and_then(|place| rules.get(place));
        own.unwrap_or(&served.repo.rules.publish).clone()
    }

    /// Puts other rules of publishing in force, from the next publication on. A repository that `new`
    /// does not have keeps its own.
    pub fn replace_publish(&self, new: &[RepoConfig]) {
        let rules = self.served.iter().map(|served| {
            let own = new.iter().find(|repo| repo.name == served.repo.name);
            own.map_or_else(|| self.publish(served), |repo| repo.rules.publish.clone())
        });
        let rules = rules.collect();
        *self.publish.write().unwrap_or_else(PoisonError::into_inner) = rules;
    }

    /// Which refusals the operator was told.
    pub fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes up to `count` waiting workers; those that are busy will look anyway.
    pub fn wake(&self, count: usize) {
        for _ in 0..count {
            if self.wake.0.try_send(()).is_err() {
                return;
            }
        }
    }

    /// Waits for a wake-up, at most for `span`; tells whether there was one.
    pub fn woken(&self, span: Duration) -> bool {
        self.wake.1.recv_timeout(span).is_ok()
    }

    /// The served repository of this name.
    pub fn served(&self, name: &RepoName) -> Option<&Served> {
        self.served.iter().find(|served| served.repo.name == *name)
    }

    /// The names of all that is served: rows of others are not claimed.
    pub fn names(&self) -> Vec<RepoName> {
        self.served
            .iter()
            .map(|served| served.repo.name.clone())
            .collect()
    }

    /// Every token in use, which no posted text may contain.
    pub fn secrets(&self) -> Vec<&Secret> {
        self.served.iter().map(|served| &served.token).collect()
    }
}
