use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use proptest::prelude::*;

use super::keys::{Fallback, SECTIONS};
use super::values::parse_tokens;
use super::*;
use crate::ids::Tokens;

mod budgets;

fn no_env(_: &str) -> Option<String> {
    None
}

fn good(text: &str) -> (Config, Vec<Warning>) {
    parse(text, Some(Path::new("p.toml")), &no_env).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The messages that refuse `text`.
fn bad(text: &str) -> Vec<String> {
    match parse(text, Some(Path::new("p.toml")), &no_env) {
        Ok(_) => panic!("accepted: {text}"),
        Err(errors) => errors.iter().map(ToString::to_string).collect(),
    }
}

/// `text` is refused by one message that contains all of `parts`.
#[track_caller]
fn refused(text: &str, parts: &[&str]) {
    let messages = bad(text);
    assert_eq!(messages.len(), 1, "{text}: {messages:#?}");
    for part in parts {
        assert!(messages[0].contains(part), "{part:?} in {messages:?}");
    }
}

const PLAN: &str =
    "[budget]\nsession_tokens = '2m'\nweekly_tokens = '20m'\nmax_run_tokens = '300k'\n";

#[test]
fn an_empty_file_means_the_defaults_and_warns_that_nothing_is_polled() {
    let (config, warnings) = good("");
    assert_eq!(config.github.api_url.as_str(), "https://api.github.com/");
    assert_eq!(config.github.web_url.as_str(), "https://github.com/");
    assert_eq!(config.github.token, TokenSource::Env("GITHUB_TOKEN".into()));
    assert_eq!(config.worker.count, 2);
    assert_eq!(config.defaults.engine.kind, EngineKind::Builtin);
    assert_eq!(config.budget.plan, None);
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].to_string().contains("nothing is polled"));
    let embedded = Config::embedded(&no_env).unwrap();
    assert_eq!(body(&show(&embedded)), body(&show(&config)));
}

#[test]
fn every_problem_is_in_one_report_in_the_order_of_lines() {
    let text = "[worker]\ncount = 17\n\n[poll]\nfloor_secs = 5\n[log]\nlevel = 'loud'\n[[repo]]\nname = 'x'\n";
    assert_eq!(
        bad(text),
        [
            "p.toml:2: worker.count: 17 is out of range; write a number from 1 to 16",
            "p.toml:5: poll.floor_secs: unknown key; did you mean floor_seconds?",
            "p.toml:7: log.level: \"loud\" is not one of the choices; write one of error, warn, info, debug, trace, off",
            "p.toml:9: repo.name: \"x\" is not the name of a repository; write it as owner/name, without a host",
        ]
    );
}

#[test]
fn syntax_errors_name_their_lines() {
    let messages = bad("[worker]\ncount = \n[log]\nlevel = 'info'\n");
    assert!(
        messages[0].starts_with("p.toml:2: not valid TOML"),
        "{messages:?}"
    );
    refused(
        "[log]\nlevel = 'info'\nlevel = 'warn'\n",
        &["p.toml:3:", "duplicate"],
    );
    let messages = bad("[budget]\nsession_tokens = 1500k\n");
    assert!(
        messages[0].starts_with("p.toml:2:") && messages[0].contains("quotes"),
        "{messages:?}"
    );
}

#[test]
fn unknown_names_are_refused_with_the_nearest_known_one() {
    refused(
        "[budgets]\n",
        &["p.toml:1: budgets: unknown section; did you mean budget?"],
    );
    refused(
        "[triggers]\nalowlist = [1]\n",
        &["p.toml:2: triggers.alowlist", "did you mean allowlist?"],
    );
    refused(
        "[engine]\ntimeout = 5\n",
        &["did you mean timeout_seconds?"],
    );
    refused("[log]\nxyz = 1\n", &["known here: level, format"]);
    refused("[github]\nhandle = 'x'\n", &["move it to [triggers]"]);
    refused(
        "allowlist = [1]\n",
        &["p.toml:1: allowlist", "move it to [triggers]"],
    );
    refused(
        "[triggers]\nignore = { label = ['x'] }\n",
        &["triggers.ignore.label", "labels?"],
    );
    refused("'triggers.ignore' = 1\n", &["unknown section"]);
    let repo = "[[repo]]\nname = 'o/r'\n";
    refused(
        &format!("{repo}allowlist = [1]\n"),
        &["p.toml:3: repo.allowlist", "[repo.triggers]"],
    );
    refused(
        &format!("{repo}[repo.trigers]\n"),
        &["repo.trigers", "did you mean triggers?"],
    );
    refused(
        &format!("{repo}[repo.budget]\nenabled = false\n"),
        &["repo.budget.enabled", "set it in [budget]"],
    );
    refused(
        &format!("{repo}[repo.worker]\ncount = 1\n"),
        &["repo.worker", "unknown key"],
    );
}

#[test]
fn values_of_another_kind_are_refused_with_what_to_write() {
    refused(
        "[worker]\ncount = '2'\n",
        &["a whole number is expected, not a text", "without quotes"],
    );
    refused("[worker]\ncount = 2.5\n", &["not a number with a fraction"]);
    refused(
        "[triggers]\non_push = 'yes'\n",
        &["true or false is expected"],
    );
    refused(
        "[triggers]\nallowlist = 5\n",
        &["a list is expected", "square brackets"],
    );
    refused("[github]\napi_url = 5\n", &["a text is expected"]);
    refused("[repo]\nname = 'o/r'\n", &["[[repo]], in double brackets"]);
    refused("repo = ['o/r']\n", &["[[repo]], in double brackets"]);
    refused("[[log]]\nlevel = 'info'\n", &["a section is expected here"]);
    refused("poll = 5\n", &["write [poll] on a line of its own"]);
}

#[test]
fn repositories_are_named_once_and_are_not_the_placeholder() {
    refused("[[repo]]\n", &["p.toml:1: repo.name", "missing"]);
    refused(
        "[[repo]]\nname = 'O/R'\n[[repo]]\nname = 'o/r'\n",
        &["p.toml:4:", "twice"],
    );
    refused(
        "[[repo]]\nname = 'Example-Owner/example-repo'\n",
        &["placeholder"],
    );
    refused(
        "[[repo]]\nname = 'https://github.com/o/r'\n",
        &["without a host"],
    );
}

#[test]
fn the_allowlist_holds_each_numeric_id_once() {
    refused(
        "[triggers]\nallowlist = [\n  7,\n  'octocat',\n]\n",
        &[
            "p.toml:4: triggers.allowlist",
            "is a login",
            "https://api.github.com/users/octocat",
        ],
    );
    refused("[triggers]\nallowlist = ['@octocat']\n", &["users/octocat"]);
    refused("[triggers]\nallowlist = ['12']\n", &["without quotes"]);
    refused(
        "[triggers]\nallowlist = [0]\n",
        &["0 is not an account's id", "numeric id"],
    );
    refused(
        "[triggers]\nallowlist = [-4]\n",
        &["-4 is not an account's id", "numeric id"],
    );
    refused(
        "[triggers]\nallowlist = [4, 5,\n4]\n",
        &["p.toml:3:", "twice", "numeric id"],
    );
    refused(
        "[triggers]\nallowlist = [99999999999999999999]\n",
        &["p.toml:2:"],
    );
}

#[test]
fn an_allowlist_that_allows_nobody_is_warned_about() {
    let repo = "[[repo]]\nname = 'o/r'\n";
    for text in ["", "[triggers]\nallowlist = []\n"] {
        let (_, warnings) = good(&format!("{text}{repo}"));
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(
            warnings[0]
                .to_string()
                .contains("triggers.allowlist: it is empty")
        );
    }
    let (_, warnings) = good(&format!("[triggers]\nallowlist = [1]\n{repo}"));
    assert_eq!(warnings, []);
    let (_, warnings) = good(&format!(
        "[triggers]\nallowlist = [1]\n{repo}[repo.triggers]\nallowlist = []\n"
    ));
    assert_eq!(
        warnings[0].to_string().split(": ").nth(1),
        Some("repo.triggers.allowlist")
    );
    assert_eq!(warnings[0].line, Some(6));
}

#[test]
fn token_numbers_read_as_people_write_them() {
    for (text, amount) in [
        ("1_500_000", 1_500_000),
        ("1500k", 1_500_000),
        ("1.5m", 1_500_000),
        ("1.5M", 1_500_000),
        ("0.001k", 1),
        ("1.230k", 1_230),
        ("7", 7),
        ("9223372036854775807", i64::MAX as u64),
    ] {
        assert_eq!(parse_tokens(text), Ok(amount), "{text}");
    }
    for text in [
        "",
        "k",
        "m",
        ".5m",
        "1.m",
        "1..5m",
        "-1",
        "+1",
        "1e6",
        "1 500",
        " 1k",
        "1k ",
        "1_",
        "_1",
        "1__0",
        "1.5",
        "1.2345k",
        "1kk",
        "1g",
        "0x10",
        "١k",
        "9223372036854775808",
        "10000000000000000m",
    ] {
        assert!(parse_tokens(text).is_err(), "{text}");
    }
    let plan = "[budget]\nsession_tokens = 1_500_000\nweekly_tokens = '20m'\n";
    let (config, _) = good(&format!("{plan}max_run_tokens = 0x100\n"));
    let plan_read = config.budget.plan.unwrap();
    assert_eq!(plan_read.session_tokens, Tokens(1_500_000));
    assert_eq!(plan_read.max_run_tokens, Tokens(256));
    refused(
        &format!("{plan}max_run_tokens = '1.2345k'\n"),
        &["not a whole number of tokens"],
    );
    refused(
        &format!("{plan}max_run_tokens = 1.5\n"),
        &["with a fraction", "1_500_000"],
    );
    refused(
        &format!("{plan}max_run_tokens = 0\n"),
        &["zero", "budget.enabled = false"],
    );
    refused(&format!("{plan}max_run_tokens = '0k'\n"), &["zero"]);
    refused(&format!("{plan}max_run_tokens = -5\n"), &["out of range"]);
}

proptest! {
    #[test]
    fn a_token_number_is_read_exactly_or_refused(amount in 0..=i64::MAX as u64, digits in 0_usize..=8) {
        let text = amount.to_string();
        prop_assert_eq!(parse_tokens(&text), Ok(amount));
        let text = format!("{}.{:06}m", amount / 1_000_000, amount % 1_000_000);
        prop_assert_eq!(parse_tokens(&text), Ok(amount));
        let text = format!("{}.{:03}k", amount / 1_000, amount % 1_000);
        prop_assert_eq!(parse_tokens(&text), Ok(amount));
        let text = format!("1.{}1k", "0".repeat(digits));
        prop_assert_eq!(parse_tokens(&text).is_ok(), digits < 3);
    }

    #[test]
    fn no_token_text_panics_and_what_is_accepted_comes_out_whole(text in "[0-9_.kKmM]{0,12}|\\PC{0,12}") {
        if let Ok(amount) = parse_tokens(&text) {
            let lower = text.to_lowercase().replace('_', "");
            let (number, unit) = match lower.chars().last() {
                Some('k') => (&lower[..lower.len() - 1], 1e3),
                Some('m') => (&lower[..lower.len() - 1], 1e6),
                _ => (lower.as_str(), 1.0),
            };
            let expected: f64 = number.parse::<f64>().unwrap() * unit;
            prop_assert!((expected - amount as f64).abs() <= expected * 1e-9);
        }
    }

    #[test]
    fn no_text_makes_reading_panic(text in "\\PC{0,80}", section in 0..SECTIONS.len()) {
        let _ = parse(&text, None, &no_env);
        let name = SECTIONS[section].name;
        for key in SECTIONS[section].keys {
            let _ = parse(&format!("[{name}]\n{} = {text}\n", key.name), None, &no_env);
        }
    }
}

#[test]
fn numbers_outside_of_their_range_are_refused() {
    for text in [
        "[worker]\ncount = 0",
        "[worker]\ncount = -1",
        "[worker]\nmax_attempts = 0",
        "[poll]\nfloor_seconds = 0",
        "[poll]\nceiling_seconds = 0",
        "[poll]\nmax_requests_per_hour = 0",
        "[engine]\ntimeout_seconds = 0",
        "[engine]\ntimeout_seconds = -5",
        "[budget]\nmax_changed_files = 0",
        "[budget]\nreviewer_share_pct = 0",
        "[budget]\nreviewer_share_pct = 101",
        "[budget]\nper_contributor_pct = 101",
        "[publish]\nmax_publish_attempts = 0",
        "[poll]\nceiling_seconds = 9999999999999999999",
        "[workspace]\nmin_free_mb = -1",
    ] {
        assert!(bad(text)[0].starts_with("p.toml:2: "), "{text}");
    }
    refused(
        "[poll]\nfloor_seconds = 700\n",
        &["poll.floor_seconds", "above ceiling_seconds (600)"],
    );
    refused(
        "[poll]\nceiling_seconds = 5\n",
        &["poll.ceiling_seconds", "floor_seconds (10)"],
    );
    good("[poll]\nfloor_seconds = 5\nceiling_seconds = 5\n");
}

#[test]
fn a_lease_outlasts_the_engine_with_checkout_and_publishing() {
    let text = |lease, timeout| {
        format!("[worker]\nlease_seconds = {lease}\n[engine]\ntimeout_seconds = {timeout}\n")
    };
    good(&text(901, 600));
    refused(
        &text(900, 600),
        &["p.toml:4: engine.timeout_seconds", "above 900"],
    );
    refused(
        "[worker]\nlease_seconds = 1200\n",
        &["p.toml:2: worker.lease_seconds", "above 1200"],
    );
    refused(
        "[[repo]]\nname = 'o/r'\n[repo.engine]\ntimeout_seconds = 1500\n",
        &["p.toml:4: repo.engine.timeout_seconds"],
    );
}

#[test]
fn a_model_engine_needs_all_three_limits() {
    for engine in [
        "[engine]\nkind = 'claude'\n",
        "[engine]\nkind = 'command'\ncommand = ['/bin/x']\n",
        "[[repo]]\nname = 'o/r'\nengine = { kind = 'claude' }\n",
    ] {
        let messages = bad(engine);
        assert_eq!(messages.len(), 3, "{messages:?}");
        assert!(messages[0].contains("budget.session_tokens: it is missing"));
        good(&format!("{engine}{PLAN}"));
    }
    let messages = bad("[budget]\nsession_tokens = '2m'\n");
    assert_eq!(messages.len(), 2);
    assert!(messages[0].contains("missing beside the other limits"));
    let messages = bad(
        "[engine]\nkind = 'claude'\n[budget]\nsession_tokens = 'x'\nweekly_tokens = 9\nmax_run_tokens = 1\n",
    );
    assert_eq!(messages.len(), 1, "wrong is not missing: {messages:?}");
}

#[test]
fn a_run_that_no_window_could_ever_admit_is_refused() {
    let plan = |session, weekly, run, more: &str| {
        format!(
            "[budget]\nsession_tokens = {session}\nweekly_tokens = {weekly}\nmax_run_tokens = {run}\nreviewer_share_pct = 50\n{more}\n"
        )
    };
    good(&plan(100, 7_000, 50, ""));
    refused(
        &plan(100, 7_000, 51, ""),
        &[
            "p.toml:4: budget.max_run_tokens",
            "session window's limit of 50",
            "at most 50",
        ],
    );
    good(&plan(10_000, 7_000, 500, ""));
    refused(
        &plan(10_000, 7_000, 501, ""),
        &["daily window's limit of 500"],
    );
    good(&plan(10_000, 7_000, 35, "per_contributor_pct = 1"));
    refused(
        &plan(10_000, 7_000, 36, "per_contributor_pct = 1"),
        &["contributor window's limit of 35"],
    );
}

#[test]
fn the_web_host_follows_from_the_api() {
    for (api, web) in [
        ("https://api.github.com", "https://github.com/"),
        ("https://api.github.com/", "https://github.com/"),
        ("https://ghe.example/api/v3", "https://ghe.example/"),
        (
            "https://ghe.example:8443/api/v3/",
            "https://ghe.example:8443/",
        ),
        ("https://api.acme.ghe.com", "https://acme.ghe.com/"),
        ("http://127.0.0.1:4711", "http://127.0.0.1:4711/"),
        ("http://localhost:80", "http://localhost/"),
        ("http://[::1]:9", "http://[::1]:9/"),
    ] {
        let (config, _) = good(&format!("[github]\napi_url = '{api}'\n"));
        assert_eq!(config.github.web_url.as_str(), web, "{api}");
        assert!(!config.github.api_url.path().ends_with("v3/"));
    }
    good("[github]\napi_url = 'https://odd.example/x'\nweb_url = 'https://odd.example'\n");
}

#[test]
fn git_fetches_from_the_web_host() {
    let url = |web: &str| {
        let (config, _) = good(&format!("[github]\nweb_url = '{web}'\n"));
        config.github.git_url(&"o/r.x".parse().unwrap()).to_string()
    };
    assert_eq!(url("https://github.com"), "https://github.com/o/r.x.git");
    assert_eq!(
        url("https://h.example/git/"),
        "https://h.example/git/o/r.x.git"
    );
}

#[test]
fn polling_needs_a_repository() {
    let message = good("").0.require_repositories().unwrap_err().to_string();
    assert!(
        message.starts_with("p.toml: repo: there is no repository"),
        "{message}"
    );
    assert!(
        good("[[repo]]\nname = 'o/r'\n")
            .0
            .require_repositories()
            .is_ok()
    );
}

#[test]
fn a_token_is_never_sent_in_the_clear_or_to_a_url_with_a_password() {
    for url in [
        "http://api.github.com",
        "http://127.0.0.1.evil.example",
        "http://localhost.evil.example",
        "http://0.0.0.0:1",
        "ftp://127.0.0.1",
    ] {
        refused(
            &format!("[github]\napi_url = '{url}'\n"),
            &["p.toml:2: github.api_url"],
        );
    }
    refused(
        "[github]\nweb_url = 'http://github.com'\n",
        &["github.web_url", "in the clear"],
    );
    for url in [
        "https://me:hunter2@host/api/v3",
        "https://hunter2@host/api/v3",
        "https://me:hunter2@:x/",
        "https://host/api/v3?key=hunter2",
    ] {
        let messages = bad(&format!("[github]\napi_url = '{url}'\n"));
        assert!(!messages[0].contains("hunter2"), "{messages:?}");
    }
    refused(
        "[github]\napi_url = 'https://ghe.example'\n",
        &["set github.web_url", "/api/v3"],
    );
}

#[test]
fn credentials_in_the_file_are_refused_and_never_shown() {
    for secret in [
        "ghp_0123456789abcdefghijABCDEFGHIJ012345",
        "github_pat_11AAAAAAA0abcdefghijkl_mnopqrstuvwxyz",
        "ghs_0123456789abcdefghijABCDEFGHIJ012345",
        "sk-ant-api03-abcdefghijklmnopqrstuvwxyz",
        "-----BEGIN RSA PRIVATE KEY-----",
    ] {
        for line in [
            format!("token = '{secret}'"),
            format!("token_env = '{secret}'"),
            format!("# {secret}"),
            format!("token = {secret}"),
            format!("'{secret}' = 1"),
        ] {
            let messages = bad(&format!("[github]\n{line}\n"));
            assert_eq!(messages.len(), 1, "{messages:?}");
            assert!(messages[0].starts_with("p.toml:2: a credential stands in this line"));
            assert!(!messages[0].contains(secret));
        }
    }
    refused(
        "[github]\ntoken = 'hunter2-hunter2'\n",
        &["github.token: unknown key", "token_env"],
    );
    assert!(!bad("[github]\ntoken = 'hunter2-hunter2'\n")[0].contains("hunter2"));
    let messages = bad("[engine]\nenv = ['KEY=hunter2']\n");
    assert!(
        messages[0].contains("KEY=…") && !messages[0].contains("hunter2"),
        "{messages:?}"
    );
    good("# tokens begin with ghp_ or github_pat_\n");
}

#[test]
fn no_engine_gets_a_github_token() {
    for name in ["GITHUB_TOKEN", "GH_TOKEN", "MY_TOKEN"] {
        let text = format!("[github]\ntoken_env = 'MY_TOKEN'\n[engine]\nenv = ['OK', '{name}']\n");
        refused(&text, &["p.toml:4: engine.env", "no engine gets"]);
    }
}

#[test]
fn programs_are_never_looked_up_in_an_untrusted_checkout() {
    for text in [
        "[engine]\nbinary = './claude'\n",
        "[engine]\nbinary = 'bin/claude'\n",
        "[engine]\nbinary = '..'\n",
        "[engine]\nbinary = 'claude/'\n",
        "[workspace]\ngit = 'bin/git'\n",
    ] {
        refused(text, &["is a relative path", "absolute path"]);
    }
    refused(
        &format!("[engine]\nkind = 'command'\ncommand = ['./review.sh']\n{PLAN}"),
        &["p.toml:3: engine.command", "relative path"],
    );
    refused(
        &format!("[engine]\nkind = 'command'\ncommand = []\n{PLAN}"),
        &["engine.command", "needs it"],
    );
    let (config, _) = good("[engine]\nbinary = '/opt/claude'\n[workspace]\ngit = 'git2'\n");
    assert_eq!(
        config.defaults.engine.binary,
        Some(PathBuf::from("/opt/claude"))
    );
    refused("[store]\npath = '~/x.db'\n", &["begins with ~"]);
    refused("[store]\npath = ''\n", &["empty"]);
}

#[test]
fn paths_and_globs_stay_inside_the_repository() {
    refused(
        "[engine]\nstandards_paths = ['../x']\n",
        &["out of the repository"],
    );
    refused(
        "[engine]\nstandards_paths = ['/etc/passwd']\n",
        &["out of the repository"],
    );
    refused("[budget]\nexcluded_paths = ['']\n", &["empty"]);
    refused(
        "[triggers]\nignore = { base = ['a[', 'ok'] }\n",
        &["p.toml:2: triggers.ignore.base", "not a glob"],
    );
    let (config, _) = good("[triggers.ignore]\nbase = ['release/*']\nhead = ['bot/**']\n");
    let ignore = &config.defaults.triggers.ignore;
    assert!(ignore.base[0].is_match("release/1") && !ignore.base[0].is_match("release/1/x"));
    assert!(ignore.head[0].is_match("bot/a/b"));
}

#[test]
fn a_handle_is_what_people_can_mention() {
    for text in ["prwarden", "@prwarden"] {
        let (config, _) = good(&format!("[triggers]\nhandle = '{text}'\n"));
        assert_eq!(config.defaults.triggers.handle.as_str(), "prwarden");
    }
    for text in [
        "",
        "@",
        "@@x",
        "a b",
        "-a",
        "a-",
        "a--b",
        "a_b",
        "é",
        &"a".repeat(40),
    ] {
        refused(
            &format!("[triggers]\nhandle = '{text}'\n"),
            &["can't be mentioned"],
        );
    }
}

#[test]
fn a_repository_overrides_single_keys() {
    let text = format!(
        "[triggers]\nallowlist = [1, 2]\non_push = true\nignore = {{ labels = ['wip'], title = ['draft'] }}\n\
         [engine]\nkind = 'claude'\nmodel = 'big'\n[review]\nlanguage = 'German'\n{PLAN}max_changed_files = 7\n\
         [[repo]]\nname = 'o/a'\n\
         [[repo]]\nname = 'o/b'\ntoken_file = '/t'\n\
         triggers = {{ on_push = false, ignore = {{ labels = [] }} }}\n\
         engine = {{ model = '' }}\nbudget = {{ max_changed_lines = 9 }}\n\
         review = {{ instructions = 'x' }}\npublish = {{ dry_run = true }}\n"
    );
    let (config, warnings) = good(&text);
    assert_eq!(warnings, []);
    let [a, b] = &config.repos[..] else { panic!() };
    assert_eq!(a.token, None);
    assert_eq!(a.rules.engine.model.as_deref(), Some("big"));
    assert_eq!(b.token, Some(TokenSource::File("/t".into())));
    let rules = &b.rules;
    assert_eq!(rules.triggers.allowlist.len(), 2);
    assert!(!rules.triggers.on_push && a.rules.triggers.on_push);
    assert!(rules.triggers.ignore.labels.is_empty());
    assert_eq!(rules.triggers.ignore.title, ["draft"]);
    assert_eq!(
        (rules.engine.kind, rules.engine.model.as_deref()),
        (EngineKind::Claude, None)
    );
    assert_eq!(
        (rules.caps.max_changed_files, rules.caps.max_changed_lines),
        (7, 9)
    );
    assert_eq!(rules.review.language.as_deref(), Some("German"));
    assert_eq!(rules.review.instructions.as_deref(), Some("x"));
    assert!(rules.publish.dry_run && !config.defaults.publish.dry_run);
    reloads(&config);
}

/// Without the first line, which names the file.
fn body(shown: &str) -> &str {
    shown.split_once('\n').unwrap().1
}

fn reloads(config: &Config) {
    let shown = show(config);
    let (again, _) = good(&shown);
    assert_eq!(body(&show(&again)), body(&shown));
    assert_eq!(again.repos.len(), config.repos.len());
}

/// For every key a value that isn't its default.
fn another_value(section: &str, key: &str) -> &'static str {
    match (section, key) {
        ("github", "api_url") => "'https://h.example/api/v3'",
        ("github", "web_url") => "'https://w.example'",
        ("github", "token_env") => "'T'",
        ("github", _) => "'/some/file'",
        ("repo", "name") => "'other/name'",
        ("repo", "token_file") => "'/t'",
        ("triggers", "allowlist") => "[583231]",
        ("triggers", "handle") => "'bot'",
        ("triggers", "on_ready") => "false",
        ("triggers", "on_push" | "on_edit") => "true",
        ("triggers", "never") | ("triggers.ignore", _) => "['''it's \"x\"''']",
        ("poll", "floor_seconds") => "11",
        ("poll", _) => "601",
        ("budget", "enabled" | "default_exclusions" | "comply") => "false",
        ("budget", "authority") => "true",
        ("budget", "daily_usd") => "4.25",
        ("budget", "weekly_usd") => "'20'",
        ("budget", "max_run_usd") => "1",
        ("roles.review", "share_pct") => "70",
        ("budget", "session_tokens") => "'3m'",
        ("budget", "weekly_tokens") => "'30m'",
        ("budget", "max_run_tokens") => "'100k'",
        ("budget", "max_ask_tokens") => "'20k'",
        ("budget", "excluded_paths") => "['docs/**']",
        ("budget", "when_exhausted") => "'gate'",
        ("budget", _) => "50",
        ("worker", "count") => "3",
        ("worker", "lease_seconds") => "4000",
        ("worker", _) => "5",
        ("engine", "kind") => "'claude'",
        ("engine", "binary") => "'/bin/x'",
        ("engine", "env") => "['KEY']",
        ("engine", "command" | "args" | "standards_paths") => "['x', \"a\\tb\"]",
        ("engine", "timeout_seconds") => "100",
        ("engine", _) => "'x y'",
        ("review", "instructions") => "'''\nline one \"\"\" \\\nline two\n'''",
        ("review", _) => "'German'",
        ("publish", "mode") => "'per_review'",
        ("publish", "dry_run") => "true",
        ("publish", "post_superseded") => "false",
        ("publish", _) => "3",
        ("store", _) => "'/x.db'",
        ("retention", _) => "30",
        ("workspace", "min_free_mb") => "1",
        ("workspace", _) => "'/x'",
        ("log", "level") => "'trace'",
        ("log", _) => "'json'",
        _ => panic!("no value for {section}.{key}"),
    }
}

#[test]
fn every_key_has_an_effect_that_show_shows_and_loads_again() {
    for section in SECTIONS {
        for key in section.keys {
            let (name, value) = (key.name, another_value(section.name, key.name));
            // A list of paths takes no control characters.
            let value = if name == "standards_paths" {
                "['x']"
            } else {
                value
            };
            let line = format!("{name} = {value}\n");
            let repo = "[[repo]]\nname = 'o/r'\n";
            let plan = PLAN.lines().filter(|l| !l.starts_with(&format!("{name} ")));
            let plan = plan.collect::<Vec<_>>().join("\n") + "\n";
            // Keys that need others beside them.
            let beside = match name {
                "daily_usd" => "weekly_usd = 30\nmax_run_usd = 2\n",
                "weekly_usd" => "daily_usd = 10\nmax_run_usd = 2\n",
                "max_run_usd" => "daily_usd = 10\n",
                "comply" => "authority = false\n",
                _ => "",
            };
            let without_it = match name {
                "max_run_usd" => "daily_usd = 10\nmax_run_usd = 2\n",
                _ => beside,
            };
            let (with, without) = match section.name {
                "budget" if !beside.is_empty() => (
                    format!("{plan}{beside}{line}{repo}"),
                    format!("{PLAN}{without_it}{repo}"),
                ),
                "budget" => (format!("{plan}{line}{repo}"), format!("{PLAN}{repo}")),
                "repo" if name == "name" => {
                    (format!("{PLAN}[[repo]]\n{line}"), format!("{PLAN}{repo}"))
                }
                "repo" => (format!("{PLAN}{repo}{line}"), format!("{PLAN}{repo}")),
                other => (
                    format!("{PLAN}[{other}]\n{line}{repo}"),
                    format!("{PLAN}{repo}"),
                ),
            };
            let (changed, _) = good(&with);
            let (base, _) = good(&without);
            assert_ne!(
                show(&changed),
                show(&base),
                "{}.{name} changes nothing",
                section.name
            );
            reloads(&changed);
            if section.per_repo && section.name != "budget"
                || (section.name == "budget" && key.per_repo)
            {
                let (own, _) = good(&format!("{PLAN}{repo}[repo.{}]\n{line}", section.name));
                assert_ne!(
                    show(&own),
                    show(&base),
                    "repo.{}.{name} changes nothing",
                    section.name
                );
                assert_eq!(
                    show(&own).split("[[repo]]").next(),
                    show(&base).split("[[repo]]").next()
                );
                reloads(&own);
            }
        }
    }
}

#[test]
fn the_table_of_keys_says_the_defaults_that_are_in_force() {
    let repo = "[[repo]]\nname = 'o/r'\n";
    let (base, _) = good(&format!("{PLAN}{repo}"));
    for section in SECTIONS {
        for key in section.keys {
            let Fallback::Value(value) = key.default else {
                continue;
            };
            let line = format!("{} = {value}\n", key.name);
            let text = match section.name {
                // Only said of a process that complies, which has no limits in its file.
                "budget" if key.name == "comply" => continue,
                "budget" => format!("{PLAN}{line}{repo}"),
                name => format!("{PLAN}[{name}]\n{line}{repo}"),
            };
            assert_eq!(
                show(&good(&text).0),
                show(&base),
                "{}.{}",
                section.name,
                key.name
            );
        }
    }
}

#[test]
fn the_templates_hold_every_key_and_load_once_the_placeholder_is_replaced() {
    for text in [template::minimal(), template::full()] {
        refused(&text, &["placeholder"]);
        let (_, warnings) = good(&text.replace(template::PLACEHOLDER, "o/r"));
        assert_eq!(warnings.len(), 1, "only the empty allowlist: {warnings:?}");
        assert!(text.lines().all(|line| line.len() <= 100));
    }
    let full = template::full().replace(template::PLACEHOLDER, "o/r");
    let uncommented: Vec<_> = full
        .lines()
        .map(|line| {
            line.strip_prefix('#')
                .filter(|rest| !rest.starts_with(' '))
                .unwrap_or(line)
        })
        // The two ways to name a token exclude each other.
        .filter(|line| !line.starts_with("token_file"))
        .collect();
    let (config, _) = good(&uncommented.join("\n"));
    assert_eq!(config.budget.plan.unwrap().max_run_tokens, Tokens(300_000));
    for section in SECTIONS {
        for key in section.keys {
            let line = format!("{} = {}", key.name, key.default.shown());
            assert!(full.contains(&line) || key.name == "name", "{line}");
        }
    }
    let minimal = template::minimal()
        .replace(template::PLACEHOLDER, "o/r")
        .replace("#[b", "[b");
    let minimal = minimal
        .replace("#session", "session")
        .replace("#weekly", "weekly")
        .replace("#max", "max");
    assert!(good(&minimal).0.budget.plan.is_some());
}

#[test]
fn the_cache_directory_is_found_in_every_environment() {
    let dir = |vars: &[(&str, &str)], text: &str| {
        let vars: HashMap<String, String> = vars
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        let (config, _) = parse(text, None, &|name| vars.get(name).cloned()).unwrap();
        config.workspace.cache_dir
    };
    let all = [
        ("CACHE_DIRECTORY", "/c:/d"),
        ("XDG_CACHE_HOME", "/x"),
        ("HOME", "/h"),
    ];
    assert_eq!(
        dir(&all, "[workspace]\ncache_dir = '/own'\n"),
        Path::new("/own")
    );
    assert_eq!(dir(&all, ""), Path::new("/c"));
    assert_eq!(dir(&all[1..], ""), Path::new("/x/prwarden"));
    assert_eq!(dir(&all[2..], ""), Path::new("/h/.cache/prwarden"));
    assert_eq!(
        dir(&[("XDG_CACHE_HOME", "rel"), ("HOME", "")], ""),
        Path::new("./prwarden-cache")
    );
    assert_eq!(
        dir(&[], "[store]\npath = '/var/s.db'\n"),
        Path::new("/var/prwarden-cache")
    );
}

#[test]
fn loading_names_a_file_that_is_missing_not_utf8_or_too_large() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.toml");
    let load = || Config::load(&path, &no_env);
    assert!(
        load()
            .unwrap_err()
            .to_string()
            .contains("prwarden config init")
    );
    fs::write(&path, b"[log]\nlevel = '\xff'\n").unwrap();
    let message = load().unwrap_err().to_string();
    assert!(
        message.starts_with(&format!("{}:2: is not UTF-8", path.display())),
        "{message}"
    );
    fs::write(&path, vec![b'#'; 1 << 21]).unwrap();
    assert!(load().unwrap_err().to_string().contains("larger than"));
    fs::write(&path, "\u{feff}[log]\r\nlevel = 'warn'\r\n").unwrap();
    assert_eq!(load().unwrap().0.log.level, log::LevelFilter::Warn);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    let (config, warnings) = load().unwrap();
    assert_eq!(config.file.as_deref(), Some(path.as_path()));
    assert!(
        warnings
            .iter()
            .any(|w| w.to_string().contains("everybody may change"))
    );
    assert_eq!(Config::locate(Some(&path)), Some(path.clone()));
    assert!(Config::load(dir.path(), &no_env).is_err());
}

mod token {
    use super::*;

    fn file(mode: u32, content: &str) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("github-token");
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        (dir, path)
    }

    fn env(name: &str) -> Option<String> {
        match name {
            "SET" => Some(" ghp_abc\n".into()),
            "EMPTY" => Some(" \n".into()),
            "WORDS" => Some("two words".into()),
            _ => None,
        }
    }

    #[test]
    fn comes_from_the_environment_or_the_credential() {
        let from = |name: &str| TokenSource::Env(name.into());
        assert_eq!(from("SET").resolve(&env).unwrap().expose(), "ghp_abc");
        let message = from("EMPTY").resolve(&env).unwrap_err().to_string();
        assert!(
            message.contains("environment variable EMPTY is empty"),
            "{message}"
        );
        let message = from("WORDS").resolve(&env).unwrap_err().to_string();
        assert!(!message.contains("two words"), "{message}");
        let message = from("MISSING").resolve(&env).unwrap_err().to_string();
        assert!(
            message.contains("MISSING is not set") && message.contains("CREDENTIALS_DIRECTORY"),
            "{message}"
        );

        // systemd shows its ACL as read permission of the group.
        let (dir, path) = file(0o440, "ghp_cred\n");
        let with_dir = |name: &str| match name {
            "CREDENTIALS_DIRECTORY" => Some(dir.path().display().to_string()),
            other => env(other),
        };
        assert_eq!(from("SET").resolve(&with_dir).unwrap().expose(), "ghp_abc");
        assert_eq!(
            from("MISSING").resolve(&with_dir).unwrap().expose(),
            "ghp_cred"
        );
        assert_eq!(
            TokenSource::File(path.clone())
                .resolve(&with_dir)
                .unwrap()
                .expose(),
            "ghp_cred"
        );
        fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
        assert!(from("MISSING").resolve(&with_dir).is_err());
        fs::remove_file(&path).unwrap();
        let message = from("MISSING").resolve(&with_dir).unwrap_err().to_string();
        assert!(message.contains(&path.display().to_string()), "{message}");
    }

    #[test]
    fn in_a_file_that_others_can_read_is_refused() {
        for mode in [0o640, 0o604, 0o660, 0o602, 0o601] {
            let (_dir, path) = file(mode, "ghp_secret");
            let message = TokenSource::File(path)
                .resolve(&env)
                .unwrap_err()
                .to_string();
            assert!(
                message.contains("by others (mode 06") && message.contains("chmod 600"),
                "{message}"
            );
            assert!(!message.contains("ghp_secret"));
        }
        let (_dir, path) = file(0o400, "ghp_secret\n");
        assert_eq!(
            TokenSource::File(path).resolve(&env).unwrap().expose(),
            "ghp_secret"
        );
    }

    #[test]
    fn that_is_empty_missing_or_no_token_is_refused_without_showing_it() {
        for content in ["", "\n", "ghp_a\nghp_b\n", "GITHUB_TOKEN = x", "gh\u{e9}"] {
            let (_dir, path) = file(0o600, content);
            let message = TokenSource::File(path.clone())
                .resolve(&env)
                .unwrap_err()
                .to_string();
            assert!(message.contains(&path.display().to_string()), "{message}");
            assert!(!message.contains("ghp_"));
        }
        let missing = TokenSource::File("/nonexistent/token".into());
        assert!(
            missing
                .resolve(&env)
                .unwrap_err()
                .to_string()
                .contains("/nonexistent/token")
        );
        assert!(TokenSource::File("/dev/null".into()).resolve(&env).is_err());
    }
}

/// Sections and keys with the defaults that the manual page gives, in its order.
fn of_the_manual() -> Vec<(String, String, Option<String>)> {
    let page = include_str!("../../man/prwarden.toml.5");
    let mut section = String::new();
    let mut keys = Vec::new();
    for line in page.lines() {
        if let Some(title) = line.strip_prefix(".Ss ") {
            section = title.replace("Bq ", "");
        } else if let Some(item) = line.strip_prefix(".It Ic ") {
            let (key, default) = match item.split_once(" No = ") {
                Some((key, default)) => (key, Some(default.replace("\\(dq", "\""))),
                None => (item, None),
            };
            keys.push((section.clone(), key.to_owned(), default));
        }
    }
    keys
}

#[test]
fn the_manual_page_has_every_key_with_its_default() {
    let table: Vec<_> = SECTIONS
        .iter()
        .flat_map(|section| section.keys.iter().map(move |key| (section, key)))
        .map(|(section, key)| {
            let default = match key.default {
                Fallback::Value(value) => Some(value.to_owned()),
                Fallback::Unset(_) => None,
            };
            (section.name.to_owned(), key.name.to_owned(), default)
        })
        .collect();
    assert_eq!(of_the_manual(), table);
}
