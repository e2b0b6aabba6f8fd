//! A proxy between a store and its server that breaks connections.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A fault that happens once, to the next data of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The connection breaks after the server got this many bytes.
    CutRequest(usize),
    /// The server gets a whole request, and the connection to the store breaks before the answer.
    CutAnswer,
    /// The connection to the store breaks, and the request arrives at the server this much later.
    Delay(Duration),
    /// The connection to the store stays open, and the request arrives at the server this much later.
    Hold(Duration),
    /// The request disappears, and the connection stays open.
    Swallow,
}

/// A proxy on a port of its own.
pub(super) struct Proxy {
    pub port: u16,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// The fault of the next request that contains the marker.
    next: Mutex<Option<(&'static [u8], Fault)>>,
    /// How long each direction delays data.
    latency: Mutex<Duration>,
    connections: AtomicUsize,
    /// The number of times data came from the store after data from the server: round trips.
    turns: AtomicU64,
    /// Held requests that have not yet arrived.
    held: AtomicUsize,
}

impl Proxy {
    pub fn new(server: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::<Shared>::default();
        let of_listener = shared.clone();
        thread::spawn(move || {
            for store in listener.incoming().map_while(Result::ok) {
                let shared = of_listener.clone();
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                shared.connections.fetch_add(1, Ordering::Relaxed);
                store.set_nodelay(true).and_then(|()| server.set_nodelay(true)).unwrap();
                thread::spawn(move || carry(&store, &server, &shared));
            }
        });
        Self { port, shared }
    }

    /// The next request that contains `marker` suffers `fault`.
    pub fn break_next(&self, marker: &'static [u8], fault: Fault) {
        *self.shared.next.lock().unwrap() = Some((marker, fault));
    }

    /// Returns `true` if the last fault has happened.
    pub fn has_broken(&self) -> bool {
        self.shared.next.lock().unwrap().is_none()
    }

    pub fn set_latency(&self, latency: Duration) {
        *self.shared.latency.lock().unwrap() = latency;
    }

    /// The number of connections so far.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// The number of round trips so far.
    pub fn round_trips(&self) -> u64 {
        self.shared.turns.load(Ordering::Relaxed)
    }

    /// Waits until all held requests have arrived at the server.
    pub fn wait_for_held(&self) {
        while self.shared.held.load(Ordering::Acquire) > 0 {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Carries data in both directions until one side closes the connection or a fault breaks it.
fn carry(store: &TcpStream, server: &TcpStream, shared: &Arc<Shared>) {
    let is_store_turn = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let (from, to) = (server.try_clone().unwrap(), store.try_clone().unwrap());
    let (of_answers, turn) = (shared.clone(), is_store_turn.clone());
    let answers = thread::spawn(move || {
        let mut data = vec![0; 1 << 16];
        while let Some(part) = receive(&from, &mut data) {
            turn.store(true, Ordering::Release);
            thread::sleep(*of_answers.latency.lock().unwrap());
            // The server may still be working when the store is gone.
            let _ = (&to).write_all(part);
        }
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    });
    let mut data = vec![0; 1 << 16];
    while let Some(part) = receive(store, &mut data) {
        if is_store_turn.swap(false, Ordering::AcqRel) {
            shared.turns.fetch_add(1, Ordering::Relaxed);
        }
        let latency = *shared.latency.lock().unwrap();
        thread::sleep(latency);
        let fault = shared.next.lock().unwrap().take_if(|(marker, _)| contains(part, marker));
        match fault {
            None => {
                if (&*server).write_all(part).is_err() {
                    break;
                }
            }
            Some((_, fault)) => {
                suffer(fault, part, (store, server), &answers, shared);
                return;
            }
        }
    }
    let _ = store.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
}

fn suffer(
    fault: Fault,
    request: &[u8],
    (store, server): (&TcpStream, &TcpStream),
    of_answers: &thread::JoinHandle<()>,
    shared: &Arc<Shared>,
) {
    match fault {
        Fault::CutRequest(bytes) => {
            let _ = (&*server).write_all(&request[..bytes.min(request.len())]);
            let _ = server.shutdown(Shutdown::Both);
            let _ = store.shutdown(Shutdown::Both);
        }
        Fault::CutAnswer => {
            let _ = store.shutdown(Shutdown::Both);
            let _ = (&*server).write_all(request);
            // The server reads the end of the data only after the request.
            let _ = server.shutdown(Shutdown::Write);
        }
        Fault::Delay(delay) | Fault::Hold(delay) => {
            if fault == Fault::Delay(delay) {
                let _ = store.shutdown(Shutdown::Both);
            }
            shared.held.fetch_add(1, Ordering::AcqRel);
            thread::sleep(delay);
            let _ = (&*server).write_all(request);
            let _ = server.shutdown(Shutdown::Write);
            // Until the server has closed the connection, it may be working on the request.
            while !of_answers.is_finished() {
                thread::sleep(Duration::from_millis(1));
            }
            shared.held.fetch_sub(1, Ordering::AcqRel);
        }
        Fault::Swallow => {
            let mut data = vec![0; 1 << 16];
            while receive(store, &mut data).is_some() {}
            let _ = server.shutdown(Shutdown::Both);
        }
    }
}

fn contains(data: &[u8], marker: &[u8]) -> bool {
    data.windows(marker.len()).any(|bytes| bytes == marker)
}

fn receive<'a>(mut from: &TcpStream, data: &'a mut [u8]) -> Option<&'a [u8]> {
    from.read(data).ok().filter(|bytes| *bytes > 0).map(|bytes| &data[..bytes])
}
