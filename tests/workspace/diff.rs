//! What the diff shows of hostile content, names and modes, and what it leaves out.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use proptest::prelude::*;
use prwarden::clock::Stop;
use prwarden::config::SizeCaps;
use prwarden::findings::OmitReason;
use prwarden::workspace::FileStatus;

use crate::support::{Repo, added, caps, file};

#[test]
fn attributes_in_the_tree_hide_nothing_and_change_no_byte() {
    let attributes = "* -diff\n*.txt text eol=crlf ident filter=lfs working-tree-encoding=UTF-16\n";
    let content = "one\ntwo $Id$\n";
    let repo = Repo::with_base(&[("a.txt", "one\n")]);
    // The same attributes in the base, in the branch and in the clone's working tree.
    repo.stage(".gitattributes", attributes);
    repo.git(&["commit", "-qm", "attributes"]);
    repo.git(&["branch", "-f", "main", "HEAD"]);
    repo.stage("a.txt", content);
    repo.stage(".gitattributes", &format!("{attributes}*.txt binary\n"));
    repo.git(&["commit", "-qm", "content"]);
    repo.write(".gitattributes", attributes);
    let checkout = repo.checkout();
    let local = repo.local("main", None).unwrap();
    for change in [&checkout.change, &local.change] {
        let changed = file(change, b"a.txt");
        assert_eq!(added(changed), [(2, "two $Id$".to_owned())]);
        assert!(!changed.binary);
    }
    for tree in [&checkout.tree, &local.tree(&Stop::new()).unwrap()] {
        assert_eq!(fs::read(tree.join("a.txt")).unwrap(), content.as_bytes());
    }
}

#[test]
fn content_decides_what_is_binary() {
    let repo = Repo::with_base(&[("a", "1\n")]);
    repo.write("blob", b"\0\x01\x02".repeat(100));
    repo.write("empty", "");
    repo.write("latin1", b"caf\xe9\n");
    repo.commit("files");
    let checkout = repo.checkout();
    let blob = file(&checkout.change, b"blob");
    assert!(blob.binary && blob.added.is_empty());
    assert_eq!(blob.size, Some(300));
    assert!(!file(&checkout.change, b"empty").binary);
    assert_eq!(file(&checkout.change, b"latin1").added[0].text, b"caf\xe9");
}

#[test]
fn symlinks_are_written_as_plain_files_and_known_by_their_target() {
    let repo = Repo::with_base(&[("was-file", "x\n")]);
    std::os::unix::fs::symlink("/etc/passwd", repo.path().join("link")).unwrap();
    fs::remove_file(repo.path().join("was-file")).unwrap();
    std::os::unix::fs::symlink("../../..", repo.path().join("was-file")).unwrap();
    repo.commit("links");
    let checkout = repo.checkout();
    let link = file(&checkout.change, b"link");
    assert_eq!(link.symlink_target.as_deref(), Some(&b"/etc/passwd"[..]));
    let changed = file(&checkout.change, b"was-file");
    assert_eq!(changed.status, FileStatus::TypeChanged);
    assert_eq!(added(changed), [(1, "../../..".to_owned())]);
    assert_eq!(changed.deleted, 1);
    let written = fs::symlink_metadata(checkout.tree.join("link")).unwrap();
    assert!(written.is_file());
    assert_eq!(
        fs::read(checkout.tree.join("link")).unwrap(),
        b"/etc/passwd"
    );
}

#[test]
fn a_submodule_is_an_empty_directory_and_a_change_of_its_commit() {
    let repo = Repo::with_base(&[("a", "1\n")]);
    let entry = format!("160000,{},sub", repo.head());
    repo.git(&["update-index", "--add", "--cacheinfo", &entry]);
    repo.git(&["commit", "-qm", "submodule"]);
    let checkout = repo.checkout();
    let sub = file(&checkout.change, b"sub");
    assert_eq!((sub.new_mode, sub.size), (0o160_000, None));
    assert!(checkout.tree.join("sub").is_dir());
}

#[test]
fn paths_of_any_bytes_keep_their_bytes() {
    let repo = Repo::with_base(&[("a", "1\n")]);
    let names: [&[u8]; 5] = [
        b"caf\xe9.txt",
        b"new\nline",
        b"tab\tquote\"back\\slash",
        b"-x",
        b":(exclude)a b/ b.txt",
    ];
    for name in names {
        repo.write(OsStr::from_bytes(name), b"hello\n");
    }
    repo.commit("odd names");
    let head = repo.publish();
    let local = repo.local("main", None).unwrap();
    let error = repo.checkout_of(&head, &caps());
    for name in names {
        assert_eq!(added(file(&local.change, name)), [(1, "hello".to_owned())]);
    }
    // A backslash separates directories on some systems, but leads nowhere dangerous here.
    let checkout = error.unwrap();
    for name in names {
        assert!(
            checkout.tree.join(OsStr::from_bytes(name)).exists(),
            "{name:?}"
        );
    }
}

#[test]
fn content_that_imitates_a_diff_forges_no_file() {
    let repo = Repo::with_base(&[("a", "1\n-- a/x\n")]);
    let forged =
        "++ b/evil\n@@ -1 +1 @@\ndiff --git a/evil b/evil\nindex 00..11\n--- a/evil\n+++ b/evil\n";
    repo.write("a", forged);
    repo.write("diff --git a/x b/y", forged);
    repo.commit("forge");
    let checkout = repo.checkout();
    assert_eq!(checkout.change.files.len(), 2);
    for file in &checkout.change.files {
        let text: Vec<_> = file
            .added
            .iter()
            .map(|line| [&line.text[..], b"\n"].concat())
            .collect();
        assert_eq!(String::from_utf8(text.concat()).unwrap(), forged);
    }
}

#[test]
fn lock_files_and_vendored_trees_are_left_out_and_named() {
    let repo = Repo::with_base(&[("src/lib.rs", "a\n"), ("old.rs", "1\n2\n3\n4\n")]);
    repo.write("src/lib.rs", "b\n");
    for path in [
        "Cargo.lock",
        "web/yarn.lock",
        "vendor/x/y.go",
        "docs/a.md",
        "app.min.js",
        "Cargo.lock.rs",
    ] {
        repo.write(path, "x\n");
    }
    repo.git(&["mv", "old.rs", "vendor/old.rs"]);
    repo.commit("change");
    let head = repo.publish();
    let rules = SizeCaps {
        excluded_paths: vec!["docs/**".into(), " ".into()],
        ..caps()
    };
    let checkout = repo.checkout_of(&head, &rules).unwrap();
    let reviewed: Vec<_> = checkout
        .change
        .files
        .iter()
        .map(|file| file.path.to_text())
        .collect();
    assert_eq!(reviewed, ["Cargo.lock.rs", "old.rs", "src/lib.rs"]);
    let omitted: Vec<_> = checkout
        .change
        .omitted
        .iter()
        .map(|o| (o.path.as_str(), o.reason))
        .collect();
    let default = OmitReason::DefaultExclusion;
    assert_eq!(
        omitted,
        [
            ("Cargo.lock", default),
            ("app.min.js", default),
            ("docs/a.md", OmitReason::ExcludedPath),
            ("vendor/old.rs", default),
            ("vendor/x/y.go", default),
            ("web/yarn.lock", default),
        ]
    );
    assert!(!String::from_utf8_lossy(&checkout.change.patch).contains("vendor"));
    // What is withheld from the review is still there to be read.
    assert!(checkout.tree.join("vendor/x/y.go").exists());
    drop(checkout);
    let all = SizeCaps {
        default_exclusions: false,
        ..caps()
    };
    let checkout = repo.checkout_of(&head, &all).unwrap();
    assert_eq!(
        (checkout.change.files.len(), checkout.change.omitted.len()),
        (8, 0)
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_added_line_is_where_the_head_has_it(
        old in prop::collection::vec("(diff --git a/x b/x|@@ -1 \\+1 @@|--- a|\\+\\+ b|\\\\ No|[a-c\r\t ]{0,3})", 0..30),
        new in prop::collection::vec("(diff --git a/x b/x|@@ -1 \\+1 @@|--- a|\\+\\+ b|\\\\ No|[a-c\r\t ]{0,3})", 0..30),
        ends in any::<[bool; 2]>(),
    ) {
        let text = |lines: &[String], end: bool| lines.join("\n") + if end { "\n" } else { "" };
        let (old, new) = (text(&old, ends[0]), text(&new, ends[1]));
        let repo = Repo::with_base(&[("f", &old), ("g", &new)]);
        repo.write("f", &new);
        repo.write("g", &old);
        repo.commit("swap");
        let local = repo.local("main", None).unwrap();
        for (name, was, is) in [("f", &old, &new), ("g", &new, &old)] {
            if was == is {
                continue;
            }
            let change = file(&local.change, name.as_bytes());
            let lines: Vec<_> = is.split('\n').collect();
            let mut kept: Vec<_> = is.lines_raw();
            for (number, text) in added(change).into_iter().rev() {
                prop_assert_eq!(lines[number as usize - 1], text);
                kept.remove(number as usize - 1);
            }
            prop_assert_eq!(kept.len() + change.deleted as usize, was.lines_raw().len());
        }
    }
}

/// Lines as git counts them: a carriage return ends none.
trait RawLines {
    fn lines_raw(&self) -> Vec<&str>;
}

impl RawLines for String {
    fn lines_raw(&self) -> Vec<&str> {
        let mut lines: Vec<_> = self.split('\n').collect();
        if lines.last() == Some(&"") {
            lines.pop();
        }
        lines
    }
}
