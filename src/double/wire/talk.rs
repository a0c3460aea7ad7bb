//! What people say: issues, comments, reactions, reviews.

use serde_json::{Value, json};

use super::super::state::{Issue, Pull, Reaction, Repo, State};
use super::super::{Comment, LineComment, Review};
use super::joined;

impl State {
    /// An issue that is no pull request.
    pub(in super::super) fn issue_json(&self, repo: &Repo, issue: &Issue) -> Value {
        let web = format!("{}/issues/{}", self.repo_web(repo), issue.number);
        let json = json!({
            "id": issue.id, "node_id": format!("I_{}", issue.id), "title": issue.title,
            "body": issue.body, "user": self.user_json(&issue.author), "state": "open",
            "labels": [], "closed_at": null, "html_url": web,
            "author_association": self.association(repo, &issue.author),
            "created_at": issue.created_at.to_github(), "updated_at": issue.created_at.to_github(),
        });
        joined(json, self.issue_parts(repo, issue.number))
    }

    /// A pull request as the issue that it is too.
    pub(in super::super) fn pull_issue_json(&self, repo: &Repo, pull: &Pull) -> Value {
        let web = format!("{}/pull/{}", self.repo_web(repo), pull.number);
        let url = format!("{}/pulls/{}", self.repo_api(repo), pull.number);
        let closed_at = pull.closed_at.map(|time| time.to_github());
        let merged_at = pull.merged.as_ref().and(closed_at.clone());
        let json = json!({
            "id": pull.id, "node_id": format!("PR_{}", pull.id), "title": pull.title,
            "body": pull.body, "user": self.user_json(&pull.author),
            "state": if pull.is_open() { "open" } else { "closed" }, "draft": pull.draft,
            "labels": self.labels_json(repo, pull), "closed_at": closed_at, "html_url": web,
            "author_association": self.association(repo, &pull.author),
            "created_at": pull.created_at.to_github(), "updated_at": pull.updated_at.to_github(),
            "pull_request": {
                "url": url, "html_url": web, "diff_url": format!("{web}.diff"),
                "patch_url": format!("{web}.patch"), "merged_at": merged_at,
            },
        });
        joined(json, self.issue_parts(repo, pull.number))
    }

    /// What both kinds have alike.
    fn issue_parts(&self, repo: &Repo, number: i64) -> Value {
        let api = self.repo_api(repo);
        let url = format!("{api}/issues/{number}");
        let comments = repo.comments.iter().filter(|c| c.number == number).count();
        json!({
            "number": number, "comments": comments, "locked": false, "assignee": null,
            "milestone": null, "url": url, "repository_url": api,
            "comments_url": format!("{url}/comments"), "events_url": format!("{url}/events"),
            "labels_url": format!("{url}/labels{{/name}}"),
        })
    }

    /// A comment in a conversation.
    pub(in super::super) fn comment_json(&self, repo: &Repo, comment: &Comment) -> Value {
        let api = self.repo_api(repo);
        let kind = if repo.issue(comment.number).is_some() {
            "issues"
        } else {
            "pull"
        };
        let web = format!("{}/{kind}/{}", self.repo_web(repo), comment.number);
        json!({
            "id": comment.id, "node_id": format!("IC_{}", comment.id), "body": comment.body,
            "user": self.user_json(&comment.author),
            "author_association": self.association(repo, &comment.author),
            "performed_via_github_app": null,
            "url": format!("{api}/issues/comments/{}", comment.id),
            "html_url": format!("{web}#issuecomment-{}", comment.id),
            "issue_url": format!("{api}/issues/{}", comment.number),
            "created_at": comment.created_at.to_github(),
            "updated_at": comment.updated_at.to_github(),
        })
    }

    /// A comment on a line.
    pub(in super::super) fn line_comment_json(&self, repo: &Repo, comment: &LineComment) -> Value {
        let api = self.repo_api(repo);
        let url = format!("{api}/pulls/comments/{}", comment.id);
        let pull = format!("{api}/pulls/{}", comment.number);
        let web = format!("{}/pull/{}", self.repo_web(repo), comment.number);
        let web = format!("{web}#discussion_r{}", comment.id);
        json!({
            "id": comment.id, "node_id": format!("PRRC_{}", comment.id), "body": comment.body,
            "pull_request_review_id": comment.review, "diff_hunk": "@@ -0,0 +1 @@",
            "path": comment.path, "line": comment.line, "original_line": comment.line,
            "side": "RIGHT", "commit_id": comment.commit, "original_commit_id": comment.commit,
            "user": self.user_json(&comment.author),
            "author_association": self.association(repo, &comment.author),
            "url": url, "html_url": web, "pull_request_url": pull,
            "created_at": comment.created_at.to_github(),
            "updated_at": comment.updated_at.to_github(),
            "_links": {
                "self": { "href": url }, "html": { "href": web }, "pull_request": { "href": pull },
            },
        })
    }

    /// A reaction.
    pub(in super::super) fn reaction_json(&self, reaction: &Reaction) -> Value {
        json!({
            "id": reaction.id, "node_id": format!("REA_{}", reaction.id),
            "user": self.user_json(&reaction.login), "content": reaction.content,
            "created_at": reaction.created_at.to_github(),
        })
    }

    /// A review.
    pub(in super::super) fn review_json(&self, repo: &Repo, review: &Review) -> Value {
        let pull = format!("{}/pulls/{}", self.repo_api(repo), review.number);
        let web = format!("{}/pull/{}", self.repo_web(repo), review.number);
        let web = format!("{web}#pullrequestreview-{}", review.id);
        json!({
            "id": review.id, "node_id": format!("PRR_{}", review.id), "body": review.body,
            "state": review.state, "user": self.user_json(&review.author),
            "author_association": self.association(repo, &review.author),
            "commit_id": review.commit, "html_url": web, "pull_request_url": pull,
            "submitted_at": review.submitted_at.to_github(),
            "_links": { "html": { "href": web }, "pull_request": { "href": pull } },
        })
    }
}
