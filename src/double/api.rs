//! The endpoints: from a request to an answer over the state.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Value, json};

use super::http::{Request, Response};
use super::state::State;
use crate::clock::{Clock, SystemClock, Timestamp};

/// GitHub refuses longer bodies.
const MAX_BODY_CHARS: usize = 65_536;

/// What an endpoint comes to, before headers.
enum Outcome {
    One(u16, Value),
    List(Vec<Value>),
    Error(u16, &'static str),
}

/// Answers an API request.
pub(super) fn answer(state: &mut State, request: &Request) -> Response {
    let token = request
        .header("authorization")
        .and_then(|value| value.strip_prefix("Bearer "));
    let login = token
        .and_then(|token| state.tokens.get(token))
        .filter(|login| !login.is_empty());
    let login = login.cloned();
    let date = SystemClock
        .now()
        .as_jiff()
        .strftime("%a, %d %b %Y %H:%M:%S GMT")
        .to_string();
    let outcome = match (&login, state.tokens.is_empty()) {
        (None, false) => Outcome::Error(401, "Bad credentials"),
        _ if state.rate.is_some_and(|rate| rate.remaining == 0) => {
            Outcome::Error(403, "API rate limit exceeded for this account.")
        }
        _ => route(state, request, login.as_deref().unwrap_or("nobody")),
    };
    let mut response = match outcome {
        Outcome::One(status, value) => conditional(request, token, status, &value),
        Outcome::List(items) => page(state, request, token, &items),
        Outcome::Error(status, message) => {
            let body = json!({
                "message": message, "documentation_url": "https://docs.github.com/rest",
                "status": status.to_string(),
            });
            Response::new(status, "application/json; charset=utf-8", body.to_string())
        }
    };
    response.headers.push(("Date".to_owned(), date));
    if let Some(rate) = &mut state.rate {
        if response.status != 304 {
            rate.remaining = rate.remaining.saturating_sub(1);
        }
        for (name, value) in [
            ("limit", rate.limit.to_string()),
            ("remaining", rate.remaining.to_string()),
            (
                "used",
                (rate.limit - rate.remaining.min(rate.limit)).to_string(),
            ),
            ("reset", rate.reset.to_string()),
            ("resource", "core".to_owned()),
        ] {
            response
                .headers
                .push((format!("X-RateLimit-{name}"), value));
        }
    }
    response
}

fn route(state: &mut State, request: &Request, login: &str) -> Outcome {
    let parts: Vec<&str> = request
        .path()
        .split('/')
        .filter(|part| !part.is_empty())
        .collect();
    let get = request.method == "GET";
    match parts.as_slice() {
        ["user"] if get => match state.user(login) {
            Some(user) => Outcome::One(200, state.public_user(user)),
            None => NOT_FOUND,
        },
        ["user", id] if get => match state.users.iter().find(|user| user.id.to_string() == *id) {
            Some(user) => Outcome::One(200, state.public_user(user)),
            None => NOT_FOUND,
        },
        ["rate_limit"] if get => rate_limit(state),
        ["repos", owner, name, rest @ ..] => match state.find_repo(&format!("{owner}/{name}")) {
            Some(repo) => in_repo(state, request, login, repo, rest),
            None => NOT_FOUND,
        },
        ["repositories", id, rest @ ..] => {
            match state
                .repos
                .iter()
                .position(|repo| repo.id.to_string() == *id)
            {
                Some(repo) => in_repo(state, request, login, repo, rest),
                None => NOT_FOUND,
            }
        }
        _ => NOT_FOUND,
    }
}

const NOT_FOUND: Outcome = Outcome::Error(404, "Not Found");

fn in_repo(state: &mut State, request: &Request, login: &str, at: usize, rest: &[&str]) -> Outcome {
    let repo = &state.repos[at];
    let number = |text: &str| text.parse::<i64>().ok();
    match (request.method.as_str(), rest) {
        ("GET", []) => Outcome::One(200, state.repo_json(repo)),
        ("GET", ["pulls"]) => Outcome::List(pulls(state, request, at)),
        ("GET", ["pulls", "comments"]) => {
            let mut list: Vec<_> = repo.line_comments.iter().collect();
            sort(request, &mut list, |(comment, _)| {
                (comment.created_at, comment.updated_at)
            });
            Outcome::List(
                list.into_iter()
                    .map(|item| state.line_comment_json(repo, item))
                    .collect(),
            )
        }
        ("GET", ["pulls", n]) => {
            match repo
                .pulls
                .iter()
                .find(|pull| Some(pull.number) == number(n))
            {
                Some(pull) => Outcome::One(200, state.whole_pull_json(repo, pull)),
                None => NOT_FOUND,
            }
        }
        ("GET", ["issues", "comments"]) => {
            let mut list: Vec<_> = repo.comments.iter().collect();
            sort(request, &mut list, |comment| {
                (comment.created_at, comment.updated_at)
            });
            Outcome::List(
                list.into_iter()
                    .map(|item| state.comment_json(repo, item))
                    .collect(),
            )
        }
        ("GET", ["issues", n, "comments"]) => {
            let since = request
                .parameter("since")
                .and_then(|text| text.parse::<Timestamp>().ok());
            let wanted = repo.comments.iter().filter(|comment| {
                Some(comment.number) == number(n)
                    && since.is_none_or(|since| comment.updated_at >= since)
            });
            Outcome::List(
                wanted
                    .map(|comment| state.comment_json(repo, comment))
                    .collect(),
            )
        }
        ("POST", ["issues", n, "comments"]) => match number(n) {
            Some(number) => create_comment(state, request, login, at, number),
            None => NOT_FOUND,
        },
        ("GET", ["issues", "comments", id]) => {
            match repo
                .comments
                .iter()
                .find(|comment| Some(comment.id) == number(id))
            {
                Some(comment) => Outcome::One(200, state.comment_json(repo, comment)),
                None => NOT_FOUND,
            }
        }
        ("POST", ["issues", n, "reactions"]) => {
            let exists = repo.pulls.iter().any(|pull| Some(pull.number) == number(n));
            react(state, request, login, at, &format!("issues/{n}"), exists)
        }
        ("POST", ["issues", "comments", id, "reactions"]) => {
            let exists = repo
                .comments
                .iter()
                .any(|comment| Some(comment.id) == number(id));
            react(
                state,
                request,
                login,
                at,
                &format!("issues/comments/{id}"),
                exists,
            )
        }
        ("POST", ["pulls", "comments", id, "reactions"]) => {
            let exists = repo
                .line_comments
                .iter()
                .any(|(c, _)| Some(c.id) == number(id));
            react(
                state,
                request,
                login,
                at,
                &format!("pulls/comments/{id}"),
                exists,
            )
        }
        _ => NOT_FOUND,
    }
}

fn pulls(state: &State, request: &Request, at: usize) -> Vec<Value> {
    let repo = &state.repos[at];
    let wanted = request
        .parameter("state")
        .unwrap_or_else(|| "open".to_owned());
    let mut list: Vec<_> = repo
        .pulls
        .iter()
        .filter(|pull| wanted == "all" || (wanted == "open") == pull.open)
        .collect();
    sort(request, &mut list, |pull| {
        (pull.created_at, pull.updated_at)
    });
    list.into_iter()
        .map(|pull| state.pull_json(repo, pull))
        .collect()
}

/// Sorts as `sort` and `direction` ask. What was stamped in the same second keeps its order of
/// creation, or the reverse.
fn sort<T>(request: &Request, list: &mut [&T], times: impl Fn(&T) -> (Timestamp, Timestamp)) {
    let by_update = request.parameter("sort").as_deref() == Some("updated");
    list.sort_by_key(|item| {
        let (created, updated) = times(item);
        if by_update { updated } else { created }
    });
    if request.parameter("direction").as_deref() == Some("desc") {
        list.reverse();
    }
}

fn create_comment(
    state: &mut State,
    request: &Request,
    login: &str,
    at: usize,
    number: i64,
) -> Outcome {
    if !state.repos[at]
        .pulls
        .iter()
        .any(|pull| pull.number == number)
    {
        return NOT_FOUND;
    }
    let parsed: Option<Value> = serde_json::from_slice(&request.body).ok();
    let body = parsed
        .as_ref()
        .and_then(|body| body.get("body"))
        .and_then(Value::as_str);
    match body {
        Some(body) if !body.trim().is_empty() && body.chars().count() <= MAX_BODY_CHARS => {
            let name = state.repos[at].name.clone();
            state.comment(&name, number, login, body);
            let repo = &state.repos[at];
            match repo.comments.last() {
                Some(comment) => Outcome::One(201, state.comment_json(repo, comment)),
                None => NOT_FOUND,
            }
        }
        _ => Outcome::Error(422, "Validation Failed"),
    }
}

fn react(
    state: &mut State,
    request: &Request,
    login: &str,
    at: usize,
    on: &str,
    exists: bool,
) -> Outcome {
    const CONTENTS: [&str; 8] = [
        "+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes",
    ];
    if !exists {
        return NOT_FOUND;
    }
    let parsed: Option<Value> = serde_json::from_slice(&request.body).ok();
    let content = parsed
        .as_ref()
        .and_then(|body| body.get("content"))
        .and_then(Value::as_str);
    let Some(content) = content.filter(|content| CONTENTS.contains(content)) else {
        return Outcome::Error(422, "Validation Failed");
    };
    let (reaction, new) = state.react(at, on, login, content);
    let status = if new { 201 } else { 200 };
    Outcome::One(
        status,
        state.reaction_json(&state.repos[at].reactions[reaction]),
    )
}

fn rate_limit(state: &State) -> Outcome {
    let Some(rate) = state.rate else {
        return NOT_FOUND;
    };
    let core = json!({
        "limit": rate.limit, "remaining": rate.remaining, "reset": rate.reset,
        "used": rate.limit.saturating_sub(rate.remaining),
    });
    Outcome::One(
        200,
        json!({ "resources": { "core": core, "search": core }, "rate": core }),
    )
}

/// One page of a list with its `Link` header.
fn page(state: &State, request: &Request, token: Option<&str>, items: &[Value]) -> Response {
    let parameter = |name| {
        request
            .parameter(name)
            .and_then(|text| text.parse::<usize>().ok())
    };
    let per_page = parameter("per_page").unwrap_or(30).clamp(1, 100);
    let page = parameter("page").unwrap_or(1).max(1);
    let last = items.len().div_ceil(per_page).max(1);
    let shown: Vec<&Value> = items
        .iter()
        .skip((page - 1) * per_page)
        .take(per_page)
        .collect();
    let response = conditional(request, token, 200, &json!(shown));
    let mut others: Vec<(String, String)> = url::form_urlencoded::parse(request.query().as_bytes())
        .into_owned()
        .collect();
    others.retain(|(name, _)| name != "page");
    let link = |to: usize, rel: &str| {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query
            .extend_pairs(&others)
            .append_pair("page", &to.to_string());
        format!(
            "<{}{}?{}>; rel=\"{rel}\"",
            state.url,
            request.path(),
            query.finish()
        )
    };
    let mut links = Vec::new();
    if page > 1 {
        links.push(link(page - 1, "prev"));
    }
    if page < last {
        links.push(link(page + 1, "next"));
        links.push(link(last, "last"));
    }
    if page > 1 {
        links.push(link(1, "first"));
    }
    if links.is_empty() {
        response
    } else {
        response.with("Link", links.join(", "))
    }
}

/// The answer, or a 304 when the asker has it. An ETag belongs to the token that got it.
fn conditional(request: &Request, token: Option<&str>, status: u16, value: &Value) -> Response {
    let body = value.to_string();
    let mut hasher = DefaultHasher::new();
    (token, &request.target, &body).hash(&mut hasher);
    let etag = format!("W/\"{:016x}\"", hasher.finish());
    let known = request.method == "GET" && request.header("if-none-match") == Some(etag.as_str());
    let response = if known {
        Response {
            status: 304,
            headers: Vec::new(),
            body: Vec::new(),
        }
    } else {
        Response::new(status, "application/json; charset=utf-8", body)
    };
    if request.method == "GET" {
        response.with("ETag", etag)
    } else {
        response
    }
}
