//! What the double reads from a bare repository: the facts about commits and changes that GitHub
//! keeps beside its own data.

use std::io;
use std::path::Path;

use super::git::{feed, run};

/// How large a change is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) files: u64,
    pub(super) added: u64,
    pub(super) deleted: u64,
    pub(super) commits: u64,
}

/// One file of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChangedFile {
    pub(super) path: String,
    pub(super) old_path: Option<String>,
    /// As GitHub calls it: `added`, `removed`, `modified`, `renamed`, `copied` or `changed`.
    pub(super) status: &'static str,
    /// The object name of the new content; of the old one when it was removed.
    pub(super) blob: String,
    pub(super) added: u64,
    pub(super) deleted: u64,
}

/// A commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Commit {
    pub(super) sha: String,
    pub(super) tree: String,
    pub(super) parents: Vec<String>,
    pub(super) author: Person,
    pub(super) committer: Person,
    pub(super) message: String,
}

/// Who made a commit, and when (ISO 8601).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Person {
    pub(super) name: String,
    pub(super) email: String,
    pub(super) date: String,
}

/// A repository to read from.
#[derive(Debug, Clone, Copy)]
pub(super) struct History<'a> {
    pub(super) git: &'a Path,
    pub(super) bare: &'a Path,
}

impl History<'_> {
    fn run(&self, args: &[&str]) -> io::Result<String> {
        run(self.git, self.bare, args)
    }

    /// The branch that `HEAD` names.
    pub(super) fn default_branch(&self) -> io::Result<String> {
        self.run(&["symbolic-ref", "--short", "HEAD"])
    }

    /// Does what GitHub does on its side: partial clones, and commits that no branch reaches any more.
    pub(super) fn allow_any_commit(&self) -> io::Result<()> {
        for key in ["uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"] {
            self.run(&["config", key, "true"])?;
        }
        Ok(())
    }

    /// The commit at the tip of a branch.
    pub(super) fn tip(&self, branch: &str) -> io::Result<String> {
        let commit = format!("refs/heads/{branch}^{{commit}}");
        self.run(&["rev-parse", "--quiet", "--verify", &commit])
            .map_err(|_| io::Error::other(format!("there is no branch {branch}")))
    }

    /// Moves a reference.
    pub(super) fn point(&self, reference: &str, sha: &str) -> io::Result<()> {
        self.run(&["update-ref", reference, sha]).map(drop)
    }

    /// Merges `head` into the branch `base` with a merge commit, whose name it returns. Needs git 2.38.
    pub(super) fn merge(&self, base: &str, head: &str, message: &str) -> io::Result<String> {
        let tip = self.tip(base)?;
        let tree = self.run(&["merge-tree", "--write-tree", &tip, head])?;
        let merged = self.run(&["commit-tree", &tree, "-p", &tip, "-p", head, "-m", message])?;
        self.point(&format!("refs/heads/{base}"), &merged)?;
        Ok(merged)
    }

    /// How large the change from the merge base of `base` and `head` to `head` is.
    pub(super) fn size(&self, base: &str, head: &str) -> io::Result<Size> {
        let mut size = Size::default();
        for file in self.files(base, head)? {
            size.files += 1;
            size.added += file.added;
            size.deleted += file.deleted;
        }
        let range = format!("{base}..{head}");
        let commits = self.run(&["rev-list", "--count", &range])?;
        size.commits = commits.parse().map_err(io::Error::other)?;
        Ok(size)
    }

    /// The files of that change; none when the two have no commit in common.
    pub(super) fn files(&self, base: &str, head: &str) -> io::Result<Vec<ChangedFile>> {
        let Ok(ancestor) = self.run(&["merge-base", base, head]) else {
            return Ok(Vec::new());
        };
        let args = [
            "diff-tree",
            "-r",
            "-z",
            "-M",
            "--raw",
            "--numstat",
            "--no-abbrev",
            &ancestor,
            head,
        ];
        let output = feed(self.git, self.bare, &args, b"")?;
        parse_files(&String::from_utf8_lossy(&output))
            .ok_or_else(|| io::Error::other("git diff-tree printed something unknown"))
    }

    /// Whether a comment can stand on this line of the new file: it is in the diff, three lines of
    /// context included.
    pub(super) fn line_is_in_diff(
        &self,
        base: &str,
        head: &str,
        path: &str,
        line: u64,
    ) -> io::Result<bool> {
        let range = format!("{base}...{head}");
        let diff = self.run(&["diff", "-M", "--unified=3", &range, "--", path])?;
        let inside = |(start, count): (u64, u64)| line >= start && line - start < count;
        Ok(diff.lines().filter_map(new_side).any(inside))
    }

    /// The commits of `head` that `base` does not have, oldest first.
    pub(super) fn commits(&self, base: &str, head: &str) -> io::Result<Vec<Commit>> {
        let range = format!("{base}..{head}");
        self.log(&["--reverse", "--topo-order", &range])
    }

    /// One commit.
    pub(super) fn commit(&self, sha: &str) -> io::Result<Commit> {
        let mut commits = self.log(&["--max-count=1", sha])?;
        commits
            .pop()
            .ok_or_else(|| io::Error::other(format!("there is no commit {sha}")))
    }

    fn log(&self, what: &[&str]) -> io::Result<Vec<Commit>> {
        const FORMAT: &str =
            "--format=%H%x00%T%x00%P%x00%an%x00%ae%x00%aI%x00%cn%x00%ce%x00%cI%x00%B";
        let mut args = vec!["log", "-z", "--no-show-signature", FORMAT];
        args.extend(what);
        let output = self.run(&args)?;
        let fields: Vec<&str> = output.split('\0').collect();
        Ok(fields.chunks_exact(10).map(commit).collect())
    }
}

fn commit(fields: &[&str]) -> Commit {
    let person = |at: usize| Person {
        name: fields[at].to_owned(),
        email: fields[at + 1].to_owned(),
        date: fields[at + 2].to_owned(),
    };
    Commit {
        sha: fields[0].to_owned(),
        tree: fields[1].to_owned(),
        parents: fields[2].split_whitespace().map(str::to_owned).collect(),
        author: person(3),
        committer: person(6),
        message: fields[9].trim_end().to_owned(),
    }
}

/// First line and number of lines of the new file in `@@ -a,b +c,d @@`.
fn new_side(line: &str) -> Option<(u64, u64)> {
    let (_, new) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = new.split_once(" @@")?;
    match new.split_once(',') {
        Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
        None => Some((new.parse().ok()?, 1)),
    }
}

/// The output of `git diff-tree -z --raw --numstat`: first all raw entries, then all counts, in the
/// same order (git-diff-tree(1)).
fn parse_files(output: &str) -> Option<Vec<ChangedFile>> {
    let mut fields = output.split_terminator('\0').peekable();
    let mut files = Vec::new();
    while let Some(entry) = fields.next_if(|field| field.starts_with(':')) {
        let columns: Vec<&str> = entry.split(' ').collect();
        let [_, _, old, new, letter] = columns.as_slice() else {
            return None;
        };
        let (status, two_paths) = match letter.chars().next()? {
            'A' => ("added", false),
            'D' => ("removed", false),
            'M' => ("modified", false),
            'T' => ("changed", false),
            'R' => ("renamed", true),
            'C' => ("copied", true),
            _ => return None,
        };
        let first = fields.next()?.to_owned();
        let (path, old_path) = if two_paths {
            (fields.next()?.to_owned(), Some(first))
        } else {
            (first, None)
        };
        let blob = if status == "removed" { old } else { new };
        files.push(ChangedFile {
            path,
            old_path,
            status,
            blob: (*blob).to_owned(),
            added: 0,
            deleted: 0,
        });
    }
    for file in &mut files {
        let mut columns = fields.next()?.splitn(3, '\t');
        // Binary files have a dash.
        file.added = columns.next()?.parse().unwrap_or(0);
        file.deleted = columns.next()?.parse().unwrap_or(0);
        if columns.next()?.is_empty() {
            // Two paths follow on their own.
            fields.next()?;
            fields.next()?;
        }
    }
    Some(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_entries_and_counts_come_together() {
        let output = [
            ":100644 100644 aa bb M|a\tb.rs|:100644 000000 cc 00 D|gone|",
            ":100644 100644 dd ee R090|old|new|:000000 100644 00 ff A|image.png|",
            "1\t2\ta\tb.rs|0\t9\tgone|3\t4\t|old|new|-\t-\timage.png|",
        ];
        let output = output.concat().replace('|', "\0");
        let files = parse_files(&output).unwrap();
        let seen: Vec<_> = files
            .iter()
            .map(|f| {
                (
                    f.path.as_str(),
                    f.status,
                    f.blob.as_str(),
                    f.added,
                    f.deleted,
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                ("a\tb.rs", "modified", "bb", 1, 2),
                ("gone", "removed", "cc", 0, 9),
                ("new", "renamed", "ee", 3, 4),
                ("image.png", "added", "ff", 0, 0),
            ]
        );
        assert_eq!(files[2].old_path.as_deref(), Some("old"));
        assert_eq!(parse_files(""), Some(Vec::new()));
        assert_eq!(
            parse_files(":100644 100644 aa bb M\0a\0"),
            None,
            "no counts"
        );
    }

    #[test]
    fn hunks_name_the_lines_of_the_new_file() {
        assert_eq!(new_side("@@ -1,2 +3,4 @@ fn x()"), Some((3, 4)));
        assert_eq!(new_side("@@ -1 +7 @@"), Some((7, 1)));
        assert_eq!(new_side("@@ -1,2 +0,0 @@"), Some((0, 0)));
        assert_eq!(new_side("+@@ -1,2 +0,0 @@"), None);
    }
}
