//! Connections: a thread each, until the double is dropped.

use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::faults::{Action, Faults, Moment, Passage};
use super::http::{Broken, Connection, Extent, Request, Response};
use super::state::State;
use super::{Logged, api, git};

/// Most connections at a time; more are closed at once.
const MOST_CONNECTIONS: usize = 256;

/// How long a connection may be silent, or a peer may take no bytes.
const IDLE: Duration = Duration::from_secs(75);

/// How long the end waits for threads: git may still be writing a pack.
const FAREWELL: Duration = Duration::from_secs(5);

/// What the threads of a double share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) url: String,
    pub(super) faults: Arc<Faults>,
    state: Mutex<State>,
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
pub(super) struct Server {
    pub(super) shared: Arc<Shared>,
    address: SocketAddr,
    open: Arc<Connections>,
    listener: Option<JoinHandle<()>>,
}

impl Server {
    pub(super) fn start(git: &Path) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let url = format!("http://{address}");
        let shared = Arc::new(Shared {
            state: Mutex::new(State::new(&url, git)),
            url,
            faults: Arc::new(Faults::default()),
        });
        let open: Arc<Connections> = Arc::default();
        let thread = {
            let (shared, open) = (Arc::clone(&shared), Arc::clone(&open));
            let thread = thread::Builder::new().name("double".into());
            thread.spawn(move || listen(&listener, &shared, &open))?
        };
        Ok(Self {
            shared,
            address,
            open,
            listener: Some(thread),
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.open.close();
        self.shared.faults.close();
        // Wakes the listener.
        let _ = TcpStream::connect(self.address);
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
        self.open.wait_until_empty(FAREWELL);
    }
}

/// The connections that are open, so that the end can close them.
#[derive(Debug, Default)]
struct Connections {
    table: Mutex<Table>,
    left: Condvar,
}

#[derive(Debug, Default)]
struct Table {
    streams: BTreeMap<u64, TcpStream>,
    next: u64,
    closed: bool,
}

impl Connections {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a connection; `None` when there are too many or the double ends.
    fn admit(self: &Arc<Self>, stream: &TcpStream) -> Option<Guest> {
        let stream = stream.try_clone().ok()?;
        let mut table = self.table();
        if table.closed || table.streams.len() >= MOST_CONNECTIONS {
            return None;
        }
        let id = table.next;
        table.next += 1;
        table.streams.insert(id, stream);
        let open = Arc::clone(self);
        Some(Guest { open, id })
    }

    fn close(&self) {
        let mut table = self.table();
        table.closed = true;
        for stream in table.streams.values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn wait_until_empty(&self, patience: Duration) {
        let waited = self
            .left
            .wait_timeout_while(self.table(), patience, |table| !table.streams.is_empty());
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

/// An admitted connection; dropping it, also in a panic, makes room for another.
#[derive(Debug)]
struct Guest {
    open: Arc<Connections>,
    id: u64,
}

impl Drop for Guest {
    fn drop(&mut self) {
        if let Some(stream) = self.open.table().streams.remove(&self.id) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        self.open.left.notify_all();
    }
}

fn listen(listener: &TcpListener, shared: &Arc<Shared>, open: &Arc<Connections>) {
    for stream in listener.incoming() {
        if open.table().closed {
            return;
        }
        let Ok(stream) = stream else { continue };
        let Some(guest) = open.admit(&stream) else {
            continue;
        };
        let shared = Arc::clone(shared);
        // A connection that can't have a thread is dropped, as a busy server would.
        let thread = thread::Builder::new().name("double-connection".into());
        let _ = thread.spawn(move || {
            serve(&shared, stream);
            drop(guest);
        });
    }
}

/// Answers the requests of one connection. Whatever breaks ends it.
fn serve(shared: &Shared, stream: TcpStream) {
    // Without these a silent or deaf peer would keep its thread for ever.
    let _ = stream.set_read_timeout(Some(IDLE));
    let _ = stream.set_write_timeout(Some(IDLE));
    let _ = stream.set_nodelay(true);
    let mut connection = Connection::new(stream);
    loop {
        let request = match connection.next() {
            Ok(Some(request)) => request,
            Err(Broken::Refused(status, why)) => {
                let _ = connection.send(&Response::new(status, "text/plain", why), Extent::Whole);
                return;
            }
            Ok(None) | Err(Broken::Io) => return,
        };
        let Some((response, extent)) = answer(shared, &request) else {
            return;
        };
        let sent = connection.send(&response, extent).is_ok();
        if !sent || extent == Extent::Half || !request.keeps_alive() {
            return;
        }
    }
}

/// The answer, and how much of it is sent; `None` cuts the connection.
fn answer(shared: &Shared, request: &Request) -> Option<(Response, Extent)> {
    let (method, target) = (request.method.as_str(), request.target.as_str());
    let seq = shared.state().next_seq();
    if shared.faults.pass(method, target, Moment::Before) == Passage::Cut {
        log(shared, request, seq, None);
        return None;
    }
    let fault = shared.faults.take(method, target);
    if let Some(Action::Delay(time)) = fault {
        shared.faults.delay(time);
    }
    if matches!(fault, Some(Action::ResetBefore)) {
        log(shared, request, seq, None);
        return None;
    }
    let response = match fault.as_ref().and_then(|action| instead(shared, action)) {
        Some(response) => response,
        None if git::is_git(request.path()) => git::answer(shared, request),
        None => api::answer(&mut shared.state(), request),
    };
    let response = match &fault {
        Some(Action::StripEtag) => without_etag(response),
        Some(Action::WithHeaders(headers)) => {
            headers.iter().fold(response, |response, (name, value)| {
                response.replacing(name, value)
            })
        }
        _ => response,
    };
    let passage = shared.faults.pass(method, target, Moment::AfterApplied);
    if passage == Passage::Cut || matches!(fault, Some(Action::ResetAfter)) {
        log(shared, request, seq, None);
        return None;
    }
    log(shared, request, seq, Some(&response));
    let extent = match fault {
        _ if method == "HEAD" => Extent::Head,
        Some(Action::TruncateBody) => Extent::Half,
        _ => Extent::Whole,
    };
    Some((response, extent))
}

/// What a fault answers in place of the double.
fn instead(shared: &Shared, action: &Action) -> Option<Response> {
    match action {
        Action::Status {
            code,
            headers,
            body,
        } => {
            let json = body.starts_with(['{', '[']);
            let kind = if json {
                "application/json"
            } else {
                "text/html"
            };
            let response = Response::new(*code, kind, body.as_bytes());
            let with = |response: Response, (name, value): &(String, String)| {
                response.replacing(name, value)
            };
            Some(headers.iter().fold(response, with))
        }
        Action::Redirect { code, location } => {
            let location = match location.strip_prefix('/') {
                Some(path) => format!("{}/{path}", shared.url),
                None => location.clone(),
            };
            Some(api::moved(*code, &location))
        }
        Action::Html => Some(Response::new(200, "text/html", "<!doctype html><p>Sign in")),
        Action::BadJson => Some(Response::new(200, "application/json", "[{\"id\": 1,")),
        Action::Delay(_)
        | Action::ResetBefore
        | Action::ResetAfter
        | Action::TruncateBody
        | Action::StripEtag
        | Action::WithHeaders(_) => None,
    }
}

fn without_etag(mut response: Response) -> Response {
    response
        .headers
        .retain(|(name, _)| !name.eq_ignore_ascii_case("etag"));
    response
}

/// Keeps the request; without a response its connection was cut.
fn log(shared: &Shared, request: &Request, seq: u64, response: Option<&Response>) {
    let text = |bytes: &[u8]| {
        if git::is_git(request.path()) {
            String::new()
        } else {
            String::from_utf8_lossy(bytes).into_owned()
        }
    };
    let headers = request.headers.iter();
    let headers = headers.filter(|(name, _)| name != "authorization").cloned();
    let mut state = shared.state();
    let account = state.asker(request).login().map(str::to_owned);
    state.log.push(Logged {
        seq,
        method: request.method.clone(),
        path: request.path().to_owned(),
        query: request.query().to_owned(),
        if_none_match: request.header("if-none-match").map(str::to_owned),
        headers: headers.collect(),
        account,
        status: response.map_or(0, |response| response.status),
        request_body: text(&request.body),
        response_body: response.map_or_else(String::new, |response| text(&response.body)),
    });
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::super::faults::{Fault, Matcher};
    use super::*;

    #[test]
    fn dropping_the_double_ends_its_threads_whatever_they_are_doing() {
        let server = Server::start(Path::new("git")).unwrap();
        let (address, open) = (server.address, Arc::clone(&server.open));
        let faults = Arc::clone(&server.shared.faults);
        faults.add(Fault {
            matcher: Matcher::get("/slow"),
            times: 1,
            action: Action::Delay(Duration::from_secs(3600)),
        });
        let hold = faults.hold(Matcher::get("/held"), Moment::Before);
        let ask = |path: &str| {
            let mut stream = TcpStream::connect(address).unwrap();
            let head = format!("GET {path} HTTP/1.1\r\n\r\n");
            stream.write_all(head.as_bytes()).unwrap();
            stream
        };
        let idle = TcpStream::connect(address).unwrap();
        let mut streams = vec![ask("/slow"), ask("/held"), idle];
        assert!(hold.wait_until_parked(Duration::from_secs(60)));
        while faults.left() > 0 || open.table().streams.len() < 3 {
            thread::sleep(Duration::from_millis(1));
        }
        // One more has to wait for the state, which is free only some time after the end began.
        let (shared, ending) = (Arc::clone(&server.shared), Arc::clone(&open));
        let (send, locked) = crossbeam_channel::bounded(1);
        let holder = thread::spawn(move || {
            let state = shared.state();
            send.send(()).unwrap();
            while !ending.table().closed {
                thread::sleep(Duration::from_millis(1));
            }
            thread::sleep(Duration::from_millis(100));
            drop(state);
        });
        locked.recv().unwrap();
        streams.push(ask("/busy"));
        while open.table().streams.len() < 4 {
            thread::sleep(Duration::from_millis(1));
        }
        drop(server);
        assert!(open.table().streams.is_empty(), "a thread is left");
        holder.join().unwrap();
        for mut stream in streams {
            let mut answer = String::new();
            let _ = stream.read_to_string(&mut answer);
            assert_eq!(answer, "");
        }
        assert!(TcpStream::connect(address).is_err());
    }

    #[test]
    fn connections_make_room_when_they_end() {
        let server = Server::start(Path::new("git")).unwrap();
        for _ in 0..2 * MOST_CONNECTIONS {
            let mut stream = TcpStream::connect(server.address).unwrap();
            let head = b"GET /rate_limit HTTP/1.1\r\nConnection: close\r\n\r\n";
            stream.write_all(head).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        }
    }
}
