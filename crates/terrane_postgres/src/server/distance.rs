//! A proxy that makes a server look far away.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

/// A proxy to a server on this machine, on a port of its own. It runs until the process ends.
#[derive(Debug)]
pub struct Distance {
    port: u16,
}

impl Distance {
    /// A proxy to the server at this port. Data takes `delay` each way, give or take a half, and stays in order.
    ///
    /// # Errors
    /// If there is no free port.
    pub fn to(server: u16, delay: Duration) -> io::Result<Self> {
        let listener = TcpListener::bind((super::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                // A client whose server is away finds its connection closed.
                let _ = connect(&client, server, delay);
            }
        });
        Ok(Self { port })
    }

    /// The TCP port of the proxy on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }
}

fn connect(client: &TcpStream, server: u16, delay: Duration) -> io::Result<()> {
    let server = TcpStream::connect((super::LOCALHOST, server))?;
    for (from, to) in [(client, &server), (&server, client)] {
        to.set_nodelay(true)?;
        carry(from.try_clone()?, to.try_clone()?, delay);
    }
    Ok(())
}

/// Carries data in one direction, on two threads: what has been read waits for its time while more is read.
fn carry(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    let (sender, parts) = channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        for (due, part) in parts {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            // An empty part is the end.
            if part.is_empty() || to.write_all(&part).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    });
    thread::spawn(move || {
        let (random, mut data, mut last) = (RandomState::new(), vec![0; 1 << 16], Instant::now());
        loop {
            let bytes = from.read(&mut data).unwrap_or(0);
            let jitter = (random.hash_one(last) % 1_001) as u32;
            last = last.max(Instant::now() + delay / 2 + delay * jitter / 1_000);
            if sender.send((last, data[..bytes].to_vec())).is_err() || bytes == 0 {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Read);
    });
}
