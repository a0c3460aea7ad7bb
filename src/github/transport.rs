//! One exchange over HTTP, and what its failure means for a write.

use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use ureq::http::{Method, Request, Response};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Body, SendBody};
use url::Url;

use super::error::ApiError;
use super::proxy;
use crate::clock::{Stop, Waited};
use crate::config::GithubConfig;
use crate::output;
use crate::secret::Secret;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
pub(super) const TOTAL_TIMEOUT: Duration = Duration::from_secs(30);

/// The largest page of GitHub's is a few MiB.
const BODY_LIMIT: u64 = 32 * 1024 * 1024;

/// What is read of the body of a refusal or a redirect, for its message.
const ERROR_BODY_LIMIT: u64 = 64 * 1024;

const HEADER_LIMIT: usize = 64 * 1024;

const ACCEPT: &str = "application/vnd.github+json";
const API_VERSION: &str = "2022-11-28";
const USER_AGENT: &str = concat!("prwarden/", env!("CARGO_PKG_VERSION"));

/// A request, without what every request carries.
#[derive(Debug, Clone)]
pub(super) struct Call<'a> {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) etag: Option<&'a str>,
    pub(super) body: Option<String>,
}

/// A whole response.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    headers: ureq::http::HeaderMap,
    pub(super) body: Vec<u8>,
}

impl Reply {
    /// A header's value, when it is readable text.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// All readable values of a header that may come more than once.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let values = self.headers.get_all(name).iter();
        values.filter_map(|value| value.to_str().ok())
    }

    #[cfg(test)]
    pub(super) fn of(status: u16, headers: &[(&'static str, &str)]) -> Self {
        let headers = headers.iter().map(|(name, value)| {
            (
                ureq::http::HeaderName::from_static(name),
                value.parse().unwrap(),
            )
        });
        Self {
            status,
            headers: headers.collect(),
            body: Vec::new(),
        }
    }
}

/// Why there is no whole response.
#[derive(Debug)]
pub(super) enum Broken {
    /// No whole request can have reached the server.
    NotSent(String),
    /// The request may have reached the server.
    MaybeSent(String),
    /// The body is larger than the limit.
    TooLarge,
    /// The client can't be set up.
    Setup(ApiError),
}

/// Connections to the configured host, with the token.
#[derive(Debug)]
pub(super) struct Transport {
    token: Secret,
    ca_file: Option<std::path::PathBuf>,
    /// Reads share connections; each write has its own, because a pooled one that the server has
    /// closed meanwhile would leave the write's outcome unknown.
    agents: Mutex<Option<Agents>>,
    api: Url,
    stop: Stop,
}

#[derive(Debug, Clone)]
struct Agents {
    reads: Agent,
    writes: Agent,
    /// Tells the thread that cuts reads that it is still needed.
    in_use: Arc<()>,
}

/// The body of a write, which notes when it begins to be sent. The request's head announces its
/// length, so a server that has not seen its first byte can't have acted on the request.
struct Outgoing<'a> {
    rest: &'a [u8],
    begun: bool,
}

impl Read for Outgoing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.begun = true;
        self.rest.read(buffer)
    }
}

impl Transport {
    pub(super) fn new(config: &GithubConfig, token: Secret, stop: Stop) -> Self {
        Self {
            token,
            ca_file: config.ca_file.clone(),
            agents: Mutex::new(None),
            api: config.api_url.clone(),
            stop,
        }
    }

    /// Sends the call and reads the whole response.
    pub(super) fn exchange(&self, call: &Call<'_>) -> Result<Reply, Broken> {
        let agents = self.agents().map_err(Broken::Setup)?;
        let agent = if call.method == Method::GET {
            &agents.reads
        } else {
            &agents.writes
        };
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(call.url.as_str())
            .header("authorization", format!("Bearer {}", self.token.expose()))
            .header("accept", ACCEPT)
            .header("x-github-api-version", API_VERSION);
        if let Some(etag) = call.etag {
            request = request.header("if-none-match", etag);
        }
        let mut begun = call.body.is_none();
        let sent = match &call.body {
            None => request.body(()).map(|request| agent.run(request)),
            Some(body) => {
                let mut outgoing = Outgoing {
                    rest: body.as_bytes(),
                    begun,
                };
                let sent = request
                    .header("content-type", "application/json")
                    .header("content-length", body.len())
                    .body(SendBody::from_reader(&mut outgoing))
                    .map(|request| agent.run(request));
                begun = outgoing.begun;
                sent
            }
        };
        // The builder fails on a token or ETag that can't stand in a header.
        let sent = sent.map_err(|_| {
            Broken::Setup(ApiError::Setup(
                "the token has characters that no token has; check what it is read from".to_owned(),
            ))
        })?;
        sent.map_err(|error| broken(&error, begun)).and_then(read)
    }

    /// Made at the first request: reading the system's certificates takes longer than everything else
    /// at start-up.
    fn agents(&self) -> Result<Agents, ApiError> {
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(agents) = &*agents {
            return Ok(agents.clone());
        }
        let tls = if self.api.scheme() == "https" {
            self.trusted()?
        } else {
            TlsConfig::default()
        };
        let proxy =
            proxy::choose(&self.api, &|name| std::env::var(name).ok()).map_err(ApiError::Setup)?;
        let config = || {
            Agent::config_builder()
                .http_status_as_error(false)
                .max_redirects(0)
                .max_redirects_will_error(false)
                .timeout_connect(Some(CONNECT_TIMEOUT))
                .timeout_global(Some(TOTAL_TIMEOUT))
                .max_response_header_size(HEADER_LIMIT)
                .user_agent(USER_AGENT)
                .proxy(proxy.clone())
                .tls_config(tls.clone())
        };
        let made = Agents {
            reads: config().build().into(),
            writes: config().max_idle_connections(0).build().into(),
            in_use: Arc::new(()),
        };
        cut_reads(&made.reads, &self.stop, Arc::downgrade(&made.in_use));
        Ok(agents.insert(made).clone())
    }

    /// The system's certificates and those of `github.ca_file`.
    fn trusted(&self) -> Result<TlsConfig, ApiError> {
        let loaded = rustls_native_certs::load_native_certs();
        let mut roots: Vec<Certificate<'static>> = loaded
            .certs
            .iter()
            .map(|der| Certificate::from_der(der).to_owned())
            .collect();
        if let Some(file) = &self.ca_file {
            let place = file.display();
            let unusable = |why: String| ApiError::Setup(format!("github.ca_file {place}: {why}"));
            let pem = std::fs::read(file).map_err(|error| unusable(error.to_string()))?;
            let before = roots.len();
            for item in parse_pem(&pem) {
                match item.map_err(|error| unusable(error.to_string()))? {
                    PemItem::Certificate(certificate) => roots.push(certificate),
                    _ => log::warn!("github.ca_file {place} holds more than certificates"),
                }
            }
            if roots.len() == before {
                return Err(unusable("it holds no certificate in PEM form".to_owned()));
            }
        }
        if roots.is_empty() {
            return Err(ApiError::Setup(
                "no trusted certificates: install ca-certificates or set github.ca_file".to_owned(),
            ));
        }
        Ok(TlsConfig::builder()
            .root_certs(RootCerts::Specific(Arc::new(roots)))
            .build())
    }
}

/// Ends reads in flight when the program stops, so that a server that hangs can't hold it up. A write
/// is left to its time-out: cutting it would leave its outcome unknown.
fn cut_reads(reads: &Agent, stop: &Stop, in_use: Weak<()>) {
    const LOOK: Duration = Duration::from_secs(60);
    let (reads, stop) = (reads.clone(), stop.clone());
    let watch = move || {
        while stop.wait(LOOK) == Waited::Elapsed {
            if in_use.strong_count() == 0 {
                return;
            }
        }
        reads.shutdown();
    };
    let spawned = thread::Builder::new()
        .name("github-stop".to_owned())
        .spawn(watch);
    if let Err(error) = spawned {
        log::debug!("a stop will wait for requests in flight: {error}");
    }
}

/// Reads the body. One that says why a request was refused may be cut or too long, the status is what
/// counts.
fn read(mut response: Response<Body>) -> Result<Reply, Broken> {
    let wanted = response.status().is_success();
    let limit = if wanted { BODY_LIMIT } else { ERROR_BODY_LIMIT };
    let body = response.body_mut().with_config().limit(limit).read_to_vec();
    let body = match body {
        Ok(body) => body,
        Err(_) if !wanted => Vec::new(),
        Err(ureq::Error::BodyExceedsLimit(_)) => return Err(Broken::TooLarge),
        Err(error) => return Err(Broken::MaybeSent(output::clip(&error.to_string()))),
    };
    let (parts, _) = response.into_parts();
    Ok(Reply {
        status: parts.status.as_u16(),
        headers: parts.headers,
        body,
    })
}

/// Whether the server can have seen the whole request; `begun` says that the last part of it was
/// begun to be sent.
fn broken(error: &ureq::Error, begun: bool) -> Broken {
    let mut text = output::clip(&error.to_string());
    let not_tls =
        matches!(error, ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::InvalidData);
    if not_tls || matches!(error, ureq::Error::Rustls(_) | ureq::Error::Tls(_)) {
        text.push_str(" (TLS: check github.api_url, and github.ca_file for a private authority)");
    }
    if begun {
        Broken::MaybeSent(text)
    } else {
        Broken::NotSent(text)
    }
}

/// The most that is read of a body.
pub(super) const LIMIT: u64 = BODY_LIMIT;
