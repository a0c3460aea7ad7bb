use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

/// A peer that sends these pieces, one a read, and remembers what it is sent.
#[derive(Debug, Default)]
struct Peer {
    pieces: VecDeque<Vec<u8>>,
    received: Vec<u8>,
}

impl Read for Peer {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(mut piece) = self.pieces.pop_front() else {
            return Ok(0);
        };
        let count = piece.len().min(buffer.len());
        buffer[..count].copy_from_slice(&piece[..count]);
        let rest = piece.split_off(count);
        if !rest.is_empty() {
            self.pieces.push_front(rest);
        }
        Ok(count)
    }
}

impl Write for Peer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.received.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A connection on which `bytes` come in pieces of at most `size`.
fn connection(bytes: &[u8], size: usize) -> Connection<Peer> {
    let pieces = bytes.chunks(size.max(1)).map(<[u8]>::to_vec).collect();
    Connection::new(Peer {
        pieces,
        received: Vec::new(),
    })
}

fn only(bytes: &[u8]) -> Request {
    connection(bytes, 4096).next().unwrap().unwrap()
}

fn refused(bytes: &[u8]) -> u16 {
    match connection(bytes, 4096).next() {
        Err(Broken::Refused(status, _)) => status,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_body_with_two_lengths_or_none_that_is_a_number_is_refused() {
    let head = "POST / HTTP/1.1\r\n";
    for headers in [
        "Content-Length: 1\r\nContent-Length: 2\r\n",
        "Content-Length: +1\r\n",
        "Content-Length: \r\n",
        "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
    ] {
        let bytes = format!("{head}{headers}\r\n1\r\n");
        assert_eq!(refused(bytes.as_bytes()), 400, "{headers:?}");
    }
    let coded = format!("{head}Transfer-Encoding: gzip\r\n\r\n");
    assert_eq!(refused(coded.as_bytes()), 501);
}

#[test]
fn what_is_too_long_is_refused_before_it_is_read() {
    let head = "POST / HTTP/1.1\r\n";
    let long = format!("{head}Content-Length: {}\r\n\r\n", BODY_LIMIT + 1);
    assert_eq!(refused(long.as_bytes()), 413);
    let beyond = format!("{head}Content-Length: {}\r\n\r\n", "9".repeat(40));
    assert_eq!(refused(beyond.as_bytes()), 413);
    let chunk = format!(
        "{head}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n",
        BODY_LIMIT + 1
    );
    assert_eq!(refused(chunk.as_bytes()), 413);
    let endless = format!("GET / HTTP/1.1\r\nA: {}", "a".repeat(2 * HEAD_LIMIT));
    assert_eq!(refused(endless.as_bytes()), 431);
}

#[test]
fn a_chunk_of_another_size_than_it_says_is_refused() {
    let head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    for chunks in ["2\r\nabc\r\n0\r\n\r\n", "zz\r\n", "\r\n\r\n"] {
        assert_eq!(
            refused(format!("{head}{chunks}").as_bytes()),
            400,
            "{chunks:?}"
        );
    }
}

#[test]
fn trailers_are_not_taken_for_the_next_request() {
    let bytes = "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\
                 3\r\nabc\r\n0\r\nDigest: x\r\n\r\nGET /b HTTP/1.1\r\n\r\n";
    let mut connection = connection(bytes.as_bytes(), 7);
    assert_eq!(connection.next().unwrap().unwrap().body, b"abc");
    assert_eq!(connection.next().unwrap().unwrap().path(), "/b");
    assert!(connection.next().unwrap().is_none());
}

#[test]
fn who_waits_for_a_continue_gets_one() {
    let head = b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
    let mut peer = Peer::default();
    peer.pieces.push_back(head.to_vec());
    peer.pieces.push_back(b"ok".to_vec());
    let mut connection = Connection::new(peer);
    assert_eq!(connection.next().unwrap().unwrap().body, b"ok");
    assert!(connection.stream.received.starts_with(b"HTTP/1.1 100 "));
}

#[test]
fn the_connection_ends_when_the_peer_says_so() {
    assert!(only(b"GET / HTTP/1.1\r\n\r\n").keeps_alive());
    assert!(!only(b"GET / HTTP/1.1\r\nConnection: x, Close\r\n\r\n").keeps_alive());
    assert!(!only(b"GET / HTTP/1.0\r\n\r\n").keeps_alive());
    assert!(only(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").keeps_alive());
}

#[test]
fn a_message_that_is_cut_is_no_request() {
    for cut in ["GET /", "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nab"] {
        let end = connection(cut.as_bytes(), 4096).next();
        assert!(matches!(end, Err(Broken::Io)), "{cut:?}: {end:?}");
    }
}

#[test]
fn answers_without_a_body_promise_none() {
    for (status, extent) in [(204, Extent::Whole), (304, Extent::Whole)] {
        let mut connection = Connection::new(Peer::default());
        let mut response = Response::empty(status);
        response.body = b"never".to_vec();
        connection.send(&response, extent).unwrap();
        let sent = String::from_utf8(connection.stream.received).unwrap();
        assert!(sent.ends_with("\r\n\r\n"), "{sent}");
        assert!(!sent.contains("Content-Length"), "{sent}");
    }
    let mut connection = Connection::new(Peer::default());
    let response = Response::new(200, "text/plain", "four");
    connection.send(&response, Extent::Head).unwrap();
    let sent = String::from_utf8(connection.stream.received).unwrap();
    assert!(sent.ends_with("Content-Length: 4\r\n\r\n"), "{sent}");
}

#[test]
fn paths_are_decoded_after_they_are_split() {
    let request = only(b"GET /repos/o/r/branches/a%2Fb%20c%zz%2?x=1%2B1 HTTP/1.1\r\n\r\n");
    assert_eq!(
        request.segments(),
        ["repos", "o", "r", "branches", "a/b c%zz%2"]
    );
    assert_eq!(request.parameter("x").as_deref(), Some("1+1"));
}

/// A body as chunks of at most `size`.
fn chunked(body: &[u8], size: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for piece in body.chunks(size) {
        out.extend_from_slice(format!("{:x};x=y\r\n", piece.len()).as_bytes());
        out.extend_from_slice(piece);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"0\r\n\r\n");
    out
}

proptest! {
    #[test]
    fn requests_are_the_same_however_they_are_cut_into_packets(
        first in proptest::collection::vec(any::<u8>(), 0..300),
        second in proptest::collection::vec(any::<u8>(), 0..300),
        packet in 1_usize..80,
        chunk in 1_usize..50,
    ) {
        let mut bytes = format!(
            "POST /a?b=c HTTP/1.1\r\nX: y\r\nContent-Length: {}\r\n\r\n", first.len()
        ).into_bytes();
        bytes.extend_from_slice(&first);
        bytes.extend_from_slice(b"PUT /d HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
        bytes.extend(chunked(&second, chunk));
        let mut connection = connection(&bytes, packet);
        let request = connection.next().unwrap().unwrap();
        prop_assert_eq!(request.header("x"), Some("y"));
        prop_assert_eq!(request.query(), "b=c");
        prop_assert_eq!(request.body, first);
        let request = connection.next().unwrap().unwrap();
        prop_assert_eq!(request.path(), "/d");
        prop_assert_eq!(request.body, second);
        prop_assert!(connection.next().unwrap().is_none());
    }

    #[test]
    fn whatever_is_sent_ends_in_a_request_or_an_error(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        chunked in any::<bool>(),
    ) {
        let head: &[u8] = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        let all = if chunked { [head, &bytes].concat() } else { bytes };
        let mut connection = connection(&all, 64);
        while let Ok(Some(_)) = connection.next() {}
    }
}
