//! Lists, pages, ETags, accounts and limits.

use prwarden::clock::Timestamp;
use prwarden::double::RateLimit;
use serde_json::{Value, json};

use crate::support::{BOT, Place, REPO, Reply};

#[test]
fn an_unchanged_list_costs_nothing_and_an_etag_is_worth_nothing_with_another_token() {
    let place = Place::new();
    let number = place.open();
    place.double.set_token("another", "mona");
    let path = place.in_repo("/pulls?state=open&per_page=100");
    let first = place.get(&path);
    let etag = first.header("etag").unwrap().to_owned();
    let left = |reply: &Reply| {
        reply
            .header("x-ratelimit-remaining")
            .unwrap()
            .parse::<u32>()
            .unwrap()
    };

    for known in [
        etag.clone(),
        etag.trim_start_matches("W/").to_owned(),
        format!("\"x\", {etag}"),
    ] {
        let again = place
            .ask("GET", &path, &[("If-None-Match", &known)], "")
            .unwrap();
        assert_eq!(again.status, 304, "{known}");
        assert_eq!(again.text, "");
        assert_eq!(left(&again), left(&first), "a 304 is free");
        assert_eq!(again.header("etag"), Some(etag.as_str()));
    }
    let other = place.get(&place.in_repo("/pulls?state=open&per_page=99"));
    assert_ne!(other.header("etag"), Some(etag.as_str()), "another query");
    assert_eq!(left(&other), left(&first) - 1);

    let headers = [
        ("If-None-Match", etag.as_str()),
        ("Authorization", "Bearer another"),
    ];
    assert_eq!(place.ask("GET", &path, &headers, "").unwrap().status, 200);

    place.double.retitle(REPO, number, "New title");
    let changed = place
        .ask("GET", &path, &[("If-None-Match", &etag)], "")
        .unwrap();
    assert_eq!(changed.status, 200);
    assert_eq!(changed.each("title"), ["New title"]);
}

#[test]
fn pages_lead_to_each_other_and_hold_everything_once() {
    let place = Place::new();
    let number = place.open();
    for n in 0..7 {
        place
            .double
            .comment(REPO, number, "mona", &format!("comment {n}"));
    }
    let mut path = place.in_repo("/issues/comments?sort=created&direction=desc&per_page=3");
    let mut seen = Vec::new();
    loop {
        let reply = place.get(&path);
        seen.extend(reply.each("body"));
        let links = reply.header("link").unwrap().to_owned();
        let link = |rel: &str| {
            let wanted = format!("; rel=\"{rel}\"");
            let found = links
                .split(", ")
                .find_map(|link| link.strip_suffix(wanted.as_str()))?;
            Some(found.trim_matches(['<', '>']).to_owned())
        };
        assert_eq!(link("prev").is_some(), link("first").is_some(), "{links}");
        assert_eq!(link("next").is_some(), link("last").is_some(), "{links}");
        let Some(next) = link("next") else { break };
        assert!(
            next.contains("/repositories/") && next.contains("direction=desc"),
            "{next}"
        );
        path = next.strip_prefix(&place.double.url()).unwrap().to_owned();
    }
    let wanted: Vec<String> = (0..7).rev().map(|n| format!("comment {n}")).collect();
    assert_eq!(seen, wanted);
    let beyond = place.get(&place.in_repo("/issues/comments?page=99"));
    assert_eq!(beyond.json(), json!([]));
    assert_eq!(
        place.get(&place.in_repo("/issues/comments")).header("link"),
        None
    );
}

#[test]
fn lists_are_sorted_by_their_stamps_and_cut_by_since() {
    let place = Place::new();
    let (early, late) = (
        Timestamp::from_unix(1_800_000_000),
        Timestamp::from_unix(1_800_000_060),
    );
    place.double.at(early);
    let number = place.open();
    let first = place.double.comment(REPO, number, "mona", "first");
    let second = place.double.comment(REPO, number, "mona", "second");
    place.double.at(late);
    let third = place.double.comment(REPO, number, "mona", "third");
    place.double.edit_comment(REPO, first, "first, edited");
    let ids = |query: &str| {
        place
            .get(&place.in_repo(&format!("/issues/comments{query}")))
            .each("id")
    };

    assert_eq!(ids("?sort=updated&direction=desc"), [third, first, second]);
    assert_eq!(ids("?sort=created&direction=desc"), [third, second, first]);
    assert_eq!(
        ids("?direction=desc"),
        [first, second, third],
        "ignored without sort"
    );
    let since = late.to_github();
    assert_eq!(ids(&format!("?since={since}")), [first, third]);
    let conversation = place.in_repo(&format!("/issues/{number}/comments?since={since}"));
    assert_eq!(place.get(&conversation).each("id"), [first, third]);
    let stamps = place
        .get(&place.in_repo(&format!("/issues/comments/{first}")))
        .json();
    assert_eq!(stamps["created_at"], early.to_github());
    assert_eq!(stamps["updated_at"], late.to_github());
    let talked = place.get(&place.in_repo("/pulls/1")).json();
    assert_eq!(
        talked["updated_at"],
        late.to_github(),
        "talking updates a pull request"
    );

    for wrong in ["?since=yesterday", "?sort=age", "?direction=down"] {
        let reply = place.get(&place.in_repo(&format!("/issues/comments{wrong}")));
        assert_eq!(reply.status, 422, "{wrong}");
    }
}

#[test]
fn pull_requests_are_listed_newest_first_and_by_state() {
    let place = Place::new();
    let (one, two) = (place.open(), place.open());
    let numbers = |query: &str| {
        place
            .get(&place.in_repo(&format!("/pulls{query}")))
            .each("number")
    };
    assert_eq!(numbers(""), [two, one]);
    assert_eq!(numbers("?sort=updated"), [one, two]);
    place.double.close(REPO, one);
    assert_eq!(numbers("?state=open"), [two]);
    assert_eq!(numbers("?state=closed"), [one]);
    assert_eq!(numbers("?state=all&head=acme:two&base=main").len(), 2);
    assert_eq!(numbers("?state=all&base=other").len(), 0);
    assert_eq!(place.get(&place.in_repo("/pulls?state=opened")).status, 422);
}

#[test]
fn tokens_speak_for_their_accounts_and_unknown_ones_for_nobody() {
    let place = Place::new();
    assert_eq!(place.get("/user").json()["login"], BOT);
    assert_eq!(place.get("/user/101").json()["login"], "mona");
    assert_eq!(place.get("/users/mona").json()["id"], 101);
    assert_eq!(place.get("/users/nobody").status, 404);
    let wrong = place
        .ask("GET", "/user", &[("Authorization", "Bearer wrong")], "")
        .unwrap();
    assert_eq!(wrong.status, 401);
    assert_eq!(wrong.json()["message"], "Bad credentials");
    place.double.revoke_tokens();
    let revoked = place.get(&place.in_repo("/pulls"));
    assert_eq!(revoked.status, 401, "what anybody could read");
}

#[test]
fn the_primary_limit_counts_down_ends_in_a_refusal_and_starts_anew() {
    let place = Place::new();
    let later = Timestamp::from(jiff::Timestamp::now()).unix() + 1000;
    let limit = |remaining, reset| RateLimit {
        limit: 60,
        remaining,
        reset,
    };
    place.double.set_rate_limit(limit(1, later));
    let last = place.get("/user");
    assert_eq!(
        (last.status, last.header("x-ratelimit-remaining")),
        (200, Some("0"))
    );
    let refused = place.get("/user");
    assert_eq!(
        (refused.status, refused.header("x-ratelimit-remaining")),
        (403, Some("0"))
    );
    assert_eq!(
        refused.header("x-ratelimit-reset"),
        Some(later.to_string().as_str())
    );
    assert!(refused.header("date").is_some());
    let free = place.get("/rate_limit").json();
    assert_eq!(free["resources"]["core"]["used"], 60);
    place.double.set_rate_limit(limit(0, later - 2000));
    assert_eq!(
        place.get("/user").header("x-ratelimit-remaining"),
        Some("59")
    );
    place.double.hide_rate_limit();
    assert_eq!(place.get("/user").header("x-ratelimit-remaining"), None);
    assert_eq!(place.get("/rate_limit").status, 404);
}

#[test]
fn a_repository_that_was_deleted_or_taken_over_is_not_the_one_that_was_there() {
    let place = Place::new();
    place.open();
    let id = place.double.repo_id(REPO);
    let by_id = format!("/repositories/{id}/pulls");
    assert_eq!(place.get(&by_id).each("number"), [1]);
    place.double.replace_repo(REPO);
    assert_eq!(place.get(&by_id).status, 404);
    assert_ne!(place.get(&place.in_repo("")).json()["id"], id);
    place.double.delete_fork(REPO, 1);
    place.double.delete_user("mona");
    let ghost = place.get(&place.in_repo("/pulls/1")).json();
    assert_eq!(
        (&ghost["head"]["repo"], &ghost["user"]),
        (&Value::Null, &Value::Null)
    );
}

#[test]
fn a_comment_on_an_issue_is_told_from_one_on_a_pull_request_by_its_address() {
    let place = Place::new();
    let issue = place.double.open_issue(REPO, "mona", "Broken", "It is");
    let number = place.open();
    assert_eq!((issue, number), (1, 2), "one sequence");
    for n in [issue, number] {
        place.double.comment(REPO, n, "mona", "hm");
    }
    let pages = place
        .get(&place.in_repo("/issues/comments"))
        .each("html_url");
    assert!(
        pages[0].as_str().unwrap().contains("/issues/1#"),
        "{pages:?}"
    );
    assert!(pages[1].as_str().unwrap().contains("/pull/2#"), "{pages:?}");
    assert!(
        place
            .get(&place.in_repo("/issues/1"))
            .json()
            .get("pull_request")
            .is_none()
    );
    assert!(place.get(&place.in_repo("/issues/2")).json()["pull_request"].is_object());
    assert_eq!(place.get(&place.in_repo("/pulls/1")).status, 404);
}
