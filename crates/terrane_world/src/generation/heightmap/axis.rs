//! Maps blocks to samples along one axis, and interpolates between samples.

/// Fixed point bits: every scale within [`MIN_SCALE`] ..= [`MAX_SCALE`] is exact, because it has at most 24 significant bits.
const FRACTION: u32 = 33;
pub(super) const MIN_SCALE: f32 = 1.0 / 1024.0;
pub(super) const MAX_SCALE: f32 = 1_048_576.0;

/// One axis of a map, which maps blocks to samples.
///
/// Beyond the last sample the map is mirrored, repeatedly: sample 0, 1, .. n - 1, n - 2, .. 1, 0, 1 ..
/// All computations use integers, so they are as exact at the edges of `i64` as at the origin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    samples: u32,
    /// Fixed point: blocks per sample.
    scale: i128,
    /// The sample at block 0.
    origin: u32,
}

/// The four samples around a place, and the place's position between the second and the third.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tap {
    pub samples: [usize; 4],
    pub fraction: f64,
}

impl Axis {
    /// `scale` must lie within the limits and `samples` must not be zero.
    pub(super) fn new(samples: u32, scale: f32, origin: u32) -> Self {
        Self { samples, scale: (f64::from(scale) * (1u64 << FRACTION) as f64) as i128, origin }
    }

    /// The samples around a block. `i128`, because neighbours of blocks at the edges of `i64` are needed too.
    pub(super) fn tap(&self, block: i128) -> Tap {
        let period = self.period();
        let place = (block << FRACTION) + i128::from(self.origin) * self.scale;
        let place = place.rem_euclid(period * self.scale);
        let sample = place / self.scale;
        let fraction = (place - sample * self.scale) as f64 / self.scale as f64;
        Tap { samples: [-1, 0, 1, 2].map(|step| self.mirrored(sample + step)), fraction }
    }

    fn period(&self) -> i128 {
        (2 * (i128::from(self.samples) - 1)).max(1)
    }

    fn mirrored(&self, sample: i128) -> usize {
        let period = self.period();
        let sample = sample.rem_euclid(period);
        (if sample < i128::from(self.samples) { sample } else { period - sample }) as usize
    }
}

impl Tap {
    /// The Catmull-Rom curve through four values, clamped to the lowest and the highest of them. It is smooth, exact
    /// at the samples, and without the dents of the plain curve beside cliffs.
    pub(super) fn curve(&self, [a, b, c, d]: [f64; 4]) -> f64 {
        let t = self.fraction;
        let value = b + 0.5 * t * (c - a + t * (2.0 * a - 5.0 * b + 4.0 * c - d + t * (3.0 * (b - c) + d - a)));
        value.clamp(a.min(b).min(c.min(d)), a.max(b).max(c.max(d)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn beyond_the_edge_the_samples_run_backwards() {
        let axis = Axis::new(4, 1.0, 0);
        let row: Vec<_> = (-4..9).map(|block| axis.tap(block).samples[1]).collect();
        assert_eq!(row, [2, 3, 2, 1, 0, 1, 2, 3, 2, 1, 0, 1, 2]);
        assert_eq!(Axis::new(1, 3.0, 0).tap(-77).samples, [0; 4]);
        let coarse = Axis::new(4, 7.3, 1);
        assert!(
            coarse.tap(0).fraction == 0.0 && coarse.tap(73).fraction > 0.0 && coarse.tap(0).samples == [0, 1, 2, 3]
        );
        assert_eq!(Axis::new(4, 7.0, 1).tap(7 * 1_000_000_007).fraction, 0.0);
        assert_eq!(Axis::new(2, 1.0, 1).tap(0).samples, [0, 1, 0, 1]);
    }

    #[test]
    fn a_curve_never_leaves_its_samples() {
        let step = |fraction| Tap { samples: [0; 4], fraction }.curve([0.0, 0.0, 0.0, 100.0]);
        assert!((0..100).all(|part| step(f64::from(part) / 100.0) >= 0.0));
        let line = Tap { samples: [0; 4], fraction: 0.25 }.curve([1.0, 2.0, 3.0, 4.0]);
        assert_eq!(line, 2.25);
    }

    proptest! {
        /// Near the origin the results match floating point, and far out whole periods change nothing.
        #[test]
        fn places_agree_with_floating_point_and_repeat(
            samples in 2u32..500,
            scale in MIN_SCALE..40.0f32,
            block in -5_000i128..5_000,
            periods in 0i128..1 << 40,
        ) {
            let origin = samples / 2;
            let axis = Axis::new(samples, scale, origin);
            let tap = axis.tap(block);
            let place = block as f64 / f64::from(scale) + f64::from(origin);
            let unfolded = axis.mirrored(place.floor() as i128) as f64;
            let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
            let distance = place - place.floor();
            prop_assert!(
                (near(tap.fraction, distance) && tap.samples[1] as f64 == unfolded)
                    || near((tap.fraction - distance).abs(), 1.0),
                "{} against {}", tap.fraction, distance
            );
            // A whole number of periods is a whole number of blocks only if the scale is an integer.
            let whole = Axis::new(samples, scale.ceil(), origin);
            let shift = periods * whole.period() * scale.ceil() as i128;
            let (here, there) = (whole.tap(block), whole.tap(block + shift));
            prop_assert_eq!((here.samples, here.fraction), (there.samples, there.fraction));
        }
    }
}
