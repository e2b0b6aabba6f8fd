//! Requests of the main world to the simulation.

use super::actions::{KnownActions, predict};
use super::dimension::Closing;
use super::edit_queue::EditQueue;
use super::{
    ChunkSyncClient, ColumnChange, ColumnChanged, Coupling, Dimension, DimensionClock, DimensionGeneration,
    DimensionOpen, Mirror, OwnBody, Pacing, PublishedColumns, RetryColumns,
};
use crate::coordinator::MainLink;
use crate::coordinator::answers::{ask_column, ask_opacity, follow_entity};
use crate::coordinator::closing::backup::{back_up_world, save_world};
use crate::coordinator::closing::close::close_dimension;
use crate::coordinator::closing::opening::open_dimension;
use crate::coordinator::collect::edit_blocks;
use crate::coordinator::messages::{
    ActionAnswer, ActionOutcome, AskColumn, AskOpacity, BackupWorld, ControlRegion, DrainServer, FollowEntity, LogIn,
    LogOut, SaveWorld, ServerEnded, StepDimension,
};
use crate::coordinator::passes::letters::post_letters;
use crate::coordinator::schedule::control::{control_region, couple, set_clock, set_time_of_day, step_dimension};
use crate::coordinator::servers::drain_server;
use crate::coordinator::servers::players::{log_in, log_out};
use crate::coordinator::stream::orders::{retry_columns, set_generation, set_pacing};
use crate::simulation::{BlockEdit, BlockTypes, Letter, Position, Refusal, SetBlock, TimeOfDay};
use bevy::prelude::*;
use std::collections::BTreeSet;
use std::mem;

pub(super) fn build(app: &mut App) {
    app.init_resource::<EditQueue>()
        .add_message::<SetBlock>()
        .add_message::<AskOpacity>()
        .add_message::<AskColumn>()
        .add_message::<FollowEntity>()
        .add_message::<SaveWorld>()
        .add_message::<BackupWorld>()
        .add_message::<LogIn>()
        .add_message::<LogOut>()
        .add_message::<DrainServer>()
        .add_message::<StepDimension>()
        .add_message::<ControlRegion>()
        .add_message::<RetryColumns>()
        .add_systems(Last, exit_ended);
}

/// Shows the frame's actions, and hands them to the regions of their entities, or to the client of a server.
pub(super) fn send_actions(
    world: &mut World,
    clients: &mut QueryState<(Entity, &'static ChunkSyncClient)>,
    mirrors: &mut QueryState<(EntityRef<'static>, &'static Mirror)>,
    bodies: &mut QueryState<(&'static OwnBody, &'static Position)>,
) {
    let mut letters = Vec::new();
    for (id, actor, action) in world.resource_mut::<EditQueue>().take_actions() {
        let client = clients.iter(world).find(|(_, client)| client.actor() == Some(actor)).map(|(entity, _)| entity);
        let sent = predict(world, mirrors, bodies, id, actor, &action).and_then(|(order, chunks)| {
            let Some(client) = client else {
                letters.push(Letter::action(order));
                return Ok(());
            };
            let bytes = world.resource::<KnownActions>().types.encode(&*action);
            let bytes = bytes.ok_or_else(|| Refusal::Unregistered(action.name().to_owned()))?;
            if let Some(mut client) = world.get_mut::<ChunkSyncClient>(client) {
                client.act(&order, &bytes, chunks);
            }
            Ok(())
        });
        if let Err(refusal) = sent {
            world.write_message(ActionAnswer { action: id, actor, outcome: ActionOutcome::Refused(refusal) });
        }
    }
    if !letters.is_empty() {
        world.resource::<MainLink>().request(post_letters, letters);
    }
}

/// Shows the game's edits before they are decided, and hands them to the regions, or to the clients of servers.
pub(super) fn predict_edits(
    mut edits: MessageReader<SetBlock>,
    mut queue: ResMut<EditQueue>,
    mut published: ResMut<PublishedColumns>,
    mut clients: Query<&mut ChunkSyncClient>,
    dimensions: Query<(&Dimension, &DimensionOpen)>,
    blocks: Option<Res<BlockTypes>>,
    mut changed: MessageWriter<ColumnChanged>,
) {
    if edits.is_empty() {
        return;
    }
    let mut chunks = BTreeSet::new();
    for &request in edits.read() {
        let number = queue.number();
        let mut client = clients.iter_mut().find(|client| client.dimension() == request.dimension);
        let dimension = dimensions.iter().find(|(_, open)| open.id == request.dimension);
        let is_inside = dimension.is_none_or(|(dimension, _)| dimension.heights().contains(&request.position.y));
        let is_taken = is_inside && client.as_ref().is_none_or(|client| client.takes_edits());
        let blocks = blocks.as_ref().filter(|_| is_taken);
        let is_shown = blocks.is_some_and(|blocks| published.predict(number, request, &blocks.0));
        match &mut client {
            Some(client) => client.edit(number, request),
            None => queue.edits.push(BlockEdit { request, number: is_shown.then_some(number) }),
        }
        if is_shown {
            chunks.insert((request.dimension, request.position.chunk()));
        }
    }
    changed.write_batch(chunks.into_iter().map(|(dimension, chunk)| {
        let (column, change) = (chunk.column(), ColumnChange::Chunk(chunk.y));
        ColumnChanged { dimension, column, change }
    }));
}

pub(super) fn send_edits(link: Res<MainLink>, mut queue: ResMut<EditQueue>) {
    if !queue.edits.is_empty() {
        link.request(edit_blocks, mem::take(&mut queue.edits));
    }
}

pub(super) fn send_players(
    link: Res<MainLink>,
    mut log_outs: MessageReader<LogOut>,
    mut log_ins: MessageReader<LogIn>,
) {
    log_outs.read().for_each(|player| link.request(log_out, player.clone()));
    log_ins.read().for_each(|player| link.request(log_in, player.clone()));
}

pub(super) fn send_drains(link: Res<MainLink>, mut drains: MessageReader<DrainServer>) {
    drains.read().for_each(|drain| link.request(drain_server, *drain));
}

/// Ends the app of a server that was ended by another one.
pub(super) fn exit_ended(mut ended: MessageReader<ServerEnded>, mut exit: MessageWriter<AppExit>) {
    if ended.read().next().is_some() {
        exit.write(AppExit::error());
    }
}

pub(super) fn send_saves(
    link: Res<MainLink>,
    mut saves: MessageReader<SaveWorld>,
    mut backups: MessageReader<BackupWorld>,
) {
    saves.read().for_each(|save| link.request(save_world, *save));
    backups.read().for_each(|backup| link.request(back_up_world, backup.clone()));
}

pub(super) fn send_orders(
    link: Res<MainLink>,
    clocks: Query<(&Dimension, &DimensionClock), Or<(Changed<DimensionClock>, Added<DimensionOpen>)>>,
    times: Query<(&Dimension, &TimeOfDay), Or<(Changed<TimeOfDay>, Added<DimensionOpen>)>>,
    mut timeless: RemovedComponents<TimeOfDay>,
    dimensions: Query<&Dimension, Without<TimeOfDay>>,
    couplings: Query<(Entity, &Coupling), Changed<Coupling>>,
    mut uncoupled: RemovedComponents<Coupling>,
    mut steps: MessageReader<StepDimension>,
    mut orders: MessageReader<ControlRegion>,
) {
    for (dimension, clock) in &clocks {
        dimension.id().into_iter().for_each(|id| link.request(set_clock, (id, *clock)));
    }
    let gone = timeless.read().filter_map(|entity| dimensions.get(entity).ok()).map(|dimension| (dimension, None));
    for (dimension, time) in gone.chain(times.iter().map(|(dimension, time)| (dimension, Some(*time)))) {
        dimension.id().into_iter().for_each(|id| link.request(set_time_of_day, (id, time)));
    }
    uncoupled.read().for_each(|coupling| link.request(couple, (coupling, None)));
    couplings.iter().for_each(|(entity, coupling)| link.request(couple, (entity, Some(*coupling))));
    steps.read().for_each(|step| link.request(step_dimension, *step));
    orders.read().for_each(|order| link.request(control_region, *order));
}

type ChangedGeneration = Or<(Changed<DimensionGeneration>, Added<DimensionOpen>)>;

pub(super) fn send_generation(
    link: Res<MainLink>,
    dimensions: Query<(&Dimension, &DimensionGeneration), ChangedGeneration>,
    pacing: Option<Res<Pacing>>,
    mut retries: MessageReader<RetryColumns>,
) {
    for (dimension, generation) in &dimensions {
        dimension.id().into_iter().for_each(|id| link.request(set_generation, (id, *generation)));
    }
    if let Some(pacing) = pacing.filter(|pacing| pacing.is_changed()) {
        link.request(set_pacing, *pacing);
    }
    retries.read().for_each(|retry| link.request(retry_columns, *retry));
}

pub(super) fn send_closings(link: Res<MainLink>, mut closing: ResMut<Closing>) {
    let Closing { entities, reopening } = mem::take(&mut *closing);
    entities.into_iter().for_each(|closing| link.request(close_dimension, closing));
    reopening.into_iter().for_each(|spec| link.request(open_dimension, spec));
}

/// Sends the questions together with the published chunks, since the store may not have those yet.
pub(super) fn send_questions(
    link: Res<MainLink>,
    mut asks: MessageReader<AskOpacity>,
    mut column_asks: MessageReader<AskColumn>,
    mut follows: MessageReader<FollowEntity>,
    published: Res<PublishedColumns>,
) {
    follows.read().for_each(|follow| link.request(follow_entity, *follow));
    column_asks.read().for_each(|ask| link.request(ask_column, *ask));
    for ask in asks.read() {
        let columns = ask.batch.columns().filter_map(|column| published.confirmed(ask.dimension, column));
        link.request(ask_opacity, (*ask, columns.cloned().collect()));
    }
}
