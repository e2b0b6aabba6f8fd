//! Computes the restored chunks of a snapshot.

#[cfg(test)]
mod tests;

use super::{BlockFilter, Snapshot, SnapshotParts};
use crate::chunk::{CellMask, Chunk, Column};
use crate::space::ChunkPart;
use std::sync::Arc;

/// The chunk to replace `current`, in which the cells of `part` have these snapshot parts from `wanted` wherever the
/// filter allows it; `None` if nothing changes. A missing chunk is air.
///
/// A full restore of all cells returns `wanted` itself, otherwise a new chunk that combines both.
pub fn restored_chunk(
    current: Option<&Arc<Chunk>>,
    wanted: Option<&Arc<Chunk>>,
    part: &ChunkPart,
    filter: &BlockFilter,
    parts: SnapshotParts,
) -> Option<Arc<Chunk>> {
    match (current, wanted) {
        (None, None) => return None,
        (Some(current), Some(wanted)) if Arc::ptr_eq(current, wanted) => return None,
        _ => {}
    }
    let air = Chunk::default();
    let now = current.map_or(&air, |chunk| &**chunk);
    let then = wanted.map_or(&air, |chunk| &**chunk);
    let restored = || wanted.cloned().unwrap_or_default();
    if now == then || !parts.has_cells() {
        return None;
    }
    let mut cells = CellMask::of_part(part);
    if !filter.is_all() {
        cells.keep_blocks(now, |block| filter.current.contains(block));
        cells.keep_blocks(then, |block| filter.wanted.contains(block));
    }
    if cells.is_whole() && parts.has_all_of_cells() {
        return Some(restored());
    }
    if cells.is_empty() {
        return None;
    }
    let none = CellMask::NONE;
    let [blocks, layers, components] =
        [parts.blocks, parts.layers, parts.components].map(|is_held| if is_held { &cells } else { &none });
    let mixed = now.with_cells_of(then, blocks, layers, components);
    if mixed == *now {
        None
    } else if mixed == *then {
        Some(restored())
    } else {
        Some(Arc::new(mixed))
    }
}

impl Snapshot {
    /// The chunks to set in a column to restore this snapshot, in ascending order: the chunk heights that differ, with
    /// the restored chunks. Heights that are missing in the snapshot or not loaded in the column are left out.
    pub fn restored_chunks<'a>(
        &'a self,
        current: &'a Column,
        filter: &'a BlockFilter,
    ) -> impl Iterator<Item = (i64, Arc<Chunk>)> + 'a {
        let pos = current.pos();
        let column = self.column(pos);
        let heights = self.area.chunk_heights();
        let wanted = column.into_iter().flat_map(|column| column.chunks());
        let now = heights.filter(|_| column.is_some()).into_iter().flat_map(move |heights| {
            let (low, high) = heights.into_inner();
            current.chunks().skip_while(move |(y, _)| *y < low).take_while(move |(y, _)| *y <= high)
        });
        merged(now, wanted).filter_map(move |(y, now, wanted)| {
            if !column?.holds(y) || !current.is_loaded(y) {
                return None;
            }
            // Most chunks are still shared, which this check finds cheaply.
            if let (Some(now), Some(wanted)) = (now, wanted)
                && Arc::ptr_eq(now, wanted)
            {
                return None;
            }
            let part = self.area.part(pos.chunk(y))?;
            Some((y, restored_chunk(now, wanted, &part, filter, self.parts)?))
        })
    }
}

type Chunks<'a> = (i64, Option<&'a Arc<Chunk>>, Option<&'a Arc<Chunk>>);

fn merged<'a>(
    a: impl Iterator<Item = (i64, &'a Arc<Chunk>)>,
    b: impl Iterator<Item = (i64, &'a Arc<Chunk>)>,
) -> impl Iterator<Item = Chunks<'a>> {
    let (mut a, mut b) = (a.peekable(), b.peekable());
    std::iter::from_fn(move || {
        let next = [a.peek(), b.peek()].into_iter().flatten().map(|(y, _)| *y).min()?;
        let from_a = a.next_if(|(y, _)| *y == next).map(|(_, chunk)| chunk);
        Some((next, from_a, b.next_if(|(y, _)| *y == next).map(|(_, chunk)| chunk)))
    })
}
