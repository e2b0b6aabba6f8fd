//! [`ClientPort`]: where the messages of one client wait, between the sync thread and a transport.

use super::packets::{self, SentBody};
use crate::chunk_sync::{ClientMessage, SyncError, SyncServerProgress};
use crate::simulation::Steer;
use std::fmt::{self, Debug, Formatter};
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The bytes of a client that may wait for the sync thread.
const MAX_INCOMING: usize = 1 << 20;
/// While more messages or bytes of messages wait for the transport, no more are made.
const MAX_OUTGOING: (usize, usize) = (32, 16 << 10);
/// The steps of a client that may wait.
const MAX_STEPS: usize = 256;

/// The messages of one client, in both directions: for a transport that runs on threads of its own. It is cheap to clone.
#[derive(Clone)]
pub struct ClientPort(Arc<Port>);

/// What a server sends to a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForTransport {
    /// Messages, to be delivered reliably and in order.
    pub messages: Vec<Vec<u8>>,
    /// Packets of at most about 1,200 bytes, which may be lost, repeated or overtaken.
    pub packets: Vec<Vec<u8>>,
}

struct Port {
    /// Tells apart the peers that an entity has one after the other.
    life: u64,
    is_open: AtomicBool,
    incoming: Mutex<Incoming>,
    outgoing: Mutex<Outgoing>,
    /// The news of the actor that wait.
    waiting_news: AtomicUsize,
    progress: Mutex<SyncServerProgress>,
    wake: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

#[derive(Default)]
struct Incoming {
    messages: Vec<ClientMessage>,
    bytes: usize,
    steps: Vec<Steer>,
}

#[derive(Default)]
struct Outgoing {
    messages: Vec<Vec<u8>>,
    packets: Vec<Vec<u8>>,
    /// The newest of the client's own body.
    body: Option<Vec<u8>>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Nothing that is done under these locks can panic halfway.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ClientPort {
    pub(super) fn new() -> Self {
        static LIVES: AtomicU64 = AtomicU64::new(0);
        Self(Arc::new(Port {
            life: LIVES.fetch_add(1, Ordering::Relaxed),
            is_open: AtomicBool::new(false),
            incoming: Mutex::default(),
            outgoing: Mutex::default(),
            waiting_news: AtomicUsize::new(0),
            progress: Mutex::default(),
            wake: OnceLock::new(),
        }))
    }

    /// Takes a message or a packet of the client.
    ///
    /// # Errors
    /// Fails without any change if it is malformed, if it comes before the client was sent anything, or if the client sends faster than it
    /// is read. End the connection then: such a client is another program, or of another version.
    pub fn receive(&self, message: &[u8]) -> Result<(), SyncError> {
        if !self.0.is_open.load(Ordering::Acquire) {
            return Err(SyncError::Early);
        }
        if let Some(steps) = packets::read_steps(message) {
            let steps = steps?;
            let mut incoming = lock(&self.0.incoming);
            // Those that do not fit are repeated.
            let room = MAX_STEPS.saturating_sub(incoming.steps.len());
            incoming.steps.extend(steps.into_iter().take(room));
            return Ok(());
        }
        let read = ClientMessage::decode(message)?;
        let mut incoming = lock(&self.0.incoming);
        if incoming.bytes + message.len() > MAX_INCOMING {
            return Err(SyncError::Flood);
        }
        incoming.bytes += message.len();
        incoming.messages.push(read);
        Ok(())
    }

    /// Returns `true` if so much of the client's waits that a transport should read on later.
    pub fn is_full(&self) -> bool {
        lock(&self.0.incoming).bytes > MAX_INCOMING / 2
    }

    /// Takes what is to be sent to the client. While more than 32 messages or 16 KiB are not taken, no more is made, so a transport leaves
    /// it here while its client does not read.
    pub fn take(&self) -> ForTransport {
        ForTransport { messages: self.take_messages(), packets: self.take_packets() }
    }

    /// Takes only the messages.
    pub fn take_messages(&self) -> Vec<Vec<u8>> {
        mem::take(&mut lock(&self.0.outgoing).messages)
    }

    /// Takes only the packets.
    pub fn take_packets(&self) -> Vec<Vec<u8>> {
        let mut outgoing = lock(&self.0.outgoing);
        outgoing.body.take().into_iter().chain(mem::take(&mut outgoing.packets)).collect()
    }

    /// Calls this whenever there is something to take. It can be set once.
    pub fn set_wake(&self, wake: impl Fn() + Send + Sync + 'static) {
        let _ = self.0.wake.set(Box::new(wake));
    }

    pub(super) fn life(&self) -> u64 {
        self.0.life
    }

    pub(super) fn open(&self) {
        self.0.is_open.store(true, Ordering::Release);
    }

    pub(super) fn take_incoming(&self) -> (Vec<ClientMessage>, Vec<Steer>) {
        let Incoming { messages, steps, .. } = mem::take(&mut *lock(&self.0.incoming));
        (messages, steps)
    }

    /// Returns `true` for messages and for packets if there may be more of them.
    pub(super) fn is_ready(&self) -> (bool, bool) {
        let outgoing = lock(&self.0.outgoing);
        let waiting: usize = outgoing.messages.iter().map(Vec::len).sum();
        let (messages, bytes) = MAX_OUTGOING;
        (outgoing.messages.len() <= messages && waiting <= bytes, outgoing.packets.is_empty())
    }

    /// Adds messages and packets. Packets are added only if all earlier ones were taken.
    pub(super) fn send(&self, messages: Vec<Vec<u8>>, packets: Vec<Vec<u8>>) {
        if messages.is_empty() && packets.is_empty() {
            return;
        }
        let mut outgoing = lock(&self.0.outgoing);
        outgoing.messages.extend(messages);
        outgoing.packets.extend(packets);
        drop(outgoing);
        self.wake();
    }

    /// Sends the client its body, as its region has it.
    pub(super) fn send_body(&self, body: &SentBody) {
        lock(&self.0.outgoing).body = Some(body.encode());
        self.wake();
    }

    fn wake(&self) {
        if let Some(wake) = self.0.wake.get() {
            wake();
        }
    }

    pub(super) fn waiting_news(&self) -> usize {
        self.0.waiting_news.load(Ordering::Relaxed)
    }

    pub(super) fn add_waiting_news(&self) {
        self.0.waiting_news.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn set_progress(&self, waiting_news: usize, progress: SyncServerProgress) {
        self.0.waiting_news.store(waiting_news, Ordering::Relaxed);
        *lock(&self.0.progress) = progress;
    }

    pub(super) fn progress(&self) -> SyncServerProgress {
        *lock(&self.0.progress)
    }
}

impl Debug for ClientPort {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ClientPort").field(&self.0.life).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk_sync::{ChunkQuestions, PROTOCOL, SyncArea};
    use crate::space::ChunkPos;

    fn question() -> Vec<u8> {
        let area = SyncArea { center: ChunkPos::default(), radius: 4, vertical: 4 };
        ChunkQuestions { area, questions: vec![(ChunkPos::default(), None); 1_000] }.encode()
    }

    /// Promise, multiplayer: A client that sends before the server, nonsense, or too much, is an error.
    #[test]
    fn an_early_a_malformed_and_a_flooding_client_are_errors() {
        let port = ClientPort::new();
        assert_eq!(port.receive(&question()), Err(SyncError::Early));
        port.open();
        assert!(matches!(port.receive(&[PROTOCOL, 6, 200]), Err(SyncError::Malformed { .. })));
        assert!(matches!(port.receive(&[&[PROTOCOL, 6][..], &[0; 5_000]].concat()), Err(SyncError::TooLarge { .. })));
        let (mut taken, message) = (0, question());
        let refused = loop {
            match port.receive(&message) {
                Ok(()) => taken += message.len(),
                Err(error) => break error,
            }
        };
        assert_eq!(refused, SyncError::Flood);
        assert!(port.is_full() && taken <= MAX_INCOMING && taken + message.len() > MAX_INCOMING);
        assert_eq!(port.take_incoming().0.len() * message.len(), taken);
        assert_eq!((port.receive(&message), port.is_full()), (Ok(()), false));
    }

    #[test]
    fn steps_are_bounded_and_what_waits_is_told() {
        let port = ClientPort::new();
        port.open();
        for number in 0..1_000 {
            port.receive(&packets::write_steps(vec![Steer { number, ..Steer::default() }; MAX_STEPS_SENT])).unwrap();
        }
        assert_eq!(port.take_incoming().1.len(), MAX_STEPS);
        let too_many = packets::write_steps(vec![Steer::default(); MAX_STEPS_SENT + 1]);
        assert!(matches!(port.receive(&too_many), Err(SyncError::Malformed { .. })));
        for (messages, is_ready) in
            [(vec![vec![1]], true), (vec![vec![1]; 33], false), (vec![vec![1; 17 << 10]], false)]
        {
            port.send(messages.clone(), Vec::new());
            assert_eq!((port.is_ready().0, port.take_messages(), port.is_ready().0), (is_ready, messages, true));
        }
        port.send(Vec::new(), vec![vec![2], vec![3]]);
        assert_eq!(port.is_ready(), (true, false));
        assert_eq!(port.take(), ForTransport { messages: Vec::new(), packets: vec![vec![2], vec![3]] });
        assert_eq!((port.is_ready(), port.take()), ((true, true), ForTransport::default()));
    }

    const MAX_STEPS_SENT: usize = packets::MAX_STEPS;
}
