//! Failures on demand, held requests, and the life of connections.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use prwarden::double::{Action, Matcher, Moment};
use regex::Regex;
use serde_json::{Value, json};

use crate::support::{PATIENCE, Place, REPO, TOKEN};

#[test]
fn every_fault_breaks_one_request_in_its_own_way() {
    let place = Place::new();
    let number = place.open();
    let comments = place.in_repo("/issues/1/comments");
    let list = place.in_repo("/pulls");
    let post = |text: &str| place.ask("POST", &comments, &[], &json!({ "body": text }).to_string());
    let bodies = || {
        let comments = place.double.comments(REPO, number).into_iter();
        comments.map(|comment| comment.body).collect::<Vec<_>>()
    };

    place.fault(Matcher::post("/comments"), Action::ResetBefore);
    assert!(post("before").is_none());
    assert_eq!(bodies(), Vec::<String>::new());
    place.fault(Matcher::post("/comments"), Action::ResetAfter);
    assert!(post("after").is_none());
    assert_eq!(bodies(), ["after"]);
    let cut: Vec<u16> = place
        .double
        .requests()
        .iter()
        .map(|request| request.status)
        .collect();
    assert_eq!(cut, [0, 0]);

    place.fault(Matcher::get("/pulls"), Action::TruncateBody);
    assert!(
        place.ask("GET", &list, &[], "").is_none(),
        "the body is short"
    );
    place.fault(Matcher::get("/pulls"), Action::Html);
    assert_eq!(place.get(&list).header("content-type"), Some("text/html"));
    place.fault(Matcher::get("/pulls"), Action::BadJson);
    assert!(serde_json::from_str::<Value>(&place.get(&list).text).is_err());
    place.fault(Matcher::get("/pulls"), Action::StripEtag);
    assert_eq!(place.get(&list).header("etag"), None);

    let status = Action::Status {
        code: 429,
        headers: vec![("Retry-After".into(), "7".into())],
        body: "{\"message\":\"slow down\"}".into(),
    };
    place.fault(
        Matcher::any("/pulls").matching(Regex::new("pulls$").unwrap()),
        status,
    );
    assert_eq!(
        place.get(&format!("{list}?page=1")).status,
        200,
        "the pattern"
    );
    let limited = place.get(&list);
    assert_eq!(
        (limited.status, limited.header("retry-after")),
        (429, Some("7"))
    );

    let location = format!("/repositories/{}/pulls", place.double.repo_id(REPO));
    place.fault(
        Matcher::get("/pulls"),
        Action::Redirect {
            code: 301,
            location: location.clone(),
        },
    );
    let moved = place.get(&list);
    assert_eq!(
        moved.header("location"),
        Some(format!("{}{location}", place.double.url()).as_str())
    );
    assert_eq!(moved.status, 301);

    let headers = vec![("x-ratelimit-remaining".to_owned(), "3".to_owned())];
    place.fault(Matcher::get("/pulls"), Action::WithHeaders(headers));
    let told: Vec<_> = place
        .get(&list)
        .headers
        .into_iter()
        .filter(|(name, _)| name == "x-ratelimit-remaining")
        .collect();
    assert_eq!(told, [("x-ratelimit-remaining".to_owned(), "3".to_owned())]);

    place.fault(
        Matcher::get("/pulls"),
        Action::Delay(Duration::from_millis(50)),
    );
    let start = Instant::now();
    assert_eq!(place.get(&list).each("number"), [1]);
    assert!(start.elapsed() >= Duration::from_millis(50));
    assert_eq!(place.double.faults_left(), 0);
}

#[test]
fn a_held_request_is_parked_at_its_exact_point_and_released_or_cut() {
    for (moment, cut, applied_while_held, applied, answered) in [
        (Moment::Before, false, 0, 1, true),
        (Moment::Before, true, 0, 0, false),
        (Moment::AfterApplied, false, 1, 1, true),
        (Moment::AfterApplied, true, 1, 1, false),
    ] {
        let place = Place::new();
        let number = place.open();
        let hold = place.double.hold(Matcher::post("/comments"), moment);
        assert!(
            !hold.wait_until_parked(Duration::from_millis(1)),
            "nothing came yet"
        );
        std::thread::scope(|scope| {
            let body = json!({ "body": "x" }).to_string();
            let path = place.in_repo("/issues/1/comments");
            let place = &place;
            let asking = scope.spawn(move || place.ask("POST", &path, &[], &body));
            assert!(hold.wait_until_parked(PATIENCE));
            let count = || place.double.comments(REPO, number).len();
            assert_eq!(count(), applied_while_held, "{moment:?}");
            assert_eq!(place.get("/user").status, 200, "others pass");
            if cut {
                hold.cut()
            } else {
                hold.release()
            }
            assert_eq!(
                asking.join().unwrap().is_some(),
                answered,
                "{moment:?} {cut}"
            );
            assert_eq!(count(), applied, "{moment:?} {cut}");
        });
    }
}

#[test]
fn a_connection_serves_several_requests_and_survives_no_nonsense() {
    let place = Place::new();
    let address = place.double.url().replace("http://", "");
    let talk = |text: &str| {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let two = talk(&format!(
        "GET /user HTTP/1.1\r\nAuthorization: Bearer {TOKEN}\r\n\r\n\
         HEAD /user HTTP/1.1\r\nAuthorization: token {TOKEN}\r\nConnection: close\r\n\r\n"
    ));
    assert_eq!(two.matches("HTTP/1.1 200 OK").count(), 2, "{two}");
    assert!(two.ends_with("\r\n\r\n"), "HEAD has no body: {two}");
    assert!(talk("\u{1}\u{2} nonsense\r\n\r\n").starts_with("HTTP/1.1 400 "));
}
