//! Man pages, README and `--help` say what the program does, and nothing else.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

fn read(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

fn help(command: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_prwarden"))
        .args(command)
        .arg("--help")
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_command_and_option_of_the_help_is_in_the_man_page() {
    let page = read("man/prwarden.1");
    let commands: [&[&str]; 15] = [
        &[],
        &["run"],
        &["once"],
        &["review"],
        &["demo"],
        &["config", "init"],
        &["config", "check"],
        &["config", "show"],
        &["status"],
        &["doctor"],
        &["queue", "list"],
        &["queue", "publish"],
        &["purge"],
        &["db", "check"],
        &["db", "backup"],
    ];
    let mut options = BTreeSet::new();
    for command in commands {
        for name in command {
            assert!(
                page.contains(&format!(".Cm {name}")) || page.contains(&format!(" {name}")),
                "{name}"
            );
        }
        let text = help(command);
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
        options.extend(
            words
                .filter(|word| word.starts_with("--") && word.len() > 2)
                .map(str::to_owned),
        );
    }
    // These two stand together with their short forms.
    options.remove("--help");
    options.remove("--version");
    assert!(options.contains("--base") && options.contains("--max-seconds"));
    for option in &options {
        let macro_form = format!("Fl -{}", option.trim_start_matches("--"));
        assert!(page.contains(&macro_form), "{option} is not in prwarden(1)");
    }
    for line in page
        .lines()
        .filter_map(|line| line.strip_prefix(".It Fl -"))
    {
        let name = format!("--{}", line.split(' ').next().unwrap());
        assert!(options.contains(&name), "{name} is in prwarden(1) only");
    }
}

#[test]
fn the_readme_s_configuration_examples_load() {
    let readme = read("README.md");
    for key in [
        "session_tokens",
        "weekly_tokens",
        "max_run_tokens",
        "reviewer_share_pct",
    ] {
        assert!(readme.contains(key), "{key}");
    }
    let example: String = readme
        .lines()
        .skip_while(|line| *line != "    [engine]")
        .take_while(|line| line.starts_with("    ") || line.is_empty())
        .map(|line| format!("{}\n", line.trim_start()))
        .collect();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("prwarden.toml");
    fs::write(&file, example).unwrap();
    prwarden::config::Config::load(&file, &|_| None).unwrap();
}
