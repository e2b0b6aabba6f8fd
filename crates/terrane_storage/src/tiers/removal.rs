//! Removal of chunks from groups.

use super::Moves;
use crate::chunk::format::cluster::cluster_place;
use crate::space::{ChunkPos, ColumnPos, DimensionId, TilePos};
use crate::tiers::chunk_group::GROUP_VOLUME;
use crate::tiers::cluster::{self, Part};
use crate::tiers::heat::Placed;
use crate::{ChunkGroup, Family, StoreError, Tier, WorldStore, keys};
use std::collections::BTreeSet;

/// The side of a cube above a tile's square, as a power of two.
const CUBE_SHIFT: u32 = 5;
/// The maximum number of wholly unreadable cubes that are searched, so that the search always ends.
const MAX_DAMAGED: u32 = 64;
/// The maximum number and bytes of entries of a cube that are read at a time.
const PAGE: (usize, usize) = (4096, 4 << 20);

impl Moves<'_> {
    /// Removes chunks from a group in any tier; its other chunks stay there. Returns the number of removed chunks. A
    /// damaged group is left unchanged if a part of it would have to stay.
    pub fn remove_chunks(
        &mut self,
        group: ChunkGroup,
        is_removed: impl Fn(ChunkPos) -> bool,
    ) -> Result<u64, StoreError> {
        let range = group.range();
        let hot = self.world.store.scan(Family::Chunks, &range.start..&range.end, GROUP_VOLUME)?;
        if !hot.is_empty() {
            let (mut removed, count) = (0, hot.len() as u64);
            for (key, _) in hot {
                let (_, chunk) = self.world.parsed(Family::Chunks, &key, keys::parse_chunk_key)?;
                if is_removed(chunk) {
                    removed += 1;
                    self.writes.delete(Family::Chunks, key);
                }
            }
            if removed == count {
                self.placed.insert(group, Placed::Gone);
            }
            return Ok(removed);
        }
        let Some((tier, part)) = self.world.find_for_move(group, self)? else { return Ok(0) };
        let removed = group.chunks(part.chunks).filter(|chunk| is_removed(*chunk));
        let removed = removed.fold(0_u64, |mask, chunk| mask | 1 << cluster_place(chunk));
        let kept = part.chunks & !removed;
        if removed == 0 {
            return Ok(0);
        }
        if kept == 0 {
            self.unpack(group, tier)?;
            self.placed.insert(group, Placed::Gone);
            return Ok(removed.count_ones().into());
        }
        let Ok(unpacked) = part.unpack() else { return Ok(0) };
        let Some(rest) = Part::pack(cluster::values(&unpacked).filter(|(place, _)| kept >> place & 1 == 1)) else {
            return Ok(0);
        };
        self.unpack(group, tier)?;
        self.pack(group, rest, tier)?;
        Ok(removed.count_ones().into())
    }
}

impl WorldStore {
    /// The groups with stored chunks in the cube of 32 chunks a side from `chunk` on, and whether one of its tiers was
    /// unreadable from the start.
    fn groups_in_cube(
        &self,
        dimension: DimensionId,
        chunk: ChunkPos,
        has_damaged: bool,
    ) -> Result<(BTreeSet<ChunkGroup>, bool), StoreError> {
        let (mut groups, mut is_unreadable) = (BTreeSet::new(), false);
        for tier in Tier::ALL {
            let family = tier.family();
            let mut range = keys::chunk_cube_range(dimension, chunk, CUBE_SHIFT);
            let mut is_first = true;
            loop {
                let page = match self.store.scan_page(family, &range.start..&range.end, PAGE.0, PAGE.1) {
                    // It is unknown which of the groups are stored.
                    Err(StoreError::Damaged { .. }) if has_damaged => {
                        let side = || (0..8).map(|group| group * 4);
                        let planes = side().flat_map(|x| side().map(move |y| (x, y)));
                        let all = planes.flat_map(|(x, y)| side().map(move |z| (x, y, z)));
                        groups.extend(all.map(|(x, y, z)| {
                            ChunkGroup::of(dimension, ChunkPos::new(chunk.x | x, chunk.y | y, chunk.z | z))
                        }));
                        // Only counts if not a single entry was read.
                        is_unreadable |= is_first;
                        break;
                    }
                    page => page?,
                };
                let Some((last, _)) = page.last() else { break };
                is_first = false;
                range.start = keys::after(last);
                for (key, value) in &page {
                    let (_, first) = self.parsed(family, key, keys::parse_chunk_key)?;
                    let own = ChunkGroup::of(dimension, first);
                    if tier != Tier::Cold {
                        groups.insert(own);
                        continue;
                    }
                    let in_cube = |place| ChunkGroup::in_cluster(Tier::Cold, dimension, first, place);
                    match cluster::open(value) {
                        Ok(parts) => groups.extend(parts.into_keys().map(in_cube)),
                        // The cluster may hold any of its groups.
                        Err(_) if has_damaged => groups.extend((0..GROUP_VOLUME as u8).map(in_cube)),
                        Err(error) => return Err(self.corrupt_cluster(Tier::Cold, own, error)),
                    }
                }
            }
        }
        Ok((groups, is_unreadable))
    }

    /// The groups with stored chunks above a tile of 32 x 32 columns, at all heights. The groups of a cold cube are
    /// adjacent. A damaged cube is an error, or if `has_damaged` is `true`, yields all of its groups.
    pub(crate) fn groups_over(
        &self,
        dimension: DimensionId,
        tile: TilePos,
        has_damaged: bool,
    ) -> Result<Vec<ChunkGroup>, StoreError> {
        let (mut groups, mut damaged) = (BTreeSet::new(), 0);
        let column = ColumnPos::new(tile.x << CUBE_SHIFT, tile.z << CUBE_SHIFT);
        self.visit_cubes(dimension, column, i64::MIN..i64::MAX, CUBE_SHIFT, |bottom| {
            let cube = self.groups_in_cube(dimension, column.chunk(bottom), has_damaged && damaged < MAX_DAMAGED)?;
            damaged += u32::from(cube.1);
            groups.extend(cube.0);
            Ok(())
        })?;
        let mut groups: Vec<ChunkGroup> = groups.into_iter().collect();
        groups.sort_by_cached_key(|group| group.key());
        Ok(groups)
    }
}
