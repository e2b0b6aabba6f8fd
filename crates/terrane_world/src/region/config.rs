//! The configuration of a regionizer.

use thiserror::Error;

/// When sections appear, merge and are removed.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionizerConfig {
    /// The width of a section is 2^`section_shift` columns. At most [`Self::MAX_SECTION_SHIFT`].
    pub section_shift: u32,
    /// Sections within this distance of a non-empty one exist too. At most [`Self::MAX_CREATION_RADIUS`].
    pub empty_section_creation_radius: u32,
    /// Sections within this distance of each other share a region. From 1 to the creation radius.
    pub section_merge_radius: u32,
    /// Only regions with at least this many sections are checked against `max_dead_section_percent`.
    pub recalculation_section_count: usize,
    /// The *fraction* (0 to 1) of dead sections from which on a tick's end removes them.
    pub max_dead_section_percent: f64,
}

impl RegionizerConfig {
    /// The largest allowed `section_shift`: sections of 64 x 64 columns.
    pub const MAX_SECTION_SHIFT: u32 = 6;
    /// The largest allowed `empty_section_creation_radius`.
    pub const MAX_CREATION_RADIUS: u32 = 8;

    /// Columns that are farther apart than this are never in one region, unless others lie between them.
    pub fn reach(&self) -> u64 {
        let sections = 2 * u64::from(self.empty_section_creation_radius) + 1;
        sections << self.section_shift.min(Self::MAX_SECTION_SHIFT)
    }

    /// Checks that a regionizer can work with these values.
    pub fn validate(&self) -> Result<(), RegionizerConfigError> {
        let check = |setting, found: u32, least: u32, most: u32| {
            let refused =
                || RegionizerConfigError { setting, found: found.into(), least: least.into(), most: most.into() };
            (least..=most).contains(&found).then_some(()).ok_or_else(refused)
        };
        check("section_shift", self.section_shift, 0, Self::MAX_SECTION_SHIFT)?;
        let creation = self.empty_section_creation_radius;
        check("empty_section_creation_radius", creation, 1, Self::MAX_CREATION_RADIUS)?;
        // The merge radius is at most the creation radius.
        check("section_merge_radius", self.section_merge_radius, 1, creation)?;
        let (setting, found) = ("max_dead_section_percent", self.max_dead_section_percent);
        let refused = RegionizerConfigError { setting, found, least: 0.0, most: 1.0 };
        if (0.0..=1.0).contains(&found) { Ok(()) } else { Err(refused) }
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

/// The error for a value of a [`RegionizerConfig`] that is out of range.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{setting} is {found}, it must be {least} to {most}")]
pub struct RegionizerConfigError {
    /// The field's name.
    pub setting: &'static str,
    /// Its value.
    pub found: f64,
    /// The lowest allowed value.
    pub least: f64,
    /// The highest allowed value.
    pub most: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_workable_values_are_valid() {
        let good = RegionizerConfig::default();
        assert_eq!(good.validate(), Ok(()));
        assert_eq!(good.reach(), 20);
        let refused = |config: RegionizerConfig| config.validate().unwrap_err().to_string();
        let shift = RegionizerConfig { section_shift: 7, ..good.clone() };
        assert_eq!(refused(shift), "section_shift is 7, it must be 0 to 6");
        for radius in [0, 9, u32::MAX] {
            let config = RegionizerConfig { empty_section_creation_radius: radius, ..good.clone() };
            assert_eq!(refused(config), format!("empty_section_creation_radius is {radius}, it must be 1 to 8"));
        }
        for merge in [0, 3, u32::MAX] {
            let config = RegionizerConfig { section_merge_radius: merge, ..good.clone() };
            assert_eq!(refused(config), format!("section_merge_radius is {merge}, it must be 1 to 2"));
        }
        for fraction in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            let config = RegionizerConfig { max_dead_section_percent: fraction, ..good.clone() };
            assert_eq!(refused(config), format!("max_dead_section_percent is {fraction}, it must be 0 to 1"));
        }
    }
}
