//! GitHub's objects as JSON, with every field that its API description requires.

use serde_json::{Map, Value, json};

use super::state::{Comment, LineComment, Pull, Reaction, Repo, State, User, UserKind};

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
    pub(super) fn user_json(&self, login: &str) -> Value {
        self.user(login)
            .map_or(Value::Null, |user| self.simple_user(user))
    }

    fn simple_user(&self, user: &User) -> Value {
        let url = format!("{}/users/{}", self.url, user.login);
        let mut json = Map::new();
        for name in USER_URLS {
            json.insert(format!("{name}_url"), format!("{url}/{name}").into());
        }
        let kind = match user.kind {
            UserKind::User => "User",
            UserKind::Bot => "Bot",
        };
        let more = json!({
            "id": user.id, "node_id": format!("U_{}", user.id), "login": user.login, "type": kind,
            "avatar_url": format!("{url}/avatar"), "gravatar_id": "", "site_admin": false,
            "url": url, "html_url": format!("{}/{}", self.url, user.login),
        });
        extend(&mut json, more);
        Value::Object(json)
    }

    /// `GET /user`, the view that an account has of itself in public.
    pub(super) fn public_user(&self, user: &User) -> Value {
        let mut json = Map::new();
        extend(&mut json, self.simple_user(user));
        let more = json!({
            "bio": null, "blog": "", "company": null, "email": null, "followers": 0, "following": 0,
            "hireable": null, "location": null, "name": user.login, "public_gists": 0,
            "public_repos": 0, "created_at": "2026-01-01T00:00:00Z",
            "updated_at": "2026-01-01T00:00:00Z", "user_view_type": "public",
        });
        extend(&mut json, more);
        Value::Object(json)
    }

    pub(super) fn repo_json(&self, repo: &Repo) -> Value {
        let api = format!("{}/repos/{}", self.url, repo.name);
        let web = format!("{}/{}", self.url, repo.name);
        let (owner, name) = repo.name.split_once('/').unwrap_or(("", &repo.name));
        let mut json = Map::new();
        for field in REPO_URLS {
            json.insert(format!("{field}_url"), format!("{api}/{field}").into());
        }
        let owner_json = match self.user(owner) {
            Some(user) => self.simple_user(user),
            None => {
                let (login, kind) = (owner.to_owned(), UserKind::User);
                self.simple_user(&User { id: 1, login, kind })
            }
        };
        let open = repo.pulls.iter().filter(|pull| pull.open).count();
        let more = json!({
            "id": repo.id, "node_id": format!("R_{}", repo.id), "name": name, "full_name": repo.name,
            "owner": owner_json, "private": repo.private, "html_url": web, "url": api,
            "description": null, "fork": false, "clone_url": format!("{web}.git"),
            "git_url": format!("{web}.git"), "ssh_url": format!("{web}.git"), "svn_url": web,
            "mirror_url": null, "homepage": null, "language": null, "license": null,
            "default_branch": "main", "forks": 0, "forks_count": 0, "stargazers_count": 0,
            "watchers": 0, "watchers_count": 0, "size": 1, "open_issues": open,
            "open_issues_count": open, "network_count": 0, "subscribers_count": 0,
            "has_issues": true, "has_projects": false, "has_wiki": false, "has_pages": false,
            "has_discussions": false, "has_downloads": false, "archived": false, "disabled": false,
            "pushed_at": "2026-01-01T00:00:00Z", "created_at": "2026-01-01T00:00:00Z",
            "updated_at": "2026-01-01T00:00:00Z",
        });
        extend(&mut json, more);
        Value::Object(json)
    }

    /// A pull request as lists have it.
    pub(super) fn pull_json(&self, repo: &Repo, pull: &Pull) -> Value {
        let api = format!("{}/repos/{}", self.url, repo.name);
        let url = format!("{api}/pulls/{}", pull.number);
        let issue = format!("{api}/issues/{}", pull.number);
        let web = format!("{}/{}/pull/{}", self.url, repo.name, pull.number);
        let statuses = format!("{api}/statuses/{}", pull.head_sha);
        let owner = repo.name.split('/').next().unwrap_or_default();
        let repo_json = self.repo_json(repo);
        let author = self.user_json(&pull.author);
        let side = |branch: &str, sha: &str| {
            json!({
                "label": format!("{owner}:{branch}"), "ref": branch, "sha": sha, "repo": repo_json,
                "user": author,
            })
        };
        let labels: Vec<Value> = pull
            .labels
            .iter()
            .enumerate()
            .map(|(at, name)| {
                json!({
                    "id": at + 1, "node_id": format!("L_{at}"), "url": format!("{api}/labels/{at}"),
                    "name": name, "description": "", "color": "ededed", "default": false,
                })
            })
            .collect();
        let closed_at = (!pull.open).then(|| pull.updated_at.to_github());
        json!({
            "id": pull.id, "node_id": format!("PR_{}", pull.id), "number": pull.number,
            "state": if pull.open { "open" } else { "closed" }, "locked": false,
            "title": pull.title, "body": pull.body, "user": author, "draft": pull.draft,
            "labels": labels, "assignee": null, "milestone": null, "author_association": "CONTRIBUTOR",
            "auto_merge": null, "merge_commit_sha": null, "merged_at": null, "closed_at": closed_at,
            "created_at": pull.created_at.to_github(), "updated_at": pull.updated_at.to_github(),
            "head": side(&pull.head_ref, &pull.head_sha),
            "base": side(&pull.base_ref, &pull.base_sha),
            "url": url, "html_url": web, "issue_url": issue,
            "diff_url": format!("{web}.diff"), "patch_url": format!("{web}.patch"),
            "comments_url": format!("{issue}/comments"), "commits_url": format!("{url}/commits"),
            "review_comments_url": format!("{url}/comments"),
            "review_comment_url": format!("{api}/pulls/comments/1"), "statuses_url": statuses,
            "_links": {
                "self": { "href": url }, "html": { "href": web }, "issue": { "href": issue },
                "comments": { "href": format!("{issue}/comments") },
                "review_comments": { "href": format!("{url}/comments") },
                "review_comment": { "href": format!("{api}/pulls/comments/1") },
                "commits": { "href": format!("{url}/commits") }, "statuses": { "href": statuses },
            },
        })
    }

    /// A pull request by itself.
    pub(super) fn whole_pull_json(&self, repo: &Repo, pull: &Pull) -> Value {
        let mut json = Map::new();
        extend(&mut json, self.pull_json(repo, pull));
        let comments = repo
            .comments
            .iter()
            .filter(|c| c.number == pull.number)
            .count();
        let more = json!({
            "changed_files": pull.size[0], "additions": pull.size[1], "deletions": pull.size[2],
            "commits": pull.size[3], "comments": comments, "review_comments": 0,
            "mergeable": pull.open, "mergeable_state": "clean", "merged": false, "merged_by": null,
            "maintainer_can_modify": false,
        });
        extend(&mut json, more);
        Value::Object(json)
    }

    pub(super) fn comment_json(&self, repo: &Repo, comment: &Comment) -> Value {
        let api = format!("{}/repos/{}", self.url, repo.name);
        let web = format!("{}/{}/pull/{}", self.url, repo.name, comment.number);
        json!({
            "id": comment.id, "node_id": format!("IC_{}", comment.id), "body": comment.body,
            "user": self.user_json(&comment.author), "author_association": "NONE",
            "url": format!("{api}/issues/comments/{}", comment.id),
            "html_url": format!("{web}#issuecomment-{}", comment.id),
            "issue_url": format!("{api}/issues/{}", comment.number),
            "created_at": comment.created_at.to_github(),
            "updated_at": comment.updated_at.to_github(),
        })
    }

    pub(super) fn line_comment_json(
        &self,
        repo: &Repo,
        (comment, place): &(Comment, LineComment),
    ) -> Value {
        let api = format!("{}/repos/{}", self.url, repo.name);
        let url = format!("{api}/pulls/comments/{}", comment.id);
        let pull_url = format!("{api}/pulls/{}", comment.number);
        let web = format!("{}/{}/pull/{}", self.url, repo.name, comment.number);
        let web = format!("{web}#discussion_r{}", comment.id);
        let pull = repo.pulls.iter().find(|pull| pull.number == comment.number);
        let sha = pull.map_or("", |pull| pull.head_sha.as_str());
        json!({
            "id": comment.id, "node_id": format!("RC_{}", comment.id), "body": comment.body,
            "pull_request_review_id": null, "diff_hunk": "@@ -0,0 +1 @@", "path": place.path,
            "line": place.line, "commit_id": sha, "original_commit_id": sha,
            "user": self.user_json(&comment.author), "author_association": "NONE",
            "url": url, "html_url": web, "pull_request_url": pull_url,
            "created_at": comment.created_at.to_github(),
            "updated_at": comment.updated_at.to_github(),
            "_links": {
                "self": { "href": url }, "html": { "href": web },
                "pull_request": { "href": pull_url },
            },
        })
    }

    pub(super) fn reaction_json(&self, reaction: &Reaction) -> Value {
        json!({
            "id": reaction.id, "node_id": format!("RE_{}", reaction.id),
            "user": self.user_json(&reaction.login), "content": reaction.content,
            "created_at": reaction.created_at.to_github(),
        })
    }
}

fn extend(json: &mut Map<String, Value>, more: Value) {
    if let Value::Object(more) = more {
        json.extend(more);
    }
}
