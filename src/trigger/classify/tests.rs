use std::collections::BTreeSet;

use globset::{Glob, GlobMatcher};

use super::*;
use crate::config::Handle;

const HORIZON: i64 = 10_000;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_unix(seconds)
}

fn account(id: i64) -> Account {
    Account {
        id: id.try_into().unwrap(),
        bot: false,
    }
}

fn bot(id: i64) -> Account {
    Account {
        bot: true,
        ..account(id)
    }
}

fn sha(digit: char) -> CommitSha {
    digit.to_string().repeat(40).parse().unwrap()
}

fn glob(text: &str) -> GlobMatcher {
    Glob::new(text).unwrap().compile_matcher()
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Account 7 is allowed.
fn rules() -> TriggerConfig {
    TriggerConfig {
        allowlist: BTreeSet::from([7.try_into().unwrap()]),
        handle: Handle::default(),
        on_push: false,
        on_ready: true,
        on_edit: false,
        ignore: IgnoreRules {
            labels: words(&["No Review"]),
            base: vec![glob("release/*")],
            head: vec![glob("dependabot/**")],
            title: words(&["[WIP]"]),
        },
        never: words(&["Embargo"]),
    }
}

fn pull(head: &CommitSha) -> PullFacts<'_> {
    PullFacts {
        author: Some(account(7)),
        created_at: at(HORIZON + 1),
        draft: false,
        head,
        base_ref: "main",
        head_ref: "topic",
        title: "Add a thing",
        labels: &[],
        seen: None,
    }
}

fn comment(body: &str) -> CommentFacts<'_> {
    CommentFacts {
        author: Some(account(7)),
        created_at: at(HORIZON + 1),
        updated_at: at(HORIZON + 1),
        body,
        pr_open: Some(true),
        labels: &[],
        ours: false,
    }
}

fn judge(facts: &PullFacts<'_>, rules: &TriggerConfig) -> Result<Cause, Skip> {
    match classify_pull(*facts, at(HORIZON), rules) {
        Verdict::Accepted {
            actor,
            cause,
            command,
        } => {
            assert_eq!(command, Command::Review);
            assert_eq!(Some(actor), facts.author.map(|author| author.id));
            Ok(cause)
        }
        Verdict::Skipped(reason) => Err(reason),
    }
}

fn judge_comment(facts: &CommentFacts<'_>, rules: &TriggerConfig) -> Result<Command, &'static str> {
    match classify_comment(*facts, at(HORIZON), rules) {
        Verdict::Accepted { command, .. } => Ok(command),
        Verdict::Skipped(reason) => Err(reason.as_str()),
    }
}

#[test]
fn a_new_pull_request_is_reviewed_once() {
    let (a, b) = (sha('a'), sha('b'));
    let new = pull(&a);
    assert_eq!(judge(&new, &rules()), Ok(Cause::Opened));
    let seen = |head| {
        Some(SeenBefore {
            draft: false,
            head: Some(head),
        })
    };
    // A push to the newest pull request, which is as old as the watermark.
    let pushed = PullFacts {
        created_at: at(HORIZON),
        seen: seen(&b),
        ..new
    };
    assert_eq!(judge(&pushed, &rules()), Err(Skip::NotFresh));
    let old = PullFacts {
        created_at: at(HORIZON - 1),
        ..new
    };
    assert_eq!(judge(&old, &rules()), Err(Skip::NotFresh));
}

#[test]
fn drafts_and_pushes_follow_the_switches() {
    let (a, b) = (sha('a'), sha('b'));
    let seen = |draft, head| Some(SeenBefore { draft, head });
    for (on_ready, on_push, draft, before, wanted) in [
        (true, false, false, seen(true, Some(&a)), Ok(Cause::Ready)),
        (true, true, false, seen(true, Some(&b)), Ok(Cause::Ready)),
        (true, false, false, seen(true, None), Ok(Cause::Ready)),
        (
            false,
            false,
            false,
            seen(true, Some(&a)),
            Err(Skip::NotFresh),
        ),
        (false, true, false, seen(true, Some(&b)), Ok(Cause::Pushed)),
        (true, true, false, seen(false, Some(&b)), Ok(Cause::Pushed)),
        (
            true,
            true,
            false,
            seen(false, Some(&a)),
            Err(Skip::NotFresh),
        ),
        (true, true, false, seen(false, None), Err(Skip::NotFresh)),
        (true, true, true, seen(true, Some(&b)), Err(Skip::Draft)),
        (true, true, true, seen(false, Some(&a)), Err(Skip::NotFresh)),
        (true, false, true, None, Err(Skip::Draft)),
    ] {
        let rules = TriggerConfig {
            on_ready,
            on_push,
            ..rules()
        };
        let facts = PullFacts {
            created_at: at(if before.is_some() {
                HORIZON - 1
            } else {
                HORIZON
            }),
            draft,
            seen: before,
            ..pull(&a)
        };
        let case = (on_ready, on_push, draft, before);
        assert_eq!(judge(&facts, &rules), wanted, "{case:?}");
    }
}

#[test]
fn any_ignore_rule_leaves_a_pull_request_out() {
    let head = sha('a');
    let plain = pull(&head);
    let (quiet, secret) = (words(&["no review"]), words(&["x", "EMBARGO"]));
    for facts in [
        PullFacts {
            labels: &quiet,
            ..plain
        },
        PullFacts {
            labels: &secret,
            ..plain
        },
        PullFacts {
            base_ref: "release/1.2",
            ..plain
        },
        PullFacts {
            head_ref: "dependabot/npm/x",
            ..plain
        },
        PullFacts {
            title: "Fix [wip] it",
            ..plain
        },
    ] {
        assert_eq!(judge(&facts, &rules()), Err(Skip::Ignored), "{facts:?}");
    }
}

#[test]
fn only_allow_listed_accounts_cause_a_review() {
    let head = sha('a');
    for author in [None, Some(account(8))] {
        let facts = PullFacts {
            author,
            ..pull(&head)
        };
        assert_eq!(judge(&facts, &rules()), Err(Skip::AuthorNotAllowlisted));
    }
    let nobody = TriggerConfig {
        allowlist: BTreeSet::new(),
        ..rules()
    };
    assert_eq!(
        judge(&pull(&head), &nobody),
        Err(Skip::AuthorNotAllowlisted)
    );
}

/// Each fault is put right in turn, and the next check must be the one that refuses.
#[test]
fn a_pull_request_is_refused_by_the_first_check_in_order() {
    let head = sha('a');
    let labels = words(&["No Review"]);
    let mut facts = PullFacts {
        author: Some(bot(8)),
        created_at: at(HORIZON - 1),
        draft: true,
        labels: &labels,
        ..pull(&head)
    };
    let refused = |facts: &PullFacts<'_>| judge(facts, &rules()).unwrap_err();
    assert_eq!(refused(&facts).as_str(), "not_fresh");
    facts.created_at = at(HORIZON);
    assert_eq!(refused(&facts).as_str(), "bot_author");
    facts.author = Some(account(8));
    assert_eq!(refused(&facts).as_str(), "draft");
    facts.draft = false;
    assert_eq!(refused(&facts).as_str(), "ignored");
    facts.labels = &[];
    assert_eq!(refused(&facts).as_str(), "author_not_allowlisted");
    facts.author = Some(account(7));
    assert_eq!(judge(&facts, &rules()), Ok(Cause::Opened));
}

#[test]
fn a_comment_is_refused_by_the_first_check_in_order() {
    let labels = words(&["embargo"]);
    let mut facts = CommentFacts {
        author: Some(bot(8)),
        created_at: at(HORIZON - 1),
        updated_at: at(HORIZON),
        pr_open: Some(false),
        labels: &labels,
        ours: true,
        ..comment("no call")
    };
    let judge = |facts: &CommentFacts<'_>| judge_comment(facts, &rules());
    assert_eq!(judge(&facts), Err("not_fresh"));
    facts.created_at = at(HORIZON);
    assert_eq!(judge(&facts), Err("pr_not_open"));
    facts.pr_open = Some(true);
    assert_eq!(judge(&facts), Err("bot_commenter"));
    facts.author = Some(account(8));
    assert_eq!(judge(&facts), Err("self_comment"));
    facts.ours = false;
    assert_eq!(judge(&facts), Err("no_mention"));
    facts.body = "@prwarden describe";
    assert_eq!(judge(&facts), Err("commenter_not_allowlisted"));
    facts.author = None;
    assert_eq!(judge(&facts), Err("commenter_not_allowlisted"));
    facts.author = Some(account(7));
    assert_eq!(judge(&facts), Err("ignored"));
    facts.labels = &[];
    assert_eq!(judge(&facts), Ok(Command::Describe));
}

#[test]
fn a_mention_overrides_the_ignore_rules() {
    let labels = words(&["no review"]);
    let facts = CommentFacts {
        labels: &labels,
        ..comment("@prwarden")
    };
    assert_eq!(judge_comment(&facts, &rules()), Ok(Command::Review));
}

#[test]
fn a_comment_on_a_pull_request_nobody_knows_about_is_let_through() {
    let facts = CommentFacts {
        pr_open: None,
        ..comment("@prwarden")
    };
    assert_eq!(judge_comment(&facts, &rules()), Ok(Command::Review));
}

#[test]
fn an_edited_comment_counts_only_when_the_operator_accepts_it() {
    let edited = CommentFacts {
        created_at: at(HORIZON - 1),
        updated_at: at(HORIZON),
        ..comment("@prwarden")
    };
    assert_eq!(judge_comment(&edited, &rules()), Err("not_fresh"));
    let on_edit = TriggerConfig {
        on_edit: true,
        ..rules()
    };
    assert_eq!(judge_comment(&edited, &on_edit), Ok(Command::Review));
}
