//! The rules that may differ between repositories. Each function reads one section over a base, which
//! is the default for the file's own sections and those for a repository's overrides.

use std::collections::BTreeSet;
use std::time::Duration;

use globset::{GlobBuilder, GlobMatcher};
use toml::de::{DeTable, DeValue};

use super::check;
use super::convert::DAY;
use super::error::{Parsed, Wrong, quoted};
use super::keys::{self, Scope};
use super::raw::{Report, Section};
use super::types::*;
use super::values::{
    choice, flag, inside_repository, line, optional, program, seconds, text, user_id, variable,
    whole,
};
use crate::ids::UserId;

/// The names of `engine.kind`.
pub(super) const KINDS: &[(&str, EngineKind)] = &[
    ("builtin", EngineKind::Builtin),
    ("claude", EngineKind::Claude),
    ("command", EngineKind::Command),
];

/// The names of `publish.mode`.
pub(super) const MODES: &[(&str, PublishMode)] = &[
    ("sticky", PublishMode::Sticky),
    ("per_review", PublishMode::PerReview),
];

/// What reading a section needs to know of others.
pub(super) struct Context<'a> {
    pub(super) report: &'a Report<'a>,
    /// `worker.lease_seconds`.
    pub(super) lease: Duration,
    /// `github.token_env`, which no engine may get.
    pub(super) token_env: Option<String>,
}

/// Reads the sections that a repository may override from `parent`, over `base`.
pub(super) fn rules(
    context: &Context<'_>,
    parent: Option<&DeTable<'_>>,
    prefix: &str,
    base: &RepoRules,
) -> RepoRules {
    let report = context.report;
    let scope = if prefix.is_empty() {
        Scope::Process
    } else {
        Scope::Repository
    };
    let open = |definition| Section::open(report, parent, prefix, definition, scope);
    let section = open(&keys::TRIGGERS);
    let ignore = Section::open(report, section.table(), prefix, &keys::IGNORE, scope);
    RepoRules {
        triggers: triggers(&section, &ignore, &base.triggers),
        engine: engine(context, &open(&keys::ENGINE), &base.engine),
        review: review(&open(&keys::REVIEW), &base.review),
        caps: caps(&open(&keys::BUDGET), &base.caps),
        publish: publish(&open(&keys::PUBLISH), &base.publish),
    }
}

fn triggers(section: &Section<'_>, ignore: &Section<'_>, base: &TriggerConfig) -> TriggerConfig {
    let mut seen = BTreeSet::new();
    let allowlist = section.read_each("allowlist", |value| {
        let id = user_id(value)?;
        unique(&mut seen, id)
    });
    let or = |key, base| section.read(key, flag).unwrap_or(base);
    if allowlist.as_ref().is_some_and(Vec::is_empty) && section.in_repository() {
        section.warn("allowlist", check::NOBODY);
    }
    let list = |section: &Section<'_>, key, base: &Vec<String>| {
        section.read_each(key, line).unwrap_or_else(|| base.clone())
    };
    let globs =
        |key, base: &Vec<GlobMatcher>| ignore.read_each(key, glob).unwrap_or_else(|| base.clone());
    TriggerConfig {
        allowlist: allowlist.map_or_else(|| base.allowlist.clone(), BTreeSet::from_iter),
        handle: section
            .read("handle", handle)
            .unwrap_or_else(|| base.handle.clone()),
        on_push: or("on_push", base.on_push),
        on_ready: or("on_ready", base.on_ready),
        on_edit: or("on_edit", base.on_edit),
        ignore: IgnoreRules {
            labels: list(ignore, "labels", &base.ignore.labels),
            base: globs("base", &base.ignore.base),
            head: globs("head", &base.ignore.head),
            title: list(ignore, "title", &base.ignore.title),
        },
        never: list(section, "never", &base.never),
    }
}

fn unique(seen: &mut BTreeSet<UserId>, id: UserId) -> Parsed<UserId> {
    if seen.insert(id) {
        return Ok(id);
    }
    Err(Wrong::new(
        format!("the id {id} stands in the list twice"),
        "remove one; if another account was meant, its numeric id is the \"id\" that \
         https://api.github.com/users/LOGIN shows",
    ))
}

fn handle(value: &DeValue<'_>) -> Parsed<Handle> {
    let text = text(value)?;
    text.parse().map_err(|_| {
        Wrong::new(
            format!("{} can't be mentioned", quoted(text)),
            "write at most 39 letters, digits and single hyphens, as a GitHub login has them",
        )
    })
}

/// A branch glob: `*` and `?` stay inside a segment of the branch's name.
fn glob(value: &DeValue<'_>) -> Parsed<GlobMatcher> {
    let text = line(value)?;
    let glob = GlobBuilder::new(&text).literal_separator(true).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|error| {
        Wrong::new(
            format!("{} is not a glob ({})", quoted(&text), error.kind()),
            "write it like release/* or dependabot/**",
        )
    })
}

fn engine(context: &Context<'_>, section: &Section<'_>, base: &EngineConfig) -> EngineConfig {
    let optional_line = |key, base: &Option<String>| {
        let read = section.read(key, |value| optional(value, line));
        read.unwrap_or_else(|| base.clone())
    };
    let kind = section.read("kind", choice(KINDS)).unwrap_or(base.kind);
    let command = section.read_each("command", |value| text(value).map(str::to_owned));
    let config = EngineConfig {
        kind,
        binary: section
            .read("binary", |value| optional(value, program))
            .unwrap_or_else(|| base.binary.clone()),
        command: command.unwrap_or_else(|| base.command.clone()),
        args: section
            .read_each("args", |value| text(value).map(str::to_owned))
            .unwrap_or_else(|| base.args.clone()),
        model: optional_line("model", &base.model),
        expected_version: optional_line("expected_version", &base.expected_version),
        timeout: section
            .read("timeout_seconds", seconds(1..=DAY))
            .unwrap_or(base.timeout),
        env: section
            .read_each("env", |value| {
                engine_variable(value, context.token_env.as_deref())
            })
            .unwrap_or_else(|| base.env.clone()),
        standards_paths: section
            .read_each("standards_paths", inside_repository)
            .unwrap_or_else(|| base.standards_paths.clone()),
    };
    if section.has("kind") || section.has("command") {
        check_command(section, &config);
    }
    if section.has("timeout_seconds") {
        check::timeout(section, "timeout_seconds", config.timeout, context.lease);
    }
    config
}

/// A variable that the engine may get: not one that holds a GitHub token.
fn engine_variable(value: &DeValue<'_>, token_env: Option<&str>) -> Parsed<String> {
    const GITHUB: [&str; 5] = [
        "GITHUB_TOKEN",
        "GH_TOKEN",
        "GITHUB_ENTERPRISE_TOKEN",
        "GH_ENTERPRISE_TOKEN",
        "GITHUB_PAT",
    ];
    let name = variable(value)?;
    if GITHUB.contains(&name.as_str()) || token_env == Some(&name) {
        return Err(Wrong::new(
            format!("{name} holds a GitHub token, which no engine gets"),
            "remove it from the list",
        ));
    }
    Ok(name)
}

fn check_command(section: &Section<'_>, config: &EngineConfig) {
    match (config.kind, config.command.first()) {
        (EngineKind::Command, None) => section.wrong(
            "command",
            Wrong::new(
                "a command engine needs it",
                "write the program and its arguments, like [\"/usr/local/bin/reviewer\", \"--json\"]",
            ),
        ),
        (EngineKind::Command, Some(first)) => {
            let value = DeValue::String(first.as_str().into());
            if let Err(wrong) = program(&value) {
                section.wrong("command", wrong);
            }
        }
        (_, Some(_)) if section.has("command") => section.warn(
            "command",
            "it has no effect unless engine.kind is \"command\"",
        ),
        _ => {}
    }
}

fn review(section: &Section<'_>, base: &ReviewConfig) -> ReviewConfig {
    const LANGUAGE: usize = 60;
    const INSTRUCTIONS: usize = 8_000;
    let bounded = |text: String, limit: usize| {
        let long = text.chars().count() > limit;
        if long {
            let remedy = format!("write at most {limit} characters");
            Err(Wrong::new("it is too long", remedy))
        } else {
            Ok(text)
        }
    };
    let language = section.read("language", |value| {
        optional(value, |value| bounded(line(value)?, LANGUAGE))
    });
    let instructions = section.read("instructions", |value| {
        optional(value, |value| {
            bounded(text(value)?.to_owned(), INSTRUCTIONS)
        })
    });
    ReviewConfig {
        language: language.unwrap_or_else(|| base.language.clone()),
        instructions: instructions.unwrap_or_else(|| base.instructions.clone()),
    }
}

fn caps(section: &Section<'_>, base: &SizeCaps) -> SizeCaps {
    SizeCaps {
        max_changed_files: section
            .read("max_changed_files", whole(1..=1_000_000))
            .unwrap_or(base.max_changed_files),
        max_changed_lines: section
            .read("max_changed_lines", whole(1..=100_000_000))
            .unwrap_or(base.max_changed_lines),
        default_exclusions: section
            .read("default_exclusions", flag)
            .unwrap_or(base.default_exclusions),
        excluded_paths: section
            .read_each("excluded_paths", inside_repository)
            .unwrap_or_else(|| base.excluded_paths.clone()),
    }
}

fn publish(section: &Section<'_>, base: &PublishConfig) -> PublishConfig {
    PublishConfig {
        mode: section.read("mode", choice(MODES)).unwrap_or(base.mode),
        dry_run: section.read("dry_run", flag).unwrap_or(base.dry_run),
        post_superseded: section
            .read("post_superseded", flag)
            .unwrap_or(base.post_superseded),
        max_publish_attempts: section
            .read("max_publish_attempts", whole(1..=1_000))
            .unwrap_or(base.max_publish_attempts),
    }
}
