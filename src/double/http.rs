//! HTTP/1.1 messages (RFC 9112), as much as a test server needs.

use std::io::{self, Read, Write};

/// The most that is read of a request's head and body.
const HEAD_LIMIT: usize = 64 * 1024;
const BODY_LIMIT: usize = 256 * 1024 * 1024;

/// A request.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) method: String,
    /// Path and query as they came.
    pub(super) target: String,
    headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
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

    /// A parameter of the query.
    pub(super) fn parameter(&self, name: &str) -> Option<String> {
        let mut pairs = url::form_urlencoded::parse(self.query().as_bytes());
        pairs
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.into_owned())
    }
}

/// An answer.
#[derive(Debug)]
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

    pub(super) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Sends it; with `cut`, only half of the promised body.
    pub(super) fn send(&self, stream: &mut impl Write, cut: bool) -> io::Result<()> {
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.status, reason(self.status));
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if self.status != 304 {
            head.push_str(&format!("Content-Length: {}\r\n", self.body.len()));
        }
        head.push_str("\r\n");
        // One write: two would wait for each other's acknowledgement.
        let mut message = head.into_bytes();
        if self.status != 304 {
            let end = if cut {
                self.body.len() / 2
            } else {
                self.body.len()
            };
            message.extend_from_slice(&self.body[..end]);
        }
        stream.write_all(&message)?;
        stream.flush()
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        304 => "Not Modified",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        422 => "Unprocessable Entity",
        429 => "Too Many Requests",
        500..=599 => "Server Error",
        _ => "Status",
    }
}

/// Reads the next request of a connection; `None` when the peer has closed it.
pub(super) fn read(stream: &mut impl Read, buffer: &mut Vec<u8>) -> io::Result<Option<Request>> {
    let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    loop {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut parsed = httparse::Request::new(&mut headers);
        let status = parsed
            .parse(buffer)
            .map_err(|error| invalid(&error.to_string()))?;
        if let httparse::Status::Complete(length) = status {
            let mut request = Request {
                method: parsed.method.unwrap_or_default().to_owned(),
                target: parsed.path.unwrap_or_default().to_owned(),
                headers: parsed
                    .headers
                    .iter()
                    .map(|header| {
                        let value = String::from_utf8_lossy(header.value).into_owned();
                        (header.name.to_ascii_lowercase(), value)
                    })
                    .collect(),
                body: Vec::new(),
            };
            buffer.drain(..length);
            request.body = match request.header("transfer-encoding") {
                Some(_) => read_chunks(stream, buffer)?,
                None => {
                    let length = request.header("content-length").unwrap_or("0");
                    let length = length.parse().map_err(|_| invalid("content-length"))?;
                    read_exactly(stream, buffer, length)?
                }
            };
            return Ok(Some(request));
        }
        if buffer.len() > HEAD_LIMIT {
            return Err(invalid("the head is too long"));
        }
        if !fill(stream, buffer)? {
            return if buffer.is_empty() {
                Ok(None)
            } else {
                Err(invalid("the head is cut"))
            };
        }
    }
}

fn fill(stream: &mut impl Read, buffer: &mut Vec<u8>) -> io::Result<bool> {
    let mut piece = [0; 16 * 1024];
    let count = stream.read(&mut piece)?;
    buffer.extend_from_slice(&piece[..count]);
    Ok(count > 0)
}

fn read_exactly(
    stream: &mut impl Read,
    buffer: &mut Vec<u8>,
    length: usize,
) -> io::Result<Vec<u8>> {
    if length > BODY_LIMIT {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the body is too long",
        ));
    }
    while buffer.len() < length {
        if !fill(stream, buffer)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(buffer.drain(..length).collect())
}

fn read_chunks(stream: &mut impl Read, buffer: &mut Vec<u8>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        match httparse::parse_chunk_size(buffer) {
            Ok(httparse::Status::Complete((skip, length))) => {
                buffer.drain(..skip);
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                let data = read_exactly(stream, buffer, length.saturating_add(2))?;
                if length == 0 {
                    return Ok(body);
                }
                body.extend_from_slice(&data[..length]);
            }
            Ok(httparse::Status::Partial) => {
                if !fill(stream, buffer)? {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            Err(_) => return Err(io::Error::new(io::ErrorKind::InvalidData, "a chunk's size")),
        }
    }
}
