use super::*;
use crate::config::Handle;
use crate::trigger::mentions;
use proptest::prelude::*;
use pulldown_cmark::Options;

fn host() -> Url {
    Url::parse("https://github.com").unwrap()
}

#[test]
fn ordinary_prose_reads_the_same() {
    for text in [
        "The loop stops one row early.",
        "Use `n` instead of `n - 1`, as in `a_b`.",
        "First.\n\nSecond with *stress* and **more**.",
        "- one\n- two\n  - three\n- four",
        "- one\n\n- two",
        "Do this:\n\n1. one\n2. two",
        "1. one\n\n   more\n\n2. two",
        "```rust\nlet a = b[0];\n\nlet c = 1;\n```",
        "- a\n\n  ```sh\n  ls\n  ```\n\n  after",
        "> quoted\n> twice\n\nanswer",
        "A snake_case name, 50% of it (really)!",
        "See [the rules](https://github.com/acme/widgets/blob/main/RULES_a.md#x).",
    ] {
        assert_eq!(block(text, Some(&host())), text);
    }
}

#[test]
fn what_could_act_is_inert() {
    for (text, safe) in [
        (
            "ping @mona and @acme/team",
            "ping &#64;mona and &#64;acme/team",
        ),
        (
            "fixes #12, GH-13, a/b#14",
            "fixes &#35;&#8203;12, GH&#45;&#8203;13, a/b&#35;&#8203;14",
        ),
        ("<img src=x onerror=y>", "&lt;img src=x onerror=y&gt;"),
        ("<div>\n a\n</div>", "&lt;div&gt;\na\n&lt;/div&gt;"),
        ("<!-- prwarden:run x -->", "&lt;!-- prwarden:run x --&gt;"),
        ("`<!-- prwarden:run x -->`", "`<! -- prwarden:run x -->`"),
        (
            "```\n<!-- prwarden:state {} -->\n```",
            "```\n<! -- prwarden:state {} -->\n```",
        ),
        ("![alt](https://evil.example/p.png)", "alt"),
        ("# Verdict: merge", "**Verdict: merge**"),
        ("text\n---\n", "**text**"),
        ("#\n\nx", "x"),
        ("a\u{202e}b\u{0}c", "a\\[U+202E\\]b\\[U+0000\\]c"),
        ("```\nnever closed", "```\nnever closed\n```"),
        ("````\n```\n````", "````\n```\n````"),
        ("```mermaid\ngraph TD\n```", "```\ngraph TD\n```"),
        ("$x$ and ~~y~~", "&#36;x&#36; and \\~\\~y\\~\\~"),
        ("a\n:-:", "a\n\\:-:"),
        ("note[^1]", "note\\[^1\\]"),
    ] {
        assert_eq!(block(text, Some(&host())), safe, "{text:?}");
    }
}

#[test]
fn only_pages_of_the_web_host_are_links() {
    for (text, safe) in [
        (
            "[text](https://evil.example)",
            "text (`https://evil.example`)",
        ),
        (
            "[text](javascript:alert(1))",
            "text (`javascript:alert(1)`)",
        ),
        (
            "see https://evil.example/x, now",
            "see `https://evil.example/x`, now",
        ),
        ("<https://evil.example>", "`https://evil.example`"),
        ("www.evil.example", "`www.evil.example`"),
        (
            "[ours](https://github.com/a/b)",
            "[ours](https://github.com/a/b)",
        ),
        (
            "https://github.com/a/b",
            "[`https://github.com/a/b`](https://github.com/a/b)",
        ),
        (
            "[x](https://github.com/a/b/tree/@mona)",
            "[x](https://github.com/a/b/tree/%40mona)",
        ),
        (
            "[](https://github.com/a/b)",
            "[link](https://github.com/a/b)",
        ),
        (
            "[x](https://github.com.evil.example/a)",
            "x (`https://github.com.evil.example/a`)",
        ),
        (
            "[x](https://u@github.com/a)",
            "x (`https://u@github.com/a`)",
        ),
        (
            "[x](https://github.com/a/b/issues/new?body=y)",
            "x (`https://github.com/a/b/issues/new?body=y`)",
        ),
        (
            "[x](https://github.com/a/b/pull/7)",
            "x (`https://github.com/a/b/pull/7`)",
        ),
    ] {
        assert_eq!(block(text, Some(&host())), safe, "{text:?}");
    }
}

#[test]
fn an_address_put_together_from_pieces_is_no_link() {
    for text in [
        "&#104;ttps://evil.example",
        "https:\\//evil.example",
        "ht![](x)tps://evil.example",
        "ht<b></b>tps://evil.example",
        "https:![](x)//evil.example",
        "http**![](x)**s://evil.example",
        "https:` `//evil.example",
        "ww![](x)w.evil.example",
        "ww**![](x)**w.evil.example",
    ] {
        let safe = block(text, Some(&host()));
        let lower = shown_outside_code(&safe).join("\u{0}").to_lowercase();
        let raw = outside_code(&safe);
        assert!(!raw.contains("://") && !raw.contains("www."), "{safe}");
        assert!(lower.contains("evil") || safe.contains('`'), "{safe}");
    }
}

#[test]
fn code_next_to_code_keeps_both_inside() {
    for text in [
        "``@mona`a``https://x.example",
        "`a`https://x.example`@mona`",
        "``` @mona`` ```![](y)`b`",
        "`@mona`[](https://x.example)`b`",
    ] {
        let safe = block(text, Some(&host()));
        assert!(!outside_code(&safe).contains('@'), "{safe}");
    }
}

#[test]
fn text_after_a_fence_in_a_list_leaves_the_fence_closed() {
    for (text, safe) in [
        (
            "- a\n  ```\n  x\n  ```\n  @mona",
            "- a\n\n  ```\n  x\n  ```\n\n  &#64;mona",
        ),
        ("- ```\n  x\n  ```\n  after", "- ```\n  x\n  ```\n\n  after"),
        ("> ```\n> x\n> ```\nafter", "> ```\n> x\n> ```\n\nafter"),
        ("- a\n  > b\n\n  c", "- a\n\n  > b\n\n  c"),
    ] {
        assert_eq!(block(text, None), safe);
    }
}

#[test]
fn windows_line_ends_are_line_ends() {
    assert_eq!(
        block("a\r\n```\r\nx\r\ny\r\n```\r\n", None),
        "a\n\n```\nx\ny\n```"
    );
}

#[test]
fn depth_and_length_are_bounded() {
    let deep = format!("{}{}", "> ".repeat(2500), "a\n".repeat(2400));
    assert!(block(&deep, None).len() < 5 * deep.len());
    let lists: String = (0..200)
        .map(|n| format!("{}- x\n", "  ".repeat(n)))
        .collect();
    assert!(block(&lists, None).len() < 5 * lists.len());
    let long = block(&"word ".repeat(50_000), None);
    assert!(long.len() < 2 * LIMIT && long.ends_with('…'));
    assert_eq!(line(&"w".repeat(1000)).chars().count(), LINE_LIMIT + 1);
}

#[test]
fn single_lines_stay_single() {
    assert_eq!(line("a\n# b `c` <d>"), "a &#35; b `c` &lt;d&gt;");
    assert_eq!(
        line("Use ``a`b`` and ` alone"),
        "Use ``a`b`` and &#96; alone"
    );
    assert_eq!(
        line("@mona: **no** [x](y)"),
        "&#64;mona: \\*\\*no\\*\\* \\[x\\](y)"
    );
    assert_eq!(code("a`b\nc"), "``a`b c``");
    assert_eq!(code("`"), "`` ` ``");
    assert_eq!(code("x\u{202e}y\u{7f}"), "`x[U+202E]y[U+007F]`");
}

fn nasty() -> impl Strategy<Value = String> {
    const PIECES: [&str; 50] = [
        "@prwarden",
        "@mona ",
        "#12",
        "`",
        "``",
        "```\n",
        "~~~\n",
        "> ",
        "    ",
        "\n",
        "\n\n",
        "<!--",
        "-->",
        "&#64;",
        "\\",
        "é",
        "- ",
        "1. ",
        "7) ",
        "<b>",
        "[",
        "](http://x)",
        "](https://github.com/a/b)",
        "![",
        "*",
        "**",
        "_",
        "&lt;",
        "\u{202e}",
        "\t",
        "# ",
        "<https://e.example>",
        "<details>",
        "word",
        "=== ",
        "---\n",
        "  \n",
        "|a|b|\n|-|-|\n",
        ":-:",
        "https:",
        "//e.example",
        "www",
        ".e.example",
        "GH",
        "-1",
        "$",
        "![](x)",
        "<pre>\n",
        "&#96;",
        "&#10;",
    ];
    prop::collection::vec(prop::sample::select(&PIECES[..]), 0..24).prop_map(|p| p.concat())
}

/// Markdown as GitHub's comments have it.
fn github(markdown: &str) -> impl Iterator<Item = (Event<'_>, std::ops::Range<usize>)> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_MATH
        | Options::ENABLE_GFM;
    Parser::new_ext(markdown, options).into_offset_iter()
}

/// The source of a comment outside of code, with words for what must not be there.
fn outside_code(markdown: &str) -> String {
    let mut text = String::new();
    let mut in_code = false;
    for (event, range) in github(markdown) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => in_code = true,
            Event::End(TagEnd::CodeBlock) => in_code = false,
            Event::Text(_) if !in_code => text.push_str(&markdown[range]),
            Event::Html(_) | Event::InlineHtml(_) => text.push_str("<html>"),
            Event::Start(Tag::Image { .. }) => text.push_str("<image>"),
            Event::Start(Tag::Table(_)) => text.push_str("<table>"),
            Event::Start(Tag::FootnoteDefinition(_)) | Event::FootnoteReference(_) => {
                text.push_str("<note>");
            }
            Event::InlineMath(_) | Event::DisplayMath(_) => text.push_str("<math>"),
            Event::Rule => text.push_str("<rule>"),
            Event::Code(_) => text.push(' '),
            Event::SoftBreak | Event::HardBreak | Event::End(_) => text.push('\n'),
            Event::TaskListMarker(_) => text.push_str("<task>"),
            Event::Start(Tag::Link { dest_url, .. })
                if !dest_url.starts_with("https://github.com/") =>
            {
                text.push_str("<link>");
            }
            _ => {}
        }
    }
    text
}

/// The texts that people read outside of code.
fn shown_outside_code(markdown: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut in_code = false;
    for (event, _) in github(markdown) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => in_code = true,
            Event::End(TagEnd::CodeBlock) => in_code = false,
            Event::Text(text) if !in_code => texts.push(text.to_string()),
            _ => {}
        }
    }
    texts
}

/// What is wrong with `safe` as a part of a comment.
fn acts(safe: &str) -> Option<String> {
    let body = format!("### Heading\n\n{safe}\n\nfooter");
    let prose = outside_code(&body);
    let headings = github(&body)
        .filter(|(event, _)| matches!(event, Event::Start(Tag::Heading { .. })))
        .count();
    let fault = if prose.contains('@') {
        "a mention"
    } else if prose.contains('<') {
        "structure"
    } else if !prose.trim_end().ends_with("footer") {
        "what follows is swallowed"
    } else if headings != 1 {
        "a heading"
    } else if prose.contains("://") || prose.to_lowercase().contains("www.") {
        "an address"
    } else if body.contains("<!--") {
        "a marker"
    } else if mentions::find(&body, &Handle::default()).is_some() {
        "a call of the handle"
    } else {
        return None;
    };
    Some(format!("{fault} in {safe:?}: {prose:?}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn nothing_acts_in_what_is_written(text in nasty()) {
        let safe = block(&text, Some(&host()));
        prop_assert_eq!(acts(&safe), None);
        prop_assert!(safe.len() <= 12 * text.len() + 64);
        let again = block(&safe, Some(&host()));
        prop_assert_eq!(acts(&again), None);
        let title = line(&text);
        prop_assert!(!title.contains('\n'));
        prop_assert_eq!(acts(&format!("**1. {title}** (x)")), None);
    }

    #[test]
    fn any_text_is_written(text in any::<String>()) {
        let safe = block(&text, None);
        prop_assert!(!safe.chars().any(deceives));
        prop_assert_eq!(acts(&line(&text)), None);
    }

    #[test]
    fn words_are_kept(text in "[a-v]{1,8}([ ,.]{1,2}[A-V0-9]{1,8}){0,12}") {
        let shown = shown_outside_code(&block(&text, None)).concat();
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        prop_assert_eq!(words(&shown.replace('\u{0}', "")), words(&text));
    }
}
