//! Connections: a thread each, until the double is dropped.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use super::faults::{Action, Faults, Moment};
use super::http::{self, Request, Response};
use super::state::State;
use super::{Logged, Shared, api, git};

#[derive(Debug)]
pub(super) struct Server {
    pub(super) shared: Arc<Shared>,
    address: SocketAddr,
    closing: Arc<AtomicBool>,
    connections: Arc<Mutex<Vec<TcpStream>>>,
    listener: Option<JoinHandle<()>>,
}

impl Server {
    pub(super) fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let url = format!("http://{address}");
        let shared = Arc::new(Shared {
            state: Mutex::new(State::new(&url)),
            url,
            faults: Arc::new(Faults::default()),
        });
        let closing = Arc::new(AtomicBool::new(false));
        let connections: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let thread = {
            let (shared, closing) = (Arc::clone(&shared), Arc::clone(&closing));
            let connections = Arc::clone(&connections);
            thread::Builder::new()
                .name("double".into())
                .spawn(move || {
                    for stream in listener.incoming() {
                        if closing.load(Ordering::SeqCst) {
                            return;
                        }
                        let Ok(stream) = stream else { continue };
                        if let Ok(copy) = stream.try_clone() {
                            connections
                                .lock()
                                .unwrap_or_else(PoisonError::into_inner)
                                .push(copy);
                        }
                        let shared = Arc::clone(&shared);
                        // A connection that can't have a thread is dropped, as a busy server would.
                        let _ = thread::Builder::new().spawn(move || serve(&shared, stream));
                    }
                })?
        };
        Ok(Self {
            shared,
            address,
            closing,
            connections,
            listener: Some(thread),
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::SeqCst);
        self.shared.faults.close();
        // Wakes the listener.
        let _ = TcpStream::connect(self.address);
        for stream in self
            .connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .drain(..)
        {
            let _ = stream.shutdown(Shutdown::Both);
        }
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
    }
}

/// Answers the requests of one connection. Whatever breaks ends it.
fn serve(shared: &Shared, mut stream: TcpStream) {
    let mut buffer = Vec::new();
    while let Ok(Some(request)) = http::read(&mut stream, &mut buffer) {
        let cut = match answer(shared, &request) {
            Some((response, cut)) => response.send(&mut stream, cut).is_err() || cut,
            None => true,
        };
        if cut
            || request
                .header("connection")
                .is_some_and(|value| value.eq_ignore_ascii_case("close"))
        {
            break;
        }
    }
    let _ = stream.shutdown(Shutdown::Both);
}

/// The answer, and whether its body is to be cut; `None` cuts the connection.
fn answer(shared: &Shared, request: &Request) -> Option<(Response, bool)> {
    let (method, target) = (request.method.as_str(), request.target.as_str());
    shared.faults.pass(method, target, Moment::Before);
    let fault = shared.faults.take(method, target);
    let instead = match &fault {
        Some(Action::Status {
            code,
            headers,
            body,
        }) => {
            let json = body.starts_with('{') || body.starts_with('[');
            let kind = if json {
                "application/json"
            } else {
                "text/html"
            };
            let response = Response::new(*code, kind, body.as_bytes());
            Some(headers.iter().fold(response, |response, (name, value)| {
                response.with(name, value)
            }))
        }
        Some(Action::Html) => Some(Response::new(200, "text/html", "<!doctype html><p>Sign in")),
        Some(Action::BadJson) => Some(Response::new(200, "application/json", "[{\"id\": 1,")),
        Some(Action::ResetBefore) => {
            log(shared, request, 0, "");
            return None;
        }
        Some(Action::Delay(time)) => {
            thread::sleep(*time);
            None
        }
        _ => None,
    };
    let is_git = git::is_git(request.path());
    let mut response = match instead {
        Some(response) => response,
        None if is_git => git::answer(shared, request),
        None => api::answer(&mut shared.state(), request),
    };
    if matches!(fault, Some(Action::StripEtag)) {
        response
            .headers
            .retain(|(name, _)| !name.eq_ignore_ascii_case("etag"));
    }
    shared.faults.pass(method, target, Moment::AfterApplied);
    if matches!(fault, Some(Action::ResetAfter)) {
        log(shared, request, 0, "");
        return None;
    }
    let body = if is_git {
        String::new()
    } else {
        String::from_utf8_lossy(&response.body).into()
    };
    log(shared, request, response.status, &body);
    Some((response, matches!(fault, Some(Action::TruncateBody))))
}

fn log(shared: &Shared, request: &Request, status: u16, response_body: &str) {
    let is_git = git::is_git(request.path());
    let body = if is_git {
        String::new()
    } else {
        String::from_utf8_lossy(&request.body).into()
    };
    shared.state().log.push(Logged {
        method: request.method.clone(),
        path: request.path().to_owned(),
        query: request.query().to_owned(),
        if_none_match: request.header("if-none-match").map(str::to_owned),
        status,
        request_body: body,
        response_body: response_body.to_owned(),
    });
}
