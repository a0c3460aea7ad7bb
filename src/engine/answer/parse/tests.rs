use proptest::prelude::*;
use serde_json::json;

use super::super::schema;
use super::*;

const HEAD: &str = "0123456789abcdef0123456789abcdef01234567";

fn read_as(task: Task<'_>, value: &Value) -> Result<Parsed, AnswerError> {
    let head: CommitSha = HEAD.parse().unwrap();
    let expected = Expected {
        task,
        head: &head,
        nonce: "n0nce",
        root: Path::new("/runs/tree"),
        known: &|path| path.starts_with("src/"),
    };
    Answer::read(value.clone(), &expected)
}

fn read(value: &Value) -> Result<Parsed, AnswerError> {
    read_as(Task::Review, value)
}

fn reviewed(value: &Value) -> Review {
    match read(value).unwrap().answer {
        Answer::Review(review) => review,
        other => panic!("{other:?}"),
    }
}

fn described(value: &Value) -> (Description, u32, bool) {
    let parsed = read_as(Task::Describe, value).unwrap();
    match parsed.answer {
        Answer::Description(text) => (text, parsed.dropped, parsed.truncated),
        other => panic!("{other:?}"),
    }
}

fn finding() -> Value {
    json!({"path": "src/a.rs", "line": 3, "severity": "major", "title": "Off by one",
        "body": "The last item is skipped.", "number": 2, "confidence": 0.8})
}

fn answer(findings: &[Value]) -> Value {
    json!({"head": HEAD, "nonce": "n0nce", "findings": findings, "assessment":
        {"effort": 2, "risk": "r", "recommendation": "x", "priority_files": ["src/a.rs"]}})
}

#[test]
fn a_full_answer_is_read() {
    let parsed = read(&answer(&[finding()])).unwrap();
    assert_eq!((parsed.dropped, parsed.truncated), (0, false));
    let review = reviewed(&answer(&[finding()]));
    let found = &review.findings[0];
    assert_eq!((found.line, found.number), (Some(3), Some(2)));
    assert_eq!(found.severity, Severity::Major);
    assert_eq!(review.assessment.unwrap().effort, 2);
}

/// A whole answer to each task.
fn answers() -> [(Task<'static>, Value); 3] {
    [
        (Task::Review, answer(&[finding()])),
        (Task::Describe, description()),
        (
            Task::Ask("Why?"),
            json!({"head": HEAD, "nonce": "n0nce", "answer": "Because."}),
        ),
    ]
}

fn description() -> Value {
    json!({"head": HEAD, "nonce": "n0nce", "kind": "fix", "summary": " Ends one row earlier. ",
        "files": [{"path": "src/a.rs", "summary": "The\nloop."}], "testing": "Run it."})
}

#[test]
fn a_description_and_an_answer_are_read() {
    let (text, dropped, truncated) = described(&description());
    assert_eq!((text.kind, dropped, truncated), (ChangeKind::Fix, 0, false));
    assert_eq!(
        (text.summary.as_str(), text.testing.as_str()),
        ("Ends one row earlier.", "Run it.")
    );
    assert_eq!(text.files[0].summary, "The loop.");
    let parsed = read_as(Task::Ask("Why?"), &answers()[2].1).unwrap();
    assert_eq!(parsed.answer, Answer::Text("Because.".into()));
}

#[test]
fn a_description_without_a_summary_or_an_answer_without_words_is_none() {
    for (task, field) in [(Task::Describe, "summary"), (Task::Ask("Why?"), "answer")] {
        let known = answers().into_iter().find(|(known, _)| *known == task);
        let mut empty = known.unwrap().1;
        empty[field] = json!(" \n");
        assert!(read_as(task, &empty).is_err(), "{field}");
    }
    let mut untested = description();
    untested["testing"] = json!("");
    assert_eq!(described(&untested).0.testing, "");
}

#[test]
fn a_description_keeps_its_limits() {
    let mut long = description();
    let file = json!({"path": "src/a.rs", "summary": "é".repeat(MAX_LINE + 1)});
    let mut files = vec![file; MAX_FILES + 3];
    files[0]["path"] = json!("/etc/passwd");
    long["files"] = json!(files);
    long["summary"] = json!("é".repeat(MAX_BODY + 1));
    let (text, dropped, truncated) = described(&long);
    assert_eq!((text.files.len(), dropped, truncated), (MAX_FILES, 1, true));
    assert_eq!(text.files[0].summary.chars().count(), MAX_LINE);
    assert_eq!(text.summary.chars().count(), MAX_BODY);
}

#[test]
fn an_answer_to_another_request_is_refused() {
    for (task, whole) in answers() {
        let mut other = whole.clone();
        other["nonce"] = json!("older");
        assert!(matches!(read_as(task, &other), Err(AnswerError::Nonce)));
        let mut other = whole;
        other["head"] = json!(HEAD.replace('0', "1"));
        let read = read_as(task, &other);
        assert!(matches!(read, Err(AnswerError::Head { .. })));
    }
}

#[test]
fn an_answer_to_another_task_is_refused() {
    for (asked, _) in answers() {
        for (answered, whole) in answers() {
            assert_eq!(read_as(asked, &whole).is_ok(), asked == answered);
        }
    }
}

#[test]
fn every_field_that_the_schema_requires_is_required_and_no_other_is_taken() {
    let mut objects = 0;
    for (task, whole) in answers() {
        let schema = schema(task);
        for (place, described) in [
            ("", Some(&schema)),
            ("/findings/0", schema.pointer("/properties/findings/items")),
            ("/assessment", schema.pointer("/properties/assessment")),
            ("/files/0", schema.pointer("/properties/files/items")),
        ] {
            let Some(described) = described else {
                continue;
            };
            objects += 1;
            let fields = whole.pointer(place).unwrap().as_object().unwrap();
            let properties = described["properties"].as_object().unwrap();
            let mut named: Vec<_> = fields.keys().collect();
            let mut allowed: Vec<_> = properties.keys().collect();
            named.sort();
            allowed.sort();
            assert_eq!(named, allowed, "{place}");
            for field in described["required"].as_array().unwrap() {
                let field = field.as_str().unwrap();
                let mut less = whole.clone();
                let object = less.pointer_mut(place).unwrap().as_object_mut().unwrap();
                object.remove(field);
                // Who leaves out the line means the file as a whole.
                assert_eq!(
                    read_as(task, &less).is_ok(),
                    field == "line",
                    "{place} {field}"
                );
            }
            let mut more = whole.clone();
            more.pointer_mut(place).unwrap()["extra"] = json!(1);
            assert!(read_as(task, &more).is_err(), "{place}");
        }
    }
    assert_eq!(objects, 6);
}

#[test]
fn a_value_outside_its_range_spoils_the_answer() {
    for (field, value) in [
        ("severity", json!("critical")),
        ("severity", json!("Major")),
        ("line", json!(0)),
        ("line", json!(-1)),
        ("line", json!("3")),
        ("number", json!(0)),
        ("title", json!(" \n ")),
        ("title", json!(null)),
        ("confidence", json!(95)),
        ("path", json!(7)),
    ] {
        let mut wrong = finding();
        wrong[field] = value.clone();
        let result = read(&answer(&[finding(), wrong]));
        assert!(result.is_err(), "{field} = {value}");
    }
    for effort in [json!(0), json!(6), json!(2.5)] {
        let mut wrong = answer(&[]);
        wrong["assessment"]["effort"] = effort;
        assert!(read(&wrong).is_err());
    }
}

#[test]
fn a_finding_outside_the_head_is_dropped_and_counted() {
    let mut outside = finding();
    outside["path"] = json!("../etc/passwd");
    let both = answer(&[outside, finding()]);
    assert_eq!(read(&both).unwrap().dropped, 1);
    assert_eq!(reviewed(&both).findings.len(), 1);
}

#[test]
fn full_paths_into_the_checkout_are_paths_of_the_head() {
    for path in ["/runs/tree/src/a.rs", "./src/a.rs", "src/a.rs"] {
        let mut named = finding();
        named["path"] = json!(path);
        let review = reviewed(&answer(&[named]));
        assert_eq!(review.findings[0].path, "src/a.rs", "{path}");
    }
    let mut beside = finding();
    beside["path"] = json!("/runs/treesrc/a.rs");
    assert_eq!(read(&answer(&[beside])).unwrap().dropped, 1);
}

#[test]
fn of_too_many_findings_the_gravest_are_kept() {
    let mut findings = vec![finding(); MAX_FINDINGS + 10];
    findings.last_mut().unwrap()["severity"] = json!("blocker");
    assert!(read(&answer(&findings)).unwrap().truncated);
    let review = reviewed(&answer(&findings));
    assert_eq!(review.findings.len(), MAX_FINDINGS);
    assert_eq!(review.findings[0].severity, Severity::Blocker);
}

#[test]
fn long_texts_are_cut_and_titles_are_one_line() {
    let mut long = finding();
    long["title"] = json!("a\n\tb\u{0}c");
    long["body"] = json!("é".repeat(MAX_BODY + 1));
    let review = reviewed(&answer(&[long]));
    let found = &review.findings[0];
    assert_eq!(found.title, "a b c");
    assert_eq!(found.body.chars().count(), MAX_BODY);
    assert!(found.body.ends_with('…'));
}

proptest! {
    #[test]
    fn whatever_is_accepted_keeps_the_limits(
        title in ".{0,400}", body in ".{0,50}", path in "(src/)?[a-z./]{0,20}",
        line in any::<i64>(), effort in any::<i8>(), count in 0usize..130,
    ) {
        let mut one = finding();
        one["title"] = json!(title);
        one["body"] = json!(body);
        one["path"] = json!(path);
        one["line"] = json!(line);
        let mut whole = answer(&vec![one; count]);
        whole["assessment"]["effort"] = json!(effort);
        if read(&whole).is_ok() {
            let review = reviewed(&whole);
            prop_assert!(review.findings.len() <= MAX_FINDINGS);
            let assessment = review.assessment.unwrap();
            prop_assert!((1..=5).contains(&assessment.effort));
            for found in review.findings {
                prop_assert!(found.path.starts_with("src/"));
                prop_assert!(!found.title.is_empty());
                prop_assert!(found.title.chars().count() <= MAX_LINE);
                prop_assert!(!found.title.chars().any(char::is_control));
                prop_assert!(found.line != Some(0));
            }
        }
    }
}
