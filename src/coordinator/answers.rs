//! Answers the main world's questions about the ground, loaded or not.

use crate::block::{BlockId, BlockRegistry};
use crate::chunk::{BlockValueError, Chunk, Column, format};
use crate::coordinator::columns::{ColumnState, Rest};
use crate::coordinator::demand::tickets::{HOLD_MARGIN, ViewerState};
use crate::coordinator::dimension::{DimensionBook, OpenDimension};
use crate::coordinator::mail::directory::Directory;
use crate::coordinator::messages::events::{ChunksAnswer, ColumnAnswer, OpacityAnswer};
use crate::coordinator::messages::faults::{RegionFault, WorkError};
use crate::coordinator::messages::questions::{AskChunks, AskError, AskOpacity, ChunkState};
use crate::coordinator::messages::why::{
    AskColumn, ColumnCause, ColumnPhase, ColumnReport, FollowEntity, HeldBy, Ticket,
};
use crate::coordinator::publish::Publisher;
use crate::coordinator::saves::Saves;
use crate::coordinator::stream::orders::{Orders, Room};
use crate::coordinator::threads::Threads;
use crate::space::{ChunkPos, ColumnPos, DimensionId};
use crate::storage::{StoreError, StoredChunk, StoredItem, WorldStore};
use bevy::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Answers the question. Published columns are passed along.
pub(crate) fn ask_opacity(
    In((ask, loaded)): In<(AskOpacity, Vec<Column>)>,
    dimensions: Res<DimensionBook>,
    saves: Res<Saves>,
    mut threads: ResMut<Threads>,
    mut publisher: ResMut<Publisher>,
) {
    let AskOpacity { request, dimension, batch } = ask;
    if !dimensions.open.contains_key(&dimension) {
        let opacity = Err(AskError::NotOpen);
        return publisher.event(OpacityAnswer { request, dimension, batch, opacity });
    }
    // Unsaved columns are newer than the store, and published columns are newer still.
    let unwritten: Vec<_> = batch.columns().map(|column| (column, saves.unwritten(dimension, column))).collect();
    threads.ask(
        None,
        move |store, blocks| {
            let mut opacity = store.opacity(dimension, batch)?;
            let is_opaque = |block| blocks.block(block).is_opaque();
            for (column, chunks) in &unwritten {
                chunks.iter().for_each(|(y, chunk)| opacity.set_chunk(*column, *y, chunk, is_opaque));
            }
            loaded.iter().for_each(|column| opacity.set_column(column, is_opaque));
            Ok(Arc::new(opacity))
        },
        move |world, read| {
            let opacity = read.flatten().map_err(AskError::from);
            world.resource_mut::<Publisher>().event(OpacityAnswer { request, dimension, batch, opacity });
        },
    );
}

/// The number of tickets in a report about a column.
const MOST_TICKETS: usize = 16;

/// Answers the question from what is known here.
pub(crate) fn ask_column(
    In(AskColumn { request, dimension, column }): In<AskColumn>,
    dimensions: Res<DimensionBook>,
    saves: Res<Saves>,
    orders: Res<Orders>,
    mut publisher: ResMut<Publisher>,
) {
    let open = dimensions.open.get(&dimension).ok_or(AskError::NotOpen);
    let room = orders.room(dimensions.in_flight_for_jobs());
    let report = open.map(|open| open.report(column, &saves, (&orders, room)));
    publisher.event(ColumnAnswer { request, dimension, column, report });
}

/// Starts or stops following an entity.
pub(crate) fn follow_entity(In(FollowEntity { id, follow }): In<FollowEntity>, mut directory: ResMut<Directory>) {
    directory.follow(id, follow);
}

impl OpenDimension {
    /// The tickets within whose radius the column is, those with the nearest centers first.
    fn tickets_around(&self, column: ColumnPos, radius: impl Fn(&ViewerState) -> u32) -> Vec<HeldBy> {
        let by = |(ticket, viewer): (&Ticket, &ViewerState)| {
            let (center, radius) = (viewer.center, radius(viewer));
            let distance = column.distance_squared(center);
            (distance <= u128::from(radius).pow(2)).then_some((distance, HeldBy { ticket: *ticket, center, radius }))
        };
        let mut tickets: Vec<_> = self.demand.viewers.iter().filter_map(by).collect();
        tickets.sort_by_key(|(distance, by)| (*distance, by.ticket));
        tickets.truncate(MOST_TICKETS);
        tickets.into_iter().map(|(_, by)| by).collect()
    }

    fn report(&self, column: ColumnPos, saves: &Saves, orders: (&Orders, Room)) -> ColumnReport {
        let tickets = self.tickets_around(column, |viewer| viewer.radii.load + HOLD_MARGIN);
        let region = self.regions.regionizer.region_at(column);
        let slot = region.and_then(|region| self.regions.regionizer.data(region));
        let fault = slot.and_then(|slot| slot.halted.as_ref()).map(|halted| halted.fault.clone());
        let now = self.time.real_now;
        let (since, made_in) = self.columns.times(column).unzip();
        let (phase, cause) = self.phase_and_cause(column, tickets.first().copied(), fault, (saves, orders));
        ColumnReport {
            phase,
            since: since.filter(|_| !matches!(phase, ColumnPhase::Absent | ColumnPhase::Stored)),
            cause,
            region,
            holds: self.demand.holds.get(&column).copied().unwrap_or(0),
            letters: self.mail.letters.get(&column).map_or(0, Vec::len),
            tickets,
            is_stored: self.land.stored.is_completed(column),
            is_being_saved: !saves.unwritten(self.id, column).is_empty(),
            last_save: slot.and_then(|slot| slot.saved_at).map(|at| now.saturating_sub(at)),
            next_save: slot.and_then(|slot| slot.save_due).map(|due| due.saturating_sub(now)),
            made_in: made_in.flatten(),
        }
    }

    fn phase_and_cause(
        &self,
        column: ColumnPos,
        held_by: Option<HeldBy>,
        fault: Option<Arc<RegionFault>>,
        (saves, orders): (&Saves, (&Orders, Room)),
    ) -> (ColumnPhase, ColumnCause) {
        let by_ticket = || held_by.map_or(ColumnCause::NoTicket, ColumnCause::Held);
        let failed = |attempts, retry| {
            let listed = self.orders.generation.failures.list().into_iter().find(|failed| failed.column == column);
            ColumnCause::Failed { error: listed.map(|failed| failed.error), attempts, retry }
        };
        let retry = |due: Duration| due.saturating_sub(self.time.real_now);
        match self.columns.get(column) {
            Some(ColumnState::Halted { .. }) => {
                (ColumnPhase::Halted, fault.map_or(ColumnCause::AwaitsSave, ColumnCause::RegionHalted))
            }
            Some(ColumnState::Lost { .. } | ColumnState::Fetched(Rest::After { .. })) => {
                (ColumnPhase::Lost, ColumnCause::AwaitsSave)
            }
            // A region without a world has halted as it was made: its columns came for nothing.
            Some(ColumnState::Owned(_) | ColumnState::Fetched(_) | ColumnState::Leaving)
                if let Some(fault) = fault.clone() =>
            {
                (ColumnPhase::Loaded, ColumnCause::RegionHalted(fault))
            }
            Some(ColumnState::Ordered(_)) => (ColumnPhase::Ordered, by_ticket()),
            Some(ColumnState::ForStore(_)) => {
                let around = || self.tickets_around(column, |viewer| viewer.radii.generation);
                let cause = match self.orders.for_jobs.contains_key(&column) {
                    true => ColumnCause::Pregeneration,
                    false => around().first().map_or(ColumnCause::NoTicket, |by| ColumnCause::GeneratedFor(*by)),
                };
                (ColumnPhase::ForStore, cause)
            }
            Some(ColumnState::Fetched(_)) => {
                (ColumnPhase::Loaded, held_by.map_or(ColumnCause::Read, ColumnCause::Held))
            }
            Some(ColumnState::Owned(Rest::Leaving) | ColumnState::Leaving) => (ColumnPhase::Leaving, by_ticket()),
            Some(ColumnState::Owned(Rest::Failed(failure)) | ColumnState::Failed(failure))
                if failure.due < Duration::MAX =>
            {
                (ColumnPhase::Failed, failed(failure.attempts, Some(retry(failure.due))))
            }
            Some(ColumnState::Owned(_)) => (ColumnPhase::Loaded, by_ticket()),
            None | Some(ColumnState::Failed(_)) => self.cause_of_absence(column, failed, (saves, orders)),
        }
    }

    /// Why a column is neither loaded nor on order.
    fn cause_of_absence(
        &self,
        column: ColumnPos,
        failed: impl Fn(u32, Option<Duration>) -> ColumnCause,
        (saves, (orders, room)): (&Saves, (&Orders, Room)),
    ) -> (ColumnPhase, ColumnCause) {
        let is_stored = self.land.stored.is_completed(column);
        let generation = &self.orders.generation;
        if generation.failures.has(column) {
            return (ColumnPhase::SetAside, failed(generation.settings.attempts, None));
        }
        let phase = if is_stored { ColumnPhase::Stored } else { ColumnPhase::Absent };
        let is_full = if is_stored { room.load == 0 } else { room.generate == 0 };
        // The margin of a ticket keeps columns loaded, but loads none.
        let is_wanted = |viewer: &ViewerState| {
            let distance = column.distance_squared(viewer.center);
            distance <= u128::from(viewer.radii.load).pow(2) || (!is_stored && viewer.reaches(column))
        };
        let mut wanting = self.demand.viewers.iter().filter(|(_, viewer)| is_wanted(viewer)).peekable();
        let is_wanted = wanting.peek().is_some();
        let caps = &self.demand.caps;
        let is_capped = |(ticket, viewer): (&Ticket, &ViewerState)| match is_stored {
            true => !caps.may_load(*ticket, viewer.radii),
            false => !caps.may_generate(*ticket, viewer.radii),
        };
        let cause = match () {
            () if self.closing.is_some() => ColumnCause::Closing,
            () if !self.is_own(column) => {
                let plots = self.plots.as_ref();
                ColumnCause::OtherServer(plots.and_then(|plots| plots.server_of(column.tile())))
            }
            () if !is_wanted && !self.mail.letters.contains_key(&column) => ColumnCause::NoTicket,
            () if self.orders.rest_until > self.time.real_now => {
                ColumnCause::StoreFails(self.orders.rest_until.saturating_sub(self.time.real_now))
            }
            () if saves.is_behind() => ColumnCause::StoreBehind,
            () if !is_stored && generation.settings.paused => ColumnCause::GenerationPaused,
            () if is_full => ColumnCause::AllInFlight { in_flight: orders.in_flight(), limit: orders.limit.columns() },
            () if !is_stored && generation.bucket.is_empty() => ColumnCause::Capped,
            () if is_wanted && wanting.all(is_capped) => ColumnCause::Capped,
            () => ColumnCause::NearerFirst,
        };
        (phase, cause)
    }
}

struct KnownChunk {
    pos: ChunkPos,
    /// The published chunk, or the one on its way into the store.
    newest: Option<Arc<Chunk>>,
    /// `true` if its column is generated, even if the store does not know that yet.
    is_generated: bool,
}

/// Answers the question. Published chunks are passed along.
pub(crate) fn ask_chunks(
    In((ask, published)): In<(AskChunks, Vec<Option<Arc<Chunk>>>)>,
    dimensions: Res<DimensionBook>,
    saves: Res<Saves>,
    mut threads: ResMut<Threads>,
    mut publisher: ResMut<Publisher>,
) {
    let AskChunks { request, dimension, chunks } = ask;
    let Some(is_sparse) = dimensions.open.get(&dimension).map(|dimension| dimension.is_sparse()) else {
        let chunks = chunks.into_iter().map(|chunk| (chunk, Err(AskError::NotOpen))).collect();
        return publisher.event(ChunksAnswer { request, dimension, chunks });
    };
    let mut known = Vec::with_capacity(chunks.len());
    for (&pos, published) in chunks.iter().zip(published) {
        let mut batches = saves.unwritten_batches();
        let newest = published.or_else(|| batches.find_map(|batch| batch.chunks.get(&(dimension, pos)).cloned()));
        let is_generated = newest.is_some() || saves.unwritten_summary(dimension, pos.column()).is_some();
        known.push(KnownChunk { pos, newest, is_generated });
    }
    threads.ask(
        None,
        move |store, blocks| read(store, blocks, dimension, is_sparse, &known),
        move |world, read| {
            let failed = |error: WorkError| chunks.iter().map(|chunk| (*chunk, Err(error.clone().into()))).collect();
            let chunks = read.unwrap_or_else(failed);
            world.resource_mut::<Publisher>().event(ChunksAnswer { request, dimension, chunks });
        },
    );
}

fn read(
    store: &WorldStore,
    blocks: &BlockRegistry,
    dimension: DimensionId,
    is_sparse: bool,
    chunks: &[KnownChunk],
) -> Vec<(ChunkPos, Result<Option<ChunkState>, AskError>)> {
    let positions: Vec<ChunkPos> = chunks.iter().map(|chunk| chunk.pos).collect();
    // The marks are read before the chunks: a chunk stored in between must not look like the air of a stored column.
    let mut marks = BTreeMap::new();
    for column in positions.iter().map(|chunk| chunk.column()) {
        marks.entry(column).or_insert_with(|| store.is_stored(dimension, column));
    }
    let stored = store.stored_chunks(dimension, &positions);
    let reader = Reader { store, blocks, dimension, is_sparse, marks };
    let answer = |(chunk, stored): (&KnownChunk, _)| {
        (chunk.pos, reader.state(chunk, stored).map_err(|error| AskError::Work(error.into())))
    };
    chunks.iter().zip(stored).map(answer).collect()
}

struct Reader<'a> {
    store: &'a WorldStore,
    blocks: &'a BlockRegistry,
    dimension: DimensionId,
    is_sparse: bool,
    /// The columns, each with whether it is stored.
    marks: BTreeMap<ColumnPos, Result<bool, StoreError>>,
}

impl Reader<'_> {
    /// Returns `true` if unstored chunks of the column are air.
    fn is_air(&self, column: ColumnPos) -> Result<bool, StoreError> {
        if self.is_sparse { Ok(false) } else { self.marks.get(&column).cloned().unwrap_or(Ok(false)) }
    }

    /// Returns `None` if there is no such chunk.
    fn state(
        &self,
        chunk: &KnownChunk,
        stored: Result<Option<StoredChunk>, StoreError>,
    ) -> Result<Option<ChunkState>, StoreError> {
        let Some(newest) = &chunk.newest else {
            if let Some((version, bytes)) = stored? {
                return Ok(Some(ChunkState::new(version, true, bytes)));
            }
            let is_air = chunk.is_generated && !self.is_sparse || self.is_air(chunk.pos.column())?;
            let air = || self.encode(chunk.pos, &Chunk::uniform(BlockId::AIR));
            return is_air.then(|| Ok(ChunkState::new(0, true, air()?))).transpose();
        };
        let bytes = self.encode(chunk.pos, newest)?;
        let (version, is_saved) = match stored {
            Ok(Some((version, stored))) if stored == bytes => (version, true),
            Ok(Some((version, _))) => (version.saturating_add(1), false),
            Ok(None) => {
                // The chunk is stored as air, or nothing of its column is stored.
                let (was_air, is_air) =
                    (self.is_air(chunk.pos.column())?, newest.uniform_block() == Some(BlockId::AIR));
                (u64::from(was_air && !is_air), was_air && is_air)
            }
            // The chunk in memory replaces it with the next save, with a version that no count of changes has reached.
            Err(error) if error.is_damage() => (1 << 32, false),
            Err(error) => return Err(error),
        };
        Ok(Some(ChunkState::new(version, is_saved, bytes)))
    }

    fn encode(&self, pos: ChunkPos, chunk: &Chunk) -> Result<Arc<[u8]>, StoreError> {
        let mut bytes = Vec::new();
        let unfit = |error: BlockValueError| StoreError::Corrupt {
            what: StoredItem::Chunk(self.dimension, pos),
            path: self.store.path().to_path_buf(),
            reason: error.to_string(),
        };
        format::encode(self.blocks, chunk, &[], &mut bytes).map_err(unfit)?;
        Ok(bytes.into())
    }
}
