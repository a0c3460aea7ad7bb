//! Git over HTTP through `git http-backend` (git-http-backend(1)), and the git calls of the double
//! itself.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Shared;
use super::http::{Request, Response};

/// Whether the path is one of git's.
pub(super) fn is_git(path: &str) -> bool {
    path.contains(".git/")
}

/// A git command that no configuration of this machine or user changes.
pub(super) fn command(git: &Path) -> Command {
    let mut command = Command::new(git);
    command.env_clear();
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("LC_ALL", "C")
        .env("TZ", "UTC");
    command
}

/// Runs git in `dir` with `input` and returns what it prints.
///
/// # Errors
/// With git's own words when it fails.
pub(super) fn run(git: &Path, dir: &Path, args: &[&str], input: &[u8]) -> io::Result<String> {
    let mut child = command(git)
        .current_dir(dir)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input)?;
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(io::Error::other(format!("git {}: {words}", args.join(" "))));
    }
    Ok(String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned())
}

/// Serves a repository read-only.
pub(super) fn answer(shared: &Shared, request: &Request) -> Response {
    let path = request.path();
    let Some((name, rest)) = path.trim_start_matches('/').split_once(".git/") else {
        return Response::new(404, "text/plain", "no repository");
    };
    let bare = {
        let state = shared.state();
        let Some(repo) = state
            .repos
            .iter()
            .find(|repo| repo.name.eq_ignore_ascii_case(name))
        else {
            return Response::new(404, "text/plain", "no repository");
        };
        if repo.private && !state.tokens.keys().any(|token| is_basic(request, token)) {
            return Response::new(401, "text/plain", "who are you?")
                .with("WWW-Authenticate", "Basic realm=\"GitHub\"");
        }
        repo.bare.clone()
    };
    cgi(&bare, rest, request).unwrap_or_else(|error| {
        Response::new(500, "text/plain", format!("git http-backend: {error}"))
    })
}

fn is_basic(request: &Request, token: &str) -> bool {
    let wanted = STANDARD.encode(format!("x-access-token:{token}"));
    let given = request
        .header("authorization")
        .and_then(|value| value.split_once(' '));
    given.is_some_and(|(scheme, value)| scheme.eq_ignore_ascii_case("basic") && value == wanted)
}

fn cgi(bare: &Path, rest: &str, request: &Request) -> io::Result<Response> {
    let mut backend = command(Path::new("git"));
    backend
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", bare)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("PATH_INFO", format!("/{rest}"))
        .env("QUERY_STRING", request.query())
        .env("REQUEST_METHOD", &request.method)
        .env("REMOTE_ADDR", "127.0.0.1")
        .env("CONTENT_LENGTH", request.body.len().to_string());
    for (name, header) in [
        ("CONTENT_TYPE", "content-type"),
        ("HTTP_CONTENT_ENCODING", "content-encoding"),
        ("GIT_PROTOCOL", "git-protocol"),
    ] {
        if let Some(value) = request.header(header) {
            backend.env(name, value);
        }
    }
    let mut child = backend
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // The backend may answer before it has read everything.
        let _ = stdin.write_all(&request.body);
    }
    let output = child.wait_with_output()?.stdout;
    let end = output.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    let end = end.ok_or_else(|| io::Error::other("no answer"))?;
    let mut response = Response {
        status: 200,
        headers: Vec::new(),
        body: output[end + 4..].to_vec(),
    };
    for line in String::from_utf8_lossy(&output[..end]).lines() {
        match line.split_once(':') {
            Some(("Status", value)) => {
                let code = value
                    .trim()
                    .split(' ')
                    .next()
                    .and_then(|code| code.parse().ok());
                response.status = code.unwrap_or(500);
            }
            Some((name, value)) => {
                response
                    .headers
                    .push((name.to_owned(), value.trim().to_owned()));
            }
            None => {}
        }
    }
    Ok(response)
}
