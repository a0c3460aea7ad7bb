//! What is refused, and how that is said.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::mpsc;

use prwarden::config::{SizeCaps, WorkspaceConfig};
use prwarden::secret::Secret;
use prwarden::workspace::{FailureClass, FetchFailure, Git, GitError, Workspace, WorkspaceError};
use url::Url;

use crate::support::{Ask, Repo, caps};

#[test]
fn dangerous_paths_are_named_and_never_written() {
    for path in [
        &b".GIT/hooks"[..],
        b"git~1/config",
        ".g\u{200c}it/config".as_bytes(),
        b".git/config",
    ] {
        let repo = Repo::with_base(&[("a", "1\n")]);
        repo.commit_entry("100644", path, b"x\n");
        let error = repo.refused(&caps());
        assert_eq!(error.class(), FailureClass::Deterministic, "{error}");
        let last = path.rsplit(|b| *b == b'/').next().unwrap();
        let WorkspaceError::UnsafePath { path } = &error else {
            panic!("{error:?}");
        };
        assert!(path.ends_with(std::str::from_utf8(last).unwrap()), "{path}");
        assert_eq!(repo.runs_left(), 0);
    }
}

#[test]
fn a_few_objects_that_name_billions_of_files_are_refused() {
    let repo = Repo::with_base(&[("a", "1\n")]);
    let blob = repo.git_with(&["hash-object", "-w", "--stdin"], b"x");
    let mut kind = ("100644 blob", blob);
    for _ in 0..10 {
        let entries = (0..10).map(|n| format!("{} {}\tf{n}\n", kind.0, kind.1));
        let tree = repo.git_with(&["mktree"], entries.collect::<String>().as_bytes());
        kind = ("040000 tree", tree);
    }
    let commit = repo.git(&["commit-tree", &kind.1, "-p", "HEAD", "-m", "bomb"]);
    repo.git(&["update-ref", "HEAD", &commit]);
    let error = repo.refused(&caps());
    assert!(
        matches!(error, WorkspaceError::TreeTooLarge { .. }),
        "{error:?}"
    );
    assert_eq!(error.class(), FailureClass::Deterministic);
}

#[test]
fn a_change_over_the_caps_is_refused_with_its_size() {
    let repo = Repo::with_base(&[("a", "1\n")]);
    repo.write("a", "2\n3\n");
    repo.write("b", "1\n");
    repo.write("Cargo.lock", "1\n".repeat(9000));
    repo.commit("change");
    let head = repo.publish();
    let exact = SizeCaps {
        max_changed_files: 2,
        max_changed_lines: 4,
        ..caps()
    };
    assert_eq!(repo.checkout_of(&head, &exact).unwrap().change.lines, 4);
    for over in [
        SizeCaps {
            max_changed_files: 1,
            ..exact.clone()
        },
        SizeCaps {
            max_changed_lines: 3,
            ..exact.clone()
        },
    ] {
        let error = repo.checkout_of(&head, &over).unwrap_err();
        assert!(
            matches!(
                error,
                WorkspaceError::TooLarge {
                    files: 2,
                    lines: 4,
                    ..
                }
            ),
            "{error:?}"
        );
        assert_eq!(error.class(), FailureClass::Deterministic);
    }
    repo.write("b", "long ".repeat(5 << 20));
    repo.write("b2", "long ".repeat(3 << 19));
    repo.write("b3", "lang ".repeat(3 << 19));
    repo.write("b4", "ling ".repeat(3 << 19));
    repo.commit("few lines, many bytes");
    let error = repo.refused(&caps());
    assert!(
        matches!(error, WorkspaceError::TooManyBytes { .. }),
        "{error:?}"
    );
}

#[test]
fn unrelated_histories_root_commits_and_empty_changes_are_told_apart() {
    let repo = Repo::with_base(&[("a", "1\n")]);
    assert!(repo.checkout().change.files.is_empty());
    repo.git(&["checkout", "-q", "--orphan", "other"]);
    repo.write("a", "2\n");
    repo.commit("root");
    let error = repo.refused(&caps());
    assert!(
        matches!(error, WorkspaceError::NoMergeBase { .. }),
        "{error:?}"
    );
    assert_eq!(error.class(), FailureClass::Deterministic);
}

#[test]
fn a_missing_pull_request_or_branch_is_said() {
    let repo = Repo::with_base(&[("a", "1\n")]);
    let head = repo.publish();
    let request = |pr, base| {
        let ask = Ask {
            pr,
            base,
            ..repo.ask(&head)
        };
        ask.checkout(&repo.workspace()).map(drop)
    };
    for (pr, base) in [(8, "main"), (7, "-x"), (7, "gone")] {
        let error = request(pr, base).unwrap_err();
        let missing = matches!(
            &error,
            WorkspaceError::Fetch {
                reason: FetchFailure::NoSuchRef,
                ..
            }
        );
        assert!(missing, "{error:?}");
    }
    for base in ["", "main:refs/heads/x", "a b", "x*", "main\n"] {
        let error = request(7, base).unwrap_err();
        assert!(matches!(error, WorkspaceError::Branch { .. }), "{error:?}");
    }
    request(7, "main").unwrap();
}

#[test]
fn only_safe_remotes_are_fetched_from() {
    let repo = Repo::with_base(&[("a", "1\n")]);
    let head = repo.publish();
    for url in [
        "http://example.org/a/b.git",
        "ssh://git@127.0.0.1/a/b",
        "git://127.0.0.1/a",
        "https://t:s3cret@example.org/a",
    ] {
        let remote = url.parse().unwrap();
        let ask = Ask {
            remote,
            ..repo.ask(&head)
        };
        let error = ask.checkout(&repo.workspace()).unwrap_err();
        assert!(matches!(error, WorkspaceError::Remote { .. }), "{error:?}");
        assert!(!format!("{error} {error:?}").contains("s3cret"));
    }
    let strict = Workspace::open(&repo.config(), None).unwrap();
    let error = repo.ask(&head).checkout(&strict).unwrap_err();
    assert!(matches!(error, WorkspaceError::Remote { .. }), "{error:?}");
}

#[test]
fn a_token_goes_to_the_remote_and_nowhere_else() {
    let repo = Repo::with_base(&[("a", "1\n")]);
    let head = repo.publish();
    let token = Secret::new("s3cret");
    let header = "Authorization: Basic eC1hY2Nlc3MtdG9rZW46czNjcmV0";
    let (other, other_requests) = answer_always(String::new());
    let length = "Content-Length: 0\r\nConnection: close\r\n";
    for (status, reason) in [
        (
            format!("401 Unauthorized\r\nWWW-Authenticate: Basic realm=x\r\n{length}"),
            FetchFailure::Denied,
        ),
        (format!("404 Not Found\r\n{length}"), FetchFailure::Denied),
        (
            format!("301 Moved\r\nLocation: {other}/info/refs?service=git-upload-pack\r\n{length}"),
            FetchFailure::Moved,
        ),
        (format!("503 Busy\r\n{length}"), FetchFailure::Unreachable),
    ] {
        let (remote, requests) = answer_always(format!("HTTP/1.1 {status}\r\n"));
        let token = Some(token.clone());
        let ask = Ask {
            remote,
            token,
            ..repo.ask(&head)
        };
        let error = ask.checkout(&repo.workspace()).unwrap_err();
        let WorkspaceError::Fetch { reason: found, .. } = &error else {
            panic!("{error:?}");
        };
        assert_eq!(*found, reason, "{error}");
        let transient = reason == FetchFailure::Unreachable;
        assert_eq!(error.class() == FailureClass::Transient, transient);
        assert!(requests.recv().unwrap().contains(header));
        let said = format!("{error} {error:?}");
        assert!(
            !said.contains("s3cret") && !said.contains("eC1hY2Nlc3"),
            "{said}"
        );
    }
    assert!(other_requests.try_recv().is_err());
    assert!(!contains(&repo.config().cache_dir, b"s3cret"));
    assert!(!contains(&repo.config().cache_dir, b"eC1hY2Nlc3"));
}

#[test]
fn malformed_objects_are_not_accepted_into_the_mirror() {
    let repo = Repo::with_base(&[("a", "1\n")]);
    let blob = repo.git_with(&["hash-object", "-w", "--stdin"], b"x");
    let id: Vec<u8> = (0..40)
        .step_by(2)
        .map(|i| u8::from_str_radix(&blob[i..i + 2], 16).unwrap())
        .collect();
    let tree = [b"100644 ..\0".as_slice(), &id].concat();
    let tree = repo.git_with(
        &["hash-object", "-t", "tree", "--literally", "-w", "--stdin"],
        &tree,
    );
    let commit = repo.git(&["commit-tree", &tree, "-p", "HEAD", "-m", "bad"]);
    repo.git(&["update-ref", "HEAD", &commit]);
    let error = repo.refused(&caps());
    let unsound = matches!(
        &error,
        WorkspaceError::Fetch {
            reason: FetchFailure::Unsound,
            ..
        }
    );
    assert!(unsound, "{error:?}");
    assert_eq!(error.class(), FailureClass::Deterministic);
}

#[test]
fn a_full_disk_is_refused_before_anything_is_fetched() {
    let repo = Repo::with_base(&[("a", "1\n")]);
    let head = repo.publish();
    let config = WorkspaceConfig {
        min_free_mb: u64::MAX,
        ..repo.config()
    };
    let workspace = Workspace::open(&config, None).unwrap().with_file_remotes();
    let error = repo.ask(&head).checkout(&workspace).unwrap_err();
    assert!(matches!(error, WorkspaceError::Disk { .. }), "{error:?}");
    assert_eq!(error.class(), FailureClass::Transient);
    assert!(!config.cache_dir.join("mirrors").exists());
}

#[test]
fn a_missing_or_foreign_git_is_said_clearly() {
    let missing = Git::find(Path::new("git-that-is-not-there")).unwrap_err();
    assert!(matches!(missing, GitError::NotFound { .. }));
    assert!(
        missing.to_string().contains("install git 2.32"),
        "{missing}"
    );
    let dir = tempfile::tempdir().unwrap();
    let program = |text: &str| {
        let path = dir.path().join("git");
        fs::write(&path, format!("#!/bin/sh\necho '{text}'\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Git::find(&path)
    };
    assert!(matches!(
        program("git version 2.31.9"),
        Err(GitError::TooOld { .. })
    ));
    assert!(matches!(
        program("git version 1.99"),
        Err(GitError::TooOld { .. })
    ));
    assert!(matches!(program("hello"), Err(GitError::NotGit { .. })));
    assert!(program("git version 2.32.0 (Apple Git-132)").is_ok());
    assert!(program("git version 3.0").is_ok());
}

fn contains(directory: &Path, needle: &[u8]) -> bool {
    fs::read_dir(directory).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            contains(&path, needle)
        } else {
            let bytes = fs::read(&path).unwrap();
            bytes.windows(needle.len()).any(|window| window == needle)
        }
    })
}

/// A server that answers every request alike and passes on what it was asked.
fn answer_always(response: String) -> (Url, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/acme/widgets.git", listener.local_addr().unwrap());
    let (send, requests) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let head: Vec<_> = lines
                .map_while(Result::ok)
                .take_while(|line| !line.is_empty())
                .collect();
            let _ = stream.write_all(response.as_bytes());
            let _ = send.send(head.join("\n"));
        }
    });
    (url.parse().unwrap(), requests)
}
