use proptest::prelude::*;

use super::*;

fn found(body: &str) -> bool {
    find_name(body, "claude").is_some()
}

#[test]
fn a_handle_in_prose_is_found() {
    for body in [
        "@claude",
        "@claude review",
        "Hey @Claude, please",
        "(@claude)",
        "thanks @claude.",
        "thanks @claude...",
        "@claude...\nand so on",
        "@claude!",
        "@claude: look",
        "@claude's turn",
        "\"@claude\" '@claude'",
        "cc:@claude",
        "one\r\n@CLAUDE review\r\ntwo",
        "**@claude** please",
        "_@claude_ please",
        "# @claude",
        "- @claude\n- x",
        "- [ ] @claude",
        "1. first\n\n   @claude",
        "[@claude](https://example.org/x)",
        "[@claude]",
        "| a | b |\n|---|---|\n| @claude | x |",
        "```\ncode\n```\n@claude",
        "> quoted\n\n@claude",
        "<!-- note -->\n\n@claude",
        "<details>\n\n@claude\n\n</details>",
        "<code>x</code> @claude",
        "`a` @claude `b`",
        "https://example.org/ @claude",
        "请@claude看",
        "😀@claude😀",
        "a — @claude — b",
        "the ` alone and @claude",
        "    \n@claude",
        "text\n    @claude",
        "x@claude @claude",
        "<b>@claude</b>",
        "text[^1]\n\n[^1]: @claude",
    ] {
        assert!(found(body), "{body:?}");
    }
}

#[test]
fn a_handle_that_is_no_call_is_not_found() {
    for body in [
        "",
        "claude",
        "@ claude",
        "user@claude.ai",
        "a@claude",
        "a.b+c@claude",
        "@claude-ci",
        "@claude-",
        "@claude/x",
        "@claude/",
        "@claudette",
        "@claude_x",
        "@claude2",
        "@claude.ai",
        "@claude..ai",
        "@claude@example.org",
        "@@claude",
        "me-@claude",
        "_x_@claude",
        "https://example.org/@claude",
        "https://example.org/?to=@claude",
        "https://example.org/a,@claude,b",
        "<https://example.org/,@claude>",
        "<a,@claude@example.org>",
        "[x](https://example.org/@claude)",
        "[x](y \"@claude\")",
        "[x]: y '@claude'",
        "![@claude](x.png)",
        "&#64;claude",
        "&commat;claude",
        "@&#99;laude",
        "@claude&#45;ci",
        "a&#45;@claude",
        "\\@claude",
        "\\\\@claude",
        "@cl<!-- -->aude",
        "@cl**au**de",
        "@claude**tte**",
        "user<b>@claude</b>",
        "`@claude`",
        "`` ` @claude ``",
        "`one\n@claude two`",
        "    @claude",
        "\t@claude",
        "```\n@claude\n```",
        "~~~\n@claude\n~~~",
        "```\n@claude review, and never closed",
        "```` \n```\n@claude\n````",
        "- ```\n  @claude\n  ```",
        "> @claude",
        "> quoted\n@claude lazily goes on",
        "> [!NOTE]\n> @claude",
        "- > @claude",
        "<!-- @claude -->",
        "x <!-- @claude --> y",
        "<!-- never closed\n\n@claude",
        "<div>@claude</div>",
        "<div\n title='@claude'>",
        "<a title='@claude'>x</a>",
        "<code>@claude</code>",
        "x <kbd>a\n@claude</kbd>",
        "<pre>\n\n@claude\n</pre>",
        "<blockquote>\n\n@claude\n\n</blockquote>",
        "@cláude",
        "@c\u{200b}laude",
        "＠claude",
    ] {
        assert!(!found(body), "{body:?}");
    }
}

#[test]
fn only_the_handle_of_the_configuration_is_called() {
    assert!(find("@prwarden", &Handle::default()).is_some());
    assert!(find("@claude", &Handle::default()).is_none());
    assert!(find_name("@Pr-Warden: fix", "pr-warden").is_some());
    assert!(find_name("@pr\\-warden", "pr-warden").is_none());
    assert!(find_name("@pr-wardens", "pr-warden").is_none());
}

#[test]
fn the_word_after_the_handle_chooses_the_command() {
    use Command::*;
    for (body, command, rest) in [
        ("@claude", Review, ""),
        ("@claude review", Review, ""),
        ("@claude Review this again", Review, "this again"),
        ("@claude, describe", Describe, ""),
        ("@claude: FIX!", Fix, ""),
        ("(@claude) merge", Merge, ""),
        ("@claude — help.", Help, ""),
        (
            "@claude ask why is `x` **here**?",
            Ask,
            "why is `x` **here**?",
        ),
        ("@claude ask: why\r\nthe rest", Ask, "why"),
        ("@claude ask", Ask, ""),
        ("**@claude** fix", Fix, ""),
        ("@claude **fix** it", Fix, "it"),
        ("@claude please fix", Review, ""),
        ("@claude fixes", Review, ""),
        ("@claude fix/merge", Review, ""),
        ("@claude fix-it", Review, ""),
        ("@claude `fix`", Review, ""),
        ("@claude `x` fix", Review, ""),
        ("@claude ![x](y) fix", Review, ""),
        ("@claude &#102;ix", Review, ""),
        ("@claude <!-- fix -->", Review, ""),
        ("@claude\nfix", Review, ""),
        ("@claude  \nfix", Review, ""),
        ("@claude\n\nmerge", Review, ""),
        ("- @claude\n- merge", Review, ""),
        ("merge @claude", Review, ""),
        ("`@claude merge` @claude help", Help, ""),
        ("@claude help, not @claude merge", Help, "not @claude merge"),
        ("@claude ｆｉｘ", Review, ""),
    ] {
        let wanted = Mention {
            command,
            rest: rest.to_owned(),
        };
        assert_eq!(find_name(body, "claude"), Some(wanted), "{body:?}");
    }
}

#[test]
fn neutralised_text_reads_as_before() {
    for (text, wanted) in [
        ("nothing here", "nothing here"),
        ("ask @Claude to", "ask &#64;Claude to"),
        ("me@claude.ai and @other", "me&#64;claude.ai and @other"),
        ("`@claude` x", "`@\u{2060}claude` x"),
        (
            "```\n@claude\n```\n@claude",
            "```\n@\u{2060}claude\n```\n&#64;claude",
        ),
        ("\\@claude", "\\@\u{2060}claude"),
        ("@claude@claude", "&#64;claude&#64;claude"),
        ("ends with @Cla", "ends with &#64;Cla"),
    ] {
        assert_eq!(neutralise_name(text, "claude"), wanted, "{text:?}");
    }
    let text = neutralise("call @prwarden", &Handle::default());
    assert_eq!(text, "call &#64;prwarden");
}

/// Text made of what Markdown and the handle are made of.
fn nasty() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop::sample::select(vec!["@claude", "@CLAUDE", "@Claude"]),
        4 => prop::sample::select(vec![" ", "\n", "\n\n", "\r\n", "\t", "    ", "\u{a0}"]),
        4 => prop::sample::select(vec![
            "@", "claude", "&#64;", "&commat;", "\\", "`", "```", "~~~", "> ", "- ", "1. ", "* ", "_",
            "**", "~~", "[", "]", "(", ")", "](", "<", ">", "<!--", "-->", "<code>", "</code>",
            "<pre>", "</div>", "<div>", "|", "|---|\n", "#", ".", ",", "-", "/", ":", "://", "!", "&",
            ";", "=", "\u{2060}", "\u{200b}", "é", "请", "😀", "x", "review", "fix", "\u{0}", "[^1]:",
        ]),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn neutralised_text_is_never_found_wherever_it_is_put(text in nasty(), around in nasty()) {
        let neutral = neutralise_name(&text, "claude");
        prop_assert_eq!(find_name(&neutral, "claude"), None);
        prop_assert_eq!(&neutralise_name(&neutral, "claude"), &neutral);
        // The text around it is ours, and calls nobody.
        let around = neutralise_name(&around.replace('@', ""), "claude");
        for outer in [
            format!("{around}{neutral}{around}"),
            format!("`{neutral}`"),
            format!("```\n{neutral}\n```\n{neutral}"),
            format!("> {neutral}\n\n{neutral}"),
            format!("<details>\n\n{neutral}\n\n</details>\n\n    {neutral}"),
            format!("<!-- {neutral} --> {neutral}"),
            format!("[{neutral}](x) | **{neutral}** | \\{neutral}"),
        ] {
            prop_assert_eq!(find_name(&outer, "claude"), None, "{:?}", outer);
        }
    }

    #[test]
    fn a_call_on_a_line_of_its_own_survives_what_precedes_it(text in "[a-z .,!?\n]{0,40}") {
        let body = format!("{text}\n\n@claude\n");
        prop_assert!(found(&body));
    }

    #[test]
    fn no_text_makes_the_search_panic(text in any::<String>(), nasty in nasty()) {
        let _ = find_name(&format!("{text}@claude{nasty}"), "claude");
    }
}
