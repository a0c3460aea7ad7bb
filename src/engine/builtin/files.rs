//! What a change does to files as such: binaries, modes, symlinks, submodules.

use super::finding;
use crate::findings::{Finding, Severity};
use crate::workspace::{FileChange, FileStatus};

/// git's modes (git-fast-import(1), `filemodify`).
const EXECUTABLE: u32 = 0o100755;
const REGULAR: [u32; 2] = [0o100644, 0o100664];
const SYMLINK: u32 = 0o120000;
const SUBMODULE: u32 = 0o160000;

/// A binary from this size does not belong into a repository without a word.
const LARGE: u64 = 1024 * 1024;

/// Endings of files that run as they are: nobody can review what they do.
const RUNNABLE: [&str; 18] = [
    "exe", "dll", "so", "dylib", "jar", "war", "class", "pyc", "pyd", "msi", "deb", "rpm", "apk",
    "o", "a", "ko", "node", "wasm",
];

/// Endings of source text, which is binary to git only when something is hidden in it or it is
/// encoded so that no diff shows it.
const SOURCE: [&str; 33] = [
    "rs", "py", "js", "mjs", "cjs", "ts", "jsx", "tsx", "go", "c", "h", "cc", "cpp", "hpp", "java",
    "kt", "rb", "php", "sh", "bash", "pl", "lua", "swift", "scala", "yml", "yaml", "toml", "json",
    "md", "cmake", "mk", "gradle", "css",
];

/// Endings of scripts, which are meant to be run.
const SCRIPTS: [&str; 9] = [
    "sh", "bash", "zsh", "fish", "py", "pl", "rb", "js", "command",
];

pub(super) fn check(file: &FileChange) -> Vec<Finding> {
    let checks = [
        binary(file),
        executable(file),
        symlink(file),
        submodule(file),
    ];
    checks.into_iter().flatten().collect()
}

fn binary(file: &FileChange) -> Option<Finding> {
    if !file.binary || file.status == FileStatus::Deleted || file.new_mode == SUBMODULE {
        return None;
    }
    let ending = ending(file);
    let size = file.size.unwrap_or(0);
    // Shared libraries carry their version behind the ending.
    let versioned = file.path.to_text().contains(".so.");
    let program = file.new_mode == EXECUTABLE && ending.is_empty();
    if RUNNABLE.contains(&ending.as_str()) || versioned || program {
        return Some(finding(
            file,
            None,
            Severity::Major,
            "binary/runnable",
            "A compiled file is added or changed",
            "Nobody can review what it does, and it can't be told whether it was built from these \
             sources. Build it where it is needed.",
        ));
    }
    if SOURCE.contains(&ending.as_str()) {
        return Some(finding(
            file,
            None,
            Severity::Major,
            "binary/source",
            "A source file is binary to git, so no diff shows its change",
            "It holds NUL bytes or an encoding other than UTF-8. Nobody sees in a review what it does. \
             Remove the bytes or convert the file to UTF-8.",
        ));
    }
    (size >= LARGE).then(|| {
        finding(
            file,
            None,
            Severity::Minor,
            "binary/large",
            format!("A binary file of {} MiB is added or changed", size >> 20),
            "It stays in every clone for ever. Keep it in a release, a package or Git LFS.",
        )
    })
}

/// The path's ending in lower case; empty when it has none.
fn ending(file: &FileChange) -> String {
    let path = file.path.to_text().to_lowercase();
    let name = path.rsplit('/').next().unwrap_or_default();
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    ending.unwrap_or_default().to_owned()
}

fn executable(file: &FileChange) -> Option<Finding> {
    let became = REGULAR.contains(&file.old_mode) && file.new_mode == EXECUTABLE;
    // A script says by its first line that it is one; the line may be an old one.
    let says_so = file
        .added
        .iter()
        .any(|line| line.number == 1 && line.text.starts_with(b"#!"));
    let severity = if SCRIPTS.contains(&ending(file).as_str()) {
        Severity::Nit
    } else {
        Severity::Minor
    };
    (became && !says_so).then(|| {
        finding(
            file,
            None,
            severity,
            "mode/executable",
            "The file becomes executable",
            "Its mode changes from 644 to 755. If it is not meant to be run, set it back with \
             `git update-index --chmod=-x`.",
        )
    })
}

fn symlink(file: &FileChange) -> Option<Finding> {
    let target = file
        .symlink_target
        .as_deref()
        .filter(|_| file.new_mode == SYMLINK)?;
    let depth = file.path.0.iter().filter(|byte| **byte == b'/').count();
    leaves(target, depth).then(|| {
        finding(
            file,
            None,
            Severity::Major,
            "symlink/outside",
            "A symbolic link leads out of the repository",
            format!(
                "It points to {}. Whatever follows it reads or writes a file of the machine it is on. \
                 Link to a path inside the repository.",
                code(target)
            ),
        )
    })
}

/// Whether a target leads above the root from a file `depth` directories down, or into git's own
/// folder.
fn leaves(target: &[u8], depth: usize) -> bool {
    let drive = target.get(1) == Some(&b':') && target[0].is_ascii_alphabetic();
    if drive || target.starts_with(b"/") || target.starts_with(b"\\") {
        return true;
    }
    let mut level = depth as i64;
    for part in target.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => level -= 1,
            part if part.eq_ignore_ascii_case(b".git") => return true,
            _ => level += 1,
        }
        if level < 0 {
            return true;
        }
    }
    false
}

fn submodule(file: &FileChange) -> Option<Finding> {
    let moves = file.new_mode == SUBMODULE && file.status != FileStatus::Deleted;
    moves.then(|| {
        let (title, what) = match file.old_mode {
            SUBMODULE => ("A submodule moves to another commit", "moves to"),
            _ => ("A submodule is added", "brings in"),
        };
        finding(
            file,
            None,
            Severity::Minor,
            "submodule/moved",
            title,
            format!(
                "The change {what} code of another repository, which this review does not see. Check \
                 that the commit is the one you expect."
            ),
        )
    })
}

/// Untrusted bytes as a code span.
fn code(bytes: &[u8]) -> String {
    let text = crate::output::clip(&String::from_utf8_lossy(bytes));
    format!("`{}`", text.replace('`', "'"))
}
