//! The client's side: chunks from the server are published as if they were the app's own.

use super::actors::{ActorMessage, NamedAction, SentComponent, decoded, mirror_update};
use super::packets::{self, MAX_STEPS, SentBody};
use super::worker::{self, FromWorker, ToWorker};
use crate::chunk_sync::{EditAnswer, MAX_ACTION_BYTES, SyncArea, SyncProgress};
use crate::coordinator::messages::{
    ActionAnswer, ActionId, ActionOutcome, BlockRefused, ColumnUpdate, DecidedEdit, Published,
};
use crate::entity_sync::{EntityNews, EntityPlace};
use crate::simulation::{
    ActionOrder, Actor, BlockAccessError, BlockTypes, DecidedAction, MirrorUpdate, Position, Refusal, RegionComponents,
    SetBlock, Steer, SteeredBody,
};
use crate::space::{ChunkPos, DimensionId};
use crate::view::Components;
use crate::view::actions::ActionPredictions;
use crate::view::viewers::Place;
use crate::view::{DimensionOpen, OwnBody, PublishedColumns};
use bevy::prelude::*;
use crossbeam_channel::{Receiver, Sender, TryRecvError, unbounded};
use rustc_hash::{FxHashMap, FxHashSet};
use std::any::TypeId;
use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use uuid::Uuid;

/// A client's view of a dimension on a server. The chunks around this entity are in
/// [`PublishedColumns`](crate::view::PublishedColumns), with the usual messages and meshes, as if the dimension were in this
/// app. Chunks in the cache appear at once, before the server has answered; the others follow, nearest first.
///
/// The entity needs a `Transform` or a [`Position`](crate::simulation::Position); its [`DimensionOpen`] has the number
/// that was chosen for the dimension. The component has no transport: the game passes it the messages and packets of the server's
/// [`ChunkSyncPeer`](super::ChunkSyncPeer) ([`receive`](Self::receive)), and sends its messages to that
/// ([`take_messages`](Self::take_messages)), reliably and in order, and its [packets](Self::take_packet) in any way. The app needs a
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
    /// The lost connections of which the worker has not told yet. Until then, its messages are not for the next one.
    #[reflect(ignore)]
    lost_connections: u32,
    /// The edits that are not decided, by number.
    #[reflect(ignore)]
    edits: BTreeMap<u64, SetBlock>,
    /// The entity that acts for the client, and its session.
    #[reflect(ignore)]
    actor: Option<(Uuid, u64)>,
    /// The actions that are not decided, by number.
    #[reflect(ignore)]
    actions: BTreeMap<u64, SentAction>,
    /// The actions that were done and may be lost, by number, each with its session.
    #[reflect(ignore)]
    done: BTreeMap<u64, u64>,
    /// The entities around the client, with their newest places.
    #[reflect(ignore)]
    entities: FxHashMap<Uuid, (Position, Duration)>,
    /// The newest that the server has told of the client's own body, and whether it is news.
    #[reflect(ignore)]
    body: Option<(SentBody, bool)>,
    /// The steps of the own body that the server may not have, oldest first.
    #[reflect(ignore)]
    steps: VecDeque<Steer>,
    #[reflect(ignore)]
    packet: Option<Vec<u8>>,
    /// The bytes of the server that wait for the worker.
    #[reflect(ignore)]
    unread: Arc<AtomicUsize>,
}

/// An action that was sent to the server.
#[derive(Debug)]
struct SentAction {
    actor: Uuid,
    session: u64,
    /// The chunks in which it was predicted.
    chunks: Vec<ChunkPos>,
    /// Why it is about to be refused.
    refusal: Option<Refusal>,
    /// `true` if it is durable, and is about to be done.
    is_durable: bool,
}

/// The bytes of a server that may wait for the worker.
const MAX_UNREAD: usize = 8 << 20;
/// The actions that may be lost and are remembered, at most.
const MOST_DONE: usize = 4_096;

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
            lost_connections: 0,
            edits: BTreeMap::new(),
            actor: None,
            actions: BTreeMap::new(),
            done: BTreeMap::new(),
            entities: FxHashMap::default(),
            body: None,
            steps: VecDeque::new(),
            packet: None,
            unread: Arc::default(),
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

    /// Takes a message or a packet of the server.
    pub fn receive(&mut self, message: impl Into<Vec<u8>>) {
        let message = message.into();
        self.unread.fetch_add(message.len(), Ordering::Relaxed);
        self.orders.push(ToWorker::Message(message));
    }

    /// Returns `true` if so much of the server's waits that a transport should read on later.
    pub fn is_full(&self) -> bool {
        self.unread.load(Ordering::Relaxed) > MAX_UNREAD
    }

    /// The newest packet for the server, if there is one. It may be lost, repeated or overtaken by others.
    pub fn take_packet(&mut self) -> Option<Vec<u8>> {
        self.packet.take()
    }

    /// Sends a step of the client's own body to the server, together with those that may be lost.
    pub(in crate::view) fn step(&mut self, step: Steer) {
        let known = self.body.as_ref().map_or(0, |(body, _)| body.body.number);
        self.steps.retain(|step| step.number > known);
        self.steps.push_back(step);
        if self.steps.len() > MAX_STEPS {
            self.steps.pop_front();
        }
        self.packet = Some(packets::write_steps(self.steps.iter().copied().collect()));
    }

    /// The client's own body as the server has it, if there is news since the last call.
    pub(in crate::view) fn take_body(&mut self) -> Option<SteeredBody> {
        let (body, is_news) = self.body.as_mut()?;
        let mut body = mem::take(is_news).then_some(body.body)?;
        body.state.position.dimension = self.dimension;
        Some(body)
    }

    /// Shows what the server has told of an entity.
    fn show(&mut self, entity: EntityNews, components: &RegionComponents, news: &mut Published) {
        let dimension = self.dimension;
        let position = |place: EntityPlace| Position { dimension, block: place.block, offset: place.offset.into() };
        let look = |place: EntityPlace| place.look.and_then(|look| components.mirrored.looking(look));
        let update = match entity {
            EntityNews::Appeared { id, place, clock, components: sent } => {
                self.entities.insert(id, (position(place), clock));
                // It has no others.
                let all = components.mirrored.types_for_all().map(|path| (path.to_owned(), None));
                let sent = sent.into_iter().map(|(path, bytes)| (path, Some(bytes)));
                (id, all.chain(sent).collect(), look(place))
            }
            EntityNews::Moved { id, place, clock, .. } => {
                self.entities.insert(id, (position(place), clock));
                (id, Vec::new(), look(place))
            }
            EntityNews::Changed { id, components } => (id, components, None),
            EntityNews::Left(id) => {
                if self.entities.remove(&id).is_some() && self.actor() != Some(id) {
                    news.push_mirror(MirrorUpdate::gone(id));
                }
                return;
            }
        };
        let (id, sent, look): (Uuid, Vec<SentComponent>, _) = update;
        let Some(position) = self.entities.get(&id).filter(|_| self.actor() != Some(id)) else { return };
        let look = look.map(|(number, value)| (number, Some(value)));
        let components = sent.into_iter().filter_map(|sent| decoded(components, sent)).chain(look).collect();
        news.push_mirror(MirrorUpdate { id, is_new: false, position: Some(*position), components });
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

    /// The stable id of the entity that acts for this client, once the server has told of it. Its mirror is in this app, and
    /// [`Actions`](crate::view::Actions) let it act.
    pub fn actor(&self) -> Option<Uuid> {
        self.actor.map(|(actor, _)| actor)
    }

    fn has_mirror(&self, id: Uuid) -> bool {
        self.entities.contains_key(&id) || self.actor() == Some(id)
    }

    /// Sends an action to the server. It was predicted in these chunks.
    pub(in crate::view) fn act(&mut self, order: &ActionOrder, bytes: &[u8], chunks: Vec<ChunkPos>) {
        let ActionOrder { id, actor, session, .. } = *order;
        let named = NamedAction { name: order.action.name().to_owned(), bytes: bytes.to_vec() };
        let bytes = crate::bytes::put_value(Vec::new(), &named);
        // The server's side of the connection refuses it.
        let refusal = (bytes.len() > MAX_ACTION_BYTES).then_some(Refusal::TooLarge);
        self.actions.insert(id, SentAction { actor, session, chunks, refusal, is_durable: false });
        if self.worker.is_some() {
            self.orders.push(ToWorker::Act { number: id, bytes });
        }
    }

    /// The decision about an action.
    fn decide_action(&mut self, EditAnswer { id, is_accepted }: EditAnswer, sent: SentAction, news: &mut Published) {
        let SentAction { actor, session, chunks, refusal, is_durable } = sent;
        let result = match is_accepted {
            true => Ok((self.dimension, chunks)),
            false => Err(refusal.unwrap_or(Refusal::Unanswered)),
        };
        if is_accepted && is_durable {
            news.settled.push(settled(id, actor, ActionOutcome::Durable));
        } else if is_accepted {
            if self.done.len() >= MOST_DONE {
                self.done.pop_first();
            }
            self.done.insert(id, session);
        }
        news.acted.push(DecidedAction { id, actor, result });
    }

    /// Takes in what the server tells of the actor.
    fn hear_of_actor(
        &mut self,
        message: ActorMessage,
        components: &RegionComponents,
        predictions: &mut ActionPredictions,
        news: &mut Published,
    ) {
        match (message, self.actor) {
            (ActorMessage::Begins { actor, session }, _) => {
                self.end_actor_unless(Some(actor), news);
                predictions.set_session(actor, session);
                self.actor = Some((actor, session));
            }
            (ActorMessage::State { block, offset, elapsed, components: sent }, Some((actor, session))) => {
                let update = mirror_update(actor, self.dimension, (block, offset, elapsed), sent, components);
                let number = components.mirrored.number(TypeId::of::<Actor>());
                let known = number.and_then(|number| update.components.get(&number)?.as_ref()?.downcast_ref::<Actor>());
                if let Some(last) = known.map(Actor::last) {
                    // After a new connection, those of earlier sessions that the world does not remember are lost.
                    let earlier = self.done.extract_if(.., |_, of| *of != session);
                    let lost = earlier.filter(|(id, of)| (*of, *id) > last).map(|(id, _)| id);
                    news.settled.extend(lost.map(|id| settled(id, actor, ActionOutcome::Lost)));
                }
                news.push_mirror(update);
            }
            (ActorMessage::Gone, _) => self.end_actor_unless(None, news),
            (ActorMessage::Refused(id, reason), _) => {
                if let Some(sent) = self.actions.get_mut(&id) {
                    sent.refusal = Some(reason);
                }
            }
            (ActorMessage::Durable(ids), Some((actor, _))) => {
                for id in &ids {
                    // Its answer is behind the chunks that it has changed.
                    if let Some(sent) = self.actions.get_mut(id) {
                        sent.is_durable = true;
                    }
                }
                let ids = ids.into_iter().filter(|id| self.done.remove(id).is_some());
                news.settled.extend(ids.map(|id| settled(id, actor, ActionOutcome::Durable)));
            }
            (ActorMessage::Lost(ids), Some((actor, _))) => {
                let ids = ids.into_iter().filter(|id| self.done.remove(id).is_some());
                news.settled.extend(ids.map(|id| settled(id, actor, ActionOutcome::Lost)));
            }
            (_, None) => {}
        }
    }

    /// Removes the mirror of the actor, unless it is this one.
    fn end_actor_unless(&mut self, stays: Option<Uuid>, news: &mut Published) {
        if let Some((actor, _)) = self.actor.filter(|(actor, _)| Some(*actor) != stays) {
            self.actor = None;
            news.push_mirror(MirrorUpdate::gone(actor));
        }
    }

    /// The decision about an edit, for the predictions, and the refusal for the game.
    fn decide(&mut self, EditAnswer { id, is_accepted }: EditAnswer, news: &mut Published) {
        if let Some(sent) = self.actions.remove(&id) {
            return self.decide_action(EditAnswer { id, is_accepted }, sent, news);
        }
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
        self.lost_connections += 1;
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
    fn take_results(
        &mut self,
        components: &RegionComponents,
        predictions: &mut ActionPredictions,
        news: &mut Published,
    ) {
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
                FromWorker::Message(message) if self.lost_connections == 0 => self.outgoing.push(message),
                FromWorker::Message(_) => {}
                FromWorker::Nonsense(error) => warn!("the server sent an invalid message: {error}"),
                FromWorker::Edit(answer) => self.decide(answer, news),
                FromWorker::Entity(entity) => self.show(entity, components, news),
                FromWorker::Body(body) => {
                    // Packets may be overtaken.
                    if self.body.as_ref().is_none_or(|(known, _)| known.clock < body.clock) {
                        self.body = Some((body, true));
                    }
                }
                FromWorker::Actor(message) => match ActorMessage::decode(&message) {
                    Ok(message) => self.hear_of_actor(message, components, predictions, news),
                    Err(error) => warn!("the server sent an invalid message about the actor: {error}"),
                },
                FromWorker::Disconnected => {
                    self.lost_connections = self.lost_connections.saturating_sub(1);
                    // The next connection tells whether it is there.
                    self.end_actor_unless(None, news);
                    self.takes_edits = false;
                    (self.body, self.steps) = Default::default();
                }
                FromWorker::Progress { area, progress, takes_edits } => {
                    (self.known, self.progress) = (area, progress);
                    // This may still come from the lost connection.
                    self.takes_edits = takes_edits && self.lost_connections == 0;
                }
            }
        }
        if is_gone {
            self.takes_edits = false;
            let lost: Vec<u64> = self.edits.keys().chain(self.actions.keys()).copied().collect();
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
        let unread = client.unread.clone();
        let run = move || worker::run(cache, (blocks, table), (&from_main, &unread), &to_main);
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
    (components, mut predictions): (Option<Res<Components>>, ResMut<ActionPredictions>),
    mut bodies: Query<&mut OwnBody>,
    mut known: Local<FxHashMap<Entity, (u64, DimensionId, FxHashSet<Uuid>)>>,
    mut commands: Commands,
) {
    let Some(components) = components else { return };
    let mut news = Published::default();
    known.retain(|entity, (life, dimension, mirrors)| {
        let is_here = clients.get(*entity).is_ok_and(|(_, client)| client.life == *life);
        if !is_here {
            // Results of the old client that wait are dropped.
            backlog.columns.retain(|(of, _), _| *of != *dimension);
            backlog.chunks.retain(|(of, _), _| *of != *dimension);
            published.forget_predictions(*dimension);
            news.append(unloaded(&published, *dimension));
            let is_of_other = |id: &Uuid| clients.iter().any(|(_, other)| other.has_mirror(*id));
            let gone = mirrors.iter().filter(|id| !is_of_other(id));
            gone.for_each(|id| news.push_mirror(MirrorUpdate::gone(*id)));
            if let Ok(mut entity) = commands.get_entity(*entity) {
                entity.try_remove::<DimensionOpen>();
            }
        }
        is_here
    });
    for (entity, mut client) in &mut clients {
        let dimension = client.dimension;
        client.take_results(&components.0, &mut predictions, &mut news);
        if let Some(body) = client.take_body() {
            let own = bodies.iter_mut().filter(|own| Some(own.id()) == client.actor());
            own.into_iter().for_each(|mut own| own.set_known(body));
        }
        let mirrors = client.entities.keys().copied().chain(client.actor()).collect();
        if known.insert(entity, (client.life, dimension, mirrors)).is_none() {
            commands.entity(entity).insert(DimensionOpen { id: dimension });
        }
    }
    if !news.is_empty() {
        backlog.append(news);
    }
}

fn settled(id: u64, actor: Uuid, outcome: ActionOutcome) -> ActionAnswer {
    ActionAnswer { action: ActionId(id), actor, outcome }
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
