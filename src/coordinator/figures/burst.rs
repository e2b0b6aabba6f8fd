//! Detects the end of a burst of regions and columns, so that its memory returns to the system.

/// The approximate bytes of a region's world, and of a column in it and in the main world, measured with a small game and
/// [`Flat`](crate::generation::Flat).
const REGION_BYTES: usize = 256 << 10;
const COLUMN_BYTES: usize = 16 << 10;
/// Smaller amounts are not worth the time.
const LEAST_BYTES: usize = 32 << 20;
/// A burst is over after this many statistics (one second) without a decrease.
const CALM: u32 = 4;

/// The recent memory use. A plain data structure.
#[derive(Debug, Default)]
pub struct Burst {
    /// The maximum since memory was last returned.
    most: usize,
    last: usize,
    /// The number of statistics without a decrease.
    calm: u32,
}

impl Burst {
    /// Notes the current number of regions and columns. Returns `true` if at least half of the memory is free again.
    pub fn is_over(&mut self, regions: usize, columns: usize) -> bool {
        self.is_over_at(regions * REGION_BYTES + columns * COLUMN_BYTES)
    }

    /// Notes the bytes in use now. Returns `true` if at least half of the memory is free again.
    fn is_over_at(&mut self, now: usize) -> bool {
        self.calm = if now < self.last { 0 } else { self.calm.saturating_add(1) };
        self.last = now;
        self.most = self.most.max(now);
        let is_over = self.calm >= CALM && now <= self.most / 2 && self.most - now >= LEAST_BYTES;
        if is_over {
            self.most = now;
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEBIBYTE: usize = 1 << 20;

    /// Counts the ends of bursts, with so many mebibytes in use each time.
    fn ends(burst: &mut Burst, mebibytes: impl IntoIterator<Item = usize>) -> usize {
        mebibytes.into_iter().filter(|now| burst.is_over_at(now * MEBIBYTE)).count()
    }

    /// Promise, worlds: After a burst of regions, glibc returns the freed memory to the system.
    #[test]
    fn a_burst_is_over_once_when_less_is_in_use_for_a_second() {
        let mut burst = Burst::default();
        assert_eq!(ends(&mut burst, (0..500).chain([500; 9])), 0, "it grows");
        assert_eq!(ends(&mut burst, (10..500).rev()), 0, "it becomes less");
        assert_eq!(ends(&mut burst, [10; 9]), 1, "it is over");
        assert_eq!(ends(&mut burst, [10; 99]), 0, "once");
        assert_eq!(ends(&mut burst, [100, 100, 10, 10, 10, 10, 10]), 1, "the next one");
    }

    #[test]
    fn ordinary_play_is_not_a_burst() {
        let mut burst = Burst::default();
        assert_eq!(ends(&mut burst, [400, 300, 300, 300, 300, 300, 300, 400, 201].repeat(9)), 0, "not half of it");
        let mut burst = Burst::default();
        assert_eq!(ends(&mut burst, [33, 2, 2, 2, 2, 2, 2].repeat(9)), 0, "too little");
    }
}
