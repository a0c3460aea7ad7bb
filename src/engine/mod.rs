//! The review engines: command-line tools run as subprocesses over a checkout, and the built-in
//! checks.
//!
//! [`Engine::run`] is the only way to a model, and it takes the [`Reservation`] that only the budget
//! makes. What every engine has in common is here: its environment is built from nothing, it runs
//! under our own supervisor with a time-out and bounded output, it is asked for its flags before it is
//! paid for, and its answer counts only when it names the head and the nonce of the request. What a
//! single tool speaks is in the module of its name.

pub mod answer;
pub mod builtin;
mod claude;
mod command;
mod conceal;
mod environment;
mod failure;
mod preflight;
pub mod prompt;
pub mod redact;
mod request;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::budget::{Mode, Reservation};
use crate::clock::Stop;
use crate::config::{EngineConfig, EngineKind};
use crate::ids::MicroUsd;
use crate::output::clip;
use crate::process::{self, Ended, Finished, Program};
use crate::secret::Secret;
use answer::{Answer, AnswerError, Expected, Parsed, Review};
use conceal::Concealer;
use environment::{Environment, Lookup};
use preflight::Preflight;

pub use failure::{EngineFailure, ErrorKind, FailureClass};
pub use request::{EngineRequest, EngineRun, Task, Usage};

/// Most bytes of an engine's standard output.
pub const OUTPUT_LIMIT: usize = 16 << 20;

/// A configured engine. Shared by all workers of a repository.
pub struct Engine {
    config: EngineConfig,
    /// The model engine; `None` for the built-in checks alone.
    adapter: Option<Adapter>,
    supervisor: Option<PathBuf>,
    grace: Duration,
    lookup: Box<Lookup>,
    /// GitHub tokens of this process.
    tokens: Vec<Secret>,
    preflight: Preflight,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

/// Who speaks with the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Adapter {
    Claude,
    Command,
}

/// On what terms a run was admitted.
#[derive(Debug, Clone, Copy)]
struct Terms {
    mode: Mode,
    /// The most that it may cost; zero for no limit in money.
    money: MicroUsd,
}

/// What an adapter read from a finished run.
struct Outcome {
    result: Result<Parsed, EngineFailure>,
    usage: Usage,
    model: Option<String>,
}

impl Outcome {
    /// What is said when no model is asked.
    fn without_model(request: &EngineRequest<'_>) -> Self {
        let answer = match request.task {
            Task::Review => Ok(Answer::Review(Review {
                findings: Vec::new(),
                assessment: None,
            })),
            Task::Describe => Ok(Answer::Description(builtin::describe(request.change))),
            Task::Ask(_) => Err(unavailable(
                "the built-in checks answer no questions",
                "set engine.kind to an engine that asks a model",
            )),
        };
        Self {
            result: answer.map(|answer| Parsed {
                answer,
                dropped: 0,
                truncated: false,
            }),
            usage: Usage::NOTHING,
            model: None,
        }
    }

    fn failed(failure: EngineFailure, usage: Usage) -> Self {
        Self {
            result: Err(failure),
            usage,
            model: None,
        }
    }
}

/// A program that is ready to be run, with what its adapter needs to read it.
struct Prepared {
    program: Program,
    environment: Environment,
    version: Option<String>,
}

impl Engine {
    /// The engine of `config`, supervised by `helper`, our own binary.
    pub fn new(config: &EngineConfig, helper: &Path) -> Self {
        Self {
            config: config.clone(),
            adapter: match config.kind {
                EngineKind::Builtin => None,
                EngineKind::Claude => Some(Adapter::Claude),
                EngineKind::Command => Some(Adapter::Command),
            },
            supervisor: Some(helper.to_owned()),
            grace: process::GRACE,
            lookup: Box::new(|name| std::env::var_os(name)),
            tokens: Vec::new(),
            preflight: Preflight::default(),
        }
    }

    /// The same engine, which gets none of `tokens` and can't repeat them.
    #[must_use]
    pub fn without(mut self, tokens: Vec<Secret>) -> Self {
        self.tokens = tokens;
        self
    }

    /// Whether runs of this engine may cost tokens.
    pub fn spends(&self) -> bool {
        self.adapter.is_some()
    }

    /// Whether the engine can be started: the program is there and has the flags that contain it.
    /// [`Engine::run`] asks too; what has passed once isn't asked again until the program changes.
    /// `scratch` as in [`EngineRequest`].
    ///
    /// # Errors
    /// [`EngineFailure::Unavailable`] with what to do, or [`EngineFailure::Stopped`].
    pub fn preflight(&self, scratch: &Path, stop: &Stop) -> Result<(), EngineFailure> {
        let Some(adapter) = self.adapter else {
            return Ok(());
        };
        let environment = self.environment(adapter, scratch);
        self.check(adapter, &environment, scratch, stop).map(drop)
    }

    /// Does what `request` asks for. The reservation proves that the tokens are set aside; its mode says
    /// how much to ask.
    pub fn run(
        &self,
        admission: &Reservation,
        request: &EngineRequest<'_>,
        stop: &Stop,
    ) -> EngineRun {
        let terms = Terms {
            mode: admission.mode(),
            money: admission.money(),
        };
        self.answer(terms, request, stop)
    }

    fn answer(&self, terms: Terms, request: &EngineRequest<'_>, stop: &Stop) -> EngineRun {
        let started = Instant::now();
        let mut version = None;
        // Without tokens the built-in checks answer alone.
        let adapter = self.adapter.filter(|_| terms.mode != Mode::Exhausted);
        let mut leaked = false;
        let outcome = match adapter {
            None => Outcome::without_model(request),
            Some(adapter) => match self.prepare(adapter, terms, request, stop) {
                Ok(prepared) => {
                    version.clone_from(&prepared.version);
                    let (outcome, said) = self.ask(adapter, &prepared, request, stop);
                    leaked = said;
                    outcome
                }
                Err(failure) => Outcome::failed(failure, Usage::NOTHING),
            },
        };
        let (dropped, truncated) = match &outcome.result {
            Ok(parsed) => (parsed.dropped, parsed.truncated),
            Err(_) => (0, false),
        };
        let outcome_with_checks = outcome.result.map(|parsed| {
            let mut answer = parsed.answer;
            if let Answer::Review(review) = &mut answer {
                review.findings.splice(0..0, builtin::check(request.change));
            }
            answer
        });
        EngineRun {
            outcome: outcome_with_checks,
            usage: outcome.usage,
            engine: self.name_of(adapter),
            version,
            model: outcome
                .model
                .or_else(|| adapter.and_then(|_| self.config.model.clone())),
            dropped,
            truncated,
            leaked,
            elapsed: started.elapsed(),
        }
    }

    /// The name for ledger and comment.
    pub fn name(&self) -> String {
        self.name_of(self.adapter)
    }

    fn name_of(&self, adapter: Option<Adapter>) -> String {
        match adapter {
            None => "builtin".to_owned(),
            Some(Adapter::Claude) => claude::NAME.to_owned(),
            Some(Adapter::Command) => {
                let binary = self.binary(Adapter::Command);
                clip(&binary.file_name().unwrap_or_default().to_string_lossy())
            }
        }
    }

    /// The program, a path or a name.
    fn binary(&self, adapter: Adapter) -> PathBuf {
        match adapter {
            Adapter::Claude => match &self.config.binary {
                Some(binary) => binary.clone(),
                None => claude::NAME.into(),
            },
            Adapter::Command => self
                .config
                .command
                .first()
                .map(PathBuf::from)
                .unwrap_or_default(),
        }
    }

    fn environment(&self, adapter: Adapter, scratch: &Path) -> Environment {
        let names = &self.config.env;
        match adapter {
            Adapter::Claude => {
                claude::environment(&*self.lookup, scratch.as_os_str(), names, &self.tokens)
            }
            Adapter::Command => {
                let names = names.iter().map(String::as_str);
                Environment::new(&*self.lookup, scratch.as_os_str(), names, &self.tokens)
            }
        }
    }

    /// The version, where the tool has one, of an engine that can be started.
    fn check(
        &self,
        adapter: Adapter,
        environment: &Environment,
        scratch: &Path,
        stop: &Stop,
    ) -> Result<Option<String>, EngineFailure> {
        let binary = self.binary(adapter);
        match adapter {
            Adapter::Command => preflight::locate(&binary, environment).map(|_| None),
            Adapter::Claude => {
                let check = preflight::Check {
                    binary: &binary,
                    flags: &claude::CONTAINMENT,
                    expected_version: self.config.expected_version.as_deref(),
                    environment,
                    directory: scratch,
                    supervisor: self.supervisor.as_deref(),
                };
                self.preflight.pass(&check, stop).map(Some)
            }
        }
    }

    fn prepare(
        &self,
        adapter: Adapter,
        terms: Terms,
        request: &EngineRequest<'_>,
        stop: &Stop,
    ) -> Result<Prepared, EngineFailure> {
        let environment = self.environment(adapter, request.scratch);
        let version = self.check(adapter, &environment, request.scratch, stop)?;
        let patch = redact::redact(&String::from_utf8_lossy(&request.change.patch));
        let prompt = prompt::build(request, terms.mode, &patch);
        let (args, stdin) = match adapter {
            Adapter::Claude => {
                let args = claude::args(&self.config, request.task, terms.money);
                (args, prompt.into_bytes())
            }
            Adapter::Command => {
                let args = self.config.command.iter().skip(1).chain(&self.config.args);
                let args = args.map(OsString::from).collect();
                (args, command::input(request, terms.mode, &prompt, &patch))
            }
        };
        let program = Program {
            executable: self.binary(adapter),
            args,
            env: environment.to_vec(),
            directory: request.tree.to_owned(),
            stdin,
            timeout: self.config.timeout,
            stdout_limit: OUTPUT_LIMIT,
            supervisor: self.supervisor.clone(),
        };
        Ok(Prepared {
            program,
            environment,
            version,
        })
    }

    /// Runs the program and reads what it said, without our own secrets; true when it said one.
    fn ask(
        &self,
        adapter: Adapter,
        prepared: &Prepared,
        request: &EngineRequest<'_>,
        stop: &Stop,
    ) -> (Outcome, bool) {
        let mut finished = match process::run_with_grace(&prepared.program, stop, self.grace) {
            Ok(finished) => finished,
            Err(error) if error.began => {
                let failure = EngineFailure::Error {
                    kind: ErrorKind::Crashed,
                    message: error.to_string(),
                };
                return (Outcome::failed(failure, Usage::UNKNOWN), false);
            }
            Err(error) => {
                let failure = unavailable(error.to_string(), "check the [engine] section");
                return (Outcome::failed(failure, Usage::NOTHING), false);
            }
        };
        let concealer = Concealer::new(prepared.environment.secrets());
        let printed = concealer.output(&mut finished.stdout);
        concealer.output(&mut finished.stderr);
        let expected = Expected {
            task: request.task,
            head: &request.change.head,
            nonce: request.nonce,
            root: request.tree,
            known: &|path| request.knows(path),
        };
        let mut outcome = match adapter {
            Adapter::Claude => claude::read(&finished, &expected),
            Adapter::Command => command::read(&finished, &expected),
        };
        let leaked = concealer.outcome(&mut outcome) || printed;
        // Whatever was printed before it was ended is no answer; what it measured still counts.
        match finished.ended {
            Ended::Itself => {}
            Ended::TimedOut => {
                let after = self.config.timeout;
                outcome.result = Err(EngineFailure::Timeout { after });
            }
            Ended::Stopped => outcome.result = Err(EngineFailure::Stopped),
            Ended::TooMuchOutput => {
                outcome.result = Err(EngineFailure::Error {
                    kind: ErrorKind::Crashed,
                    message: format!("it wrote more than {} MiB", OUTPUT_LIMIT >> 20),
                });
            }
        }
        (outcome, leaked)
    }
}

fn unavailable(problem: impl Into<String>, remedy: &str) -> EngineFailure {
    EngineFailure::Unavailable {
        problem: problem.into(),
        remedy: remedy.to_owned(),
    }
}

fn no_answer(error: AnswerError) -> EngineFailure {
    EngineFailure::Error {
        kind: ErrorKind::Answer,
        message: error.to_string(),
    }
}

/// A run that gave no result that can be read: how the process ended and the last line it wrote to
/// standard error.
fn crashed(finished: &Finished, how: &str) -> EngineFailure {
    let mut message = match (finished.code, finished.signal) {
        (Some(code), _) => format!("it ended with exit code {code} {how}"),
        (None, Some(signal)) => format!("signal {signal} ended it {how}"),
        (None, None) => format!("it ended {how}"),
    };
    let stderr = String::from_utf8_lossy(&finished.stderr);
    if let Some(line) = stderr.lines().rfind(|line| !line.trim().is_empty()) {
        message = format!("{message}; it said: {}", clip(line.trim()));
    }
    EngineFailure::Error {
        kind: ErrorKind::Crashed,
        message,
    }
}
