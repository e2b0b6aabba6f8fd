//! Small worlds for the tests of snapshots, and the content of a snapshot as a plain map.

mod sample;

pub use sample::{BLOCKS, Cell, cell_of, cells, entity, positions_of};

use super::Snapshot;
use crate::block::{BlockId, BlockLayout};
use crate::chunk::{Chunk, Column};
use crate::entity::ChildRecord;
use crate::space::{BlockBox, BlockPos, ColumnPos, HeightSet};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

pub type Columns = BTreeMap<ColumnPos, Column>;

pub fn blocks() -> impl Strategy<Value = BlockId> {
    (0..BLOCKS.len() as u32).prop_map(BlockId::new)
}

/// An edit of the world.
#[derive(Clone, Debug)]
pub enum Edit {
    Place(BlockPos, u8, BlockId, Vec<u8>),
    Fill(BlockPos, BlockId),
}

/// The extent of the world in blocks around the origin.
pub const REACH: i64 = 40;

pub fn positions() -> impl Strategy<Value = BlockPos> {
    (-REACH..REACH, -REACH..REACH, -REACH..REACH).prop_map(|(x, y, z)| BlockPos::new(x, y, z))
}

pub fn edits(length: usize) -> impl Strategy<Value = Vec<Edit>> {
    let value = prop::collection::vec(any::<u8>(), 4..9);
    let place = (positions(), prop_oneof![3 => Just(0_u8), 1 => 1..3_u8], blocks(), value);
    let edit = prop_oneof![
        12 => place.prop_map(|(pos, layer, block, value)| Edit::Place(pos, layer, block, value)),
        1 => (positions(), blocks()).prop_map(|(pos, block)| Edit::Fill(pos, block)),
    ];
    prop::collection::vec(edit, 0..length)
}

/// All columns within reach.
pub fn world() -> Columns {
    let all = BlockBox::new(BlockPos::new(-REACH, 0, -REACH), BlockPos::new(REACH - 1, 0, REACH - 1));
    all.columns().map(|pos| (pos, Column::new(pos))).collect()
}

pub fn edit(columns: &mut Columns, edits: &[Edit]) {
    for edit in edits {
        match edit {
            Edit::Place(pos, layer, block, value) => {
                let Some(column) = columns.get_mut(&pos.column()) else { continue };
                let chunk = column.chunk_mut(pos.chunk().y);
                if chunk.place_block(&*BLOCKS, pos.in_chunk(), *layer, *block).is_ok() {
                    for component in BLOCKS.components(*block) {
                        let value = &value[..component.size.map_or(value.len(), |size| size as usize)];
                        chunk.set_component(&*BLOCKS, pos.in_chunk(), *layer, component.id, value).unwrap();
                    }
                }
            }
            Edit::Fill(pos, block) => {
                let Some(column) = columns.get_mut(&pos.column()) else { continue };
                column.set_chunk(pos.chunk().y, Arc::new(Chunk::uniform(*block)));
            }
        }
    }
}

pub fn cell(columns: &Columns, pos: BlockPos) -> Cell {
    let chunk = columns.get(&pos.column()).and_then(|column| column.chunk(pos.chunk().y));
    cell_of(chunk.map(|chunk| &**chunk), pos.in_chunk())
}

/// A snapshot of the world's columns, except those that are left out.
pub fn capture(columns: &Columns, area: BlockBox, leaves_out: impl Fn(ColumnPos) -> bool) -> Snapshot {
    let mut snapshot = Snapshot::new(area);
    for column in columns.values().filter(|column| !leaves_out(column.pos())) {
        snapshot.add_column(column, 1, Vec::new());
    }
    snapshot
}

/// The part of a column at these heights.
pub fn part_of(column: &Column, heights: HeightSet) -> Column {
    let mut part = Column::partial(column.pos(), heights.clone());
    for (y, chunk) in column.chunks().filter(|(y, _)| heights.contains(*y)) {
        part.set_chunk(y, chunk.clone());
    }
    part
}

pub fn child(id: u128, parent: Option<u32>) -> ChildRecord {
    ChildRecord { parent, id: Some(Uuid::from_u128(id)), place: None, viewer: None, components: Vec::new() }
}
