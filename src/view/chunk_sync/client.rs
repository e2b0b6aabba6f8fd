//! The client's side: what the server sends is published as if it were the world's.

use super::worker::{self, FromWorker, ToWorker};
use crate::chunk_sync::{SyncArea, SyncProgress};
use crate::coordinator::{ColumnUpdate, Published};
use crate::simulation::BlockTypes;
use crate::space::DimensionId;
use crate::view::viewers::Place;
use crate::view::{DimensionOpen, PublishedColumns};
use bevy::prelude::*;
use crossbeam_channel::{Receiver, Sender, unbounded};
use rustc_hash::FxHashMap;
use std::mem;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

/// A client's view of a dimension of a server: what is around this entity is in
/// [`PublishedColumns`](crate::view::PublishedColumns), with the messages and meshes that come of it, as if the dimension were
/// of this app. What the cache has of it is there at once, before the server has said a word; the rest follows, nearest first.
///
/// The entity needs a `Transform` or a [`Position`](crate::simulation::Position); its [`DimensionOpen`] has the number
/// that was chosen for the dimension. It has no transport: the game hands it what the server's
/// [`ChunkSyncPeer`](super::ChunkSyncPeer) sent ([`receive`](Self::receive)), and sends to that what is to be sent
/// ([`take_messages`](Self::take_messages)), reliably and in order. The app needs a
/// [`TerranePlugin`](crate::plugin::TerranePlugin), in memory if there is no other world; blocks are matched by their
/// names, and those that the app does not know are seen as placeholders.
///
/// Disk and decoding are on a thread of their own. Despawn it to leave the server; the cache is then written.
///
/// ```
/// use bevy_terrane::prelude::*;
/// use bevy_terrane::view::ChunkSyncClient;
///
/// fn join(mut commands: Commands) {
///     let client = ChunkSyncClient::new(DimensionId(1 << 32)).with_radius(16);
///     commands.spawn((Camera3d::default(), client.with_cache("caches/example.org overworld", 256 << 20)));
/// }
/// # bevy::ecs::system::assert_is_system(join);
/// ```
#[derive(Component, Debug)]
pub struct ChunkSyncClient {
    /// Of two that an entity has one after the other, which.
    life: u64,
    dimension: DimensionId,
    radius: u32,
    vertical: u32,
    /// The file, and its greatest size.
    cache: Option<(PathBuf, u64)>,
    /// The ends of its channels: orders, and what it told.
    worker: Option<(Sender<ToWorker>, Receiver<FromWorker>)>,
    looked: Option<SyncArea>,
    /// For which chunks its progress is.
    known: Option<SyncArea>,
    /// For the worker.
    orders: Vec<ToWorker>,
    outgoing: Vec<Vec<u8>>,
    progress: SyncProgress,
}

/// The threads of all workers, those too whose clients have left and that may still write.
#[derive(Resource, Default)]
pub(in crate::view) struct SyncThreads(Vec<JoinHandle<()>>);

impl ChunkSyncClient {
    /// A view of 12 columns around, and 8 chunks above and below in tall dimensions, without a cache. Its dimension has this
    /// number in this app, which no other may have: those of an own world begin at 0.
    pub fn new(dimension: DimensionId) -> Self {
        static LIVES: AtomicU64 = AtomicU64::new(0);
        Self {
            life: LIVES.fetch_add(1, Ordering::Relaxed),
            dimension,
            radius: 12,
            vertical: 8,
            cache: None,
            worker: None,
            looked: None,
            known: None,
            orders: Vec::new(),
            outgoing: Vec::new(),
            progress: SyncProgress::default(),
        }
    }

    /// Columns up to this distance are seen. The server may allow less.
    pub fn with_radius(mut self, columns: u32) -> Self {
        self.radius = columns;
        self
    }

    /// In a dimension of more than 64 chunks of height, chunks up to this distance above and below are seen.
    pub fn with_vertical_radius(mut self, chunks: u32) -> Self {
        self.vertical = chunks;
        self
    }

    /// Chunks are remembered in this file until the client comes again: one for each dimension of each server. It is made if there
    /// is none. The file takes about `most_bytes` at the most, and at least 1 MiB; when it is full, what is farthest away goes first.
    pub fn with_cache(mut self, path: impl Into<PathBuf>, most_bytes: u64) -> Self {
        self.cache = Some((path.into(), most_bytes));
        self
    }

    /// The number of the dimension in this app.
    pub fn dimension(&self) -> DimensionId {
        self.dimension
    }

    /// Takes in a message of the server.
    pub fn receive(&mut self, message: impl Into<Vec<u8>>) {
        self.orders.push(ToWorker::Message(message.into()));
    }

    /// What is to be sent to the server, in this order.
    pub fn take_messages(&mut self) -> Vec<Vec<u8>> {
        mem::take(&mut self.outgoing)
    }

    /// The connection is lost. What is seen stays, and is brought up to date over the next one.
    pub fn disconnected(&mut self) {
        self.outgoing.clear();
        self.orders.push(ToWorker::Disconnected);
    }

    /// How far it is, and what the cache saved. What it counts may be some frames old.
    pub fn progress(&self) -> SyncProgress {
        self.progress
    }

    /// Whether the server has answered for all that is near where it is now.
    pub fn is_complete(&self) -> bool {
        let SyncProgress { wanted, answered, .. } = self.progress;
        self.known.is_some() && self.known == self.looked && wanted > 0 && answered == wanted
    }

    /// Hands over what the worker must know.
    fn tell_worker(&mut self) {
        if let Some((orders, _)) = &self.worker {
            // It ends only with this.
            self.orders.drain(..).for_each(|order| _ = orders.send(order));
        }
    }
}

/// Starts workers; the blocks are known when the app runs.
pub(in crate::view) fn start_clients(
    mut clients: Query<&mut ChunkSyncClient>,
    blocks: Option<Res<BlockTypes>>,
    mut threads: ResMut<SyncThreads>,
) {
    let Some(blocks) = blocks else { return };
    for mut client in clients.iter_mut().filter(|client| client.worker.is_none()) {
        let (orders, from_main) = unbounded();
        let (to_main, told) = unbounded();
        let (cache, blocks) = (client.cache.clone(), blocks.0.clone());
        let run = move || worker::run(cache, blocks, &from_main, &to_main);
        match std::thread::Builder::new().name("terrane chunk sync".into()).spawn(run) {
            Ok(thread) => {
                threads.0.retain(|thread| !thread.is_finished());
                threads.0.push(thread);
                client.worker = Some((orders, told));
            }
            Err(error) => error_once!("nothing of a server can be seen: {error}"),
        }
    }
}

/// Tells workers where their clients are, and what the server sent.
pub(in crate::view) fn follow_clients(mut clients: Query<(&mut ChunkSyncClient, Place)>) {
    for (mut client, place) in &mut clients {
        if let Some(position) = place.position() {
            let ChunkSyncClient { radius, vertical, .. } = *client;
            let area = SyncArea { center: position.block.chunk(), radius, vertical };
            if client.looked.replace(area) != Some(area) {
                client.orders.push(ToWorker::Look(area));
            }
        }
        client.tell_worker();
    }
}

/// Puts what workers tell to what is published.
pub(in crate::view) fn take_in(
    mut clients: Query<(Entity, &mut ChunkSyncClient)>,
    mut backlog: ResMut<Published>,
    published: Res<PublishedColumns>,
    mut known: Local<FxHashMap<Entity, (u64, DimensionId)>>,
    mut commands: Commands,
) {
    let mut news = Published::default();
    known.retain(|entity, (life, dimension)| {
        let is_here = clients.get(*entity).is_ok_and(|(_, client)| client.life == *life);
        if !is_here {
            // What waits of its ground is not told any more.
            backlog.columns.retain(|(of, _), _| *of != *dimension);
            backlog.chunks.retain(|(of, _), _| *of != *dimension);
            news.append(unloaded(&published, *dimension));
            if let Ok(mut entity) = commands.get_entity(*entity) {
                entity.try_remove::<DimensionOpen>();
            }
        }
        is_here
    });
    for (entity, mut client) in &mut clients {
        let dimension = client.dimension;
        if known.insert(entity, (client.life, dimension)).is_none() {
            commands.entity(entity).insert(DimensionOpen { id: dimension });
        }
        let client = &mut *client;
        for told in client.worker.iter().flat_map(|(_, told)| told.try_iter()) {
            match told {
                FromWorker::Column(column, update) => news.update_column((dimension, column), update),
                FromWorker::Chunk(chunk, blocks) => _ = news.chunks.insert((dimension, chunk), blocks),
                FromWorker::Message(message) => client.outgoing.push(message),
                FromWorker::Nonsense(error) => warn!("the server sent nonsense: {error}"),
                FromWorker::Progress(area, progress) => (client.known, client.progress) = (area, progress),
            }
        }
    }
    if !news.is_empty() {
        backlog.append(news);
    }
}

/// All columns of a dimension go.
fn unloaded(published: &PublishedColumns, dimension: DimensionId) -> Published {
    let columns = published.iter().filter(|(of, _)| *of == dimension);
    let columns = columns.map(|(of, column)| ((of, column.pos()), ColumnUpdate::Unloaded)).collect();
    Published { columns, ..default() }
}

/// The process may end right after the app: caches are written before.
pub(in crate::view) fn end_clients(
    mut clients: Query<&mut ChunkSyncClient>,
    mut threads: ResMut<SyncThreads>,
    exits: MessageReader<AppExit>,
) {
    if exits.is_empty() {
        return;
    }
    clients.iter_mut().for_each(|mut client| drop(client.worker.take()));
    // Whatever one panicked with was printed.
    threads.0.drain(..).for_each(|thread| _ = thread.join());
}
