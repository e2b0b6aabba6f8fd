//! The HTTP side: a thread that accepts connections, and one for each connection, which serves one request.
//!
//! All of it is bounded: the connections, the time that a client may take, the size of what it sends, and the requests under way.

use crate::error::{RpcError, code};
use crate::requests::{Permit, Shared};
use crate::rpc;
use std::hint::black_box;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

const MOST_CONNECTIONS: usize = 64;
const MOST_HEAD: usize = 16 << 10;
const MOST_BODY: usize = 64 << 10;
/// How long a client may take to send its request, and to receive its answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a connection stays open for a client that still sends what was refused, so that it sees the answer.
const LINGER: Duration = Duration::from_millis(500);

/// Ends the thread that accepts connections, which waits for one.
pub fn close(shared: &Shared, address: SocketAddr) {
    shared.is_closed.store(true, Ordering::Release);
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    let _ = TcpStream::connect_timeout(&SocketAddr::new(ip, address.port()), LINGER);
}

/// Accepts connections on a thread of its own.
pub fn listen(listener: TcpListener, shared: Arc<Shared>) -> io::Result<()> {
    let accept = move || {
        for stream in listener.incoming() {
            if shared.is_closed.load(Ordering::Acquire) {
                return;
            }
            match stream {
                Ok(stream) => welcome(stream, &shared),
                // Too many files are open, for example.
                Err(_) => thread::sleep(Duration::from_millis(50)),
            }
        }
    };
    thread::Builder::new().name("terrane remote".to_owned()).spawn(accept).map(drop)
}

fn welcome(stream: TcpStream, shared: &Arc<Shared>) {
    let Some(permit) = Permit::take(&shared.connections, MOST_CONNECTIONS) else {
        let busy = Refusal::new("503 Service Unavailable", code::BUSY, "too many connections are open");
        let _ = respond(&mut Timed::new(&stream, LINGER), busy.status, &rpc::refusal(busy.error));
        return;
    };
    let shared = shared.clone();
    let serve = move || {
        // A client that has gone needs no answer.
        let _ = serve(&stream, &shared);
        drop(permit);
    };
    // Without a thread, the connection is closed.
    let _ = thread::Builder::new().name("terrane remote client".to_owned()).spawn(serve);
}

/// Serves one request.
fn serve(stream: &TcpStream, shared: &Shared) -> io::Result<()> {
    let mut client = Timed::new(stream, PATIENCE);
    match read_request(&mut client, stream.local_addr()?, shared)? {
        Ok(body) => {
            let answer = rpc::answer(&body, shared);
            respond(&mut Timed::new(stream, PATIENCE), "200 OK", &answer)
        }
        Err(Refusal { status, error }) => {
            respond(&mut Timed::new(stream, PATIENCE), status, &rpc::refusal(error))?;
            // Closing a connection with unread data resets it, and the client may not see the answer.
            stream.shutdown(Shutdown::Write)?;
            io::copy(&mut Timed::new(stream, LINGER).take(1 << 20), &mut io::sink()).map(drop)
        }
    }
}

/// The stream to a client, up to a point in time.
struct Timed<'a> {
    stream: &'a TcpStream,
    until: Instant,
}

impl<'a> Timed<'a> {
    fn new(stream: &'a TcpStream, patience: Duration) -> Self {
        Self { stream, until: Instant::now() + patience }
    }

    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(buffer)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Why a request is not even read.
struct Refusal {
    status: &'static str,
    error: RpcError,
}

impl Refusal {
    fn new(status: &'static str, code: i16, message: &str) -> Self {
        Self { status, error: RpcError::new(code, message) }
    }
}

fn respond(client: &mut Timed, status: &str, body: &str) -> io::Result<()> {
    let length = body.len();
    let headers = format!("Content-Type: application/json\r\nContent-Length: {length}\r\nCache-Control: no-store");
    // In one piece, since the second of two small ones would wait for the client to acknowledge the first.
    client.write_all(format!("HTTP/1.1 {status}\r\n{headers}\r\nConnection: close\r\n\r\n{body}").as_bytes())
}

/// Reads a request up to the end of its body, which is returned.
fn read_request(client: &mut Timed, local: SocketAddr, shared: &Shared) -> io::Result<Result<Vec<u8>, Refusal>> {
    let refusal = |status, message| Ok(Err(Refusal::new(status, code::REQUEST, message)));
    let mut read = Vec::new();
    let head_length = loop {
        // The end may begin in what was there before.
        let from = read.len().saturating_sub(3);
        let mut part = [0; 1 << 10];
        let length = client.read(&mut part)?;
        if length == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        read.extend_from_slice(&part[..length]);
        if let Some(end) = read[from..].windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break from + end;
        }
        if read.len() > MOST_HEAD {
            return refusal("431 Request Header Fields Too Large", "the headers are too large");
        }
    };
    let mut body = read.split_off(head_length + 4);
    let Some(head) = str::from_utf8(&read[..head_length]).ok().and_then(Head::parse) else {
        return refusal("400 Bad Request", "this is not an HTTP request");
    };
    if let Err(refusal) = head.check(local, &shared.token) {
        return Ok(Err(refusal));
    }
    let Some(length) = head.header("Content-Length").and_then(|length| length.parse::<u64>().ok()) else {
        return refusal("411 Length Required", "a request has a Content-Length");
    };
    let Some(length) = usize::try_from(length).ok().filter(|length| *length <= MOST_BODY) else {
        return refusal("413 Content Too Large", "the request is larger than 64 KiB");
    };
    if body.len() < length && head.header("Expect").is_some_and(|what| what.eq_ignore_ascii_case("100-continue")) {
        client.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let had = body.len().min(length);
    body.resize(length, 0);
    client.read_exact(&mut body[had..])?;
    Ok(Ok(body))
}

/// The head of a request.
struct Head<'a> {
    method: &'a str,
    target: &'a str,
    headers: Vec<(&'a str, &'a str)>,
}

impl<'a> Head<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut lines = text.split("\r\n");
        let mut first = lines.next()?.split(' ');
        let (method, target, version) = (first.next()?, first.next()?, first.next()?);
        if first.next().is_some() || !version.starts_with("HTTP/1.") {
            return None;
        }
        let mut headers: Vec<(&str, &str)> = Vec::new();
        for line in lines {
            let (name, value) = line.split_once(':')?;
            // What comes twice could be read in two ways.
            let is_known = headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
            let is_one_of_a_kind = ["Host", "Origin", "Authorization", "Content-Length"]
                .into_iter()
                .any(|single| single.eq_ignore_ascii_case(name));
            if name.is_empty() || name.contains(char::is_whitespace) || (is_known && is_one_of_a_kind) {
                return None;
            }
            headers.push((name, value.trim()));
        }
        Some(Self { method, target, headers })
    }

    fn header(&self, name: &str) -> Option<&'a str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
    }

    /// Checks who asks.
    fn check(&self, local: SocketAddr, token: &str) -> Result<(), Refusal> {
        let refused = |status, message| Err(Refusal::new(status, code::REQUEST, message));
        // A page of another host whose name leads here (DNS rebinding) has the name of that host.
        let host = self.header("Host").unwrap_or_default();
        if !is_our_host(host, local) {
            return refused("403 Forbidden", "the Host is not the address of this endpoint");
        }
        // Only browsers send it, for a page. No page is served here.
        if let Some(origin) = self.header("Origin")
            && !origin.strip_prefix("http://").is_some_and(|origin| origin.eq_ignore_ascii_case(host))
        {
            return refused("403 Forbidden", "pages of other origins are refused");
        }
        let given = self.header("Authorization").and_then(|value| value.split_once(' '));
        let given = given.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("Bearer")).map(|(_, token)| token.trim());
        if !given.is_some_and(|given| is_same(given.as_bytes(), token.as_bytes())) {
            return refused(
                "401 Unauthorized\r\nWWW-Authenticate: Bearer",
                "a request has the header `Authorization: Bearer TOKEN`, with the token from the log of the game",
            );
        }
        if self.target != "/" {
            return refused("404 Not Found", "requests are sent to /");
        }
        if self.method != "POST" {
            return refused("405 Method Not Allowed\r\nAllow: POST", "requests are sent with POST");
        }
        if self.header("Transfer-Encoding").is_some() {
            return refused("411 Length Required", "a request has a Content-Length, and no Transfer-Encoding");
        }
        Ok(())
    }
}

/// Returns `true` for the address of the endpoint and for the loopback addresses, with its port.
fn is_our_host(host: &str, local: SocketAddr) -> bool {
    let port = local.port();
    let is_ours = |host: SocketAddr| {
        let ip = host.ip().to_canonical();
        host.port() == port && (ip.is_loopback() || ip == local.ip().to_canonical())
    };
    host.eq_ignore_ascii_case(&format!("localhost:{port}")) || host.parse().is_ok_and(is_ours)
}

/// Compares in a time that does not depend on where the first difference is.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let difference = one.iter().zip(other).fold(0, |all, (one, other)| black_box(all | (one ^ other)));
    one.len() == other.len() && difference == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_compared_with_the_port() {
        let local = "192.168.1.7:15703".parse().unwrap();
        let ours = ["localhost:15703", "LOCALHOST:15703", "127.0.0.1:15703", "[::1]:15703", "192.168.1.7:15703"];
        assert!(ours.into_iter().all(|host| is_our_host(host, local)));
        let others = ["", "localhost", "localhost:80", "127.0.0.1:1", "evil.example:15703", "192.168.1.8:15703"];
        assert!(!others.into_iter().any(|host| is_our_host(host, local)));
    }

    #[test]
    fn tokens_are_compared_as_a_whole() {
        assert!(is_same(b"abc", b"abc"));
        assert!(!is_same(b"abc", b"abd") && !is_same(b"abc", b"ab") && !is_same(b"", b"a") && !is_same(b"xbc", b"abc"));
    }

    #[test]
    fn heads_that_can_be_read_in_two_ways_are_refused() {
        let head = Head::parse("POST / HTTP/1.1\r\nHost: a\r\nX: 1\r\nX: 2").unwrap();
        assert_eq!((head.method, head.target, head.header("host")), ("POST", "/", Some("a")));
        for wrong in [
            "POST /",
            "POST / x HTTP/1.1",
            "POST / HTTP/2.0",
            "POST / HTTP/1.1\r\nHost: a\r\nhost: b",
            "POST / HTTP/1.1\r\nHost : a",
            "POST / HTTP/1.1\r\nX: 1\r\n folded",
        ] {
            assert!(Head::parse(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn permits_are_limited_and_given_back() {
        let taken = Arc::default();
        let first = Permit::take(&taken, 2);
        let second = Permit::take(&taken, 2);
        assert!(first.is_some() && second.is_some() && Permit::take(&taken, 2).is_none());
        drop(first);
        assert!(Permit::take(&taken, 2).is_some());
    }
}
