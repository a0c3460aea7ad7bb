//! Repositories made on the spot: the demo's sample, and whatever a test needs.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};

use super::git::{self, IDENTITY};

/// The time of the first commit; each further one is a minute later, so that ids are the same on
/// every machine.
const FIRST_COMMIT: i64 = 1_767_225_600;

/// A bare repository that is filled without a working tree.
#[derive(Debug)]
pub struct RepoBuilder {
    bare: PathBuf,
    git: PathBuf,
    commits: AtomicI64,
}

/// One path of a commit.
#[derive(Debug, Clone, Copy)]
pub enum Entry<'a> {
    /// A file with any content.
    File {
        /// Where.
        path: &'a str,
        /// Its bytes.
        content: &'a [u8],
        /// Mode 100755 in place of 100644.
        executable: bool,
    },
    /// A symbolic link.
    Link {
        /// Where.
        path: &'a str,
        /// What it points to.
        target: &'a str,
    },
    /// What was there is gone.
    Removed(&'a str),
}

impl RepoBuilder {
    /// Makes an empty bare repository at `bare` with the git in `PATH`.
    ///
    /// # Errors
    /// When git fails.
    pub fn create(bare: &Path) -> io::Result<Self> {
        Self::create_with(bare, Path::new("git"))
    }

    /// Makes an empty bare repository at `bare` with this git.
    ///
    /// # Errors
    /// When git fails.
    pub fn create_with(bare: &Path, git: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(bare)?;
        // Git runs inside of it, where a relative path would name something else.
        let bare = bare.canonicalize()?;
        git::run(
            git,
            &bare,
            &["init", "--quiet", "--bare", "--initial-branch=main"],
        )?;
        Ok(Self {
            bare,
            git: git.to_owned(),
            commits: AtomicI64::new(0),
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.bare
    }

    /// Puts `branch` at the tip of `from`, whether it exists or not: a further commit on an existing
    /// one then makes what a force push makes.
    ///
    /// # Errors
    /// When git fails.
    pub fn branch(&self, branch: &str, from: &str) -> io::Result<()> {
        let (name, tip) = (format!("refs/heads/{branch}"), format!("refs/heads/{from}"));
        git::run(&self.git, &self.bare, &["update-ref", &name, &tip]).map(drop)
    }

    /// Commits text files (path and content) on top of `branch` and returns the commit.
    ///
    /// # Errors
    /// When git fails.
    pub fn commit(
        &self,
        branch: &str,
        files: &[(&str, &str)],
        message: &str,
    ) -> io::Result<String> {
        let entries: Vec<Entry<'_>> = files
            .iter()
            .map(|&(path, content)| Entry::File {
                path,
                content: content.as_bytes(),
                executable: false,
            })
            .collect();
        self.commit_entries(branch, &entries, message)
    }

    /// Commits anything on top of `branch` and returns the commit.
    ///
    /// # Errors
    /// When git fails.
    pub fn commit_entries(
        &self,
        branch: &str,
        entries: &[Entry<'_>],
        message: &str,
    ) -> io::Result<String> {
        let reference = format!("refs/heads/{branch}");
        let time = FIRST_COMMIT + 60 * self.commits.fetch_add(1, Ordering::SeqCst);
        let (name, address) = IDENTITY;
        let who = format!("{name} <{address}> {time} +0000");
        let mut stream =
            format!("commit {reference}\nauthor {who}\ncommitter {who}\n").into_bytes();
        data(&mut stream, message.as_bytes());
        let tip = ["rev-parse", "--quiet", "--verify", reference.as_str()];
        if git::run(&self.git, &self.bare, &tip).is_ok() {
            stream.extend(format!("from {reference}^0\n").bytes());
        }
        for entry in entries {
            match *entry {
                Entry::File {
                    path,
                    content,
                    executable,
                } => {
                    let mode = if executable { "100755" } else { "100644" };
                    stream.extend(format!("M {mode} inline {}\n", quoted(path)).bytes());
                    data(&mut stream, content);
                }
                Entry::Link { path, target } => {
                    stream.extend(format!("M 120000 inline {}\n", quoted(path)).bytes());
                    data(&mut stream, target.as_bytes());
                }
                Entry::Removed(path) => stream.extend(format!("D {}\n", quoted(path)).bytes()),
            }
        }
        let import = ["fast-import", "--quiet", "--force"];
        git::feed(&self.git, &self.bare, &import, &stream)?;
        git::run(&self.git, &self.bare, &tip)
    }
}

/// Appends a data command of git-fast-import(1).
fn data(stream: &mut Vec<u8>, bytes: &[u8]) {
    stream.extend(format!("data {}\n", bytes.len()).bytes());
    stream.extend_from_slice(bytes);
    stream.push(b'\n');
}

/// A path as git-fast-import(1) reads it: in quotes, with what would end it escaped.
fn quoted(path: &str) -> String {
    let mut text = String::from("\"");
    for c in path.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            '\n' => text.push_str("\\n"),
            _ => text.push(c),
        }
    }
    text.push('"');
    text
}

/// The demo's repository and pull request.
#[derive(Debug)]
pub struct Sample {
    /// The bare repository.
    pub bare: PathBuf,
    /// The branch that the pull request targets.
    pub base_branch: String,
    /// The branch with the change.
    pub head_branch: String,
    /// The pull request's title.
    pub title: String,
    /// Its description.
    pub body: String,
}

const BEFORE: &str = "\
//! Sums over measured widths.

/// The sum of all widths.
pub fn total(widths: &[u32]) -> u32 {
    let mut sum = 0;
    for i in 0..widths.len() {
        sum += widths[i];
    }
    sum
}
";

const AFTER: &str = "\
//! Sums over measured widths.

/// The sum of all widths.
pub fn total(widths: &[u32]) -> u32 {
    let mut sum = 0;
    for i in 0..=widths.len() {
        sum += widths[i];
    }
    sum
}
";

/// A merge that was not finished. The markers are put together here, as the key below is: no check
/// of this repository is to take this file for what it describes.
fn notes() -> String {
    let marker = |character: &str| character.repeat(7);
    format!(
        "# Release notes\n\n{} HEAD\n- Widths are summed in one pass.\n{}\n\
         - Widths are summed twice as fast.\n{} faster-sums\n",
        marker("<"),
        marker("="),
        marker(">")
    )
}

/// Builds the sample below `dir`: a change with a leaked key, a conflict marker and an off-by-one.
///
/// # Errors
/// When git fails.
pub fn build(dir: &Path, git: &Path) -> io::Result<Sample> {
    let bare = dir.join("widgets.git");
    let repo = RepoBuilder::create_with(&bare, git)?;
    repo.commit(
        "main",
        &[("src/total.rs", BEFORE), ("NOTES.md", "# Release notes\n")],
        "Sum widths",
    )?;
    repo.branch("faster-sums", "main")?;
    let notes = notes();
    let key = ["AK", "IAZ5W3QJ7", "TNB2XKD4R"].concat();
    let settings = format!("region = eu-central-1\naccess_key = {key}\n");
    let files = [
        ("src/total.rs", AFTER),
        ("NOTES.md", &notes),
        ("deploy/settings.ini", &settings),
    ];
    repo.commit("faster-sums", &files, "Sum widths faster")?;
    Ok(Sample {
        bare,
        base_branch: "main".to_owned(),
        head_branch: "faster-sums".to_owned(),
        title: "Sum widths faster".to_owned(),
        body: "Half the time on large inputs.".to_owned(),
    })
}
