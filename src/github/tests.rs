//! The client against a server that answers exactly what a test says, byte by byte.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use url::Url;

use super::limits::{Refusal, classify};
use super::transport::{Reply, TOTAL_TIMEOUT};
use super::{ApiError, Client, Conditional, Role, Target};
use crate::clock::{Clock, Stop, TestClock, Timestamp};
use crate::config::{GithubConfig, TokenSource};
use crate::ids::{PrNumber, RepoName};
use crate::secret::Secret;

const TOKEN: &str = "token-of-the-test";
const START: i64 = 1_800_000_000;

/// What the server does with one connection.
enum Step {
    /// Sends these bytes and closes.
    Answer(String),
    /// Reads the request and closes without an answer.
    Hang,
    /// Understands nothing, sends these bytes after the client's first ones and closes.
    Foreign(&'static str),
    /// Reads the request and then waits until the client gives up.
    Silence,
}

fn answer(status: &str, headers: &str, body: &str) -> Step {
    let length = body.len();
    Step::Answer(format!(
        "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    ))
}

/// A server with one step for each connection, and the requests that it saw.
struct Script {
    url: Url,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Script {
    fn new(steps: Vec<Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap())
            .parse()
            .unwrap();
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = Arc::clone(&seen);
        thread::spawn(move || {
            for step in steps {
                let Ok((stream, _)) = listener.accept() else {
                    return;
                };
                if let Step::Foreign(bytes) = step {
                    let _ = (&stream).read(&mut [0; 16 << 10]);
                    let _ = (&stream).write_all(bytes.as_bytes());
                    continue;
                }
                log.lock().unwrap().push(read_request(&stream));
                match step {
                    // The client may have seen enough before the end.
                    Step::Answer(bytes) => drop((&stream).write_all(bytes.as_bytes())),
                    Step::Silence => drop((&stream).read(&mut [0])),
                    Step::Hang | Step::Foreign(_) => {}
                }
            }
        });
        Self { url, seen }
    }

    /// The same, addressed as if it spoke TLS.
    fn tls(steps: Vec<Step>) -> Self {
        let Self { url, seen } = Self::new(steps);
        let url = url.as_str().replacen("http", "https", 1).parse().unwrap();
        Self { url, seen }
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

fn read_request(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let (mut text, mut length) = (String::new(), 0);
    loop {
        let mut line = Vec::new();
        reader.read_until(b'\n', &mut line).unwrap();
        let line = String::from_utf8_lossy(&line);
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        text.push_str(&line);
        if line == "\r\n" || line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    text + &String::from_utf8(body).unwrap()
}

struct Setup {
    client: Client,
    clock: TestClock,
    stop: Stop,
}

fn setup(api_url: &Url) -> Setup {
    let config = GithubConfig {
        api_url: api_url.clone(),
        web_url: api_url.clone(),
        token: TokenSource::Env("X".into()),
        ca_file: None,
    };
    let clock = TestClock::at(Timestamp::from_unix(START));
    let stop = Stop::new();
    let shared: Arc<dyn Clock> = Arc::new(clock.clone());
    let client = Client::new(&config, Secret::new(TOKEN), shared, stop.clone());
    Setup {
        client,
        clock,
        stop,
    }
}

fn waited(setup: &Setup) -> Duration {
    setup.clock.now().since(Timestamp::from_unix(START))
}

fn repo() -> RepoName {
    "a/b".parse().unwrap()
}

fn pr() -> PrNumber {
    "1".parse().unwrap()
}

fn me(setup: &Setup) -> Result<String, ApiError> {
    setup.client.me().map(|account| account.login)
}

fn post(setup: &Setup) -> Result<(), ApiError> {
    setup
        .client
        .create_comment(&repo(), pr(), "hello")
        .map(drop)
}

const ME: &str = r#"{"id": 7, "login": "mona", "type": "User", "new_field": {}}"#;

#[test]
fn every_request_says_who_asks_for_what() {
    let server = Script::new(vec![answer("200 OK", "", ME)]);
    let prefix = server.url.join("api/v3").unwrap();
    assert_eq!(me(&setup(&prefix)).unwrap(), "mona");
    let request = server.seen().remove(0).to_lowercase();
    assert!(
        request.starts_with("get /api/v3/user http/1.1\r\n"),
        "{request}"
    );
    for header in [
        format!("authorization: bearer {TOKEN}"),
        "accept: application/vnd.github+json".to_owned(),
        "x-github-api-version: 2022-11-28".to_owned(),
        format!("user-agent: prwarden/{}", env!("CARGO_PKG_VERSION")),
        "accept-encoding: gzip".to_owned(),
    ] {
        assert!(request.contains(&header), "{header} is not in {request}");
    }
}

#[test]
fn a_conditional_request_is_answered_by_not_modified() {
    let server = Script::new(vec![
        answer("304 Not Modified", "", ""),
        answer("304 Not Modified", "", ""),
    ]);
    let setup = setup(&server.url);
    let list = |etag| setup.client.list("/x", etag, Role::Poll);
    assert!(matches!(
        list(Some("W/\"1\"")),
        Ok(Conditional::NotModified { .. })
    ));
    assert!(
        server.seen()[0]
            .to_lowercase()
            .contains("if-none-match: w/\"1\"")
    );
    assert!(
        matches!(list(None), Err(ApiError::Status { status: 304, .. })),
        "nobody asked for it"
    );
}

#[test]
fn the_next_page_is_followed_on_the_same_host_and_no_other_gets_the_token() {
    let other = Script::new(vec![answer("200 OK", "", "[]")]);
    let link = |target: &str| format!("Link: <{target}>; rel=\"next\"\r\n");
    let server = Script::new(vec![
        answer("200 OK", &link("/x?page=2"), "[1]"),
        answer("200 OK", &link(&format!("{}x?page=3", other.url)), "[2]"),
    ]);
    let client = setup(&server.url).client;
    let Ok(Conditional::Fresh(first)) = client.list("/x", None, Role::Poll) else {
        panic!("no page");
    };
    let second = client.next_page(&first.next.unwrap(), Role::Poll).unwrap();
    assert!(server.seen()[1].starts_with("GET /x?page=2 "));
    // That there is more is not kept quiet: what is on it would be lost.
    let error = client
        .next_page(&second.next.unwrap(), Role::Poll)
        .unwrap_err();
    assert!(matches!(error, ApiError::OtherHost { .. }), "{error}");
    assert!(other.seen().is_empty());
    assert_eq!(client.requests()[&Role::Poll], 2);
}

#[test]
fn a_conversation_without_end_is_not_taken_for_read() {
    let link = "Link: </x>; rel=\"next\"\r\n";
    let server = Script::new((0..60).map(|_| answer("200 OK", link, "[]")).collect());
    let found = setup(&server.url)
        .client
        .comments(&repo(), pr(), Some(Timestamp::EPOCH));
    assert!(matches!(found, Err(ApiError::Endless { .. })), "{found:?}");
}

#[test]
fn a_redirect_to_another_host_is_refused_and_gets_no_token() {
    let other = Script::new(vec![answer("200 OK", "", ME)]);
    let location = format!("Location: {}user\r\n", other.url);
    let server = Script::new(vec![answer("301 Moved", &location, "")]);
    let error = me(&setup(&server.url)).unwrap_err();
    // Another port of the same machine is another origin.
    assert!(matches!(error, ApiError::OtherHost { .. }), "{error}");
    assert!(other.seen().is_empty());
}

#[test]
fn redirects_on_the_same_host_are_followed_and_a_write_keeps_its_body() {
    for status in ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"] {
        let server = Script::new(vec![
            answer(status, "Location: /repositories/9\r\n", ""),
            answer("200 OK", "", ME),
        ]);
        assert_eq!(me(&setup(&server.url)).unwrap(), "mona", "{status}");
        assert!(server.seen()[1].starts_with("GET /repositories/9 "));
    }
    let server = Script::new(vec![
        answer("307 Temporary", "Location: /elsewhere\r\n", ""),
        answer("422 No", "", "{}"),
    ]);
    assert!(post(&setup(&server.url)).is_err());
    let second = server.seen().remove(1);
    assert!(second.starts_with("POST /elsewhere ") && second.ends_with(r#"{"body":"hello"}"#));
    let server = Script::new(vec![answer("301 Moved", "Location: /elsewhere\r\n", "")]);
    assert!(matches!(
        post(&setup(&server.url)),
        Err(ApiError::Status { status: 301, .. })
    ));
}

#[test]
fn a_read_is_repeated_three_times_with_pauses() {
    let broken = || vec![Step::Hang, answer("502 Bad", "", "<html>"), Step::Hang];
    let mut steps = broken();
    steps.push(answer("200 OK", "", ME));
    let server = Script::new(steps);
    let patient = setup(&server.url);
    assert_eq!(me(&patient).unwrap(), "mona");
    assert!(waited(&patient) >= Duration::from_millis(3500));
    let mut steps = broken();
    steps.push(Step::Hang);
    let server = Script::new(steps);
    assert!(matches!(
        me(&setup(&server.url)),
        Err(ApiError::Unreachable { .. })
    ));
    assert_eq!(server.seen().len(), 4);
}

#[test]
fn a_write_is_never_repeated_when_it_may_have_been_heard() {
    for step in [
        Step::Hang,
        answer("502 Bad", "", "<html>"),
        Step::Answer("HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n{\"id\":".into()),
        answer("201 Created", "", "<html>"),
        answer("202 Accepted", "", "{}"),
        answer("201 Created", "", &" ".repeat(33 << 20)),
    ] {
        let server = Script::new(vec![step, answer("201 Created", "", "{}")]);
        let result = post(&setup(&server.url));
        assert!(
            matches!(result, Err(ApiError::OutcomeUnknown { .. })),
            "{result:?}"
        );
        assert_eq!(server.seen().len(), 1);
    }
}

#[test]
fn a_write_that_reached_nobody_is_known_to_be_unsent() {
    let unused = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", unused.local_addr().unwrap())
        .parse()
        .unwrap();
    drop(unused);
    assert!(matches!(
        post(&setup(&url)),
        Err(ApiError::Unreachable { .. })
    ));
}

#[test]
fn a_write_whose_handshake_failed_is_known_to_be_unsent() {
    let https = "https://127.0.0.1".parse().unwrap();
    let proxy = super::proxy::choose(&https, &|name| std::env::var(name).ok());
    if !matches!(proxy, Ok(None)) || rustls_native_certs::load_native_certs().certs.is_empty() {
        println!("skipped: a proxy is set, or this system trusts no certificate");
        return;
    }
    for bytes in ["", "HTTP/1.1 400 Bad Request\r\n\r\n"] {
        let server = Script::tls(vec![Step::Foreign(bytes)]);
        let error = post(&setup(&server.url)).unwrap_err();
        assert!(matches!(error, ApiError::Unreachable { .. }), "{error}");
        let told = error.to_string().contains("github.ca_file");
        assert_eq!(told, !bytes.is_empty(), "{error}");
    }
}

#[test]
fn a_refusal_counts_although_its_text_is_cut() {
    let cut = "HTTP/1.1 422 No\r\nContent-Length: 100\r\n\r\n{\"mess";
    let server = Script::new(vec![Step::Answer(cut.into())]);
    let error = post(&setup(&server.url)).unwrap_err();
    assert!(
        matches!(error, ApiError::Status { status: 422, .. }),
        "{error}"
    );
}

#[test]
fn a_stop_ends_a_read_that_github_leaves_unanswered() {
    let server = Script::new(vec![Step::Silence]);
    let setup = setup(&server.url);
    let begin = std::time::Instant::now();
    thread::scope(|scope| {
        let read = scope.spawn(|| me(&setup));
        while server.seen().is_empty() {
            thread::sleep(Duration::from_millis(5));
        }
        setup.stop.set();
        assert!(matches!(read.join().unwrap(), Err(ApiError::Stopped)));
    });
    assert!(begin.elapsed() < TOTAL_TIMEOUT, "the time-out ended it");
}

#[test]
fn short_waits_that_github_asks_for_are_kept_twice_and_long_ones_are_returned() {
    let limited = |value: &str| answer("429 Slow", &format!("Retry-After: {value}\r\n"), "{}");
    let server = Script::new(vec![limited("5"), limited("60"), answer("200 OK", "", ME)]);
    let patient = setup(&server.url);
    assert_eq!(me(&patient).unwrap(), "mona");
    assert_eq!(waited(&patient), Duration::from_secs(65));
    // Twice for the request, whatever comes in between.
    let failed = answer("502 Bad", "", "");
    let server = Script::new(vec![limited("5"), failed, limited("5"), limited("5")]);
    assert!(matches!(
        me(&setup(&server.url)),
        Err(ApiError::RateLimited { .. })
    ));
    assert_eq!(server.seen().len(), 4);
    let server = Script::new(vec![limited("3600")]);
    let impatient = setup(&server.url);
    let until = me(&impatient).unwrap_err().retry_at().unwrap();
    assert_eq!(until, Timestamp::from_unix(START + 3600));
    assert_eq!(waited(&impatient), Duration::ZERO);
}

#[test]
fn a_stop_ends_a_wait() {
    let server = Script::new(vec![answer("429 Slow", "Retry-After: 60\r\n", "{}")]);
    let setup = setup(&server.url);
    setup.stop.set();
    assert!(matches!(me(&setup), Err(ApiError::Stopped)));
}

#[test]
fn refusals_are_told_apart() {
    let now = Timestamp::from_unix(START);
    let class = |status, headers: &[(&'static str, &str)], message: &str| {
        classify(&Reply::of(status, headers), message, 0, 0, 0, now)
    };
    let until = |seconds, secondary| Refusal::Until {
        until: Timestamp::from_unix(START + seconds),
        secondary,
    };
    let reset = (START + 90).to_string();
    let exhausted: &[(&'static str, &str)] = &[
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", &reset),
    ];
    assert_eq!(
        class(403, &[], "Resource not accessible"),
        Refusal::Permanent
    );
    assert_eq!(
        class(403, exhausted, "API rate limit exceeded"),
        until(90, false)
    );
    assert_eq!(
        class(403, &[], "You have exceeded a secondary rate limit"),
        until(60, true)
    );
    assert_eq!(class(429, &[], ""), until(60, true));
    assert_eq!(
        class(403, &[], "API rate limit exceeded for user ID 7."),
        until(60, false)
    );
    let past = (START - 5).to_string();
    for reset in [past.as_str(), "soon", ""] {
        let headers: &[(&'static str, &str)] =
            &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", reset)];
        assert_eq!(class(403, headers, "no"), until(60, false), "{reset:?}");
    }
    let never: &[(&'static str, &str)] = &[
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", "99999999999"),
    ];
    assert_eq!(class(403, never, "no"), until(24 * 3600, false));
    assert_eq!(
        class(429, &[("retry-after", "99999999999999999999")], ""),
        until(24 * 3600, true)
    );
    assert_eq!(
        class(
            403,
            &[("retry-after", "90"), ("x-ratelimit-remaining", "0")],
            ""
        ),
        until(90, false)
    );
    assert_eq!(
        class(403, &[("retry-after", "soon")], "no"),
        Refusal::Permanent
    );
    assert_eq!(
        class(403, &[("retry-after", "7")], "no"),
        Refusal::Wait(Duration::from_secs(7))
    );
    // An hour of secondary limits in a row is waited out longer, never shorter than a minute.
    for (in_a_row, random) in [(0, u32::MAX), (3, 0), (3, u32::MAX), (60, u32::MAX)] {
        let refusal = classify(&Reply::of(429, &[]), "", 0, in_a_row, random, now);
        let Refusal::Until { until, .. } = refusal else {
            panic!("{refusal:?}")
        };
        let wait = until.since(now).as_secs();
        assert!((60..=3600).contains(&wait), "{wait}");
    }
}

#[test]
fn writes_that_meet_the_limit_again_wait_longer_although_reads_go_through() {
    let limited = || answer("403 No", "", r#"{"message": "a secondary rate limit"}"#);
    let longest = |limits: usize| {
        let rounds = 40;
        let steps = (0..rounds * limits).flat_map(|_| [limited(), answer("200 OK", "", ME)]);
        let server = Script::new(steps.collect());
        let mut longest = Duration::ZERO;
        for _ in 0..rounds {
            let setup = setup(&server.url);
            for _ in 0..limits {
                let until = post(&setup).unwrap_err().retry_at().unwrap();
                longest = longest.max(until.since(setup.clock.now()));
                me(&setup).unwrap();
            }
        }
        longest
    };
    assert!(longest(1) <= Duration::from_secs(120));
    assert!(longest(4) > Duration::from_secs(120));
}

#[test]
fn what_is_left_of_the_limit_is_known_only_when_it_is_told() {
    let headers = "X-RateLimit-Limit: 5000\r\nX-RateLimit-Remaining: 4999\r\nX-RateLimit-Reset: 1800003600\r\n";
    let server = Script::new(vec![
        answer("200 OK", "", ME),
        answer("200 OK", headers, ME),
    ]);
    let setup = setup(&server.url);
    me(&setup).unwrap();
    assert_eq!(setup.client.rate().remaining, None);
    me(&setup).unwrap();
    assert_eq!(setup.client.rate().remaining, Some(4999));
    assert_eq!(
        setup.client.rate().reset,
        Some(Timestamp::from_unix(START + 3600))
    );
}

#[test]
fn writes_are_a_second_apart() {
    let eyes = || answer("200 OK", "", "{}");
    let server = Script::new(vec![eyes(), eyes(), eyes()]);
    let setup = setup(&server.url);
    for _ in 0..3 {
        setup
            .client
            .react_eyes(&repo(), Target::Pull(pr()))
            .unwrap();
    }
    assert_eq!(waited(&setup), Duration::from_secs(2));
}

#[test]
fn a_repeated_write_keeps_its_distance_too() {
    let server = Script::new(vec![
        answer("429 Slow", "Retry-After: 0\r\n", "{}"),
        answer("307 Temporary", "Location: /elsewhere\r\n", ""),
        answer("200 OK", "", "{}"),
    ]);
    let setup = setup(&server.url);
    setup
        .client
        .react_eyes(&repo(), Target::Pull(pr()))
        .unwrap();
    assert_eq!(waited(&setup), Duration::from_secs(2));
}

#[test]
fn an_answer_that_is_no_json_names_the_request() {
    for body in ["<!doctype html>", "", "[1,"] {
        let server = Script::new(vec![answer("200 OK", "", body)]);
        let error = me(&setup(&server.url)).unwrap_err();
        assert!(matches!(error, ApiError::NotJson { .. }), "{error}");
        assert!(error.to_string().contains("GET /user"), "{error}");
    }
}

#[test]
fn no_error_shows_the_token() {
    let message = format!(r#"{{"message": "Bad credentials {}"}}"#, "x".repeat(1000));
    let server = Script::new(vec![answer("401 No", "", &message)]);
    let setup = setup(&server.url);
    let error = me(&setup).unwrap_err();
    let text = format!("{error} {error:?} {:?}", setup.client);
    assert!(!text.contains(TOKEN));
    assert!(
        error.to_string().len() < 400 && error.to_string().contains("token is wrong or expired")
    );
}

#[test]
fn accounts_that_are_gone_and_bodies_that_are_null_are_read() {
    let comment = r#"[{"id": 1, "user": null, "body": null, "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z", "issue_url": "https://x/issues/1", "html_url": "https://x"}]"#;
    let server = Script::new(vec![answer("200 OK", "", comment)]);
    let comments = setup(&server.url)
        .client
        .comments(&repo(), pr(), Some(Timestamp::EPOCH))
        .unwrap();
    assert_eq!(
        (comments[0].user.as_ref(), comments[0].body.as_ref()),
        (None, None)
    );
}

#[test]
fn a_compressed_answer_is_read_and_a_huge_one_is_refused() {
    let server = httpmock::MockServer::start();
    let compressed = server.mock(|when, then| {
        when.path("/user").header("accept-encoding", "gzip");
        then.status(200)
            .header("content-encoding", "gzip")
            .body(GZIPPED_ME);
    });
    let huge = server.mock(|when, then| {
        when.path("/repos/a/b");
        then.status(200).body(vec![b' '; 33 << 20]);
    });
    let setup = setup(&server.base_url().parse().unwrap());
    assert_eq!(me(&setup).unwrap(), "mona");
    let error = setup.client.repository(&repo()).unwrap_err();
    assert!(matches!(error, ApiError::TooLarge { .. }), "{error}");
    compressed.assert();
    huge.assert();
}

/// `{"id": 7, "login": "mona"}` after gzip.
const GZIPPED_ME: &[u8] = &[
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xab, 0x56, 0xca, 0x4c, 0x51, 0xb2,
    0x52, 0x30, 0xd7, 0x51, 0x50, 0xca, 0xc9, 0x4f, 0xcf, 0xcc, 0x03, 0xb2, 0x95, 0x72, 0xf3, 0xf3,
    0x12, 0x95, 0x6a, 0x01, 0x29, 0x89, 0xde, 0x98, 0x1a, 0x00, 0x00, 0x00,
];
