//! HTTP/1.1 messages (RFC 9112) on one connection, as much of it as GitHub's clients and git use.
//!
//! Everything that a peer can make large is bounded, and what is malformed is refused: a double that
//! guesses would hide a client's mistake.

use std::io::{self, Read, Write};

use httparse::Status;

/// Most bytes of a request's head, of a chunk's size line and of trailers.
const HEAD_LIMIT: usize = 64 * 1024;

/// Most bytes of a request's body. Git sends what it has, never what it wants: megabytes at most.
const BODY_LIMIT: usize = 16 * 1024 * 1024;

/// Most headers of a request.
const HEADER_COUNT: usize = 64;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: String,
    /// Path and query as they came.
    pub(super) target: String,
    /// Names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    /// The minor version of HTTP/1.
    version: u8,
}

impl Request {
    /// A header's value, by its name in lower case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(super) fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    pub(super) fn query(&self) -> &str {
        self.target.split_once('?').map_or("", |(_, query)| query)
    }

    /// The parts of the path between slashes, decoded.
    pub(super) fn segments(&self) -> Vec<String> {
        let parts = self.path().split('/').filter(|part| !part.is_empty());
        parts.map(percent_decode).collect()
    }

    /// A parameter of the query.
    pub(super) fn parameter(&self, name: &str) -> Option<String> {
        let mut pairs = url::form_urlencoded::parse(self.query().as_bytes());
        pairs
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.into_owned())
    }

    /// Whether the connection stays open after the answer.
    pub(super) fn keeps_alive(&self) -> bool {
        let says = |word: &str| {
            let value = self.header("connection").unwrap_or_default();
            value
                .split(',')
                .any(|part| part.trim().eq_ignore_ascii_case(word))
        };
        if self.version == 0 {
            says("keep-alive")
        } else {
            !says("close")
        }
    }
}

/// Decodes `%XX`; what is not a valid escape stays as it is.
fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escape = (bytes[at] == b'%')
            .then(|| bytes.get(at + 1..at + 3))
            .flatten()
            .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(escape.unwrap_or(bytes[at]));
        at += if escape.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// An answer.
#[derive(Debug, Clone)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Response {
    pub(super) fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("Content-Type".to_owned(), content_type.to_owned())];
        Self {
            status,
            headers,
            body: body.into(),
        }
    }

    /// An answer without a body, such as 204 and 304.
    pub(super) fn empty(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    pub(super) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Sets a header, whether it was there or not.
    pub(super) fn replacing(mut self, name: &str, value: &str) -> Self {
        self.headers
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.with(name, value)
    }
}

/// How much of an answer's body is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// All of it.
    Whole,
    /// Half of what `Content-Length` promises.
    Half,
    /// None of it: the answer to `HEAD`.
    Head,
}

/// Why no request can be read any more.
#[derive(Debug)]
pub(super) enum Broken {
    /// The connection failed or was cut within a message.
    Io,
    /// The peer sent something else than HTTP, or too much of it; to be told with this status.
    Refused(u16, &'static str),
}

impl From<io::Error> for Broken {
    fn from(_: io::Error) -> Self {
        Self::Io
    }
}

/// One end of a connection.
#[derive(Debug)]
pub(super) struct Connection<S> {
    stream: S,
    /// What was received and not used yet.
    buffer: Vec<u8>,
}

impl<S: Read + Write> Connection<S> {
    pub(super) fn new(stream: S) -> Self {
        let buffer = Vec::new();
        Self { stream, buffer }
    }

    /// Reads the next request; `None` when the peer has closed the connection between two.
    pub(super) fn next(&mut self) -> Result<Option<Request>, Broken> {
        loop {
            if let Some((length, mut request)) = parse_head(&self.buffer)? {
                self.buffer.drain(..length);
                request.body = self.body(&request)?;
                return Ok(Some(request));
            }
            if self.buffer.len() > HEAD_LIMIT {
                return Err(Broken::Refused(431, "the head is too long"));
            }
            if !self.fill()? {
                return if self.buffer.is_empty() {
                    Ok(None)
                } else {
                    Err(Broken::Io)
                };
            }
        }
    }

    fn body(&mut self, request: &Request) -> Result<Vec<u8>, Broken> {
        let coding = request.header("transfer-encoding");
        let length = content_length(request)?;
        if let Some(length) = length
            && length > BODY_LIMIT
        {
            return Err(Broken::Refused(413, "the body is too long"));
        }
        let awaits = request
            .header("expect")
            .is_some_and(|value| value.eq_ignore_ascii_case("100-continue"));
        if awaits && self.buffer.is_empty() {
            self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        match (coding, length) {
            (Some(_), Some(_)) => Err(Broken::Refused(400, "a body with two lengths")),
            (Some(coding), None) if coding.eq_ignore_ascii_case("chunked") => self.chunks(),
            (Some(_), None) => Err(Broken::Refused(501, "an unknown transfer coding")),
            (None, length) => self.take(length.unwrap_or(0)),
        }
    }

    fn chunks(&mut self) -> Result<Vec<u8>, Broken> {
        let mut body = Vec::new();
        loop {
            let length = self.chunk_size()?;
            if length == 0 {
                // Trailers, which nobody reads, up to an empty line.
                while !self.line()?.is_empty() {}
                return Ok(body);
            }
            if length > BODY_LIMIT - body.len() {
                return Err(Broken::Refused(413, "the body is too long"));
            }
            body.extend(self.take(length)?);
            if self.take(2)? != b"\r\n" {
                return Err(Broken::Refused(400, "a chunk of another size than it says"));
            }
        }
    }

    fn chunk_size(&mut self) -> Result<usize, Broken> {
        loop {
            match httparse::parse_chunk_size(&self.buffer) {
                // The parser takes a line without digits for zero.
                Ok(Status::Complete((skip, length))) if self.buffer[0].is_ascii_hexdigit() => {
                    self.buffer.drain(..skip);
                    return Ok(usize::try_from(length).unwrap_or(usize::MAX));
                }
                Ok(Status::Partial) if self.buffer.len() <= HEAD_LIMIT => self.more()?,
                _ => return Err(Broken::Refused(400, "a chunk without a size")),
            }
        }
    }

    /// One line without its end.
    fn line(&mut self) -> Result<Vec<u8>, Broken> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|pair| pair == b"\r\n") {
                let mut line: Vec<u8> = self.buffer.drain(..end + 2).collect();
                line.truncate(end);
                return Ok(line);
            }
            if self.buffer.len() > HEAD_LIMIT {
                return Err(Broken::Refused(431, "the trailers are too long"));
            }
            self.more()?;
        }
    }

    /// Exactly `length` bytes.
    fn take(&mut self, length: usize) -> Result<Vec<u8>, Broken> {
        while self.buffer.len() < length {
            self.more()?;
        }
        Ok(self.buffer.drain(..length).collect())
    }

    /// Receives something; it is an error when nothing comes any more.
    fn more(&mut self) -> Result<(), Broken> {
        if self.fill()? {
            Ok(())
        } else {
            Err(Broken::Io)
        }
    }

    /// Receives what is there; false at the end.
    fn fill(&mut self) -> io::Result<bool> {
        let mut piece = [0; 16 * 1024];
        let count = self.stream.read(&mut piece)?;
        self.buffer.extend_from_slice(&piece[..count]);
        Ok(count > 0)
    }

    /// Sends an answer.
    pub(super) fn send(&mut self, response: &Response, extent: Extent) -> io::Result<()> {
        let mut head = format!(
            "HTTP/1.1 {} {}\r\n",
            response.status,
            reason(response.status)
        );
        for (name, value) in &response.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let bodiless = matches!(response.status, 204 | 304);
        if !bodiless {
            head.push_str(&format!("Content-Length: {}\r\n", response.body.len()));
        }
        head.push_str("\r\n");
        let end = match extent {
            _ if bodiless => 0,
            Extent::Whole => response.body.len(),
            Extent::Half => response.body.len() / 2,
            Extent::Head => 0,
        };
        // One write: two would wait for each other's acknowledgement.
        let mut message = head.into_bytes();
        message.extend_from_slice(&response.body[..end]);
        self.stream.write_all(&message)?;
        self.stream.flush()
    }
}

/// The head at the start of `buffer` and its length; `None` while it is incomplete.
fn parse_head(buffer: &[u8]) -> Result<Option<(usize, Request)>, Broken> {
    let mut headers = [httparse::EMPTY_HEADER; HEADER_COUNT];
    let mut parsed = httparse::Request::new(&mut headers);
    let length = match parsed.parse(buffer) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => {
            return Err(Broken::Refused(431, "too many headers"));
        }
        Err(_) => return Err(Broken::Refused(400, "not a request")),
    };
    let headers = parsed.headers.iter().map(|header| {
        let value = String::from_utf8_lossy(header.value).into_owned();
        (header.name.to_ascii_lowercase(), value)
    });
    let request = Request {
        method: parsed.method.unwrap_or_default().to_owned(),
        target: parsed.path.unwrap_or_default().to_owned(),
        headers: headers.collect(),
        body: Vec::new(),
        version: parsed.version.unwrap_or(1),
    };
    Ok(Some((length, request)))
}

fn content_length(request: &Request) -> Result<Option<usize>, Broken> {
    let mut values = request
        .headers
        .iter()
        .filter(|(name, _)| name == "content-length");
    let Some((_, text)) = values.next() else {
        return Ok(None);
    };
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || values.any(|(_, other)| other != text) {
        return Err(Broken::Refused(400, "a content length that is none"));
    }
    // Digits that are no number are a number beyond every limit.
    Ok(Some(text.parse().unwrap_or(usize::MAX)))
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        422 => "Unprocessable Entity",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        // A reason may be empty (RFC 9112, section 4).
        _ => "",
    }
}

#[cfg(test)]
mod tests;
