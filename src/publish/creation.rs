//! The lease on creating a pull request's one comment: of all workers and processes on a store one at a
//! time looks for the comment and creates it.

use std::path::Path;
use std::thread;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, bounded};

use crate::clock::{Clock, Stop};
use crate::ids::{PrNumber, RepoName};
use crate::store::{Store, StoreError, sticky};

/// How often the lease of 60 s is renewed.
const HEARTBEAT: Duration = Duration::from_secs(20);

/// How long one waits for another's lease before the publication is put off.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(240);

/// How often a waiting worker looks again.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// What the lease is for and whose it is.
#[derive(Clone, Copy)]
pub(super) struct Lease<'a> {
    pub(super) repo: &'a RepoName,
    pub(super) pr: PrNumber,
    /// Random: only who took the lease can renew it or give it back.
    pub(super) token: &'a str,
    pub(super) clock: &'a dyn Clock,
}

impl Lease<'_> {
    pub(super) fn take(&self, store: &mut Store) -> Result<bool, StoreError> {
        store.write_patiently(|txn| {
            sticky::lease(txn, self.repo, self.pr, self.token, self.clock.now())
        })
    }

    /// False when the lease lapsed: another may be creating the comment.
    pub(super) fn renew(&self, store: &mut Store) -> Result<bool, StoreError> {
        store.write_patiently(|txn| {
            sticky::renew(txn, self.repo, self.pr, self.token, self.clock.now())
        })
    }

    /// Gives the lease back. One that can't be given back lapses.
    pub(super) fn release(&self, store: &mut Store) {
        let released =
            store.write_patiently(|txn| sticky::release(txn, self.repo, self.pr, self.token));
        if let Err(error) = released {
            log::warn!(repo = self.repo.as_str(), pr = self.pr.get(); "a lease stays until it lapses: {error}");
        }
    }

    /// Runs `body` while another thread, with a connection of its own to `path`, keeps the lease alive.
    pub(super) fn while_held<T>(&self, path: &Path, body: impl FnOnce() -> T) -> T {
        let (finished, watched) = bounded::<()>(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                while watched.recv_timeout(HEARTBEAT) == Err(RecvTimeoutError::Timeout) {
                    let renewed =
                        Store::open_existing(path).and_then(|mut store| self.renew(&mut store));
                    match renewed {
                        Ok(true) => {}
                        // Whoever is about to write asks again and finds out.
                        Ok(false) => return,
                        Err(error) => log::warn!("the lease on a comment is not renewed: {error}"),
                    }
                }
            });
            let result = body();
            drop(finished);
            result
        })
    }

    /// Waits a moment; false when prwarden stops.
    pub(super) fn wait(&self, stop: &Stop) -> bool {
        self.clock.wait(LOOK_AGAIN, stop);
        !stop.is_set()
    }
}
