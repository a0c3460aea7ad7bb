//! Pull requests, and the commits, files and branches behind them.

use serde_json::{Value, json};

use super::super::history::{ChangedFile, Commit, Person};
use super::super::state::{Pull, Repo, State};
use super::joined;

impl State {
    /// A pull request as lists have it.
    pub(in super::super) fn pull_json(&self, repo: &Repo, pull: &Pull) -> Value {
        let closed_at = pull.closed_at.map(|time| time.to_github());
        let json = json!({
            "id": pull.id, "node_id": format!("PR_{}", pull.id), "number": pull.number,
            "state": if pull.is_open() { "open" } else { "closed" }, "locked": false,
            "title": pull.title, "body": pull.body, "user": self.user_json(&pull.author),
            "draft": pull.draft, "labels": self.labels_json(repo, pull), "assignee": null,
            "assignees": [], "requested_reviewers": [], "requested_teams": [], "milestone": null,
            "author_association": self.association(repo, &pull.author), "auto_merge": null,
            "merge_commit_sha": pull.merged.as_ref().map(|merged| merged.commit.as_str()),
            "merged_at": pull.merged.as_ref().and(closed_at.as_deref()), "closed_at": closed_at,
            "created_at": pull.created_at.to_github(), "updated_at": pull.updated_at.to_github(),
            "head": self.head_json(repo, pull),
            "base": self.side_json(repo, &pull.base_ref, &pull.base_sha),
        });
        joined(json, self.pull_addresses(repo, pull))
    }

    fn pull_addresses(&self, repo: &Repo, pull: &Pull) -> Value {
        let api = self.repo_api(repo);
        let url = format!("{api}/pulls/{}", pull.number);
        let issue = format!("{api}/issues/{}", pull.number);
        let web = format!("{}/pull/{}", self.repo_web(repo), pull.number);
        let commits = format!("{url}/commits");
        let statuses = format!("{api}/statuses/{}", pull.head_sha);
        let comments = format!("{issue}/comments");
        let on_lines = format!("{url}/comments");
        let on_line = format!("{api}/pulls/comments{{/number}}");
        json!({
            "url": url, "html_url": web, "issue_url": issue, "diff_url": format!("{web}.diff"),
            "patch_url": format!("{web}.patch"), "comments_url": comments, "commits_url": commits,
            "statuses_url": statuses, "review_comments_url": on_lines,
            "review_comment_url": on_line,
            "_links": {
                "self": { "href": url }, "html": { "href": web }, "issue": { "href": issue },
                "comments": { "href": comments }, "review_comments": { "href": on_lines },
                "review_comment": { "href": on_line }, "commits": { "href": commits },
                "statuses": { "href": statuses },
            },
        })
    }

    fn side_json(&self, repo: &Repo, branch: &str, sha: &str) -> Value {
        json!({
            "label": format!("{}:{branch}", repo.owner()), "ref": branch, "sha": sha,
            "repo": self.repo_json(repo), "user": self.owner_json(repo),
        })
    }

    fn head_json(&self, repo: &Repo, pull: &Pull) -> Value {
        let side = self.side_json(repo, &pull.head_ref, &pull.head_sha);
        if !pull.head_repo_gone {
            return side;
        }
        let label = format!("unknown repository:{}", pull.head_ref);
        joined(side, json!({ "label": label, "repo": null, "user": null }))
    }

    pub(super) fn labels_json(&self, repo: &Repo, pull: &Pull) -> Vec<Value> {
        let api = self.repo_api(repo);
        let label = |(at, name): (usize, &String)| {
            json!({
                "id": at + 1, "node_id": format!("LA_{at}"), "url": format!("{api}/labels/{at}"),
                "name": name, "description": "", "color": "ededed", "default": false,
            })
        };
        pull.labels.iter().enumerate().map(label).collect()
    }

    /// A pull request by itself.
    pub(in super::super) fn whole_pull_json(&self, repo: &Repo, pull: &Pull) -> Value {
        let number = pull.number;
        let comments = repo.comments.iter().filter(|c| c.number == number).count();
        let on_lines = repo.line_comments.iter();
        let on_lines = on_lines.filter(|c| c.number == number).count();
        let merged_by = pull
            .merged
            .as_ref()
            .map(|merged| self.user_json(&merged.by));
        let more = json!({
            "changed_files": pull.size.files, "additions": pull.size.added,
            "deletions": pull.size.deleted, "commits": pull.size.commits, "comments": comments,
            "review_comments": on_lines, "mergeable": pull.is_open().then_some(true),
            "mergeable_state": if pull.is_open() { "clean" } else { "unknown" },
            "merged": pull.merged.is_some(), "merged_by": merged_by,
            "maintainer_can_modify": false,
        });
        joined(self.pull_json(repo, pull), more)
    }

    /// A commit.
    pub(in super::super) fn commit_json(&self, repo: &Repo, commit: &Commit) -> Value {
        let (api, web) = (self.repo_api(repo), self.repo_web(repo));
        let url = |sha: &str| format!("{api}/commits/{sha}");
        let person = |person: &Person| json!({ "name": person.name, "email": person.email, "date": person.date });
        let parents = commit.parents.iter().map(
            |sha| json!({ "sha": sha, "url": url(sha), "html_url": format!("{web}/commit/{sha}") }),
        );
        json!({
            "sha": commit.sha, "node_id": format!("C_{}", commit.sha), "url": url(&commit.sha),
            "html_url": format!("{web}/commit/{}", commit.sha),
            "comments_url": format!("{}/comments", url(&commit.sha)),
            "commit": {
                "message": commit.message, "comment_count": 0,
                "url": format!("{api}/git/commits/{}", commit.sha),
                "author": person(&commit.author), "committer": person(&commit.committer),
                "tree": { "sha": commit.tree, "url": format!("{api}/git/trees/{}", commit.tree) },
            },
            // No account has these addresses.
            "author": null, "committer": null, "parents": parents.collect::<Vec<_>>(),
        })
    }

    /// A file of a change, without its patch.
    pub(in super::super) fn file_json(&self, repo: &Repo, head: &str, file: &ChangedFile) -> Value {
        // Names are bytes; an address takes only some of them.
        let encoded: String = url::form_urlencoded::byte_serialize(file.path.as_bytes()).collect();
        let (api, web) = (self.repo_api(repo), self.repo_web(repo));
        let json = json!({
            "sha": file.blob, "filename": file.path, "status": file.status,
            "additions": file.added, "deletions": file.deleted,
            "changes": file.added + file.deleted,
            "blob_url": format!("{web}/blob/{head}/{encoded}"),
            "raw_url": format!("{web}/raw/{head}/{encoded}"),
            "contents_url": format!("{api}/contents/{encoded}?ref={head}"),
        });
        match &file.old_path {
            Some(old) => joined(json, json!({ "previous_filename": old })),
            None => json,
        }
    }

    /// A branch and the commit at its tip.
    pub(in super::super) fn branch_json(&self, repo: &Repo, name: &str, tip: &Commit) -> Value {
        let url = format!("{}/branches/{name}", self.repo_api(repo));
        json!({
            "name": name, "commit": self.commit_json(repo, tip), "protected": false,
            "protection": { "enabled": false }, "protection_url": format!("{url}/protection"),
            "_links": { "self": url, "html": format!("{}/tree/{name}", self.repo_web(repo)) },
        })
    }
}
