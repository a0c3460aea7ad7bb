//! What accounts write through the API.

use serde_json::json;

use crate::support::{BOT, Place, REPO};

#[test]
fn comments_through_the_api_belong_to_the_tokens_account_which_may_change_only_its_own() {
    let place = Place::new();
    let number = place.open();
    let theirs = place.double.comment(REPO, number, "mona", "mine");
    let made = place.send(
        "POST",
        &place.in_repo("/issues/1/comments"),
        &json!({ "body": "hello" }),
    );
    assert_eq!(made.status, 201);
    let id = made.json()["id"].as_i64().unwrap();
    assert_eq!(made.json()["user"]["login"], BOT);
    assert_eq!(made.header("location"), made.json()["url"].as_str());

    let own = place.in_repo(&format!("/issues/comments/{id}"));
    let edited = place.send("PATCH", &own, &json!({ "body": "hello again" }));
    assert_eq!(
        (edited.status, &edited.json()["body"]),
        (200, &json!("hello again"))
    );
    let other = place.in_repo(&format!("/issues/comments/{theirs}"));
    assert_eq!(
        place.send("PATCH", &other, &json!({ "body": "x" })).status,
        403
    );
    assert_eq!(place.ask("DELETE", &other, &[], "").unwrap().status, 403);
    let gone = place.ask("DELETE", &own, &[], "").unwrap();
    assert_eq!((gone.status, gone.text.as_str()), (204, ""));
    assert_eq!(place.get(&own).status, 404);
    let left = place.double.comments(REPO, number);
    assert_eq!(
        left.iter().map(|comment| comment.id).collect::<Vec<_>>(),
        [theirs]
    );
}

#[test]
fn a_body_that_github_refuses_is_refused() {
    let place = Place::new();
    place.open();
    let path = place.in_repo("/issues/1/comments");
    let longest = "é".repeat(65_536);
    let cases = [
        (json!({ "body": "" }), 422),
        (json!({ "body": " \n" }), 422),
        (json!({ "body": null }), 422),
        (json!({ "body": 1 }), 422),
        (json!({}), 422),
        (json!(["body"]), 400),
        (json!({ "body": format!("{longest}x") }), 422),
        (json!({ "body": longest }), 201),
    ];
    for (body, status) in cases {
        let reply = place.send("POST", &path, &body);
        assert_eq!(
            reply.status,
            status,
            "{}",
            reply.text.chars().take(200).collect::<String>()
        );
        assert!(status == 201 || reply.json()["message"].is_string());
    }
    assert_eq!(place.ask("POST", &path, &[], "{").unwrap().status, 400);
    assert_eq!(
        place
            .send(
                "POST",
                &place.in_repo("/issues/9/comments"),
                &json!({ "body": "x" })
            )
            .status,
        404
    );
    assert_eq!(place.double.comments(REPO, 1).len(), 1);
}

#[test]
fn a_reaction_is_new_once() {
    let place = Place::new();
    let number = place.open();
    let comment = place.double.comment(REPO, number, "mona", "x");
    let on_line = place
        .double
        .review_comment(REPO, number, "mona", "notes.txt", 10, "y");
    let eyes = json!({ "content": "eyes" });
    for target in [
        format!("/issues/{number}"),
        format!("/issues/comments/{comment}"),
        format!("/pulls/comments/{on_line}"),
    ] {
        let path = place.in_repo(&format!("{target}/reactions"));
        assert_eq!(place.send("POST", &path, &eyes).status, 201, "{target}");
        assert_eq!(place.send("POST", &path, &eyes).status, 200, "{target}");
        assert_eq!(
            place
                .send("POST", &path, &json!({ "content": "+1" }))
                .status,
            201
        );
        assert_eq!(
            place
                .send("POST", &path, &json!({ "content": "wink" }))
                .status,
            422
        );
    }
    let both = [
        (BOT.to_owned(), "eyes".to_owned()),
        (BOT.to_owned(), "+1".to_owned()),
    ];
    assert_eq!(place.double.pull_reactions(REPO, number), both);
    assert_eq!(place.double.comment_reactions(REPO, comment), both);
    assert_eq!(place.double.review_comment_reactions(REPO, on_line), both);
    let nowhere = place.in_repo("/issues/comments/1/reactions");
    assert_eq!(place.send("POST", &nowhere, &eyes).status, 404);
}

#[test]
fn a_review_needs_its_remarks_on_lines_of_the_diff() {
    let place = Place::new();
    let number = place.open();
    let path = place.in_repo("/pulls/1/reviews");
    let review = |line: i64, file: &str| {
        json!({ "event": "COMMENT", "body": "Two words", "comments": [
            { "path": file, "line": line, "side": "RIGHT", "body": "here" },
        ] })
    };
    // Line 10 is changed; three lines of context stand on either side.
    for (line, file, status) in [
        (6, "notes.txt", 422),
        (7, "notes.txt", 200),
        (13, "notes.txt", 200),
        (14, "notes.txt", 422),
        (10, "other.txt", 422),
        (-1, "notes.txt", 422),
    ] {
        let reply = place.send("POST", &path, &review(line, file));
        assert_eq!(reply.status, status, "{line} {file}: {}", reply.text);
    }
    assert_eq!(
        place
            .send("POST", &path, &json!({ "event": "COMMENT" }))
            .status,
        422
    );
    assert_eq!(
        place
            .send("POST", &path, &json!({ "event": "SHOUT", "body": "x" }))
            .status,
        422
    );
    let reviews = place.double.reviews(REPO, number);
    assert_eq!(reviews.len(), 2, "a refused review leaves nothing");
    let remarks = place.double.review_comments(REPO, number);
    assert_eq!(remarks.iter().map(|r| r.line).collect::<Vec<_>>(), [7, 13]);
    assert_eq!(remarks[0].review, Some(reviews[0].id));
    assert_eq!(place.get(&path).each("state"), ["COMMENTED", "COMMENTED"]);
}
