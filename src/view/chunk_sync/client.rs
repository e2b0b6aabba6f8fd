//! The client's side: chunks from the server are published as if they were the app's own.

use super::worker::{self, FromWorker, ToWorker};
use crate::chunk_sync::{EditAnswer, SyncArea, SyncProgress};
use crate::coordinator::messages::{BlockRefused, ColumnUpdate, DecidedEdit, Published};
use crate::simulation::SetBlock;
use crate::simulation::{BlockAccessError, BlockTypes};
use crate::space::DimensionId;
use crate::view::viewers::Place;
use crate::view::{DimensionOpen, PublishedColumns};
use bevy::prelude::*;
use crossbeam_channel::{Receiver, Sender, TryRecvError, unbounded};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::mem;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

/// A client's view of a dimension on a server. The chunks around this entity are in
/// [`PublishedColumns`](crate::view::PublishedColumns), with the usual messages and meshes, as if the dimension were in this
/// app. Chunks in the cache appear at once, before the server has answered; the others follow, nearest first.
///
/// The entity needs a `Transform` or a [`Position`](crate::simulation::Position); its [`DimensionOpen`] has the number
/// that was chosen for the dimension. The component has no transport: the game passes it the messages of the server's
/// [`ChunkSyncPeer`](super::ChunkSyncPeer) ([`receive`](Self::receive)), and sends its messages to that
/// ([`take_messages`](Self::take_messages)), reliably and in order. The app needs a
/// [`TerranePlugin`](crate::plugin::TerranePlugin), in memory if there is no other world. Blocks are matched by name;
/// blocks that the app does not know appear as placeholders.
///
/// A [`SetBlock`] in the dimension asks the server for an edit. It is shown at once, and taken back if the server refuses it or
/// does not answer.
///
/// Disk access and decoding run on a thread of their own. Despawn the entity to leave the server; the cache is then written.
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
#[derive(Component, Debug, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(from_reflect = false)]
#[reflect(Component)]
pub struct ChunkSyncClient {
    /// Tells apart two clients that an entity has one after the other.
    #[reflect(ignore)]
    life: u64,
    #[reflect(ignore)]
    dimension: DimensionId,
    #[reflect(ignore)]
    radius: u32,
    #[reflect(ignore)]
    vertical: u32,
    /// The cache file, and its maximum size in bytes.
    #[reflect(ignore)]
    cache: Option<(PathBuf, u64)>,
    /// The ends of the worker's channels: orders, and results.
    #[reflect(ignore)]
    worker: Option<(Sender<ToWorker>, Receiver<FromWorker>)>,
    #[reflect(ignore)]
    looked: Option<SyncArea>,
    /// The area that the progress refers to.
    #[reflect(ignore)]
    known: Option<SyncArea>,
    /// Orders that wait for the worker.
    #[reflect(ignore)]
    orders: Vec<ToWorker>,
    #[reflect(ignore)]
    outgoing: Vec<Vec<u8>>,
    #[reflect(ignore)]
    progress: SyncProgress,
    #[reflect(ignore)]
    takes_edits: bool,
    /// The edits that are not decided, by number.
    #[reflect(ignore)]
    edits: BTreeMap<u64, SetBlock>,
}

/// The threads of all workers, including those that still write the cache of a removed client.
#[derive(Resource, Default)]
pub(in crate::view) struct SyncThreads(Vec<JoinHandle<()>>);

impl ChunkSyncClient {
    /// A view with a radius of 12 columns, and of 8 chunks vertically in tall dimensions, without a cache. `dimension` is the
    /// number in this app and must be unused; the dimensions of the app's own world have numbers from 0.
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
            takes_edits: false,
            edits: BTreeMap::new(),
        }
    }

    /// Sets the radius, in columns. The server may allow less.
    pub fn with_radius(mut self, columns: u32) -> Self {
        self.radius = columns;
        self
    }

    /// Sets the vertical radius, in chunks. It applies in dimensions of more than 64 chunks of height.
    pub fn with_vertical_radius(mut self, chunks: u32) -> Self {
        self.vertical = chunks;
        self
    }

    /// Keeps chunks in this file for the client's next visit. Each dimension of each server needs its own file, which is created
    /// if necessary. It takes about `most_bytes` at most, and at least 1 MiB; a full file evicts the farthest chunks first.
    pub fn with_cache(mut self, path: impl Into<PathBuf>, most_bytes: u64) -> Self {
        self.cache = Some((path.into(), most_bytes));
        self
    }

    /// The number of the dimension in this app.
    pub fn dimension(&self) -> DimensionId {
        self.dimension
    }

    /// Takes a message of the server.
    pub fn receive(&mut self, message: impl Into<Vec<u8>>) {
        self.orders.push(ToWorker::Message(message.into()));
    }

    /// The messages for the server, in order.
    pub fn take_messages(&mut self) -> Vec<Vec<u8>> {
        mem::take(&mut self.outgoing)
    }

    /// Returns `true` if the server takes edits. Otherwise each [`SetBlock`] in the dimension is refused.
    pub fn takes_edits(&self) -> bool {
        self.takes_edits
    }

    /// Sends an edit to the server.
    pub(in crate::view) fn edit(&mut self, number: u64, request: SetBlock) {
        self.edits.insert(number, request);
        if self.worker.is_some() {
            self.orders.push(ToWorker::Edit { number, position: request.position, block: request.block });
        }
    }

    /// The decision about an edit, for the predictions, and the refusal for the game.
    fn decide(&mut self, EditAnswer { id, is_accepted }: EditAnswer, news: &mut Published) {
        let Some(request) = self.edits.remove(&id) else { return };
        let chunk = request.position.chunk();
        news.decided.push(DecidedEdit { number: id, dimension: self.dimension, chunk, is_accepted });
        if !is_accepted {
            let error = BlockAccessError::RefusedByServer(request.position);
            news.push_event(BlockRefused { request, error }.into());
        }
    }

    /// Notes that the connection is lost. The view stays, and is brought up to date over the next connection. Edits without an
    /// answer are taken back.
    pub fn disconnected(&mut self) {
        self.outgoing.clear();
        self.takes_edits = false;
        self.orders.push(ToWorker::Disconnected);
    }

    /// The progress, and the savings of the cache. It may be some frames old.
    pub fn progress(&self) -> SyncProgress {
        self.progress
    }

    /// Returns `true` if the server has answered for everything near the present position.
    pub fn is_complete(&self) -> bool {
        let SyncProgress { wanted, answered, .. } = self.progress;
        self.known.is_some() && self.known == self.looked && wanted > 0 && answered == wanted
    }

    /// Handles what the worker has told.
    fn take_results(&mut self, news: &mut Published) {
        let dimension = self.dimension;
        // Without a worker no edit is ever answered.
        let mut is_gone = self.worker.is_none();
        while let Some((_, told)) = &self.worker {
            let told = match told.try_recv() {
                Ok(told) => told,
                Err(error) => {
                    is_gone = error == TryRecvError::Disconnected;
                    break;
                }
            };
            match told {
                FromWorker::Column(column, update) => news.update_column((dimension, column), update),
                FromWorker::Chunk(chunk, blocks) => _ = news.chunks.insert((dimension, chunk), blocks),
                FromWorker::Light(light) => _ = news.light.insert((dimension, light.pos()), light),
                FromWorker::Message(message) => self.outgoing.push(message),
                FromWorker::Nonsense(error) => warn!("the server sent an invalid message: {error}"),
                FromWorker::Edit(answer) => self.decide(answer, news),
                FromWorker::Disconnected => {
                    self.outgoing.clear();
                    self.takes_edits = false;
                }
                FromWorker::Progress { area, progress, takes_edits } => {
                    (self.known, self.progress, self.takes_edits) = (area, progress, takes_edits);
                }
            }
        }
        if is_gone {
            self.takes_edits = false;
            let lost: Vec<u64> = self.edits.keys().copied().collect();
            lost.into_iter().for_each(|id| self.decide(EditAnswer { id, is_accepted: false }, news));
        }
    }

    /// Sends the worker its orders.
    fn tell_worker(&mut self) {
        if let Some((orders, _)) = &self.worker {
            // The worker ends only with this client.
            self.orders.drain(..).for_each(|order| _ = orders.send(order));
        }
    }
}

/// Starts workers. They start in the running app, when the blocks are known.
pub(in crate::view) fn start_clients(
    mut clients: Query<&mut ChunkSyncClient>,
    blocks: Option<Res<BlockTypes>>,
    published: Res<PublishedColumns>,
    mut threads: ResMut<SyncThreads>,
) {
    let Some(blocks) = blocks else { return };
    for mut client in clients.iter_mut().filter(|client| client.worker.is_none()) {
        let (orders, from_main) = unbounded();
        let (to_main, told) = unbounded();
        let (cache, blocks, table) = (client.cache.clone(), blocks.0.clone(), published.light_table());
        let run = move || worker::run(cache, (blocks, table), &from_main, &to_main);
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

/// Sends workers the positions of their clients, and the server's messages.
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

/// Adds the workers' results to the published state.
pub(in crate::view) fn apply_results(
    mut clients: Query<(Entity, &mut ChunkSyncClient)>,
    mut backlog: ResMut<Published>,
    mut published: ResMut<PublishedColumns>,
    mut known: Local<FxHashMap<Entity, (u64, DimensionId)>>,
    mut commands: Commands,
) {
    let mut news = Published::default();
    known.retain(|entity, (life, dimension)| {
        let is_here = clients.get(*entity).is_ok_and(|(_, client)| client.life == *life);
        if !is_here {
            // Results of the old client that wait are dropped.
            backlog.columns.retain(|(of, _), _| *of != *dimension);
            backlog.chunks.retain(|(of, _), _| *of != *dimension);
            published.forget_predictions(*dimension);
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
        client.take_results(&mut news);
    }
    if !news.is_empty() {
        backlog.append(news);
    }
}

/// Unloads all columns of a dimension.
fn unloaded(published: &PublishedColumns, dimension: DimensionId) -> Published {
    let columns = published.iter().filter(|(of, _)| *of == dimension);
    let columns = columns.map(|(of, column)| ((of, column.pos()), ColumnUpdate::Unloaded)).collect();
    Published { columns, ..default() }
}

/// Waits until the caches are written, since the process may end right after the app.
pub(in crate::view) fn end_clients(
    mut clients: Query<&mut ChunkSyncClient>,
    mut threads: ResMut<SyncThreads>,
    exits: MessageReader<AppExit>,
) {
    if exits.is_empty() {
        return;
    }
    clients.iter_mut().for_each(|mut client| drop(client.worker.take()));
    // The panic message of a worker was printed already.
    threads.0.drain(..).for_each(|thread| _ = thread.join());
}
