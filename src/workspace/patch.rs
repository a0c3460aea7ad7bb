//! Reads a unified diff in git's format, as bytes. The lines of a hunk are counted off by its
//! header and never looked at for syntax, so file content can't pose as the next file or hunk.

use super::change::AddedLine;

/// The part of a patch that stands for one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Section {
    /// The blobs of the `index` line; `None` when only names or modes change.
    pub(super) ids: Option<(String, String)>,
    /// Whether git shows no lines because the file is binary.
    pub(super) binary: bool,
    /// Lines added, with their numbers in the head.
    pub(super) added: Vec<AddedLine>,
    /// How many lines were removed.
    pub(super) deleted: u32,
}

/// All sections, in order. `None` when the bytes are not in git's format.
pub(super) fn parse(patch: &[u8]) -> Option<Vec<Section>> {
    let mut lines = Lines(patch);
    let mut sections: Vec<Section> = Vec::new();
    while let Some(line) = lines.next() {
        if line.starts_with(b"diff --git ") {
            sections.push(Section::default());
            continue;
        }
        let section = sections.last_mut()?;
        if let Some(header) = line.strip_prefix(b"@@ ") {
            hunk(header, &mut lines, section)?;
        } else if let Some(ids) = line.strip_prefix(b"index ") {
            section.ids = Some(index_ids(ids)?);
        } else if line.starts_with(b"Binary files ") {
            section.binary = true;
        } else if !EXTENDED_HEADERS
            .iter()
            .any(|header| line.starts_with(header))
        {
            return None;
        }
    }
    Some(sections)
}

/// Header lines that repeat what the raw format says.
const EXTENDED_HEADERS: [&[u8]; 13] = [
    b"old mode ",
    b"new mode ",
    b"deleted file mode ",
    b"new file mode ",
    b"similarity index ",
    b"dissimilarity index ",
    b"rename from ",
    b"rename to ",
    b"copy from ",
    b"copy to ",
    b"--- ",
    b"+++ ",
    b"\\ ",
];

/// Lines that end with a line feed, without it; the last may lack it. A carriage return is content.
struct Lines<'a>(&'a [u8]);

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.0.is_empty() {
            return None;
        }
        let end = self.0.iter().position(|b| *b == b'\n');
        let line = &self.0[..end.unwrap_or(self.0.len())];
        self.0 = end.map_or(&[], |end| &self.0[end + 1..]);
        Some(line)
    }
}

/// `<old>..<new>` with an optional mode behind it.
fn index_ids(text: &[u8]) -> Option<(String, String)> {
    let text = std::str::from_utf8(text).ok()?;
    let (old, new) = text.split(' ').next()?.split_once("..")?;
    Some((old.to_owned(), new.to_owned()))
}

/// The lines of one hunk; `header` is what follows `@@ `.
fn hunk(header: &[u8], lines: &mut Lines<'_>, section: &mut Section) -> Option<()> {
    let mut words = header.split(|b| *b == b' ');
    let (_, mut old_left) = range(words.next()?, b'-')?;
    let (mut number, mut new_left) = range(words.next()?, b'+')?;
    if words.next()? != b"@@" {
        return None;
    }
    while old_left > 0 || new_left > 0 {
        let (kind, text) = lines.next()?.split_first()?;
        match kind {
            b' ' => {
                old_left = old_left.checked_sub(1)?;
                new_left = new_left.checked_sub(1)?;
                number = number.checked_add(1)?;
            }
            b'-' => {
                old_left = old_left.checked_sub(1)?;
                section.deleted += 1;
            }
            b'+' => {
                new_left = new_left.checked_sub(1)?;
                let text = text.to_owned();
                section.added.push(AddedLine { number, text });
                number = number.checked_add(1)?;
            }
            b'\\' => {}
            _ => return None,
        }
    }
    Some(())
}

/// `-START` or `-START,COUNT`, with the given sign.
fn range(word: &[u8], sign: u8) -> Option<(u32, u32)> {
    let (first, numbers) = word.split_first()?;
    let numbers = std::str::from_utf8(numbers)
        .ok()
        .filter(|_| *first == sign)?;
    match numbers.split_once(',') {
        Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
        None => Some((numbers.parse().ok()?, 1)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn numbered(section: &Section) -> Vec<(u32, &[u8])> {
        let added = section.added.iter();
        added
            .map(|line| (line.number, line.text.as_slice()))
            .collect()
    }

    #[test]
    fn added_lines_carry_their_number_in_the_head() {
        let patch = b"diff --git a/x b/x\nindex aa..bb 100644\n--- a/x\n+++ b/x\n\
            @@ -1,3 +1,4 @@\n one\n-two\n+zwei\r\n+drei\n four\n\
            @@ -10 +11 @@ fn f() {\n-old\n\\ No newline at end of file\n+new\n\\ No newline at end of file\n";
        let sections = parse(patch).unwrap();
        assert_eq!(sections.len(), 1);
        assert_eq!(
            numbered(&sections[0]),
            [(2, &b"zwei\r"[..]), (3, b"drei"), (11, b"new")]
        );
        assert_eq!(sections[0].deleted, 2);
        assert_eq!(sections[0].ids, Some(("aa".into(), "bb".into())));
    }

    #[test]
    fn content_that_looks_like_a_header_stays_content() {
        let patch = b"diff --git a/x b/x\nindex aa..bb\n--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n\
            --- a/etc/passwd\n+++ b/etc/passwd\n+diff --git a/y b/y\n diff --git a/z b/z\n";
        let sections = parse(patch).unwrap();
        assert_eq!(sections.len(), 1);
        assert_eq!(
            numbered(&sections[0]),
            [(1, &b"++ b/etc/passwd"[..]), (2, b"diff --git a/y b/y")]
        );
    }

    #[test]
    fn a_cut_patch_is_refused() {
        assert_eq!(parse(b"diff --git a/x b/x\n@@ -0,0 +1,2 @@\n+one\n"), None);
        assert_eq!(parse(b"@@ -1 +1 @@\n-a\n+b\n"), None);
        assert_eq!(parse(b"diff --git a/x b/x\nsomething else\n"), None);
    }

    /// One line of a hunk: its kind and its text.
    fn hunk_line() -> impl Strategy<Value = (u8, Vec<u8>)> {
        let text = prop_oneof![
            Just(b"diff --git a/x b/x".to_vec()),
            Just(b"@@ -1 +1 @@".to_vec()),
            Just(b"-- a/x".to_vec()),
            Just(b"\\ No newline at end of file".to_vec()),
            prop::collection::vec(any::<u8>().prop_filter("newline", |b| *b != b'\n'), 0..12),
        ];
        (prop::sample::select(vec![b' ', b'-', b'+']), text)
    }

    proptest! {
        #[test]
        fn every_added_line_comes_back_with_its_number(
            files in prop::collection::vec((1_u32..5000, prop::collection::vec(hunk_line(), 1..20)), 0..5),
        ) {
            let mut patch = Vec::new();
            let mut wanted = Vec::new();
            for (start, hunk) in &files {
                let count = |sign: u8| hunk.iter().filter(|(k, _)| *k == b' ' || *k == sign).count();
                patch.extend(b"diff --git a/f b/f\nindex 00..11 100644\n--- a/f\n+++ b/f\n");
                patch.extend(format!("@@ -{start},{} +{start},{} @@\n", count(b'-'), count(b'+')).bytes());
                let (mut number, mut added) = (*start, Vec::new());
                for (kind, text) in hunk {
                    patch.push(*kind);
                    patch.extend(text);
                    patch.push(b'\n');
                    if *kind == b'+' {
                        added.push(AddedLine { number, text: text.clone() });
                    }
                    number += u32::from(*kind != b'-');
                }
                wanted.push(added);
            }
            let sections = parse(&patch).unwrap();
            let added: Vec<_> = sections.into_iter().map(|section| section.added).collect();
            prop_assert_eq!(added, wanted);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&bytes);
            let _ = parse(&[b"diff --git a/f b/f\n@@ -1 +1,9 @@\n".as_slice(), &bytes].concat());
        }
    }
}
