//! [`Completion`]: how far something has come.

/// How many columns of an area are missing, and how many it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// The missing columns. Stops at `u64::MAX`.
    pub missing: u64,
    /// All columns. Stops at `u64::MAX`.
    pub total: u64,
}

impl Completion {
    /// The part that is completed, from 0 to 1: 1 if and only if nothing is missing.
    pub fn fraction(self) -> f64 {
        let Self { missing, total } = self;
        if missing == 0 {
            return 1.0;
        }
        // Close to 1 a division may round up to it.
        (total.saturating_sub(missing) as f64 / total as f64).min(1.0 - f64::EPSILON)
    }
}
