//! Liquids in a region: the [rules](crate::liquid), applied when cells are due.

use super::{GroundFault, GroundSystems, order_systems};
use crate::block::BlockId;
use crate::chunk::Chunk;
use crate::liquid::{LiquidCell, LiquidRules, Liquids};
use crate::simulation::block_types::BlockTypes;
use crate::simulation::columns::notices::PATIENCE;
use crate::simulation::schedules::RegionTick;
use crate::simulation::{BlockChanged, BlockTick, RegionBlocks, RegionColumns};
use crate::space::{BlockPos, ChunkPos};
use bevy::prelude::*;
use std::cell::Cell;
use std::sync::Arc;

/// The kind of tick at which a liquid looks around.
const FLOW: &str = "terrane:flow";

#[derive(Resource)]
struct RegionLiquids {
    table: Liquids,
    kind: Arc<str>,
}

/// Adds liquids with these rules to a region.
pub(crate) fn add_liquids(region: &mut SubApp, rules: &[LiquidRules]) {
    match Liquids::new(region.world().resource::<BlockTypes>(), rules) {
        Ok(table) => {
            order_systems(region);
            region
                .insert_resource(RegionLiquids { table, kind: FLOW.into() })
                .add_systems(RegionTick, (schedule_flows, flow).chain().in_set(GroundSystems::Flow));
        }
        Err(error) => drop(region.insert_resource(GroundFault(error.into()))),
    }
}

/// A liquid that changed, or with a changed neighbor, looks around after its delay.
fn schedule_flows(mut changed: MessageReader<BlockChanged>, liquids: Res<RegionLiquids>, mut blocks: RegionBlocks) {
    for BlockChanged { block } in changed.read() {
        if let Some(delay) = liquids.delay(&blocks, *block) {
            // The message took one tick.
            blocks.ticks.schedule(*block, liquids.kind.clone(), delay - 1);
        }
    }
}

fn flow(mut ticks: MessageReader<BlockTick>, liquids: Res<RegionLiquids>, mut blocks: RegionBlocks) {
    for BlockTick { block, .. } in ticks.read().filter(|tick| *tick.kind == *FLOW) {
        let reader = CellReader { liquids: &liquids.table, columns: &blocks, last: Cell::new(None) };
        let flow = liquids.table.flow(*block, |at| reader.cell(at));
        for (at, layer, new) in flow.changes {
            let changed = match new {
                BlockId::AIR => blocks.remove_block(at, layer),
                new => blocks.set_block_at(at, layer, new),
            };
            // Below and above the dimension, nothing can be set.
            let Ok(before) = changed else { continue };
            if liquids.table.is_obstacle(new) && !before.is_some_and(|before| liquids.table.is_obstacle(before)) {
                for looker in Liquids::farther_lookers(at) {
                    if let Some(delay) = liquids.delay(&blocks, looker) {
                        blocks.ticks.schedule(looker, liquids.kind.clone(), delay);
                    }
                }
            }
        }
        if flow.is_waiting {
            blocks.ticks.schedule(*block, liquids.kind.clone(), PATIENCE);
        }
    }
}

impl RegionLiquids {
    fn delay(&self, columns: &RegionColumns, block: BlockPos) -> Option<u64> {
        columns.known_blocks(block).and_then(|blocks| self.table.delay(&self.table.cell(blocks)))
    }
}

/// Reads many cells near each other: it keeps the last chunk.
struct CellReader<'a> {
    liquids: &'a Liquids,
    columns: &'a RegionColumns,
    last: Cell<Option<(ChunkPos, Option<Option<&'a Chunk>>)>>,
}

impl CellReader<'_> {
    fn cell(&self, at: BlockPos) -> Option<LiquidCell> {
        let pos = at.chunk();
        let known = self.last.get().filter(|(last, _)| *last == pos).map(|(_, chunk)| chunk);
        let chunk = known.unwrap_or_else(|| {
            let chunk = self.columns.loaded_chunk(pos);
            self.last.set(Some((pos, chunk)));
            chunk
        });
        chunk.map(|chunk| self.liquids.cell(chunk.into_iter().flat_map(|chunk| chunk.blocks_at(at.in_chunk()))))
    }
}
