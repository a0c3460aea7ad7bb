//! Git over HTTP through `git http-backend` (git-http-backend(1)), and the git calls of the double
//! itself.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;

use super::http::{Request, Response};
use super::server::Shared;

/// Whether the path is one of git's.
pub(super) fn is_git(path: &str) -> bool {
    path.contains(".git/")
}

/// A git command that no configuration of this machine or user changes.
fn command(git: &Path) -> Command {
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
        .env("TZ", "UTC")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs git in the bare repository `bare` and returns what it prints, without white space at its end.
///
/// # Errors
/// With git's own words when it fails.
pub(super) fn run(git: &Path, bare: &Path, args: &[&str]) -> io::Result<String> {
    let output = feed(git, bare, args, b"")?;
    let text = String::from_utf8_lossy(&output);
    Ok(text.trim_end().to_owned())
}

/// The same with `input`, and every byte that it prints.
///
/// # Errors
/// With git's own words when it fails.
pub(super) fn feed(git: &Path, bare: &Path, args: &[&str], input: &[u8]) -> io::Result<Vec<u8>> {
    // Named by GIT_DIR, a directory that is no repository is an error instead of a search upwards,
    // which could find, and change, a repository around it.
    let child = command(git)
        .current_dir(bare)
        .env("GIT_DIR", bare)
        .env("GIT_AUTHOR_NAME", IDENTITY.0)
        .env("GIT_AUTHOR_EMAIL", IDENTITY.1)
        .env("GIT_COMMITTER_NAME", IDENTITY.0)
        .env("GIT_COMMITTER_EMAIL", IDENTITY.1)
        .args(args)
        .spawn()?;
    let output = exchange(child, input)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let words = String::from_utf8_lossy(&output.stderr);
    let args = args.join(" ");
    Err(io::Error::other(format!("git {args}: {}", words.trim())))
}

/// Who makes the double's commits.
pub(super) const IDENTITY: (&str, &str) = ("Mona", "mona@example.org");

/// Writes and reads at the same time: a program may answer before it has read everything.
fn exchange(mut child: Child, input: &[u8]) -> io::Result<Output> {
    let stdin = child.stdin.take();
    thread::scope(|scope| {
        scope.spawn(move || {
            if let Some(mut stdin) = stdin {
                // A program that ends early says why in its own output.
                let _ = stdin.write_all(input);
            }
        });
        child.wait_with_output()
    })
}

/// Serves a repository read-only.
pub(super) fn answer(shared: &Shared, request: &Request) -> Response {
    let no_repository = || Response::new(404, "text/plain", "Repository not found.");
    let path = request.path();
    let Some((name, rest)) = path.trim_start_matches('/').split_once(".git/") else {
        return no_repository();
    };
    let (git, bare) = {
        let state = shared.state();
        let Some(at) = state.find_repo(name) else {
            return no_repository();
        };
        let repo = &state.repos[at];
        if repo.private && state.asker(request).login().is_none() {
            return Response::new(401, "text/plain", "No anonymous access.")
                .with("WWW-Authenticate", "Basic realm=\"GitHub\"");
        }
        (state.git.clone(), repo.bare.clone())
    };
    backend(&git, &bare, rest, request).unwrap_or_else(|error| {
        Response::new(500, "text/plain", format!("git http-backend: {error}"))
    })
}

/// Asks `git http-backend` as a web server does, by CGI (RFC 3875).
fn backend(git: &Path, bare: &Path, rest: &str, request: &Request) -> io::Result<Response> {
    let mut backend = command(git);
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
            backend.env(name, OsStr::new(value));
        }
    }
    let output = exchange(backend.spawn()?, &request.body)?;
    cgi_response(&output.stdout).ok_or_else(|| {
        let words = String::from_utf8_lossy(&output.stderr);
        io::Error::other(words.trim().to_owned())
    })
}

/// A CGI answer: headers with an optional `Status`, an empty line, the body.
fn cgi_response(output: &[u8]) -> Option<Response> {
    let end = output.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
    let mut response = Response::empty(200);
    for line in String::from_utf8_lossy(&output[..end]).lines() {
        let (name, value) = line.split_once(':')?;
        let value = value.trim();
        if name.eq_ignore_ascii_case("status") {
            response.status = value.split(' ').next()?.parse().ok()?;
        } else {
            response = response.with(name, value);
        }
    }
    response.body = output[end + 4..].to_vec();
    Some(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_is_no_repository_is_an_error_and_not_searched_upwards() {
        // This checkout is a repository around it.
        let inside = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let error = run(Path::new("git"), &inside, &["rev-parse", "HEAD"]).unwrap_err();
        assert!(
            error.to_string().contains("not a git repository"),
            "{error}"
        );
    }

    #[test]
    fn the_backends_answer_is_taken_apart() {
        let response =
            cgi_response(b"Status: 404 Not Found\r\nExpires: x\r\n\r\n\r\n\r\n").unwrap();
        assert_eq!(response.status, 404);
        assert_eq!(response.headers, [("Expires".to_owned(), "x".to_owned())]);
        assert_eq!(response.body, b"\r\n\r\n");
        assert!(cgi_response(b"Status: 404").is_none());
        assert!(cgi_response(b"Status: x\r\n\r\n").is_none());
    }
}
