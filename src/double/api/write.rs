//! The endpoints that change something. What is written belongs to the token's account.

use serde_json::Value;

use super::super::acts::NewLineComment;
use super::super::http::Request;
use super::super::state::State;
use super::{Answer, Outcome, Refusal, conversation_of, id_of, pull};

/// GitHub refuses longer bodies.
const MOST_CHARACTERS: usize = 65_536;

/// What a reaction can be.
const REACTIONS: [&str; 8] = [
    "+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes",
];

/// Answers a request that writes into the repository at `at`.
pub(super) fn write(
    state: &mut State,
    request: &Request,
    login: &str,
    at: usize,
    rest: &[&str],
) -> Answer {
    match (request.method.as_str(), rest) {
        ("POST", ["issues", number, "comments"]) => create(state, request, login, at, number),
        ("PATCH", ["issues", "comments", id]) => {
            let id = own_comment(state, login, at, id)?;
            let body = text(&parsed(request)?).map_err(Flaw::of_comment)?;
            let name = state.repos[at].name.clone();
            state.edit_comment(&name, id, &body);
            one_comment(state, at, id, 200)
        }
        ("DELETE", ["issues", "comments", id]) => {
            let id = own_comment(state, login, at, id)?;
            let name = state.repos[at].name.clone();
            state.delete_comment(&name, id);
            Ok(Outcome::Nothing)
        }
        ("POST", ["issues", number, "reactions"]) => {
            let number = conversation_of(&state.repos[at], number)?;
            react(state, request, login, at, &format!("issues/{number}"))
        }
        ("POST", ["issues", "comments", id, "reactions"]) => {
            let id = id_of(id)?;
            let comment = state.repos[at].comment(id);
            comment.ok_or_else(Refusal::not_found)?;
            react(state, request, login, at, &format!("issues/comments/{id}"))
        }
        ("POST", ["pulls", "comments", id, "reactions"]) => {
            let id = id_of(id)?;
            let mut comments = state.repos[at].line_comments.iter();
            let comment = comments.find(|comment| comment.id == id);
            comment.ok_or_else(Refusal::not_found)?;
            react(state, request, login, at, &format!("pulls/comments/{id}"))
        }
        ("POST", ["pulls", number, "reviews"]) => review(state, request, login, at, number),
        _ => Err(Refusal::not_found()),
    }
}

fn create(state: &mut State, request: &Request, login: &str, at: usize, number: &str) -> Answer {
    let number = conversation_of(&state.repos[at], number)?;
    let body = text(&parsed(request)?).map_err(Flaw::of_comment)?;
    let name = state.repos[at].name.clone();
    let id = state.comment(&name, number, login, &body);
    one_comment(state, at, id, 201)
}

fn one_comment(state: &State, at: usize, id: i64, status: u16) -> Answer {
    let repo = &state.repos[at];
    let comment = repo.comment(id).ok_or_else(Refusal::not_found)?;
    Ok(Outcome::One(status, state.comment_json(repo, comment)))
}

/// The id of a comment that the account may change: one of its own. The double's tokens have no
/// write access to a repository, which others' comments would need.
fn own_comment(state: &State, login: &str, at: usize, id: &str) -> Result<i64, Refusal> {
    let comment = state.repos[at].comment(id_of(id)?);
    let comment = comment.ok_or_else(Refusal::not_found)?;
    if comment.author.eq_ignore_ascii_case(login) {
        Ok(comment.id)
    } else {
        Err(Refusal::new(403, "Must have admin rights to Repository."))
    }
}

/// The request's body, which must be a JSON object.
fn parsed(request: &Request) -> Result<Value, Refusal> {
    match serde_json::from_slice(&request.body) {
        Ok(Value::Object(fields)) => Ok(Value::Object(fields)),
        Ok(_) => Err(Refusal::new(400, "Body should be a JSON object")),
        Err(_) => Err(Refusal::new(400, "Problems parsing JSON")),
    }
}

/// What is wrong with a text: GitHub's code for it, and words.
struct Flaw(&'static str, String);

impl Flaw {
    fn of_comment(self) -> Refusal {
        Refusal::invalid("IssueComment", "body", self.0, &self.1)
    }

    fn of_review(self) -> Refusal {
        Refusal::unprocessable(&self.1)
    }
}

/// The field `body`, which must hold some text, but not too much.
fn text(fields: &Value) -> Result<String, Flaw> {
    let body = match fields.get("body") {
        Some(Value::String(body)) => body,
        Some(Value::Null) | None => {
            return Err(Flaw("missing_field", "Body is missing".to_owned()));
        }
        Some(_) => return Err(Flaw("invalid", "Body is not a string".to_owned())),
    };
    if body.trim().is_empty() {
        return Err(Flaw("custom", "Body can't be blank".to_owned()));
    }
    if body.chars().count() > MOST_CHARACTERS {
        let message = format!("Body is too long (maximum is {MOST_CHARACTERS} characters)");
        return Err(Flaw("custom", message));
    }
    Ok(body.clone())
}

fn react(state: &mut State, request: &Request, login: &str, at: usize, on: &str) -> Answer {
    let fields = parsed(request)?;
    let content = fields.get("content").and_then(Value::as_str);
    let Some(content) = content.filter(|content| REACTIONS.contains(content)) else {
        return Err(Refusal::invalid("Reaction", "content", "invalid", ""));
    };
    let (reaction, new) = state.react(at, on, login, content);
    let reaction = state.reaction_json(&state.repos[at].reactions[reaction]);
    Ok(Outcome::One(if new { 201 } else { 200 }, reaction))
}

/// A comment on a line as a review brings it.
struct Remark {
    path: String,
    line: u32,
    body: String,
}

fn review(state: &mut State, request: &Request, login: &str, at: usize, number: &str) -> Answer {
    let number = pull(&state.repos[at], number)?.number;
    let fields = parsed(request)?;
    let event = match fields.get("event").and_then(Value::as_str) {
        None | Some("") => "PENDING",
        Some("APPROVE") => "APPROVED",
        Some("REQUEST_CHANGES") => "CHANGES_REQUESTED",
        Some("COMMENT") => "COMMENTED",
        Some(_) => return Err(Refusal::unprocessable("Event is unknown")),
    };
    let remarks = remarks(state, at, number, &fields)?;
    // An approval, a draft and a bundle of remarks can do without words of their own.
    let optional = matches!(event, "APPROVED" | "PENDING") || !remarks.is_empty();
    let blank = fields
        .get("body")
        .is_none_or(|body| body.as_str().is_some_and(|text| text.trim().is_empty()));
    let body = if optional && blank {
        String::new()
    } else {
        text(&fields).map_err(Flaw::of_review)?
    };
    let name = state.repos[at].name.clone();
    let id = state.review(&name, number, login, &body, event);
    for remark in &remarks {
        let new = NewLineComment {
            number,
            author: login,
            path: &remark.path,
            line: remark.line,
            body: &remark.body,
            review: Some(id),
        };
        state.line_comment(&name, new);
    }
    let repo = &state.repos[at];
    let review = repo.reviews.iter().find(|review| review.id == id);
    let review = review.ok_or_else(Refusal::not_found)?;
    Ok(Outcome::One(200, state.review_json(repo, review)))
}

/// Reads `comments`. One that is not on a line of the diff makes GitHub refuse the whole review.
fn remarks(state: &State, at: usize, number: i64, fields: &Value) -> Result<Vec<Remark>, Refusal> {
    let invalid = Refusal::unprocessable;
    let given = match fields.get("comments") {
        None => return Ok(Vec::new()),
        Some(Value::Array(given)) => given,
        Some(_) => return Err(invalid("Comments are not a list")),
    };
    let repo = &state.repos[at];
    let pull = repo.pull(number).ok_or_else(Refusal::not_found)?;
    let remark = |comment: &Value| {
        let path = comment.get("path").and_then(Value::as_str);
        let path = path.ok_or_else(|| invalid("Path could not be resolved"))?;
        let line = comment.get("line").and_then(Value::as_u64).unwrap_or(0);
        let (base, head) = (&pull.base_sha, &pull.head_sha);
        let inside = state
            .history(repo)
            .line_is_in_diff(base, head, path, line)?;
        match u32::try_from(line) {
            Ok(line) if inside => Ok(Remark {
                path: path.to_owned(),
                line,
                body: text(comment).map_err(Flaw::of_review)?,
            }),
            _ => Err(invalid("Line could not be resolved")),
        }
    };
    given.iter().map(remark).collect()
}
