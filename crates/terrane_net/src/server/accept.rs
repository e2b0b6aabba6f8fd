//! The tasks of connections, on the threads of the sockets.

use super::connected::ForClient;
use super::{FromClient, network};
use crate::socket::SILENCE;
use crate::wire::{
    Hello, MAX_CONTROL, MAX_SYNC_OF_CLIENT, PROTOCOL, Room, Taken, ToClient, ToServer, WireError, in_time, read,
    read_bytes, send_packet, write, write_bytes,
};
use bevy_terrane::chunk_sync::{self, SyncError};
use bevy_terrane::view::ClientPort;
use crossbeam_channel::Sender;
use quinn::{Connection, Endpoint, Incoming, RecvStream, SendStream};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::JoinSet;

/// The time for a handshake and a hello.
const PATIENCE: Duration = Duration::from_secs(5);
/// The time after which a port that is full is looked at again.
const FULL: Duration = Duration::from_millis(5);
/// The messages that may wait for a client. One that reads more slowly is disconnected.
const MOST_ORDERS: usize = 1_024;
/// The bytes of a client's messages to the game that the frames have not taken in.
const UNHEARD: u32 = 64 << 10;
/// The most networks whose log-ins are counted.
const MOST_NETWORKS: usize = 1 << 16;

/// Counts connections, and turns them away.
#[derive(Debug)]
pub(super) struct AtTheDoor {
    of_network: f64,
    of_all: f64,
    most: usize,
    inside: AtomicUsize,
    turned_away: AtomicU64,
    counts: Mutex<Counts>,
}

#[derive(Debug)]
struct Counts {
    refilled: Instant,
    all: f64,
    networks: HashMap<IpAddr, (f64, Instant)>,
}

impl AtTheDoor {
    pub fn new((per_minute, per_second): (u32, u32), players: usize) -> Self {
        let counts = Counts { refilled: Instant::now(), all: per_second.into(), networks: HashMap::new() };
        Self {
            of_network: per_minute.into(),
            of_all: per_second.into(),
            // Some more, so that those beyond are told why.
            most: players.saturating_add(players / 8 + 8),
            inside: AtomicUsize::new(0),
            turned_away: AtomicU64::new(0),
            counts: Mutex::new(counts),
        }
    }

    pub fn turned_away(&self) -> u64 {
        self.turned_away.load(Ordering::Relaxed)
    }

    /// Returns `true` if a connection from this address may begin.
    fn admits(&self, address: IpAddr) -> bool {
        if self.inside.load(Ordering::Relaxed) >= self.most {
            return false;
        }
        let now = Instant::now();
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let since = now.saturating_duration_since(counts.refilled).as_secs_f64();
        (counts.all, counts.refilled) = ((counts.all + since * self.of_all).min(self.of_all), now);
        if counts.all < 1.0 {
            return false;
        }
        if counts.networks.len() >= MOST_NETWORKS {
            counts.networks.retain(|_, (_, seen)| now.saturating_duration_since(*seen) < Duration::from_secs(60));
        }
        if counts.networks.len() >= MOST_NETWORKS {
            return false;
        }
        let (left, seen) = counts.networks.entry(network(address)).or_insert((self.of_network, now));
        let since = now.saturating_duration_since(*seen).as_secs_f64() / 60.0;
        (*left, *seen) = ((*left + since * self.of_network).min(self.of_network), now);
        if *left < 1.0 {
            return false;
        }
        *left -= 1.0;
        counts.all -= 1.0;
        true
    }
}

/// Takes in connections until the endpoint is closed.
pub(super) struct Accept {
    pub endpoint: Endpoint,
    pub door: Arc<AtTheDoor>,
    pub tell: Sender<(FromClient, Taken)>,
}

impl Accept {
    pub async fn run(self) {
        let mut last = 0;
        while let Some(incoming) = self.endpoint.accept().await {
            // A client must first prove its address, which needs no memory here.
            if !incoming.remote_address_validated() && incoming.may_retry() {
                let _ = incoming.retry();
                continue;
            }
            if !self.door.admits(incoming.remote_address().ip()) {
                self.door.turned_away.fetch_add(1, Ordering::Relaxed);
                incoming.refuse();
                continue;
            }
            last += 1;
            let (key, door, tell) = (last, self.door.clone(), self.tell.clone());
            tokio::spawn(async move {
                door.inside.fetch_add(1, Ordering::Relaxed);
                serve(key, incoming, &tell).await;
                door.inside.fetch_sub(1, Ordering::Relaxed);
            });
        }
    }
}

/// Serves a connection until it ends.
async fn serve(key: u64, incoming: Incoming, tell: &Sender<(FromClient, Taken)>) {
    let Ok(connecting) = incoming.accept() else { return };
    let Ok(Ok(connection)) = tokio::time::timeout(PATIENCE, connecting).await else { return };
    let hello = in_time(PATIENCE, async {
        let (send, mut receive) = connection.accept_bi().await.map_err(|_| WireError::Malformed)?;
        let hello = read_bytes(&mut receive, MAX_CONTROL).await?.ok_or(WireError::Malformed)?;
        // The rest can have another form in another version.
        let (versions, _) = postcard::take_from_bytes::<(u16, u8)>(&hello).map_err(|_| WireError::Malformed)?;
        Ok((send, receive, versions, hello))
    });
    let (mut send, receive, versions, hello) = match hello.await {
        Ok(greeted) => greeted,
        Err(error) => return connection.close(1_u32.into(), error.to_string().as_bytes()),
    };
    let ours = (PROTOCOL, chunk_sync::PROTOCOL);
    if versions != ours {
        let older = if versions < ours {
            "your game is older than the server: update it"
        } else {
            "the server is older than your game"
        };
        return refuse(&connection, &mut send, older.to_owned()).await;
    }
    let Ok(hello) = postcard::from_bytes::<Hello>(&hello) else {
        return connection.close(1_u32.into(), WireError::Malformed.to_string().as_bytes());
    };
    let (control, orders) = channel(MOST_ORDERS);
    if tell.send((FromClient::Hello(key, hello, connection.clone(), control), None)).is_err() {
        return;
    }
    play(key, &connection, (send, receive), orders, tell).await;
    let _ = tell.send((FromClient::Gone(key), None));
}

async fn refuse(connection: &Connection, send: &mut SendStream, reason: String) {
    let _ = in_time(PATIENCE, write(send, &ToClient::Refused(reason.clone()))).await;
    let _ = send.finish();
    // So that the reason arrives.
    let _ = tokio::time::timeout(PATIENCE, send.stopped()).await;
    connection.close(2_u32.into(), reason.as_bytes());
}

async fn play(
    key: u64,
    connection: &Connection,
    (mut send, mut receive): (SendStream, RecvStream),
    mut orders: Receiver<ForClient>,
    tell: &Sender<(FromClient, Taken)>,
) {
    let mut tasks = JoinSet::new();
    let (control, room) = (tell.clone(), Room::of(UNHEARD));
    tasks.spawn(async move {
        while let Ok(Some(message)) = read::<ToServer>(&mut receive).await {
            let ToServer::Game(path, bytes) = message;
            let taken = room.take(path.len() + bytes.len()).await;
            if control.send((FromClient::Game(key, path, bytes), taken)).is_err() {
                break;
            }
        }
    });
    // The tasks of the present stay.
    let mut stay = JoinSet::new();
    loop {
        tokio::select! {
            order = orders.recv() => match order {
                Some(ForClient::Tell(ToClient::Refused(reason))) => {
                    stay.abort_all();
                    return refuse(connection, &mut send, reason).await;
                }
                Some(ForClient::Tell(message)) => {
                    if in_time(SILENCE, write(&mut send, &message)).await.is_err() {
                        break;
                    }
                }
                Some(ForClient::Stay(number, port)) => {
                    stay.abort_all();
                    stay = JoinSet::new();
                    stay_in(&mut stay, connection.clone(), number, port);
                }
                None => break,
            },
            Some(_) = tasks.join_next() => break,
            Some(ended) = stay.join_next() => if let Ok(Err(error)) = ended {
                return connection.close(1_u32.into(), error.to_string().as_bytes());
            },
            _ = connection.closed() => break,
        }
    }
    connection.close(0_u32.into(), b"");
}

type Ended = Result<(), WireError>;

/// Starts the tasks of a stay in a dimension.
fn stay_in(tasks: &mut JoinSet<Ended>, connection: Connection, number: u32, port: ClientPort) {
    let news = Arc::new(Notify::new());
    let wake = news.clone();
    // Two tasks wait: that of messages and that of packets.
    port.set_wake(move || wake.notify_waiters());
    tasks.spawn(send_messages(connection.clone(), number, port.clone(), news.clone()));
    tasks.spawn(send_packets(connection.clone(), number, port.clone(), news));
    tasks.spawn(receive_messages(connection.clone(), number, port.clone()));
    tasks.spawn(receive_packets(connection, number, port));
}

async fn send_messages(connection: Connection, number: u32, port: ClientPort, news: Arc<Notify>) -> Ended {
    let Ok(mut stream) = connection.open_uni().await else { return Ok(()) };
    write_bytes(&mut stream, &number.to_le_bytes()).await?;
    loop {
        // It hears what comes from now on.
        let next = news.notified();
        let messages = port.take_messages();
        if messages.is_empty() {
            next.await;
            continue;
        }
        // Both go into one packet of the network.
        send_taken(&connection, number, &port);
        for message in messages {
            write_bytes(&mut stream, &message).await?;
        }
    }
}

/// Sends packets also while the client does not read messages.
async fn send_packets(connection: Connection, number: u32, port: ClientPort, news: Arc<Notify>) -> Ended {
    loop {
        let next = news.notified();
        send_taken(&connection, number, &port);
        next.await;
        // So that `send_messages` takes both.
        tokio::task::yield_now().await;
    }
}

fn send_taken(connection: &Connection, number: u32, port: &ClientPort) {
    for packet in port.take_packets() {
        send_packet(connection, number, &packet);
    }
}

async fn receive_messages(connection: Connection, number: u32, port: ClientPort) -> Ended {
    loop {
        let Ok(mut stream) = connection.accept_uni().await else { return Ok(()) };
        let Some(of) = read_bytes(&mut stream, 4).await? else { continue };
        if of != number.to_le_bytes() {
            // Of an earlier stay.
            continue;
        }
        while let Some(message) = read_bytes(&mut stream, MAX_SYNC_OF_CLIENT).await? {
            while port.is_full() {
                tokio::time::sleep(FULL).await;
            }
            port.receive(&message).map_err(|_| WireError::Malformed)?;
        }
    }
}

async fn receive_packets(connection: Connection, number: u32, port: ClientPort) -> Ended {
    while let Ok(datagram) = connection.read_datagram().await {
        if let Some((of, packet)) = datagram.split_first()
            && *of == number as u8
        {
            match port.receive(packet) {
                // Packets that come too early are as good as lost.
                Ok(()) | Err(SyncError::Early) => {}
                Err(_) => return Err(WireError::Malformed),
            }
        }
    }
    Ok(())
}
