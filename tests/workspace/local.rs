//! Reviews by hand in a clone on this machine.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use prwarden::clock::Stop;
use prwarden::workspace::{WorkspaceError, local_change};

use crate::support::{Repo, added, caps, file, git};

#[test]
fn a_local_review_writes_nothing_and_runs_nothing_of_the_clone() {
    let repo = Repo::with_base(&[("a", "1\n")]);
    repo.write("a", "2\n");
    repo.write("sub/.gitattributes", "* diff=evil filter=evil\n");
    repo.commit("change");
    repo.write("a", "uncommitted\n");
    let canary = repo.dir.path().join("canary");
    let touch = format!("touch {}", canary.display());
    for key in [
        "core.fsmonitor",
        "core.hooksPath",
        "diff.external",
        "diff.evil.command",
        "diff.evil.textconv",
        "filter.evil.smudge",
        "filter.evil.process",
        "core.pager",
        "core.sshCommand",
        "core.askPass",
        "alias.rev-parse",
    ] {
        let value = if key == "core.hooksPath" {
            repo.path().join("hooks").display().to_string()
        } else {
            touch.clone()
        };
        repo.git(&["config", key, &value]);
    }
    repo.git(&["config", "diff.noprefix", "true"]);
    repo.git(&["config", "diff.renames", "false"]);
    let hook = repo.path().join("hooks/post-index-change");
    repo.write("hooks/post-index-change", format!("#!/bin/sh\n{touch}\n"));
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let before = snapshot(&repo.path());
    let local = repo.local("main", None).unwrap();
    assert_eq!(added(file(&local.change, b"a")), [(1, "2".to_owned())]);
    let tree = local.tree(&Stop::new()).unwrap();
    assert_eq!(fs::read(tree.join("a")).unwrap(), b"2\n");
    assert!(!tree.join(".git").exists());
    assert!(local.scratch().unwrap().is_dir());
    assert_eq!(snapshot(&repo.path()), before);
    assert!(!canary.exists());
    drop(local);
    assert!(!tree.exists());
}

#[test]
fn a_local_review_works_in_linked_worktrees_subdirectories_and_shallow_clones() {
    let repo = Repo::with_base(&[("a", "1\n"), ("src/x", "")]);
    for text in ["2\n", "3\n", "4\n"] {
        repo.write("a", text);
        repo.commit("change");
    }
    let change = |directory: &Path, base: &str, head: Option<&str>| {
        local_change(&git(), directory, base, head, &caps(), &Stop::new()).map(|local| local.change)
    };
    let linked = repo.dir.path().join("linked \"tree\"");
    repo.git(&[
        "worktree",
        "add",
        "-q",
        "--detach",
        linked.to_str().unwrap(),
        "topic~1",
    ]);
    assert_eq!(
        added(file(&change(&linked, "main", None).unwrap(), b"a")),
        [(1, "3".to_owned())]
    );
    let subdirectory = change(&repo.path().join("src"), "main", Some("topic")).unwrap();
    assert_eq!((subdirectory.files.len(), subdirectory.commits), (1, 3));
    let shallow = repo.dir.path().join("shallow:clone");
    let url = format!("file://{}", repo.path().display());
    repo.git(&[
        "clone",
        "-q",
        "--depth=2",
        "-b",
        "topic",
        &url,
        shallow.to_str().unwrap(),
    ]);
    let in_shallow = change(&shallow, "HEAD~1", None).unwrap();
    assert_eq!(added(file(&in_shallow, b"a")), [(1, "4".to_owned())]);
}

#[test]
fn a_local_review_works_in_a_clone_of_somebody_else() {
    let repo = Repo::with_base(&[("a", "1\n")]);
    repo.write("a", "2\n");
    repo.commit("change");
    let chown = Command::new("chown")
        .arg("-R")
        .arg("12345")
        .arg(repo.path())
        .output();
    if !chown.unwrap().status.success() {
        println!("skipped: only root can give files away");
        return;
    }
    assert_eq!(repo.local("main", None).unwrap().change.files.len(), 1);
}

#[test]
fn a_local_review_in_a_wrong_place_or_of_a_wrong_name_is_said() {
    let repo = Repo::with_base(&[("a", "1\n")]);
    for name in ["nowhere", "-x", "--all", "main:a", ""] {
        let error = repo.local(name, None).unwrap_err();
        assert!(
            matches!(error, WorkspaceError::UnknownRevision { .. }),
            "{name}: {error:?}"
        );
    }
    let elsewhere = tempfile::tempdir().unwrap();
    let error = local_change(
        &git(),
        elsewhere.path(),
        "main",
        None,
        &caps(),
        &Stop::new(),
    )
    .unwrap_err();
    assert!(
        matches!(error, WorkspaceError::NotARepository { .. }),
        "{error:?}"
    );
}

/// Every path of a directory with size and time of change.
fn snapshot(directory: &Path) -> Vec<(PathBuf, u64, std::time::SystemTime)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let metadata = fs::symlink_metadata(entry.path()).unwrap();
        found.push((entry.path(), metadata.len(), metadata.modified().unwrap()));
        if metadata.is_dir() {
            found.extend(snapshot(&entry.path()));
        }
    }
    found.sort();
    found
}
