//! Lists: what they hold, in which order, page by page; and conditional requests.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Value, json};

use super::super::http::{Request, Response};
use super::super::state::{Asker, Repo, State};
use super::{Answer, JSON, Outcome, Refusal, conversation_of};
use crate::clock::Timestamp;

/// Items of a page when the request does not say, and at most.
const PER_PAGE: usize = 30;
const MOST_PER_PAGE: usize = 100;

/// The pull requests of a repository.
pub(super) fn pulls(state: &State, request: &Request, repo: &Repo) -> Answer {
    let words = |name, words| choice(request, "PullRequest", name, words);
    let wanted = words("state", &["open", "closed", "all"])?.unwrap_or("open");
    let sort = words(
        "sort",
        &["created", "updated", "popularity", "long-running"],
    )?;
    let direction = words("direction", &["asc", "desc"])?;
    let (base, head) = (request.parameter("base"), request.parameter("head"));
    let owner = repo.owner();
    let pulls = repo.pulls.iter().filter(|pull| {
        (wanted == "all" || (wanted == "open") == pull.is_open())
            && base.as_ref().is_none_or(|base| *base == pull.base_ref)
            && head
                .as_ref()
                .is_none_or(|head| *head == format!("{owner}:{}", pull.head_ref))
    });
    let newest_first = sort.is_none_or(|sort| sort == "created");
    let order = Order {
        by_update: sort == Some("updated"),
        descending: direction.map_or(newest_first, |direction| direction == "desc"),
    };
    let pulls = order.apply(pulls, |pull| (pull.created_at, pull.updated_at));
    let pulls = pulls.iter().map(|pull| state.pull_json(repo, pull));
    Ok(Outcome::List(pulls.collect()))
}

/// The comments in all conversations of a repository.
pub(super) fn comments(state: &State, request: &Request, repo: &Repo) -> Answer {
    let since = since(request)?;
    let order = Order::of_comments(request)?;
    let comments = repo.comments.iter().filter(|c| c.updated_at >= since);
    let comments = order.apply(comments, |comment| (comment.created_at, comment.updated_at));
    let comments = comments.iter().map(|c| state.comment_json(repo, c));
    Ok(Outcome::List(comments.collect()))
}

/// The comments on all lines of a repository's pull requests.
pub(super) fn line_comments(state: &State, request: &Request, repo: &Repo) -> Answer {
    let since = since(request)?;
    let order = Order::of_comments(request)?;
    let comments = repo.line_comments.iter().filter(|c| c.updated_at >= since);
    let comments = order.apply(comments, |comment| (comment.created_at, comment.updated_at));
    let comments = comments.iter().map(|c| state.line_comment_json(repo, c));
    Ok(Outcome::List(comments.collect()))
}

/// The comments in one conversation, by ascending id.
pub(super) fn conversation(state: &State, request: &Request, repo: &Repo, number: &str) -> Answer {
    let number = conversation_of(repo, number)?;
    let since = since(request)?;
    let wanted = repo
        .comments
        .iter()
        .filter(|comment| comment.number == number && comment.updated_at >= since);
    let comments = wanted.map(|comment| state.comment_json(repo, comment));
    Ok(Outcome::List(comments.collect()))
}

/// A parameter that is one of a few words; GitHub refuses others.
fn choice<'a>(
    request: &Request,
    resource: &str,
    name: &str,
    words: &[&'a str],
) -> Result<Option<&'a str>, Refusal> {
    let Some(given) = request.parameter(name) else {
        return Ok(None);
    };
    match words.iter().find(|word| **word == given) {
        Some(word) => Ok(Some(word)),
        None => Err(Refusal::invalid(resource, name, "invalid", "")),
    }
}

/// The earliest update that is asked for.
fn since(request: &Request) -> Result<Timestamp, Refusal> {
    match request.parameter("since") {
        Some(text) => text
            .parse()
            .map_err(|_| Refusal::invalid("IssueComment", "since", "invalid", "")),
        None => Ok(Timestamp::EPOCH),
    }
}

/// How a list is sorted.
#[derive(Debug, Clone, Copy)]
struct Order {
    by_update: bool,
    descending: bool,
}

impl Order {
    /// For comments `direction` counts only with `sort`.
    fn of_comments(request: &Request) -> Result<Self, Refusal> {
        let words = |name, words| choice(request, "IssueComment", name, words);
        let sort = words("sort", &["created", "updated", "created_at"])?;
        let direction = words("direction", &["asc", "desc"])?;
        Ok(Self {
            by_update: sort == Some("updated"),
            descending: sort.is_some() && direction == Some("desc"),
        })
    }

    /// Sorts. What was stamped in the same second keeps its order of creation, or the reverse.
    fn apply<T>(
        self,
        items: impl Iterator<Item = T>,
        times: impl Fn(&T) -> (Timestamp, Timestamp),
    ) -> Vec<T> {
        let mut items: Vec<T> = items.collect();
        items.sort_by_key(|item| {
            let (created, updated) = times(item);
            if self.by_update { updated } else { created }
        });
        if self.descending {
            items.reverse();
        }
        items
    }
}

/// One page of a list with its `Link` header.
pub(super) fn page(state: &State, request: &Request, asker: &Asker, items: &[Value]) -> Response {
    // What is not a number counts as absent.
    let number = |name| {
        let text = request.parameter(name);
        text.and_then(|text| text.parse::<usize>().ok())
    };
    let per_page = number("per_page").map_or(PER_PAGE, |count| count.clamp(1, MOST_PER_PAGE));
    let page = number("page").unwrap_or(1).max(1);
    let last = items.len().div_ceil(per_page).max(1);
    let start = (page - 1).saturating_mul(per_page);
    let shown: Vec<&Value> = items.iter().skip(start).take(per_page).collect();
    let response = conditional(request, asker, 200, &json!(shown));
    let link = |to: usize, rel: &str| {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        let others = url::form_urlencoded::parse(request.query().as_bytes());
        query.extend_pairs(others.filter(|(name, _)| name != "page"));
        query.append_pair("page", &to.to_string());
        let path = path_by_id(state, request);
        format!("<{}{path}?{}>; rel=\"{rel}\"", state.url, query.finish())
    };
    let mut links = Vec::new();
    if page > 1 {
        links.push(link((page - 1).min(last), "prev"));
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

/// The path as GitHub writes it into `Link`: with the repository's id for its name.
fn path_by_id(state: &State, request: &Request) -> String {
    let path = request.path();
    let by_id = || {
        let mut parts = path.strip_prefix("/repos/")?.splitn(3, '/');
        let name = format!("{}/{}", parts.next()?, parts.next()?);
        let repo = state.find_repo(&name)?;
        let rest = parts.next()?;
        Some(format!("/repositories/{}/{rest}", state.repos[repo].id))
    };
    by_id().unwrap_or_else(|| path.to_owned())
}

/// The answer, or a 304 when the asker has it. An ETag belongs to the token that got it.
pub(super) fn conditional(
    request: &Request,
    asker: &Asker,
    status: u16,
    value: &Value,
) -> Response {
    let body = value.to_string();
    if !super::reads(request) {
        let response = Response::new(status, JSON, body);
        // Where it is from now on.
        return match value.get("url").and_then(Value::as_str) {
            Some(url) if status == 201 => response.with("Location", url),
            _ => response,
        };
    }
    let token = match asker {
        Asker::Account { token, .. } => Some(token),
        Asker::Anonymous | Asker::Refused => None,
    };
    let mut hasher = DefaultHasher::new();
    (token, &request.target, &body).hash(&mut hasher);
    let tag = format!("\"{:016x}\"", hasher.finish());
    let response = if request
        .header("if-none-match")
        .is_some_and(|known| names(known, &tag))
    {
        Response::empty(304)
    } else {
        Response::new(status, JSON, body)
    };
    response.with("ETag", format!("W/{tag}"))
}

/// Whether a list of ETags has this one; strong and weak ones are the same (RFC 9110, section
/// 13.1.2).
fn names(list: &str, tag: &str) -> bool {
    list.split(',')
        .map(str::trim)
        .any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}
