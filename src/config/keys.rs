//! The one table of sections and keys. Unknown names, the templates of `config init` and the manual
//! page are made from it or checked against it.

use Fallback::{Unset, Value};

use super::error::Wrong;

/// A section of the file.
#[derive(Debug)]
pub struct Section {
    /// As it stands between brackets, for example `triggers.ignore`.
    pub name: &'static str,
    /// What it is about, in one line.
    pub doc: &'static str,
    /// A `[[repo]]` may override its keys that are [`Key::per_repo`].
    pub per_repo: bool,
    /// Its keys in the order in which people read them.
    pub keys: &'static [Key],
}

/// One key.
#[derive(Debug)]
pub struct Key {
    /// The key's name within its section.
    pub name: &'static str,
    /// What a missing key means.
    pub default: Fallback,
    /// What it does, with its unit, in one line.
    pub doc: &'static str,
    /// A `[[repo]]` may override it.
    pub per_repo: bool,
}

/// What a missing key means. The texts are TOML values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallback {
    /// The same as this value.
    Value(&'static str),
    /// Nothing, or something that depends on the rest, as the key's doc says; the value is an example.
    Unset(&'static str),
}

impl Fallback {
    /// The value that a template shows.
    pub fn shown(self) -> &'static str {
        match self {
            Self::Value(text) | Self::Unset(text) => text,
        }
    }
}

impl Section {
    /// The key of this name.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// The part of the name after its last dot.
    pub fn last_name(&self) -> &'static str {
        self.name.rsplit('.').next().unwrap_or(self.name)
    }
}

/// A key that a `[[repo]]` may override.
const fn rule(name: &'static str, default: Fallback, doc: &'static str) -> Key {
    Key {
        name,
        default,
        doc,
        per_repo: true,
    }
}

/// A key that holds for the whole process.
const fn global(name: &'static str, default: Fallback, doc: &'static str) -> Key {
    Key {
        name,
        default,
        doc,
        per_repo: false,
    }
}

/// `[github]`.
pub static GITHUB: Section = Section {
    name: "github",
    doc: "How GitHub is reached. The token itself never stands in this file.",
    per_repo: false,
    keys: &[
        global(
            "api_url",
            Value("\"https://api.github.com\""),
            "root of the API; https://HOST/api/v3 for GitHub Enterprise Server",
        ),
        global(
            "web_url",
            Unset("\"https://github.com\""),
            "web host that git clones from and links point to; derived from api_url",
        ),
        global(
            "token_env",
            Value("\"GITHUB_TOKEN\""),
            "environment variable that holds the token; else the systemd credential github-token",
        ),
        global(
            "token_file",
            Unset("\"/etc/prwarden/token\""),
            "file that holds the token, readable by its owner alone; instead of token_env",
        ),
        global(
            "ca_file",
            Unset("\"/etc/ssl/certs/private-ca.pem\""),
            "more trusted certificates (PEM) for a private certificate authority",
        ),
    ],
};

/// `[[repo]]`.
pub static REPO: Section = Section {
    name: "repo",
    doc: "A repository to serve; one [[repo]] for each. Keys of [repo.triggers], [repo.engine], \
          [repo.review], [repo.budget] (caps only) and [repo.publish] override those of the sections \
          without \"repo.\".",
    per_repo: false,
    keys: &[
        rule(
            "name",
            Unset("\"example-owner/example-repo\""),
            "owner/name; required",
        ),
        rule(
            "token_file",
            Unset("\"/etc/prwarden/token-example\""),
            "its own token instead of the one of [github]",
        ),
    ],
};

/// `[triggers]`.
pub static TRIGGERS: Section = Section {
    name: "triggers",
    doc: "Who and what starts a review.",
    per_repo: true,
    keys: &[
        rule(
            "allowlist",
            Value("[]"),
            "numeric ids of the accounts that may cause spending; empty allows nobody",
        ),
        rule(
            "handle",
            Value("\"prwarden\""),
            "the name that a comment mentions, with or without @",
        ),
        rule(
            "on_push",
            Value("false"),
            "review again when a pull request gets a new head",
        ),
        rule(
            "on_ready",
            Value("true"),
            "review when a draft becomes ready",
        ),
        rule(
            "on_edit",
            Value("false"),
            "let edited comments trigger; anyone with write access can edit another's comment",
        ),
        rule(
            "never",
            Value("[]"),
            "labels that forbid a review even when a mention asks for one",
        ),
    ],
};

/// `[triggers.ignore]`.
pub static IGNORE: Section = Section {
    name: "triggers.ignore",
    doc: "Pull requests that aren't reviewed on their own; a mention overrides this.",
    per_repo: true,
    keys: &[
        rule("labels", Value("[]"), "label names"),
        rule(
            "base",
            Value("[]"),
            "globs over the base branch; * stays inside a path segment, ** doesn't",
        ),
        rule("head", Value("[]"), "globs over the head branch"),
        rule(
            "title",
            Value("[]"),
            "plain texts searched in the title without regard to case",
        ),
    ],
};

/// `[poll]`.
pub static POLL: Section = Section {
    name: "poll",
    doc: "How often GitHub is asked.",
    per_repo: false,
    keys: &[
        global(
            "floor_seconds",
            Value("10"),
            "seconds between polls while things happen",
        ),
        global(
            "ceiling_seconds",
            Value("600"),
            "seconds between polls when nothing happens",
        ),
        global(
            "overlap_seconds",
            Value("300"),
            "seconds behind the newest seen item within which items are looked at again",
        ),
        global(
            "max_requests_per_hour",
            Value("4000"),
            "polling requests of all repositories together",
        ),
    ],
};

/// `[budget]`.
pub static BUDGET: Section = Section {
    name: "budget",
    doc: "What may be spent. A model engine needs the three token limits: your estimate of a plan.",
    per_repo: true,
    keys: &[
        global(
            "enabled",
            Value("true"),
            "false stops all spending; built-in checks go on",
        ),
        global(
            "session_tokens",
            Unset("\"2m\""),
            "tokens of the plan in any 5 hours",
        ),
        global(
            "weekly_tokens",
            Unset("\"20m\""),
            "tokens of the plan in any 7 days",
        ),
        global(
            "max_run_tokens",
            Unset("\"300k\""),
            "tokens reserved for each run",
        ),
        global(
            "max_ask_tokens",
            Unset("\"75k\""),
            "tokens reserved for each answer to a question; a quarter of max_run_tokens when not set",
        ),
        global(
            "reviewer_share_pct",
            Value("40"),
            "percent of the plan that reviews may use",
        ),
        global(
            "per_contributor_pct",
            Unset("25"),
            "percent of the reviews' week that one account may use; no limit when not set",
        ),
        global(
            "daily_usd",
            Unset("5"),
            "US dollars in any 24 hours, for an account that pays by use; needs max_run_usd",
        ),
        global(
            "weekly_usd",
            Unset("25"),
            "US dollars in any 7 days; needs max_run_usd",
        ),
        global(
            "max_run_usd",
            Unset("0.50"),
            "US dollars reserved for each run, and charged for one whose engine tells no cost",
        ),
        global(
            "authority",
            Unset("true"),
            "several processes on one store: true in the one whose limits hold, false in the others",
        ),
        global(
            "comply",
            Value("true"),
            "with authority = false: false to keep limits of its own on the shared ledger",
        ),
        global(
            "min_review_interval_seconds",
            Value("900"),
            "seconds between the starts of two reviews of one pull request",
        ),
        global(
            "min_mention_interval_seconds",
            Value("300"),
            "the same for a review that a person asks for; at most as long",
        ),
        global(
            "max_reviews_per_pull_request",
            Unset("10"),
            "reviews of one pull request in any 24 hours; no limit when not set",
        ),
        global(
            "when_exhausted",
            Value("\"wait\""),
            "a review without tokens left: wait, or gate (the built-in checks alone)",
        ),
        rule(
            "max_changed_files",
            Value("100"),
            "files in a change above which it is refused",
        ),
        rule(
            "max_changed_lines",
            Value("5000"),
            "added and removed lines above which it is refused",
        ),
        rule(
            "default_exclusions",
            Value("true"),
            "leave out lock files, vendored, generated and minified files",
        ),
        rule(
            "excluded_paths",
            Value("[]"),
            "more git glob pathspecs to leave out",
        ),
    ],
};

/// `[worker]`.
pub static WORKER: Section = Section {
    name: "worker",
    doc: "The worker threads.",
    per_repo: false,
    keys: &[
        global("count", Value("2"), "reviews at the same time, 1 to 16"),
        global(
            "lease_seconds",
            Value("1800"),
            "seconds that a claim is held; more than engine.timeout_seconds and 300",
        ),
        global(
            "max_attempts",
            Value("3"),
            "attempts at a review before it is given up",
        ),
        global(
            "shutdown_grace_seconds",
            Value("0"),
            "seconds that a stop waits for reviews in flight",
        ),
    ],
};

/// `[engine]`.
pub static ENGINE: Section = Section {
    name: "engine",
    doc: "What reads the change.",
    per_repo: true,
    keys: &[
        rule(
            "kind",
            Value("\"builtin\""),
            "builtin (deterministic checks, no tokens), claude or command",
        ),
        rule(
            "binary",
            Unset("\"/usr/local/bin/claude\""),
            "the tool's executable; its usual name, looked up in PATH, when not set",
        ),
        rule(
            "command",
            Value("[]"),
            "program and arguments of a command engine",
        ),
        rule("args", Value("[]"), "more arguments for the tool"),
        rule(
            "model",
            Unset("\"sonnet\""),
            "the model's name; the tool's own choice when not set",
        ),
        rule(
            "expected_version",
            Unset("\"2.\""),
            "a text that the tool's --version should contain; another version is warned about",
        ),
        rule("timeout_seconds", Value("900"), "seconds for a whole run"),
        rule(
            "env",
            Value("[]"),
            "names of environment variables that the tool gets",
        ),
        rule(
            "standards_paths",
            Value("[\"AGENTS.md\", \".github/REVIEW.md\"]"),
            "the project's own rules, read at the merge base",
        ),
    ],
};

/// `[review]`.
pub static REVIEW: Section = Section {
    name: "review",
    doc: "What a model is told besides the change.",
    per_repo: true,
    keys: &[
        rule(
            "language",
            Unset("\"English\""),
            "language of the prose; the model's choice when not set",
        ),
        rule(
            "instructions",
            Unset("\"Pay attention to error handling.\""),
            "your own instructions, at most 8000 characters",
        ),
    ],
};

/// `[publish]`.
pub static PUBLISH: Section = Section {
    name: "publish",
    doc: "What is posted.",
    per_repo: true,
    keys: &[
        rule(
            "mode",
            Value("\"sticky\""),
            "sticky (one comment, rewritten by each review) or per_review (one comment for each)",
        ),
        rule(
            "dry_run",
            Value("false"),
            "do everything but write to GitHub",
        ),
        rule(
            "post_superseded",
            Value("true"),
            "post a review whose head has moved on meanwhile, saying so",
        ),
        rule(
            "max_publish_attempts",
            Value("10"),
            "attempts to post before giving up",
        ),
    ],
};

/// `[roles]`.
pub static ROLES: Section = Section {
    name: "roles",
    doc: "What is done on a pull request.",
    per_repo: false,
    keys: &[],
};

/// `[roles.review]`.
pub static REVIEW_ROLE: Section = Section {
    name: "roles.review",
    doc: "Reviews.",
    per_repo: false,
    keys: &[global(
        "share_pct",
        Unset("80"),
        "percent of the agent's week that this role may use; no limit when not set",
    )],
};

/// `[store]`.
pub static STORE: Section = Section {
    name: "store",
    doc: "The SQLite file.",
    per_repo: false,
    keys: &[global(
        "path",
        Value("\"./prwarden.db\""),
        "the file; a relative path belongs to the working directory",
    )],
};

/// `[workspace]`.
pub static WORKSPACE: Section = Section {
    name: "workspace",
    doc: "Clones and checkouts.",
    per_repo: false,
    keys: &[
        global(
            "cache_dir",
            Unset("\"/var/cache/prwarden\""),
            "directory for them; $CACHE_DIRECTORY, $XDG_CACHE_HOME/prwarden, $HOME/.cache/prwarden \
             or beside the store when not set",
        ),
        global(
            "git",
            Value("\"git\""),
            "the git program, 2.32 or newer: a path, or a name looked up in PATH",
        ),
        global(
            "min_free_mb",
            Value("512"),
            "free MiB below which nothing is checked out",
        ),
    ],
};

/// `[retention]`.
pub static RETENTION: Section = Section {
    name: "retention",
    doc: "How long the store keeps what reviews say. Numbers of tokens and times stay.",
    per_repo: false,
    keys: &[global(
        "max_age_days",
        Value("90"),
        "days after which it is emptied; a merged or closed pull request's is emptied at once",
    )],
};

/// `[log]`.
pub static LOG: Section = Section {
    name: "log",
    doc: "The log on standard error.",
    per_repo: false,
    keys: &[
        global(
            "level",
            Value("\"info\""),
            "error, warn, info, debug, trace or off; PRWARDEN_LOG overrides it",
        ),
        global(
            "format",
            Value("\"auto\""),
            "auto (text on a terminal, JSON elsewhere), text or json; PRWARDEN_LOG_FORMAT overrides it",
        ),
    ],
};

/// All sections in the order in which a template shows them.
pub static SECTIONS: [&Section; 16] = [
    &GITHUB,
    &REPO,
    &TRIGGERS,
    &IGNORE,
    &POLL,
    &BUDGET,
    &WORKER,
    &ENGINE,
    &REVIEW,
    &PUBLISH,
    &ROLES,
    &REVIEW_ROLE,
    &STORE,
    &WORKSPACE,
    &RETENTION,
    &LOG,
];

/// Whether a section is read for the whole process or for one `[[repo]]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// At the top of the file.
    Process,
    /// Inside a `[[repo]]`.
    Repository,
}

/// Why the top of the file may not hold `name`; `None` when it may.
pub(super) fn unknown_section(name: &str) -> Option<Wrong> {
    let names = || SECTIONS.iter().map(|section| section.name);
    let top = || names().filter(|name| !name.contains('.'));
    if top().any(|known| known == name) {
        return None;
    }
    if let Some(wrong) = elsewhere(name, Scope::Process) {
        return Some(wrong);
    }
    Some(unknown_name("section", name, top))
}

/// Why `section` may not hold `name`; `None` when it may.
pub(super) fn unknown(section: &Section, name: &str, scope: Scope) -> Option<Wrong> {
    let is_repo = section.name == REPO.name;
    let subsections = || {
        let children = SECTIONS.iter().filter(move |child| {
            if is_repo {
                child.per_repo && !child.name.contains('.')
            } else {
                let parent = child.name.rsplit_once('.');
                parent.is_some_and(|(parent, _)| parent == section.name)
            }
        });
        children.map(|child| child.last_name())
    };
    if subsections().any(|known| known == name) {
        return None;
    }
    if let Some(key) = section.key(name) {
        let refused = scope == Scope::Repository && !key.per_repo;
        return refused.then(|| {
            Wrong::new(
                "it holds for the whole process and can't differ between repositories",
                format!("set it in [{}] at the top of the file", section.name),
            )
        });
    }
    if let Some(wrong) = elsewhere(name, scope) {
        return Some(wrong);
    }
    let known = || section.keys.iter().map(|key| key.name).chain(subsections());
    Some(unknown_name("key", name, known))
}

/// For a name that is a key of exactly one section, where it belongs.
fn elsewhere(name: &str, scope: Scope) -> Option<Wrong> {
    let mut sections = SECTIONS
        .iter()
        .filter(|section| section.key(name).is_some());
    let (section, other) = (sections.next()?, sections.next());
    let prefix = match scope {
        Scope::Repository if section.per_repo => "repo.",
        _ => "",
    };
    other.is_none().then(|| {
        Wrong::new(
            "this key belongs to another section",
            format!("move it to [{prefix}{}]", section.name),
        )
    })
}

fn unknown_name<I: Iterator<Item = &'static str>>(
    what: &str,
    name: &str,
    known: impl Fn() -> I,
) -> Wrong {
    let remedy = match nearest(name, known()) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("known here: {}", known().collect::<Vec<_>>().join(", ")),
    };
    Wrong::new(format!("unknown {what}"), remedy)
}

/// The known name that `name` was probably meant to be.
fn nearest(name: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    /// Finds slips and missing units; further away a suggestion misleads.
    const ALIKE: f64 = 0.8;
    let scored = known.map(|candidate| (strsim::jaro_winkler(name, candidate), candidate));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 >= ALIKE).then_some(best.1)
}
