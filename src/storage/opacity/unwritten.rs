//! Tiles of the opacity map that changed and are not written yet.
//!
//! A player who builds changes the same few tiles again and again, each larger than the chunks that were changed. A tile can
//! be made anew from the chunks at any time, so the save with its first change only removes it from the store. What it is now
//! is kept here, and written some minutes later. After a crash those that were kept are made anew.

use crate::space::{BatchPos, DimensionId};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a tile that changes is not written, in play time. Measured with a hundred players who build (bench `saves`): to
/// write the tile of each once takes a twenty-fifth of the bytes of all chunks that they change in ten minutes.
const WRITTEN_AFTER: Duration = Duration::from_secs(5 * 60);
/// With more bytes of tiles than this, the oldest half is written at once.
const MAX_BYTES: usize = 16 << 20;

/// A batch of columns of a dimension.
pub(in crate::storage) type TilePlace = (DimensionId, BatchPos);

/// What becomes of tiles with a write: the value that is kept here, or `None` if nothing is kept any more.
pub(in crate::storage) type TileChanges = BTreeMap<TilePlace, Option<Vec<u8>>>;

/// The values of these tiles, and the play time of the first change of each. Nothing else is stored of them.
#[derive(Debug, Default)]
pub(in crate::storage) struct UnwrittenOpacity(Mutex<BTreeMap<TilePlace, (Duration, Vec<u8>)>>);

impl UnwrittenOpacity {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<TilePlace, (Duration, Vec<u8>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value of a tile, if it is here.
    pub fn get(&self, place: TilePlace) -> Option<Vec<u8>> {
        self.lock().get(&place).map(|(_, value)| value.clone())
    }

    /// The tiles that are to be written by now, as they are after these changes.
    pub fn due(&self, now: Duration, changes: &TileChanges) -> Vec<(TilePlace, Vec<u8>)> {
        let tiles = self.lock();
        let mut places: Vec<_> = tiles.iter().map(|(place, (since, _))| (*since, *place)).collect();
        let bytes: usize = tiles.values().map(|(_, value)| value.len()).sum();
        let has_too_many = bytes > MAX_BYTES;
        if has_too_many {
            places.sort_unstable();
        }
        let (at_once, mut seen) = (if has_too_many { bytes / 2 } else { 0 }, 0);
        places.retain(|(since, place)| {
            let is_old = now.saturating_sub(*since) >= WRITTEN_AFTER || seen < at_once;
            seen += tiles[place].1.len();
            is_old
        });
        let newest = |(_, place)| {
            let value = match changes.get(&place) {
                Some(change) => change.as_ref()?,
                None => &tiles[&place].1,
            };
            Some((place, value.clone()))
        };
        places.into_iter().filter_map(newest).collect()
    }

    /// The changes are made, and what was to be written is.
    pub fn apply(&self, changes: TileChanges, now: Duration) {
        let mut tiles = self.lock();
        for (place, value) in changes {
            let old = tiles.remove(&place);
            if let Some(value) = value {
                tiles.insert(place, (old.map_or(now, |(since, _)| since), value));
            }
        }
    }

    /// All tiles, to write them.
    pub fn all(&self) -> Vec<(TilePlace, Vec<u8>)> {
        self.lock().iter().map(|(place, (_, value))| (*place, value.clone())).collect()
    }

    /// Of these batches of columns nothing is stored any more. Gives how many tiles there were.
    pub fn remove(&self, mut is_gone: impl FnMut(TilePlace) -> bool) -> usize {
        self.lock().extract_if(.., |place, _| is_gone(*place)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(x: i64) -> TilePlace {
        (DimensionId(1), BatchPos::new(x, 0))
    }

    fn kept(unwritten: &UnwrittenOpacity, tiles: &[(TilePlace, usize)], second: u64) {
        let changes = tiles.iter().map(|(place, length)| (*place, Some(vec![7; *length]))).collect();
        unwritten.apply(changes, Duration::from_secs(second));
    }

    fn due(unwritten: &UnwrittenOpacity, second: u64, changes: &TileChanges) -> Vec<(TilePlace, usize)> {
        let due = unwritten.due(Duration::from_secs(second), changes);
        due.into_iter().map(|(place, value)| (place, value.len())).collect()
    }

    #[test]
    fn a_tile_is_due_five_minutes_after_its_first_change_as_it_is_by_then() {
        let unwritten = UnwrittenOpacity::default();
        kept(&unwritten, &[(place(1), 5), (place(2), 6)], 10);
        kept(&unwritten, &[(place(1), 8), (place(3), 9)], 100);
        assert_eq!(due(&unwritten, 309, &TileChanges::new()), []);
        assert_eq!(due(&unwritten, 310, &TileChanges::new()), [(place(1), 8), (place(2), 6)]);
        let changes = TileChanges::from([(place(1), Some(vec![0; 3])), (place(2), None)]);
        assert_eq!(due(&unwritten, 310, &changes), [(place(1), 3)]);
        unwritten.apply([(place(1), None), (place(2), None)].into(), Duration::from_secs(310));
        assert_eq!((unwritten.get(place(1)), unwritten.all()), (None, vec![(place(3), vec![7; 9])]));
        kept(&unwritten, &[(place(1), 5)], 320);
        assert_eq!(due(&unwritten, 400, &TileChanges::new()), [(place(3), 9)]);
    }

    #[test]
    fn of_too_many_the_oldest_half_is_due() {
        let unwritten = UnwrittenOpacity::default();
        let large = MAX_BYTES / 4;
        kept(&unwritten, &[(place(9), large), (place(1), large)], 1);
        kept(&unwritten, &[(place(2), large), (place(3), large)], 2);
        assert_eq!(due(&unwritten, 2, &TileChanges::new()), []);
        kept(&unwritten, &[(place(4), 8)], 3);
        assert_eq!(due(&unwritten, 3, &TileChanges::new()), [(place(1), large), (place(9), large), (place(2), large)]);
        assert_eq!(unwritten.remove(|place| place.1.x == 9), 1);
        assert_eq!(due(&unwritten, 3, &TileChanges::new()), []);
    }
}
