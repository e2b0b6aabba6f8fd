//! The tiers, and the configuration of moves between them.

use crate::Family;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The ways to store chunks. Chunks that have not been needed for a longer time share a key with more others, and take
/// less space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Tier {
    /// L0: each chunk has a key of its own.
    Hot,
    /// L1: the chunks of a group of 4 x 4 x 4 share one key.
    Warm,
    /// L2: the cold groups of a cube of 16 x 16 x 16 chunks share one key.
    Cold,
}

impl Tier {
    /// All tiers, hottest first.
    pub const ALL: [Self; 3] = [Self::Hot, Self::Warm, Self::Cold];

    pub(crate) const fn family(self) -> Family {
        match self {
            Self::Hot => Family::Chunks,
            Self::Warm => Family::WarmChunks,
            Self::Cold => Family::ColdChunks,
        }
    }

    /// The tier whose chunks are in this family; `None` if it holds no chunks.
    pub(crate) fn of_family(family: Family) -> Option<Self> {
        Self::ALL.into_iter().find(|tier| tier.family() == family)
    }

    pub(crate) const fn number(self) -> u8 {
        self as u8
    }

    pub(crate) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hot => "hot",
            Self::Warm => "warm",
            Self::Cold => "cold",
        })
    }
}

/// The conditions and the maximum speed of moves between the tiers.
///
/// All times are in the world's [play time](crate::WorldStore::play_time): a world that is not open does not cool down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TierConfig {
    /// `true` if a warm or cold group becomes hot as soon as it is loaded. By default it is loaded from its tier, and
    /// becomes hot when a change of one of its chunks is saved.
    pub promotes_on_load: bool,
    /// The time without a load after which a group becomes warm; ten minutes by default. `Duration::MAX` for never.
    pub warm_after: Duration,
    /// The time without a load after which a group becomes cold; one hour by default. `Duration::MAX` for never.
    pub cold_after: Duration,
    /// The distance in blocks beyond which warm groups become cold early: all viewers of the dimension must be further
    /// away. 1,024 by default. Without viewers, only time counts. `u64::MAX` for never.
    pub cold_beyond: u64,
    /// The maximum number of bytes of chunks, before compression, that are moved per second; 32 MiB by default.
    pub bytes_per_second: u64,
}

impl Default for TierConfig {
    fn default() -> Self {
        Self {
            promotes_on_load: false,
            warm_after: Duration::from_secs(10 * 60),
            cold_after: Duration::from_secs(60 * 60),
            cold_beyond: 1_024,
            bytes_per_second: 32 << 20,
        }
    }
}

impl TierConfig {
    /// The right tier for a group that is not loaded. `now` and `accessed`, the last access if any, are play times.
    /// `distance` is the distance to the nearest viewer in blocks, if there is one.
    pub fn tier(&self, now: Duration, accessed: Option<Duration>, distance: Option<u64>) -> Tier {
        let has_passed = |after: Duration| {
            let idle = accessed.is_none_or(|accessed| now.saturating_sub(accessed) >= after);
            after < Duration::MAX && idle
        };
        if !has_passed(self.warm_after) {
            Tier::Hot
        } else if has_passed(self.cold_after) || distance.is_some_and(|distance| distance > self.cold_beyond) {
            Tier::Cold
        } else {
            Tier::Warm
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Promise, tiers: A warm chunk group becomes cold only more than 1,024 blocks away from every viewer.
    #[test]
    fn where_a_group_belongs_follows_from_time_and_then_distance() {
        let config = TierConfig::default();
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        let tier = |idle: u64, distance| config.tier(minutes(1_000), Some(minutes(1_000 - idle)), distance);
        for distance in [None, Some(0), Some(u64::MAX)] {
            assert_eq!(tier(0, distance), Tier::Hot);
            assert_eq!(tier(9, distance), Tier::Hot);
            assert_eq!(tier(60, distance), Tier::Cold);
            assert_eq!(tier(1_000, distance), Tier::Cold);
        }
        assert_eq!([None, Some(0), Some(1_024)].map(|distance| tier(10, distance)), [Tier::Warm; 3]);
        assert_eq!(tier(10, Some(1_025)), Tier::Cold);
        // A group that seems to have been accessed in the future is not idle.
        assert_eq!(config.tier(minutes(5), Some(minutes(50)), None), Tier::Hot);
        // A group that was never needed is cold from the beginning.
        assert_eq!(config.tier(Duration::ZERO, None, Some(0)), Tier::Cold);
        let never = TierConfig { warm_after: Duration::MAX, ..config };
        assert_eq!(never.tier(minutes(1 << 40), Some(Duration::ZERO), Some(u64::MAX)), Tier::Hot);
        assert_eq!(never.tier(minutes(1), None, None), Tier::Hot);
    }

    /// Promise, tiers: By default at most 32 MiB of chunks move between tiers per second.
    /// Promise, tiers: By default a chunk group becomes hot when a change of it is saved.
    #[test]
    fn by_default_32_mib_move_per_second_and_saved_groups_become_hot() {
        let config = TierConfig::default();
        assert_eq!((config.bytes_per_second, config.promotes_on_load), (32 << 20, false));
    }
}
