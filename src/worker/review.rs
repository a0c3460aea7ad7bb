//! A review from the pull request's facts to the recorded run.

use std::sync::Arc;
use std::time::Duration;

use super::facts::{self, Facts, Open};
use super::heartbeat::while_leased;
use super::unreviewed::{Finish, Unreviewed, settlement, unreachable};
use super::{Claimed, End, Phase, Timer, Worker};
use crate::budget::{self, Mode, Reservation};
use crate::clock::{Stop, Timestamp};
use crate::context::{Context, Served};
use crate::engine::answer::Answer;
use crate::engine::{self, EngineFailure, EngineRequest, EngineRun, Task};
use crate::findings::notice::{Failure, Notice};
use crate::findings::{Finding, Reply, numbers};
use crate::ids::{CommitSha, MicroUsd, Tokens, nonce};
use crate::publish::{Published, acknowledge};
use crate::store::ledger::{Confidence, Settlement, StopReason};
use crate::store::queue::{self, Command, Trigger};
use crate::store::runs::{self, Outcome, Provenance, Publication, PublishOutcome, Run};
use crate::store::{StoreError, repos, sticky};
use crate::workspace::{Checkout, CheckoutRequest, FailureClass, WorkspaceError};

/// The pull request that is to be looked at, or why it is not.
type Examined = Result<Box<Open>, Box<Unreviewed>>;

/// What an engine made of a checkout.
struct Ran {
    open: Box<Open>,
    run_id: String,
    checkout: Checkout,
    /// The findings of the reviews before, newest review first.
    earlier: Vec<Vec<Finding>>,
    run: EngineRun,
}

/// Why work on a row ends early: the row's own reasons, or a fault of the store.
enum Early {
    Unreviewed(Box<Unreviewed>),
    Store(StoreError),
}

impl From<Box<Unreviewed>> for Early {
    fn from(unreviewed: Box<Unreviewed>) -> Self {
        Self::Unreviewed(unreviewed)
    }
}

impl From<StoreError> for Early {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Worker {
    /// Reviews the pull request of `row` and publishes the run.
    pub(super) fn review(
        &mut self,
        claimed: Claimed<'_>,
        reservation: Reservation,
        timer: &mut Timer,
    ) -> Result<End, StoreError> {
        let context = Arc::clone(&self.context);
        let owner = self.name.clone();
        // A lost lease ends the run; recording finds out, too, and discards what came of it.
        let ran = while_leased(&context, &claimed.row.key, &owner, |stop| {
            self.run(claimed, &reservation, timer, stop)
        });
        let ran = match ran {
            Ok(ran) => ran,
            Err(Early::Unreviewed(unreviewed)) => {
                return self.finish(claimed.served, claimed.row, reservation, *unreviewed);
            }
            // What another program wrote into a row is no fault of the store: nothing was asked, so
            // nothing is charged, and a later attempt may find it corrected.
            Err(Early::Store(error @ StoreError::Column { .. })) => {
                log::error!(key = claimed.row.key.as_str(); "not reviewed yet: {error}");
                let unreviewed = Unreviewed {
                    settlement: settlement(StopReason::Infrastructure, context.clock.now()),
                    finish: Finish::Release,
                    end: End::Released(error.to_string()),
                    notice: None,
                };
                return self.finish(claimed.served, claimed.row, reservation, unreviewed);
            }
            Err(Early::Store(error)) => return Err(error),
        };
        self.conclude(&context, claimed, reservation, ran, timer)
    }

    /// From the pull request's facts to what the engine says. Nothing here is recorded.
    fn run(
        &mut self,
        claimed: Claimed<'_>,
        reservation: &Reservation,
        timer: &mut Timer,
        stop: &Stop,
    ) -> Result<Ran, Early> {
        let context = Arc::clone(&self.context);
        let Claimed { served, row, .. } = claimed;
        let facts = self.facts(served, row)?;
        timer.lap(Phase::Facts);
        let open = facts?;
        let job = Job {
            context: &context,
            served,
            row,
            open: &open,
            stop,
        };
        let run_id = nonce().map_err(|error| {
            Box::new(job.released(format!("no randomness for a run id: {error}"), None))
        })?;
        let checkout = job.checkout(&run_id);
        timer.lap(Phase::Checkout);
        let checkout = checkout?;
        if let Some(unreviewed) = self.admissible(&job, reservation, &checkout)? {
            return Err(Box::new(unreviewed).into());
        }
        let earlier = self
            .store
            .read(|txn| runs::earlier_findings(txn, &row.repo, row.pr, None))?;
        // A checkout may take long. An engine is paid only for a row that is certainly ours.
        let until = job.now().plus(context.config.worker.lease);
        let owner = &self.name;
        let held = self
            .store
            .write_patiently(|txn| queue::renew(txn, &row.key, owner, until))?;
        if !held {
            return Err(Box::new(job.lost()).into());
        }
        let run = job.ask_engine(
            reservation,
            &checkout,
            earlier.first().map_or(&[], Vec::as_slice),
            &run_id,
        )?;
        timer.lap(Phase::Engine);
        Ok(Ran {
            open,
            run_id,
            checkout,
            earlier,
            run,
        })
    }

    /// The pull request's state, and the acknowledgement once it is certain that it is looked at.
    fn facts(&mut self, served: &Served, row: &Trigger) -> Result<Examined, StoreError> {
        let known_id = self.store.read(|txn| repos::id(txn, &row.repo))?;
        let now = self.context.clock.now();
        let nothing = |reason| settlement(reason, now);
        let facts = match facts::gather(served, row, known_id) {
            Ok(facts) => facts,
            Err(error) => return Ok(Err(Box::new(unreachable(&error, now)))),
        };
        let (text, notice, reason) = match facts {
            Facts::Closed(text) => (text, None, StopReason::Closed),
            Facts::Refused(text, notice) => (text, notice, StopReason::Refused),
            Facts::Help(head, notice) => {
                return Ok(Err(Box::new(Unreviewed {
                    settlement: nothing(StopReason::Completed),
                    finish: Finish::Complete,
                    end: End::Released("the lease was lost before help was given".to_owned()),
                    notice: Some((head, notice)),
                })));
            }
            Facts::Open(open) => {
                self.store
                    .write_patiently(|txn| repos::remember(txn, &row.repo, open.repo))?;
                let head = &open.pull.head.sha;
                let again = row.comment.is_none()
                    && self
                        .store
                        .read(|txn| runs::completed_for_head(txn, &row.repo, row.pr, head))?;
                if !again {
                    acknowledge(&served.client, row, &self.context.publish(served));
                    return Ok(Ok(open));
                }
                (
                    format!("{} was reviewed already", head.short()),
                    None,
                    StopReason::Refused,
                )
            }
        };
        log::info!(repo = row.repo.as_str(), pr = row.pr.get(), key = row.key.as_str(); "not reviewed: {text}");
        Ok(Err(Box::new(Unreviewed {
            settlement: nothing(reason),
            finish: Finish::Abandon,
            end: End::Dropped(text),
            notice,
        })))
    }

    /// Whether a spending engine can be started and the change fits the reservation.
    fn admissible(
        &mut self,
        job: &Job<'_>,
        reservation: &Reservation,
        checkout: &Checkout,
    ) -> Result<Option<Unreviewed>, StoreError> {
        if !job.served.engine.spends() || reservation.mode() == Mode::Exhausted {
            return Ok(None);
        }
        let (lines, bytes) = (checkout.change.lines, checkout.change.patch.len() as u64);
        let fits = self
            .store
            .read(|txn| budget::preflight(txn, reservation, lines, bytes))?;
        if let Err(too_large) = fits {
            let notice = Notice::OverEstimate {
                lines,
                estimate: too_large.estimate.0,
                reserved: too_large.reserved.0,
                ask: job.row.command == Command::Ask,
            };
            return Ok(Some(job.refused(too_large.to_string(), notice)));
        }
        Ok(job
            .served
            .engine
            .preflight(&checkout.scratch, job.stop)
            .err()
            .map(|failure| {
                log::error!(repo = job.row.repo.as_str(), pr = job.row.pr.get(); "{failure}");
                let text = failure.to_string();
                Unreviewed {
                    settlement: settlement(failure.stop_reason(), job.now()),
                    finish: Finish::Release,
                    end: End::EngineUnavailable(text),
                    notice: job.of_head(job.failed(Failure::EngineUnavailable)),
                }
            }))
    }

    /// Settles and records in one transaction, then publishes; or finishes a failed run.
    fn conclude(
        &mut self,
        context: &Context,
        claimed: Claimed<'_>,
        reservation: Reservation,
        ran: Ran,
        timer: &mut Timer,
    ) -> Result<End, StoreError> {
        let Ran {
            open,
            run_id,
            checkout,
            earlier,
            run,
        } = ran;
        let Claimed { served, row, at } = claimed;
        let job = Job {
            context,
            served,
            row,
            open: &open,
            stop: &context.kill,
        };
        let lines = checkout.change.lines;
        let mut settlement = job.measured(&reservation, &run, lines);
        let answer = match run.outcome {
            Ok(answer) => answer,
            Err(failure) => {
                settlement.reason = failure.stop_reason();
                let unreviewed = job.engine_failed(&failure, settlement);
                return self.finish(served, row, reservation, unreviewed);
            }
        };
        let (change, leaked) = (&checkout.change, run.leaked);
        let now = job.now();
        let owner = self.name.clone();
        let lease = now.plus(self.context.config.worker.lease);
        let (mut findings, assessment, reply) = match answer {
            Answer::Review(review) => (review.findings, review.assessment, None),
            Answer::Description(text) => (Vec::new(), None, Some(Reply::Description(text))),
            Answer::Text(text) => {
                let question = open.question.clone().unwrap_or_default();
                (Vec::new(), None, Some(Reply::Answer { question, text }))
            }
        };
        let recorded = self.store.write_patiently(|txn| {
            let last = sticky::last_number(txn, &row.repo, row.pr)?;
            let last = numbers::assign(&mut findings, &earlier, last);
            sticky::raise_number(txn, &row.repo, row.pr, last)?;
            let record = Run {
                key: row.key.clone(),
                repo: row.repo.clone(),
                pr: row.pr,
                head: change.head.clone(),
                outcome: if run.truncated {
                    Outcome::Truncated
                } else {
                    Outcome::Completed
                },
                findings,
                omitted: change.omitted.clone(),
                assessment,
                command: row.command,
                reply,
                notice: None,
                provenance: Some(Provenance {
                    base: change.base.clone(),
                    commits: change.commits,
                    files: change.files.len() as u32,
                    lines,
                    round: match row.command {
                        Command::Review => runs::next_round(txn, &row.repo, row.pr)?,
                        _ => 0,
                    },
                    engine: settlement.engine.clone().unwrap_or_default(),
                    model: settlement.model.clone(),
                    tokens: settlement.used,
                    confidence: settlement.confidence,
                    mode: reservation.mode(),
                    dropped: run.dropped,
                }),
                nonce: Some(run_id),
                recorded_at: now,
                publication: Publication::default(),
            };
            let charged = budget::settle(txn, reservation, &settlement)?;
            if !queue::complete(txn, &row.key, &owner)? || !charged {
                return Ok::<_, StoreError>(false);
            }
            runs::record(txn, &record)?;
            if leaked {
                runs::published(txn, &row.key, None, PublishOutcome::Refused, now)?;
            } else {
                queue::insert_publish(txn, &row.key, Some((&owner, lease)), now)?;
            }
            // Of two questions neither answers the other.
            if row.command != Command::Ask {
                queue::fold(txn, row, &change.head, at)?;
            }
            Ok(true)
        })?;
        timer.lap(Phase::Record);
        if !recorded {
            return Ok(End::Released(
                "the lease was lost during the run; it is discarded".to_owned(),
            ));
        }
        if leaked {
            log::error!(repo = row.repo.as_str(), pr = row.pr.get(), key = row.key.as_str();
                "the engine said one of our own secrets; its review is not posted");
            return Ok(End::Recorded(Published::Refused));
        }
        let published = self.publish_run(served, row)?;
        timer.lap(Phase::Publish);
        Ok(End::Recorded(published))
    }
}

/// One review's fixed surroundings.
struct Job<'a> {
    context: &'a Context,
    served: &'a Served,
    row: &'a Trigger,
    open: &'a Open,
    /// Set when the daemon stops or the lease is lost.
    stop: &'a Stop,
}

impl Job<'_> {
    fn now(&self) -> Timestamp {
        self.context.clock.now()
    }

    fn checkout(&self, run_id: &str) -> Result<Checkout, Box<Unreviewed>> {
        // git follows no redirect, so a renamed repository is fetched by the name it has now.
        let name = self
            .open
            .pull
            .base
            .repo
            .as_ref()
            .map_or(&self.row.repo, |base| &base.full_name);
        let remote = self.context.config.github.git_url(name);
        let request = CheckoutRequest {
            repo: name,
            repo_id: self.open.repo,
            pr: self.row.pr,
            head: &self.open.pull.head.sha,
            base_ref: &self.open.pull.base.name,
            remote: &remote,
            token: Some(&self.served.token),
            run: run_id,
            caps: &self.served.repo.rules.caps,
        };
        let error = match self.context.workspace.checkout(&request, self.stop) {
            Ok(checkout) if checkout.change.files.is_empty() => {
                let text = "nothing is left to review".to_owned();
                return Err(Box::new(self.refused(text, Notice::NothingToReview)));
            }
            Ok(checkout) => return Ok(checkout),
            Err(error) => error,
        };
        Err(Box::new(self.checkout_failed(&error)))
    }

    fn checkout_failed(&self, error: &WorkspaceError) -> Unreviewed {
        match error.class() {
            FailureClass::Deterministic => self.refused(error.to_string(), self.told_of(error)),
            FailureClass::Transient => self.released(error.to_string(), Some(Failure::Checkout)),
            FailureClass::Stopped => self.stopped(),
        }
    }

    /// What the author can do something about; else only that it failed.
    fn told_of(&self, error: &WorkspaceError) -> Notice {
        match *error {
            WorkspaceError::TooLarge {
                files,
                lines,
                max_files,
                max_lines,
            } => Notice::TooLarge {
                files,
                lines,
                max_files,
                max_lines,
            },
            WorkspaceError::TooManyBytes { limit, .. } | WorkspaceError::TreeTooLarge { limit } => {
                Notice::TooManyBytes {
                    limit: limit as u64,
                }
            }
            WorkspaceError::NoMergeBase { .. } => Notice::NoCommonHistory,
            WorkspaceError::UnsafePath { .. } => Notice::UnsafePath,
            _ => self.failed(Failure::Checkout),
        }
    }

    /// What is told when this attempt is the last.
    fn failed(&self, failure: Failure) -> Notice {
        let attempts = self.row.attempts + 1;
        Notice::Failed { attempts, failure }
    }

    fn of_head(&self, notice: Notice) -> Option<(CommitSha, Notice)> {
        Some((self.open.pull.head.sha.clone(), notice))
    }

    fn ask_engine(
        &self,
        reservation: &Reservation,
        checkout: &Checkout,
        earlier: &[Finding],
        run_id: &str,
    ) -> Result<EngineRun, Box<Unreviewed>> {
        let rules = &self.served.repo.rules;
        let standards = checkout
            .standards(&rules.engine.standards_paths, self.stop)
            .map_err(|error| Box::new(self.checkout_failed(&error)))?;
        let request = EngineRequest {
            task: self.task(),
            repo: Some(&self.row.repo),
            pr: Some(self.row.pr),
            title: &self.open.pull.title,
            author: self
                .open
                .pull
                .user
                .as_ref()
                .map_or("ghost", |user| user.login.as_str()),
            base_ref: &self.open.pull.base.name,
            change: &checkout.change,
            tree: &checkout.tree,
            earlier,
            standards: &standards,
            review: &rules.review,
            nonce: run_id,
            scratch: &checkout.scratch,
        };
        Ok(self.served.engine.run(reservation, &request, self.stop))
    }

    fn task(&self) -> Task<'_> {
        match (self.row.command, &self.open.question) {
            (Command::Ask, Some(question)) => Task::Ask(question),
            (Command::Describe, _) => Task::Describe,
            _ => Task::Review,
        }
    }

    /// The settlement of a run that reached the engine: what it measured, else all of it.
    fn measured(&self, reservation: &Reservation, run: &EngineRun, lines: u32) -> Settlement {
        let (used, confidence) = match run.usage.tokens {
            Some(tokens) => (tokens, Confidence::Exact),
            None => (reservation.tokens(), Confidence::Unavailable),
        };
        Settlement {
            used,
            money: run.usage.cost_microusd.map(MicroUsd),
            confidence,
            engine: Some(run.engine.clone()),
            model: run.model.clone(),
            // What other tasks use says nothing about what a review will use.
            lines: (self.row.command == Command::Review).then_some(lines),
            reason: if run.truncated {
                StopReason::Truncated
            } else {
                StopReason::Completed
            },
            at: self.now(),
        }
    }

    fn engine_failed(&self, failure: &EngineFailure, mut settlement: Settlement) -> Unreviewed {
        log::warn!(repo = self.row.repo.as_str(), pr = self.row.pr.get(), key = self.row.key.as_str(),
            reason = settlement.reason.as_str(); "the review engine failed: {failure}");
        let (finish, end) = match failure {
            EngineFailure::Unavailable { .. } => {
                settlement.used = Tokens::ZERO;
                (Finish::Release, End::EngineUnavailable(failure.to_string()))
            }
            EngineFailure::UsageLimit { .. } => (
                Finish::Unattempted(Duration::ZERO),
                End::Released(failure.to_string()),
            ),
            EngineFailure::Stopped if settlement.used == Tokens::ZERO => (
                Finish::Unattempted(Duration::ZERO),
                End::Released(failure.to_string()),
            ),
            _ if failure.class() == engine::FailureClass::Deterministic => {
                (Finish::Abandon, End::Dropped(failure.to_string()))
            }
            _ => (Finish::Release, End::Released(failure.to_string())),
        };
        Unreviewed {
            settlement,
            finish,
            end,
            notice: failure
                .told()
                .and_then(|failure| self.of_head(self.failed(failure))),
        }
    }

    fn refused(&self, text: String, notice: Notice) -> Unreviewed {
        log::warn!(repo = self.row.repo.as_str(), pr = self.row.pr.get(), key = self.row.key.as_str();
            "not reviewed: {text}");
        Unreviewed {
            settlement: settlement(StopReason::Refused, self.now()),
            finish: Finish::Abandon,
            end: End::Dropped(text),
            notice: self.of_head(notice),
        }
    }

    fn released(&self, text: String, failure: Option<Failure>) -> Unreviewed {
        log::warn!(repo = self.row.repo.as_str(), pr = self.row.pr.get(), key = self.row.key.as_str();
            "not reviewed yet: {text}");
        Unreviewed {
            settlement: settlement(StopReason::Infrastructure, self.now()),
            finish: Finish::Release,
            end: End::Released(text),
            notice: failure.and_then(|failure| self.of_head(self.failed(failure))),
        }
    }

    fn lost(&self) -> Unreviewed {
        Unreviewed {
            settlement: settlement(StopReason::Infrastructure, self.now()),
            finish: Finish::Unattempted(Duration::ZERO),
            end: End::Released("the lease was lost before the engine was asked".to_owned()),
            notice: None,
        }
    }

    fn stopped(&self) -> Unreviewed {
        Unreviewed {
            settlement: settlement(StopReason::Infrastructure, self.now()),
            finish: Finish::Unattempted(Duration::ZERO),
            end: End::Released("prwarden stops".to_owned()),
            notice: None,
        }
    }
}
