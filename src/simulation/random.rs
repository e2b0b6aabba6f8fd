//! Reproducible random numbers.

use bevy::prelude::*;

/// The SplitMix64 generator (Steele, Lea and Flood, 2014): small, fast, identical on every platform. Not for secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Reflect)]
#[type_path = "bevy_terrane"]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// A generator with this seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator whose seed depends on every element of `parts`.
    pub fn from_parts(parts: impl IntoIterator<Item = u64>) -> Self {
        let mut state = Self(0);
        for part in parts {
            state.0 ^= part;
            state.0 = state.next_u64();
        }
        state
    }

    /// The next 64 random bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in `0..bound`; 0 if `bound` is 0.
    pub const fn below(&mut self, bound: u32) -> u32 {
        (((self.next_u64() >> 32) * bound as u64) >> 32) as u32
    }

    /// A number in 0..1.
    pub const fn unit(&mut self) -> f32 {
        (self.next_u64() >> 40) as f32 / (1 << 24) as f32
    }
}

/// Random numbers for the systems of a region. They are reseeded each tick from the world's seed and the number of the tick
/// among the ticks of all regions, so that identical runs in lockstep draw identical numbers.
#[derive(Resource, Debug, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(Resource)]
pub struct RegionRandom(pub SplitMix64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_first_values_come_out() {
        let mut random = SplitMix64::new(42);
        assert_eq!(random.next_u64(), 0xbdd7_3226_2feb_6e95);
        assert_eq!(random.next_u64(), 0x28ef_e333_b266_f103);
        assert_eq!(random.next_u64(), 0x4752_6757_130f_9f52);
    }

    #[test]
    fn numbers_stay_in_their_range() {
        let mut random = SplitMix64::new(7);
        assert_eq!(random.below(0), 0);
        for _ in 0..1_000 {
            assert!(random.below(24) < 24);
            assert!((0.0..1.0).contains(&random.unit()));
        }
    }
}
