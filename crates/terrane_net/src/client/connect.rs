//! The task of a connection: it connects, logs in, follows redirections, and tries again.

use crate::identity::{NAME, Trust, Verifier};
use crate::socket::{self, SILENCE};
use crate::wire::{
    Hello, MAX_SYNC_OF_SERVER, Room, Taken, ToClient, ToServer, WireError, in_time, read, read_bytes, send_packet,
    write, write_bytes,
};
use quinn::{Connection, ConnectionError, Endpoint, RecvStream, SendStream};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::net::lookup_host;
use tokio::sync::mpsc::{Receiver, Sender, UnboundedReceiver, UnboundedSender, channel};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// The time for a connection and for a hello.
const PATIENCE: Duration = Duration::from_secs(5);
/// The time from one attempt to the next, at first and at last.
const FIRST: Duration = Duration::from_millis(200);
const LAST: Duration = Duration::from_secs(5);
/// After this time, the other servers have ended one that is lost. Until then they may send its players there.
const ENDED: Duration = Duration::from_secs(20);
/// The time after which a server is asked again that has sent the player to a lost one.
const AGAIN: Duration = Duration::from_secs(1);
/// The bytes of a server that the frames have not taken in.
const UNHEARD: u32 = 8 << 20;

/// The ends of the task's channels.
#[derive(Debug)]
pub(super) struct Link {
    pub orders: Sender<Order>,
    pub heard: UnboundedReceiver<(FromServer, Taken)>,
}

/// For the server.
#[derive(Debug)]
pub(super) enum Order {
    Tell(ToServer),
    /// Messages of the view in this stay.
    Sync(u32, Vec<Vec<u8>>),
    Packet(u32, Vec<u8>),
}

/// From the server.
#[derive(Debug)]
pub(super) enum FromServer {
    /// A message, and the server's address.
    Control(ToClient, String),
    /// A message or a packet for the view, with the last byte of the stay's number.
    Sync(u8, Vec<u8>),
    /// The connection ends, because the player is on another server: at this address, if the client goes there now.
    Moves(Option<String>),
    Lost(String),
}

/// The way to the frames. It has room for a bounded number of bytes.
#[derive(Clone)]
struct ToFrames {
    sender: UnboundedSender<(FromServer, Taken)>,
    room: Room,
}

impl ToFrames {
    /// Hands over a message of so many bytes as soon as there is room. Returns `false` if the entity is gone.
    async fn tell(&self, message: FromServer, bytes: usize) -> bool {
        let taken = self.room.take(bytes).await;
        self.sender.send((message, taken)).is_ok()
    }
}

/// The reason why a connection ends.
enum End {
    /// The entity is despawned, or the server refuses the client.
    Over,
    /// The player is on this server.
    Elsewhere(String),
    Lost(String),
}

/// Runs until the entity is despawned, or a server refuses the client.
pub(super) async fn stay_connected(
    addresses: Vec<String>,
    hello: Hello,
    trust: Trust,
    mut orders: Receiver<Order>,
    sender: UnboundedSender<(FromServer, Taken)>,
) {
    let frames = ToFrames { sender, room: Room::of(UNHEARD) };
    let (mut place, mut next, mut pause) = (0, None, FIRST);
    // The server that was lost last, and when; and how often the player was sent on since it was in the world.
    let (mut lost, mut hops): (Option<(String, Instant)>, u32) = (None, 0);
    while !frames.sender.is_closed() {
        let address = next.take().unwrap_or_else(|| addresses[place % addresses.len()].clone());
        // Orders from before were for the last connection.
        while orders.try_recv().is_ok() {}
        let mut has_played = false;
        let end = match connect(&address, &trust).await {
            Ok((endpoint, connection)) => {
                let end = talk(&connection, &address, &hello, &mut orders, &frames, &mut has_played).await;
                connection.close(0_u32.into(), b"");
                // The server is told of the end, while the client goes on.
                tokio::spawn(async move { timeout(PATIENCE, endpoint.wait_idle()).await });
                end
            }
            Err(reason) => End::Lost(format!("no connection to {address}: {reason}")),
        };
        if has_played {
            (pause, hops) = (FIRST, 0);
        }
        match end {
            End::Over => return,
            End::Elsewhere(to) => {
                hops += 1;
                let is_dead = lost.as_ref().is_some_and(|(lost, at)| *lost == to && at.elapsed() < ENDED);
                // Servers that do not agree yet are asked again, in a while.
                let wait = if is_dead || to == address { AGAIN } else { FIRST * hops.saturating_sub(2).min(25) };
                let follows = !is_dead && to != address;
                let _ = frames.sender.send((FromServer::Moves(follows.then(|| to.clone())), None));
                sleep(wait).await;
                next = Some(if is_dead { address } else { to });
            }
            End::Lost(reason) => {
                let _ = frames.sender.send((FromServer::Lost(reason), None));
                lost = Some((address, Instant::now()));
                place += 1;
                sleep(pause).await;
                pause = (pause * 2).min(LAST);
            }
        }
    }
}

async fn connect(address: &str, trust: &Trust) -> Result<(Endpoint, Connection), String> {
    let found = timeout(PATIENCE, lookup_host(address)).await.map_err(|_| "its name is not found".to_owned())?;
    let to = found.map_err(|error| error.to_string())?.next().ok_or("its name has no address")?;
    let from: SocketAddr = if to.is_ipv6() { ([0_u16; 8], 0).into() } else { ([0_u8; 4], 0).into() };
    let verifier = Verifier::new(trust.clone(), address.to_owned());
    let mut endpoint = Endpoint::client(from).map_err(|error| error.to_string())?;
    endpoint.set_default_client_config(socket::client_config(verifier.clone()).map_err(|error| error.to_string())?);
    let connecting = endpoint.connect(to, NAME).map_err(|error| error.to_string())?;
    match timeout(PATIENCE, connecting).await {
        Ok(Ok(connection)) => Ok((endpoint, connection)),
        Ok(Err(error)) => Err(verifier.take_refusal().unwrap_or_else(|| said(&error))),
        Err(_) => Err("it does not answer".to_owned()),
    }
}

/// The reason for the end of a connection, for a player to read.
fn said(error: &ConnectionError) -> String {
    match error {
        ConnectionError::ApplicationClosed(closed) if !closed.reason.is_empty() => {
            String::from_utf8_lossy(&closed.reason).into_owned()
        }
        ConnectionError::TimedOut => "it does not answer".to_owned(),
        error => error.to_string(),
    }
}

async fn talk(
    connection: &Connection,
    address: &str,
    hello: &Hello,
    orders: &mut Receiver<Order>,
    frames: &ToFrames,
    has_played: &mut bool,
) -> End {
    let opened = in_time(PATIENCE, async {
        let (mut send, receive) = connection.open_bi().await.map_err(|_| WireError::Malformed)?;
        write(&mut send, hello).await?;
        Ok((send, receive))
    });
    let Ok((mut control, mut receive)) = opened.await else { return lost(connection, address) };
    let mut tasks = JoinSet::new();
    // The number of the stay that was announced last. Its streams may come before the announcement.
    let (announce, announced) = watch::channel(0_u32);
    tasks.spawn(receive_packets(connection.clone(), frames.clone()));
    tasks.spawn(receive_messages(connection.clone(), announced, frames.clone()));
    let (heard, mut control_messages) = channel(1);
    tasks.spawn(async move {
        while let Ok(Some(message)) = read::<ToClient>(&mut receive).await {
            if heard.send(message).await.is_err() {
                break;
            }
        }
    });
    let mut sync: Option<(u32, SendStream)> = None;
    loop {
        tokio::select! {
            message = control_messages.recv() => {
                let Some(message) = message else { return lost(connection, address) };
                let (mut bytes, mut stay, mut is_over) = (0, None, false);
                match &message {
                    ToClient::Elsewhere(to) => return End::Elsewhere(to.clone()),
                    ToClient::Refused(_) => is_over = true,
                    ToClient::Plays { stay: number, .. } => stay = Some(*number),
                    ToClient::Game(path, fields) => bytes = path.len() + fields.len(),
                    ToClient::Time { .. } => {}
                }
                if !frames.tell(FromServer::Control(message, address.to_owned()), bytes).await || is_over {
                    return End::Over;
                }
                if let Some(stay) = stay {
                    announce.send_replace(stay);
                    *has_played = true;
                }
            }
            order = orders.recv() => {
                let Some(order) = order else { return End::Over };
                if in_time(SILENCE, do_order(connection, &mut control, &mut sync, order)).await.is_err() {
                    return lost(connection, address);
                }
            }
            _ = connection.closed() => return lost(connection, address),
        }
    }
}

fn lost(connection: &Connection, address: &str) -> End {
    let reason = connection.close_reason().map_or_else(|| "it is lost".to_owned(), |error| said(&error));
    End::Lost(format!("the connection to {address}: {reason}"))
}

async fn do_order(
    connection: &Connection,
    control: &mut SendStream,
    sync: &mut Option<(u32, SendStream)>,
    order: Order,
) -> Result<(), WireError> {
    match order {
        Order::Tell(message) => write(control, &message).await?,
        Order::Packet(stay, packet) => send_packet(connection, stay, &packet),
        Order::Sync(stay, messages) => {
            if sync.as_ref().is_none_or(|(of, _)| *of != stay) {
                let mut stream = connection.open_uni().await.map_err(|_| WireError::Malformed)?;
                write_bytes(&mut stream, &stay.to_le_bytes()).await?;
                *sync = Some((stay, stream));
            }
            if let Some((_, stream)) = sync {
                for message in messages {
                    write_bytes(stream, &message).await?;
                }
            }
        }
    }
    Ok(())
}

async fn receive_packets(connection: Connection, frames: ToFrames) {
    while let Ok(datagram) = connection.read_datagram().await {
        if let Some((stay, packet)) = datagram.split_first()
            // Those without room are as good as lost.
            && let Some(taken) = frames.room.try_take(packet.len())
            && frames.sender.send((FromServer::Sync(*stay, packet.to_vec()), Some(taken))).is_err()
        {
            return;
        }
    }
}

async fn receive_messages(connection: Connection, announced: watch::Receiver<u32>, frames: ToFrames) {
    let mut tasks = JoinSet::new();
    while let Ok(stream) = connection.accept_uni().await {
        // The stream of an earlier stay may still have something to say.
        tasks.spawn(receive_stay(stream, announced.clone(), frames.clone()));
        while tasks.try_join_next().is_some() {}
    }
}

async fn receive_stay(mut stream: RecvStream, mut announced: watch::Receiver<u32>, frames: ToFrames) {
    let Ok(Some(stay)) = read_bytes(&mut stream, 4).await else { return };
    let Ok(stay) = stay.try_into().map(u32::from_le_bytes) else { return };
    if announced.wait_for(|known| *known >= stay).await.is_err() {
        return;
    }
    while let Ok(Some(message)) = read_bytes(&mut stream, MAX_SYNC_OF_SERVER).await {
        let bytes = message.len();
        if !frames.tell(FromServer::Sync(stay as u8, message), bytes).await {
            return;
        }
    }
}
