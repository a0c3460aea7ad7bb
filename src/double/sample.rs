//! Repositories made on the spot: the demo's sample, and whatever a test needs.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};

use super::git;

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

impl RepoBuilder {
    /// Makes an empty bare repository at `bare` with the git in `PATH`.
    ///
    /// # Errors
    /// When git fails.
    pub fn create(bare: &Path) -> io::Result<Self> {
        Self::create_with(bare, Path::new("git"))
    }

    fn create_with(bare: &Path, program: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(bare)?;
        git::run(
            program,
            bare,
            &["init", "--quiet", "--bare", "--initial-branch=main"],
            b"",
        )?;
        // As GitHub does: partial clones, and commits that no branch reaches any more.
        git::run(
            program,
            bare,
            &["config", "uploadpack.allowFilter", "true"],
            b"",
        )?;
        git::run(
            program,
            bare,
            &["config", "uploadpack.allowAnySHA1InWant", "true"],
            b"",
        )?;
        Ok(Self {
            bare: bare.to_owned(),
            git: program.to_owned(),
            commits: AtomicI64::new(0),
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.bare
    }

    /// Starts `branch` at the tip of `from`.
    ///
    /// # Errors
    /// When git fails.
    pub fn branch(&self, branch: &str, from: &str) -> io::Result<()> {
        let (name, tip) = (format!("refs/heads/{branch}"), format!("refs/heads/{from}"));
        git::run(&self.git, &self.bare, &["update-ref", &name, &tip], b"").map(drop)
    }

    /// Commits `files` (path and content) on top of `branch` and returns the commit.
    ///
    /// # Errors
    /// When git fails.
    pub fn commit(
        &self,
        branch: &str,
        files: &[(&str, &str)],
        message: &str,
    ) -> io::Result<String> {
        let reference = format!("refs/heads/{branch}");
        let time = FIRST_COMMIT + 60 * self.commits.fetch_add(1, Ordering::SeqCst);
        let who = format!("Mona <mona@example.org> {time} +0000");
        let mut stream = format!(
            "commit {reference}\nauthor {who}\ncommitter {who}\ndata {}\n{message}\n",
            message.len()
        );
        let tip = ["rev-parse", "--quiet", "--verify", reference.as_str()];
        if git::run(&self.git, &self.bare, &tip, b"").is_ok() {
            stream.push_str(&format!("from {reference}^0\n"));
        }
        for (path, content) in files {
            stream.push_str(&format!(
                "M 100644 inline {path}\ndata {}\n{content}\n",
                content.len()
            ));
        }
        git::run(
            &self.git,
            &self.bare,
            &["fast-import", "--quiet", "--force"],
            stream.as_bytes(),
        )?;
        git::run(&self.git, &self.bare, &tip, b"")
    }
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
