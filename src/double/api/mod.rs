//! The endpoints: from a request to an answer over the state.

mod list;
mod write;

use std::io;

use serde_json::{Value, json};

use super::http::{Request, Response};
use super::state::{Asker, Pull, Repo, State};
use crate::clock::{Clock, SystemClock};

const JSON: &str = "application/json; charset=utf-8";
const DOCUMENTATION: &str = "https://docs.github.com/rest";

/// What an endpoint comes to, before headers.
enum Outcome {
    One(u16, Value),
    List(Vec<Value>),
    /// 204.
    Nothing,
}

/// Why an endpoint refuses.
struct Refusal {
    status: u16,
    message: String,
    /// For 422: which field, and what is wrong with it.
    errors: Option<Value>,
}

impl Refusal {
    fn new(status: u16, message: &str) -> Self {
        Self {
            status,
            message: message.to_owned(),
            errors: None,
        }
    }

    fn not_found() -> Self {
        Self::new(404, "Not Found")
    }

    /// 422 for a field; `code` is one of GitHub's words, such as `missing_field` or `custom`.
    fn invalid(resource: &str, field: &str, code: &str, message: &str) -> Self {
        let mut error = json!({ "resource": resource, "code": code, "field": field });
        if !message.is_empty() {
            error["message"] = message.into();
        }
        Self {
            errors: Some(json!([error])),
            ..Self::new(422, "Validation Failed")
        }
    }

    /// 422 as the endpoints of reviews give it: in words alone.
    fn unprocessable(message: &str) -> Self {
        Self {
            errors: Some(json!([message])),
            ..Self::new(422, "Unprocessable Entity")
        }
    }

    fn response(&self) -> Response {
        let mut body = json!({
            "message": self.message, "documentation_url": DOCUMENTATION,
            "status": self.status.to_string(),
        });
        if let Some(errors) = &self.errors {
            body["errors"] = errors.clone();
        }
        Response::new(self.status, JSON, body.to_string())
    }
}

impl From<io::Error> for Refusal {
    /// Git failed: the story asked for something that its repository does not have.
    fn from(error: io::Error) -> Self {
        Self::new(500, &error.to_string())
    }
}

type Answer = Result<Outcome, Refusal>;

/// The redirect of a repository that has another name now.
pub(super) fn moved(code: u16, location: &str) -> Response {
    let message = match code {
        301 | 308 => "Moved Permanently",
        _ => "Moved Temporarily",
    };
    let body = json!({ "message": message, "url": location, "documentation_url": DOCUMENTATION });
    Response::new(code, JSON, body.to_string()).with("Location", location)
}

/// Answers an API request.
pub(super) fn answer(state: &mut State, request: &Request) -> Response {
    let now = SystemClock.now();
    let asker = state.asker(request);
    if let Some(rate) = &mut state.rate
        && rate.reset <= now.unix()
    {
        rate.remaining = rate.limit;
        rate.reset = now.unix() + 3600;
    }
    let exhausted = state.rate.is_some_and(|rate| rate.remaining == 0);
    // Asking for the limit is free.
    let free = request.path() == "/rate_limit";
    let answer = if asker == Asker::Refused {
        Err(Refusal::new(401, "Bad credentials"))
    } else if exhausted && !free {
        Err(Refusal::new(
            403,
            "API rate limit exceeded for this account.",
        ))
    } else {
        route(state, request, asker.login())
    };
    let response = match answer {
        Ok(Outcome::One(status, value)) => list::conditional(request, &asker, status, &value),
        Ok(Outcome::List(items)) => list::page(state, request, &asker, &items),
        Ok(Outcome::Nothing) => Response::empty(204),
        Err(refusal) => refusal.response(),
    };
    let date = now.as_jiff().strftime("%a, %d %b %Y %H:%M:%S GMT");
    let response = response.with("Date", date.to_string());
    let Some(rate) = &mut state.rate else {
        return response;
    };
    if response.status != 304 && !free {
        rate.remaining = rate.remaining.saturating_sub(1);
    }
    let used = rate.limit.saturating_sub(rate.remaining);
    response
        .with("X-RateLimit-Limit", rate.limit.to_string())
        .with("X-RateLimit-Remaining", rate.remaining.to_string())
        .with("X-RateLimit-Used", used.to_string())
        .with("X-RateLimit-Reset", rate.reset.to_string())
        .with("X-RateLimit-Resource", "core")
}

/// `HEAD` is answered as `GET`; the connection leaves the body out.
fn reads(request: &Request) -> bool {
    matches!(request.method.as_str(), "GET" | "HEAD")
}

fn route(state: &mut State, request: &Request, login: Option<&str>) -> Answer {
    let segments = request.segments();
    let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
    let (repo, rest) = match parts.as_slice() {
        ["repos", owner, name, rest @ ..] => (state.find_repo(&format!("{owner}/{name}")), rest),
        ["repositories", id, rest @ ..] => {
            let has_id = |repo: &Repo| repo.id.to_string() == *id;
            (state.repos.iter().position(has_id), rest)
        }
        parts if reads(request) => return about_accounts(state, login, parts),
        _ => return Err(Refusal::not_found()),
    };
    let at = repo.ok_or_else(Refusal::not_found)?;
    if state.repos[at].private && login.is_none() {
        return Err(Refusal::not_found());
    }
    if reads(request) {
        return read(state, request, at, rest);
    }
    let login = login.ok_or_else(|| Refusal::new(401, "Requires authentication"))?;
    write::write(state, request, login, at, rest)
}

/// What does not belong to a repository.
fn about_accounts(state: &State, login: Option<&str>, parts: &[&str]) -> Answer {
    let user = match parts {
        ["user"] => {
            let login = login.ok_or_else(|| Refusal::new(401, "Requires authentication"))?;
            state.user(login)
        }
        ["user", id] => state.users.iter().find(|user| user.id.to_string() == *id),
        ["users", login] => state.user(login),
        ["rate_limit"] => return rate_limit(state),
        _ => None,
    };
    let user = user.ok_or_else(Refusal::not_found)?;
    Ok(Outcome::One(200, state.public_user(user)))
}

fn rate_limit(state: &State) -> Answer {
    let rate = state
        .rate
        .ok_or_else(|| Refusal::new(404, "Rate limiting is not enabled."))?;
    let core = json!({
        "limit": rate.limit, "remaining": rate.remaining, "reset": rate.reset,
        "used": rate.limit.saturating_sub(rate.remaining),
    });
    Ok(Outcome::One(
        200,
        json!({ "resources": { "core": core, "search": core }, "rate": core }),
    ))
}

/// The reading endpoints of one repository.
fn read(state: &State, request: &Request, at: usize, rest: &[&str]) -> Answer {
    let repo = &state.repos[at];
    let history = state.history(repo);
    let one = |value| Ok(Outcome::One(200, value));
    match rest {
        [] => one(state.repo_json(repo)),
        ["pulls"] => list::pulls(state, request, repo),
        ["pulls", "comments"] => list::line_comments(state, request, repo),
        ["pulls", "comments", id] => {
            let id = id_of(id)?;
            let mut comments = repo.line_comments.iter();
            let comment = comments.find(|comment| comment.id == id);
            one(state.line_comment_json(repo, comment.ok_or_else(Refusal::not_found)?))
        }
        ["pulls", number] => one(state.whole_pull_json(repo, pull(repo, number)?)),
        ["pulls", number, "reviews"] => {
            let number = pull(repo, number)?.number;
            let reviews = repo.reviews.iter().filter(|r| r.number == number);
            let reviews = reviews.map(|review| state.review_json(repo, review));
            Ok(Outcome::List(reviews.collect()))
        }
        ["pulls", number, "commits"] => {
            let pull = pull(repo, number)?;
            let commits = history.commits(&pull.base_sha, &pull.head_sha)?;
            let commits = commits.iter().map(|commit| state.commit_json(repo, commit));
            Ok(Outcome::List(commits.collect()))
        }
        ["pulls", number, "files"] => {
            let pull = pull(repo, number)?;
            let files = history.files(&pull.base_sha, &pull.head_sha)?;
            let file = |file| state.file_json(repo, &pull.head_sha, file);
            Ok(Outcome::List(files.iter().map(file).collect()))
        }
        ["issues", "comments"] => list::comments(state, request, repo),
        ["issues", "comments", id] => {
            let comment = repo.comment(id_of(id)?).ok_or_else(Refusal::not_found)?;
            one(state.comment_json(repo, comment))
        }
        ["issues", number] => {
            let number = id_of(number)?;
            match (repo.pull(number), repo.issue(number)) {
                (Some(pull), _) => one(state.pull_issue_json(repo, pull)),
                (None, Some(issue)) => one(state.issue_json(repo, issue)),
                (None, None) => Err(Refusal::not_found()),
            }
        }
        ["issues", number, "comments"] => list::conversation(state, request, repo, number),
        // A branch may have slashes in its name, escaped or not.
        ["branches", name @ ..] if !name.is_empty() => {
            let name = name.join("/");
            let tip = history
                .tip(&name)
                .map_err(|_| Refusal::new(404, "Branch not found"))?;
            one(state.branch_json(repo, &name, &history.commit(&tip)?))
        }
        _ => Err(Refusal::not_found()),
    }
}

fn id_of(text: &str) -> Result<i64, Refusal> {
    text.parse().map_err(|_| Refusal::not_found())
}

fn pull<'a>(repo: &'a Repo, number: &str) -> Result<&'a Pull, Refusal> {
    repo.pull(id_of(number)?).ok_or_else(Refusal::not_found)
}

/// The number of an issue or pull request that exists.
fn conversation_of(repo: &Repo, number: &str) -> Result<i64, Refusal> {
    let number = id_of(number)?;
    if repo.pull(number).is_some() || repo.issue(number).is_some() {
        Ok(number)
    } else {
        Err(Refusal::not_found())
    }
}
