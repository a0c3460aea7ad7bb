//! GitHub's objects as JSON, with every field that its API description requires.

mod pulls;
mod talk;

use serde_json::{Map, Value, json};

use super::UserKind;
use super::state::{Repo, State, User};

/// The fields of a repository that are addresses below its own.
const REPO_URLS: &[&str] = &[
    "archive",
    "assignees",
    "blobs",
    "branches",
    "collaborators",
    "comments",
    "commits",
    "compare",
    "contents",
    "contributors",
    "deployments",
    "downloads",
    "events",
    "forks",
    "git_commits",
    "git_refs",
    "git_tags",
    "hooks",
    "issue_comment",
    "issue_events",
    "issues",
    "keys",
    "labels",
    "languages",
    "merges",
    "milestones",
    "notifications",
    "pulls",
    "releases",
    "stargazers",
    "statuses",
    "subscribers",
    "subscription",
    "tags",
    "teams",
    "trees",
];

/// The fields of an account that are addresses below its own.
const USER_URLS: &[&str] = &[
    "events",
    "followers",
    "following",
    "gists",
    "organizations",
    "received_events",
    "repos",
    "starred",
    "subscriptions",
];

impl State {
    /// An account by its login; null when it is gone.
    fn user_json(&self, login: &str) -> Value {
        self.user(login)
            .map_or(Value::Null, |user| self.simple_user(user))
    }

    fn simple_user(&self, user: &User) -> Value {
        let url = format!("{}/users/{}", self.url, user.login);
        let kind = match user.kind {
            UserKind::User => "User",
            UserKind::Bot => "Bot",
        };
        let json = json!({
            "login": user.login, "id": user.id, "node_id": format!("U_{}", user.id), "type": kind,
            "avatar_url": format!("{url}/avatar"), "gravatar_id": "", "site_admin": false,
            "url": url, "html_url": format!("{}/{}", self.url, user.login),
        });
        joined(json, addresses(&url, USER_URLS))
    }

    /// An account by itself, as everybody sees it.
    pub(super) fn public_user(&self, user: &User) -> Value {
        let more = json!({
            "bio": null, "blog": "", "company": null, "email": null, "followers": 0, "following": 0,
            "hireable": null, "location": null, "name": user.login, "public_gists": 0,
            "public_repos": 0, "created_at": "2026-01-01T00:00:00Z",
            "updated_at": "2026-01-01T00:00:00Z", "user_view_type": "public",
        });
        joined(self.simple_user(user), more)
    }

    /// The account that owns a repository, whether anybody added it or not.
    fn owner_json(&self, repo: &Repo) -> Value {
        match self.user(repo.owner()) {
            Some(user) => self.simple_user(user),
            None => self.simple_user(&User {
                id: 1,
                login: repo.owner().to_owned(),
                kind: UserKind::User,
            }),
        }
    }

    /// What an author is to a repository.
    fn association(&self, repo: &Repo, author: &str) -> &'static str {
        let wrote = |pull: &super::state::Pull| pull.author == author && pull.merged.is_some();
        if repo.owner().eq_ignore_ascii_case(author) {
            "OWNER"
        } else if repo.pulls.iter().any(wrote) {
            "CONTRIBUTOR"
        } else {
            "NONE"
        }
    }

    fn repo_api(&self, repo: &Repo) -> String {
        format!("{}/repos/{}", self.url, repo.name)
    }

    fn repo_web(&self, repo: &Repo) -> String {
        format!("{}/{}", self.url, repo.name)
    }

    pub(super) fn repo_json(&self, repo: &Repo) -> Value {
        let (api, web) = (self.repo_api(repo), self.repo_web(repo));
        let name = repo.name.split('/').next_back().unwrap_or_default();
        let open = repo.pulls.iter().filter(|pull| pull.is_open()).count() + repo.issues.len();
        let created = repo.created_at.to_github();
        let json = json!({
            "id": repo.id, "node_id": format!("R_{}", repo.id), "name": name,
            "full_name": repo.name, "owner": self.owner_json(repo), "private": repo.private,
            "html_url": web, "url": api, "description": null, "fork": false,
            "clone_url": format!("{web}.git"), "git_url": format!("{web}.git"),
            "ssh_url": format!("{web}.git"), "svn_url": web, "mirror_url": null, "homepage": null,
            "language": null, "license": null, "default_branch": repo.default_branch, "forks": 0,
            "forks_count": 0, "stargazers_count": 0, "watchers": 0, "watchers_count": 0, "size": 1,
            "open_issues": open, "open_issues_count": open, "network_count": 0,
            "subscribers_count": 0, "has_issues": true, "has_projects": false, "has_wiki": false,
            "has_pages": false, "has_discussions": false, "has_downloads": false,
            "archived": false, "disabled": false, "pushed_at": created, "created_at": created,
            "updated_at": created,
        });
        joined(json, addresses(&api, REPO_URLS))
    }
}

/// `NAME_url` fields below `base`.
fn addresses(base: &str, names: &[&str]) -> Value {
    let fields = names
        .iter()
        .map(|name| (format!("{name}_url"), format!("{base}/{name}").into()));
    Value::Object(fields.collect::<Map<_, _>>())
}

/// An object with the fields of both.
fn joined(mut json: Value, more: Value) -> Value {
    if let (Value::Object(json), Value::Object(more)) = (&mut json, more) {
        json.extend(more);
    }
    json
}
