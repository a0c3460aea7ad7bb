use super::*;
use crate::workspace::{FileStatus, RepoPath};

fn file(path: &str, text: &str) -> FileChange {
    FileChange {
        path: RepoPath(path.as_bytes().to_vec()),
        old_path: None,
        status: FileStatus::Added,
        old_mode: 0,
        new_mode: 0o100644,
        binary: false,
        size: Some(text.len() as u64),
        added: text
            .split('\n')
            .zip(1..)
            .map(|(line, number)| AddedLine {
                number,
                text: line.as_bytes().to_vec(),
            })
            .collect(),
        deleted: 0,
        symlink_target: None,
    }
}

use crate::workspace::AddedLine;

fn rules(file: &FileChange) -> Vec<(String, Option<u32>)> {
    let found = check_file(file);
    found
        .into_iter()
        .map(|f| (f.rule.unwrap_or_default(), f.line))
        .collect()
}

fn found(path: &str, text: &str) -> Vec<String> {
    rules(&file(path, text))
        .into_iter()
        .map(|(rule, _)| rule)
        .collect()
}

/// Random-looking text that no scanner of this repository takes for a secret.
fn noise(length: usize) -> String {
    "q7Rk2Zt9Wm4Xc8Vb3Nf6Hj1Gd5Lp0SyUoIeAzTw"
        .chars()
        .cycle()
        .take(length)
        .collect()
}

#[test]
fn every_format_compiles() {
    let (compiled, all) = credentials::compiled_formats();
    assert_eq!(compiled, all);
}

#[test]
fn credentials_of_known_formats_are_found_and_never_repeated() {
    let upper: String = noise(60)
        .to_uppercase()
        .chars()
        .filter(|c| !"0189".contains(*c))
        .collect();
    for (rule, secret) in [
        ("github-token", format!("{}{}", "ghp_", noise(36))),
        ("gitlab-token", format!("{}{}", "glpat-", noise(20))),
        ("aws-access-key", format!("{}{}", "AKIA", &upper[..16])),
        ("google-api-key", format!("{}{}", "AIza", noise(35))),
        (
            "slack-token",
            format!("{}{}-{}", "xoxb-", "5839201746", noise(24)),
        ),
        ("stripe-key", format!("{}{}", "sk_live_", noise(24))),
        ("npm-token", format!("{}{}", "npm_", noise(36))),
        ("anthropic-key", format!("{}{}", "sk-ant-api03-", noise(90))),
        ("openai-key", format!("{}{}", "sk-proj-", noise(60))),
        (
            "sendgrid-key",
            format!("{}{}.{}", "SG.", noise(22), noise(43)),
        ),
    ] {
        let file = file("src/a.py", &format!("x = 1\nkey = '{secret}'  # prod"));
        let findings = check_file(&file);
        let place: Vec<_> = findings
            .iter()
            .map(|f| (f.rule.as_deref(), f.line))
            .collect();
        assert_eq!(
            place,
            [(Some(format!("credential/{rule}").as_str()), Some(2))],
            "{secret}"
        );
        assert!(!format!("{findings:?}").contains(&secret[6..]));
    }
    let word = "PRIVATE";
    let key = format!(
        "x\n-----BEGIN RSA {word} KEY-----\n{0}\n{0}\n-----END",
        noise(64)
    );
    assert_eq!(
        rules(&file("id_rsa", &key)),
        [("credential/private-key".to_owned(), Some(2))]
    );
    let key = format!("k = \"-----BEGIN {word} KEY-----\\n{}\\n\"", noise(64));
    assert_eq!(found("a.py", &key), ["credential/private-key"]);
    let line = format!("password = \"{}\"", "vK9#mQ2x!Lr7Tz4w");
    assert_eq!(found("a.py", &line), ["credential/assigned-secret"]);
    let line = format!("postgres://app:{}@db.internal/app", "Zq8Wn3Kx7Lm2");
    assert_eq!(found("a.env", &line), ["credential/url-password"]);
}

#[test]
fn what_only_looks_like_a_credential_is_left_alone() {
    for line in [
        "password = \"changeme-please-now\"",
        "password = os.environ[\"DB_PASSWORD\"]",
        "api_key = \"YOUR_API_KEY_GOES_HERE\"",
        "secret: \"${SECRET_FROM_THE_ENVIRONMENT}\"",
        "sha256 = \"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\"",
        "secret_id = \"550e8400-e29b-41d4-a716-446655440000\"",
        "access_key = \"com.example.product.settings.AccessKey1\"",
        "AKIAIOSFODNN7EXAMPLE",
        "https://user:password@example.org/path",
        "postgres://app:${DB_PASSWORD}@db/app",
        "auth_token: \"aaaaaaaaaaaaaaaaaaaaaaaa\"",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "-----BEGIN PUBLIC KEY-----",
        concat!("if line == '-----BEGIN PRIV", "ATE KEY-----':"),
        concat!(
            "-----BEGIN PRIV",
            "ATE KEY-----\nMIIEpAIBAAKCAQEA...\n-----END"
        ),
        "const secretKeyName = 'session-signing-secret'",
        "token = 'oauth2-session-cookie-v2'",
        "integrity_token = \"sha512-q7Rk2Zt9Wm4Xc8Vb3Nf6Hj1Gd5Lp0SyUoIeAzTw==\"",
        "postgres://app:Zq8Wn3Kx7Lm2@localhost/app",
        "redis://app:Zq8Wn3Kx7Lm2@cache.example.org/0",
        "secret = 'path/to/v1/some/file2'",
        "\"NextContinuationToken\": \"Zq8Wn3Kx7Lm2Vt5Rp9\"",
    ] {
        assert_eq!(found("src/a.py", line), Vec::<String>::new(), "{line}");
    }
}

#[test]
fn a_made_up_password_in_tests_and_documentation_is_left_alone_but_a_token_is_not() {
    let password = format!("password = \"{}\"", "vK9#mQ2x!Lr7Tz4w");
    let token = format!("token = \"{}{}\"", "ghp_", noise(36));
    for path in ["tests/login.py", "README.md", "src/a.test.ts", "docs/a.yml"] {
        assert_eq!(found(path, &password), Vec::<String>::new(), "{path}");
        let findings = check_file(&file(path, &token));
        assert_eq!(findings.len(), 1, "{path}");
        assert_eq!(findings[0].severity, Severity::Major, "{path}");
    }
}

#[test]
fn a_secret_needs_no_quotation_marks_in_files_that_use_none() {
    let value = "Zq8Wn3Kx7Lm2Vt5Rp9";
    for (path, line) in [
        (".env", format!("export DB_PASSWORD={value}")),
        ("deploy/values.yaml", format!("  api-key: {value} # prod")),
        ("src/Main.java", format!("String apiKey = \"{value}\";")),
        ("src/main.rs", format!("const SECRET: &str = \"{value}\";")),
    ] {
        assert_eq!(found(path, &line), ["credential/assigned-secret"], "{line}");
    }
    for (path, line) in [
        (".env.example", format!("DB_PASSWORD={value}")),
        ("src/a.rs", format!("let token = {value};")),
        (
            "deploy/values.yaml",
            "  token: https://vault/v1/kv2/App9".to_owned(),
        ),
    ] {
        assert_eq!(found(path, &line), Vec::<String>::new(), "{line}");
    }
}

#[test]
fn a_signed_token_counts_only_where_it_authorises() {
    let token = format!("eyJ{}.eyJ{}.{}", noise(20), noise(60), noise(43));
    assert_eq!(
        found("a.js", &format!("headers.Authorization = 'Bearer {token}'")),
        ["credential/signed-token"]
    );
    assert_eq!(
        found("a.js", &format!("parse('{token}')")),
        Vec::<String>::new()
    );
    let example = token.replace(&format!("eyJ{}", noise(20)), "eyJzdWIiOiIxMjM0NTY3ODkwIiwi");
    let line = format!("token = '{example}'");
    assert_eq!(found("a.js", &line), Vec::<String>::new());
}

#[test]
fn one_enormous_line_and_thousands_of_lines_are_checked() {
    let token = format!("{}{}", "ghp_", noise(36));
    let filler = "a é=\"password: x://b:c\u{200d} eyJ token sk- <<<<<<< ".repeat(60_000);
    let line = format!("{filler} {token} {filler}");
    assert!(line.len() > 5_000_000);
    assert_eq!(found("a.min.js", &line), ["credential/github-token"]);
    let tokens = format!("{token} ").repeat(50_000);
    assert_eq!(found("a.js", &tokens), ["credential/github-token"]);
    let lines = format!("{}\n", "x = 1; // password = y".repeat(4)).repeat(5_000);
    assert_eq!(found("a.js", &lines), Vec::<String>::new());
}

#[test]
fn a_conflict_is_found_by_its_whole_shape() {
    let conflict = "a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> branch\nd";
    assert_eq!(
        rules(&file("a.md", conflict)),
        [("conflict-marker".to_owned(), Some(2))]
    );
    for other in [
        "Title\n=======\n",
        "<<<<<<< HEAD",
        ">>>>>>> quoted\n=======\n",
        "<<<<<<<<<\n=======\n>>>>>>>>>",
    ] {
        assert_eq!(found("a.rst", other), Vec::<String>::new(), "{other:?}");
    }
}

#[test]
fn one_marker_is_enough_where_only_a_merge_writes_it() {
    for line in [
        "<<<<<<< HEAD",
        ">>>>>>> 1a2b3c4d (Change it)",
        ">>>>>>> origin/main\r",
    ] {
        let text = format!("a\n{line}\nb");
        let wanted = [("conflict-marker".to_owned(), Some(2))];
        assert_eq!(rules(&file("src/a.rs", &text)), wanted);
        assert_eq!(found("README.md", &text), Vec::<String>::new());
    }
    assert_eq!(found("src/a.rs", "<<<<<<< see below"), Vec::<String>::new());
    let conflict = "<<<<<<< HEAD\nb\n||||||| base\nx\n=======\nc\n>>>>>>> 1a2b3c4d\n";
    assert_eq!(found("src/a.rs", conflict).len(), 1);
    let shown = format!("A conflict:\n\n```\n{conflict}```\n");
    assert_eq!(found("docs/git.md", &shown), Vec::<String>::new());
}

#[test]
fn characters_that_deceive_are_found_and_scripts_that_need_them_are_left_alone() {
    assert_eq!(
        found("a.rs", "if admin { \u{202e} } // check"),
        ["hidden/bidirectional"]
    );
    assert_eq!(
        found("a.rs", "let ad\u{200b}min = 1;"),
        ["hidden/invisible"]
    );
    assert_eq!(found("a.rs", "del\u{8}ete"), ["hidden/invisible"]);
    assert_eq!(
        found("a.js", "const { a,\u{3164}} = b"),
        ["hidden/invisible"]
    );
    assert_eq!(
        found("a.js", "x = `\u{fe01}\u{fe02}\u{e0101}`"),
        ["hidden/invisible"]
    );
    assert_eq!(found("a.md", "hi\u{e0041}\u{e0042}"), ["hidden/invisible"]);
    assert_eq!(found("a.py", "# a comment\revil()"), ["hidden/line-end"]);
    assert_eq!(
        found("a.js", "// a comment\u{2028}evil()"),
        ["hidden/line-end"]
    );
    assert_eq!(
        found("ar.po", "\u{202e}\u{627}\u{202c}"),
        ["hidden/bidirectional"]
    );
    for fine in [
        "\u{feff}using System;",
        "می\u{200c}خواهم",
        "👩\u{200d}💻",
        "🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
        "❤\u{fe0f}",
        "\u{2067}\u{627}\u{644}\u{2069} GitHub",
        "a line of Windows\r",
        "plain",
    ] {
        assert_eq!(found("a.txt", fine), Vec::<String>::new(), "{fine:?}");
    }
}

#[test]
fn files_are_judged_by_what_they_become() {
    let mut program = file("tools/helper.exe", "");
    program.binary = true;
    assert_eq!(rules(&program)[0].0, "binary/runnable");
    for (path, mode, rule) in [
        ("lib/libx.so.1.2", 0o100644, "binary/runnable"),
        ("tools/helper", 0o100755, "binary/runnable"),
        ("src/main.rs", 0o100644, "binary/source"),
    ] {
        let mut file = file(path, "");
        (file.binary, file.new_mode) = (true, mode);
        assert_eq!(rules(&file)[0].0, rule, "{path}");
    }
    let mut image = file("logo.png", "");
    image.binary = true;
    assert_eq!(rules(&image), []);
    image.size = Some(LARGE_TEST);
    assert_eq!(rules(&image)[0].0, "binary/large");
    let mut mode = file("data.csv", "a");
    (mode.old_mode, mode.new_mode) = (0o100644, 0o100755);
    assert_eq!(rules(&mode)[0].0, "mode/executable");
    let mut script = file("run", "#!/bin/sh");
    (script.old_mode, script.new_mode) = (0o100644, 0o100755);
    assert_eq!(rules(&script), []);
    let mut module = file("vendor/lib", "");
    module.new_mode = 0o160000;
    assert_eq!(rules(&module)[0].0, "submodule/moved");
}

const LARGE_TEST: u64 = 6 * 1024 * 1024;

#[test]
fn a_symlink_is_followed_on_paper_only() {
    for (path, target, leaves) in [
        ("a", "/etc/passwd", true),
        ("a", "../x", true),
        ("d/e/a", "../../x", false),
        ("d/e/a", "../../../x", true),
        ("a", "b/../../x", true),
        ("a", "./b", false),
        ("a", ".git/hooks/pre-commit", true),
        ("a", "C:\\Windows", true),
        ("a", ".github/x", false),
    ] {
        let mut link = file(path, "");
        link.new_mode = 0o120000;
        link.symlink_target = Some(target.as_bytes().to_vec());
        assert_eq!(
            rules(&link).len(),
            usize::from(leaves),
            "{path} -> {target}"
        );
    }
}

#[test]
fn workflows_that_gain_power_are_told() {
    let path = ".github/workflows/ci.yml";
    assert_eq!(
        found(path, "on:\n  pull_request_target:\n"),
        ["workflow/pull-request-target"]
    );
    assert_eq!(
        found(path, "on: [push, pull_request_target]"),
        ["workflow/pull-request-target"]
    );
    assert_eq!(
        found(path, "permissions:\n  contents: write\n"),
        ["workflow/write-permission"]
    );
    assert_eq!(
        found(path, "permissions: write-all"),
        ["workflow/write-permission"]
    );
    for (text, rule) in [
        ("'on': {pull_request_target: {}}", "pull-request-target"),
        ("on:\n  - \"pull_request_target\"", "pull-request-target"),
        (
            "permissions: {contents: read, id-token: write}",
            "write-permission",
        ),
        ("  discussions: 'write' # why", "write-permission"),
    ] {
        assert_eq!(found(path, text), [format!("workflow/{rule}")], "{text}");
    }
    for fine in [
        "on: pull_request",
        "if: github.event_name == 'pull_request_target'",
        "name: write the contents: write",
        "permissions: {contents: read}",
        "contents: read",
        "# pull_request_target is not used",
    ] {
        assert_eq!(found(path, fine), Vec::<String>::new(), "{fine}");
    }
    assert_eq!(
        found("docs/ci.yml", "contents: write"),
        Vec::<String>::new()
    );
}

#[test]
fn many_findings_of_one_rule_are_cut() {
    let lines: String = (0..200).map(|_| "x\u{202e}y\n").collect();
    assert_eq!(found("a.rs", &lines).len(), PER_RULE_AND_FILE);
}
