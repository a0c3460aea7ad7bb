//! Reads `git diff-tree --raw --numstat -z`: which files changed and by how many lines. Names end
//! with a NUL byte, which no name contains, so nothing in a name can be taken for syntax.

use super::change::{FileStatus, RepoPath};

/// One changed file as the raw format describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) path: RepoPath,
    pub(super) old_path: Option<RepoPath>,
    pub(super) status: FileStatus,
    pub(super) old_mode: u32,
    pub(super) new_mode: u32,
    /// The blob in the base, all zeros when absent.
    pub(super) old_id: String,
    /// The blob in the head, all zeros when absent.
    pub(super) new_id: String,
    /// Added plus removed lines; `None` for a binary file.
    pub(super) lines: Option<u64>,
}

/// The type bits of a git mode.
pub(super) const TYPE_BITS: u32 = 0o170_000;
/// The mode of a submodule.
pub(super) const SUBMODULE: u32 = 0o160_000;
/// The mode of a symbolic link.
pub(super) const SYMLINK: u32 = 0o120_000;

impl Entry {
    /// File, symlink and submodule change into each other: the diff shows one file that goes and
    /// one that comes.
    pub(super) fn changes_type(&self) -> bool {
        self.old_mode != 0
            && self.new_mode != 0
            && self.old_mode & TYPE_BITS != self.new_mode & TYPE_BITS
    }

    /// Whether the head has a blob here.
    pub(super) fn has_blob(&self) -> bool {
        self.new_mode != 0 && self.new_mode & TYPE_BITS != SUBMODULE
    }
}

/// All records, in git's order. `None` when the bytes are not in the documented format.
pub(super) fn parse(output: &[u8]) -> Option<Vec<Entry>> {
    let mut fields = Fields(output);
    let mut entries = Vec::new();
    while fields.0.first() == Some(&b':') {
        entries.push(raw_record(&mut fields)?);
    }
    for entry in &mut entries {
        entry.lines = numstat_record(&mut fields, entry)?;
    }
    fields.0.is_empty().then_some(entries)
}

/// Fields that each end with a NUL byte.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn next(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|b| *b == 0)?;
        let field = &self.0[..end];
        self.0 = &self.0[end + 1..];
        Some(field)
    }

    fn path(&mut self) -> Option<RepoPath> {
        let path = self.next()?;
        (!path.is_empty()).then(|| RepoPath(path.to_owned()))
    }
}

/// `:100644 100755 <old> <new> M` NUL path NUL, with two paths for renames and copies.
fn raw_record(fields: &mut Fields<'_>) -> Option<Entry> {
    let head = std::str::from_utf8(fields.next()?).ok()?;
    let mut words = head.strip_prefix(':')?.split(' ');
    let mut mode = || u32::from_str_radix(words.next()?, 8).ok();
    let (old_mode, new_mode) = (mode()?, mode()?);
    let (old_id, new_id) = (words.next()?.to_owned(), words.next()?.to_owned());
    let status = match words.next()?.as_bytes().first()? {
        b'A' => FileStatus::Added,
        b'M' => FileStatus::Modified,
        b'D' => FileStatus::Deleted,
        b'R' => FileStatus::Renamed,
        b'C' => FileStatus::Copied,
        b'T' => FileStatus::TypeChanged,
        _ => return None,
    };
    let old_path = match status {
        FileStatus::Renamed | FileStatus::Copied => Some(fields.path()?),
        _ => None,
    };
    Some(Entry {
        path: fields.path()?,
        old_path,
        status,
        old_mode,
        new_mode,
        old_id,
        new_id,
        lines: None,
    })
}

/// `added TAB deleted TAB path` NUL; for renames `added TAB deleted TAB` NUL old NUL new NUL.
fn numstat_record(fields: &mut Fields<'_>, entry: &Entry) -> Option<Option<u64>> {
    let field = fields.next()?;
    let mut parts = field.splitn(3, |b| *b == b'\t');
    let mut count = || std::str::from_utf8(parts.next()?).ok();
    let (added, deleted) = (count()?, count()?);
    let named = parts.next()?;
    let same = match &entry.old_path {
        None => named == entry.path.0,
        Some(old) => named.is_empty() && fields.path()? == *old && fields.path()? == entry.path,
    };
    if !same {
        return None;
    }
    match (added, deleted) {
        ("-", "-") => Some(None),
        _ => Some(Some(
            added
                .parse::<u64>()
                .ok()?
                .checked_add(deleted.parse().ok()?)?,
        )),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_with_tabs_newlines_and_colons_are_just_names() {
        let id = "0".repeat(40);
        let mut output = format!(":100644 100644 {id} {id} M\0a\tb\n:c\0").into_bytes();
        output.extend(format!(":100644 100755 {id} {id} R090\0old\0n\0").into_bytes());
        output.extend(b"3\t4\ta\tb\n:c\0-\t-\t\0old\0n\0");
        let entries = parse(&output).unwrap();
        assert_eq!(entries[0].path.0, b"a\tb\n:c");
        assert_eq!(entries[0].lines, Some(7));
        assert_eq!(entries[1].old_path, Some(RepoPath(b"old".to_vec())));
        assert_eq!((entries[1].new_mode, entries[1].lines), (0o100_755, None));
    }

    #[test]
    fn a_count_for_another_file_is_refused() {
        let id = "0".repeat(40);
        let output = format!(":100644 100644 {id} {id} M\0a\x001\t1\tb\0");
        assert_eq!(parse(output.as_bytes()), None);
        assert_eq!(parse(b"").map(|e| e.len()), Some(0));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }
    }
}
