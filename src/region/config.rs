//! The knobs of a regionizer.

use thiserror::Error;

/// When sections appear, merge and are removed.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionizerConfig {
    /// A section is 2^`section_shift` columns wide. At most [`Self::MAX_SECTION_SHIFT`].
    pub section_shift: u32,
    /// Sections this near to a non-empty one exist too. At most [`Self::MAX_CREATION_RADIUS`].
    pub empty_section_creation_radius: u32,
    /// Sections this near to each other share a region. From 1 to the creation radius.
    pub section_merge_radius: u32,
    /// From this many sections on, a region's dead sections are counted against `max_dead_section_percent`.
    pub recalculation_section_count: usize,
    /// A tick's end removes dead sections from this *fraction* (0 to 1) of all the region's sections on.
    pub max_dead_section_percent: f64,
}

impl RegionizerConfig {
    /// The largest allowed `section_shift`: sections of 64 x 64 columns.
    pub const MAX_SECTION_SHIFT: u32 = 6;
    /// The largest allowed `empty_section_creation_radius`.
    pub const MAX_CREATION_RADIUS: u32 = 8;

    /// Whether a regionizer can work with these values.
    pub fn validate(&self) -> Result<(), RegionizerConfigError> {
        if self.section_shift > Self::MAX_SECTION_SHIFT {
            return Err(RegionizerConfigError::SectionShift(self.section_shift));
        }
        if !(1..=Self::MAX_CREATION_RADIUS).contains(&self.empty_section_creation_radius) {
            return Err(RegionizerConfigError::CreationRadius(self.empty_section_creation_radius));
        }
        if !(1..=self.empty_section_creation_radius).contains(&self.section_merge_radius) {
            return Err(RegionizerConfigError::MergeRadius {
                merge: self.section_merge_radius,
                creation: self.empty_section_creation_radius,
            });
        }
        if !(0.0..=1.0).contains(&self.max_dead_section_percent) {
            return Err(RegionizerConfigError::DeadFraction(self.max_dead_section_percent));
        }
        Ok(())
    }
}

impl Default for RegionizerConfig {
    fn default() -> Self {
        Self {
            section_shift: 2,
            empty_section_creation_radius: 2,
            section_merge_radius: 1,
            recalculation_section_count: 128,
            max_dead_section_percent: 1.0 / 6.0,
        }
    }
}

/// A value of a [`RegionizerConfig`] that no regionizer can work with.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum RegionizerConfigError {
    /// Sections too large.
    #[error("section_shift is {0}, the most is {max}", max = RegionizerConfig::MAX_SECTION_SHIFT)]
    SectionShift(u32),
    /// Creation radius zero or too large.
    #[error("empty_section_creation_radius is {0}, it must be 1 to {max}", max = RegionizerConfig::MAX_CREATION_RADIUS)]
    CreationRadius(u32),
    /// Merge radius zero or larger than the creation radius.
    #[error("section_merge_radius is {merge}, it must be 1 to the creation radius {creation}")]
    MergeRadius {
        /// The merge radius.
        merge: u32,
        /// The creation radius.
        creation: u32,
    },
    /// No fraction.
    #[error("max_dead_section_percent is {0}, it is a fraction and must be 0 to 1")]
    DeadFraction(f64),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_workable_values_are_valid() {
        let good = RegionizerConfig::default();
        assert_eq!(good.validate(), Ok(()));
        assert_eq!(
            RegionizerConfig { section_shift: 7, ..good.clone() }.validate(),
            Err(RegionizerConfigError::SectionShift(7))
        );
        for radius in [0, 9, u32::MAX] {
            let config = RegionizerConfig { empty_section_creation_radius: radius, ..good.clone() };
            assert_eq!(config.validate(), Err(RegionizerConfigError::CreationRadius(radius)));
        }
        for merge in [0, 3, u32::MAX] {
            let config = RegionizerConfig { section_merge_radius: merge, ..good.clone() };
            assert_eq!(config.validate(), Err(RegionizerConfigError::MergeRadius { merge, creation: 2 }));
        }
        for fraction in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            let config = RegionizerConfig { max_dead_section_percent: fraction, ..good.clone() };
            assert!(matches!(config.validate(), Err(RegionizerConfigError::DeadFraction(_))));
        }
    }
}
