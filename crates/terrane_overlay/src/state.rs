//! The condition of a region, in a word.

use super::format::list;
use bevy_egui::egui::{Color32, Ui};
use bevy_terrane::region::{RegionId, RegionState};
use bevy_terrane::space::DimensionId;
use bevy_terrane::view::RegionStatistics;

/// The condition of a region, the most urgent first, which is also the sort order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Condition {
    Halted,
    Hung,
    Paused,
    Waiting,
    /// The region ticks, or will as soon as a tick is due. The two alternate all the time.
    Alive,
}

impl Condition {
    pub fn of(region: &RegionStatistics) -> Self {
        match region.state {
            _ if region.halted => Self::Halted,
            _ if region.hung.is_some() => Self::Hung,
            _ if region.paused => Self::Paused,
            RegionState::Transient => Self::Waiting,
            _ => Self::Alive,
        }
    }

    pub fn color(self, ui: &Ui) -> Color32 {
        let visuals = ui.visuals();
        match self {
            Self::Halted => visuals.error_fg_color,
            Self::Hung => visuals.warn_fg_color,
            Self::Paused | Self::Waiting => visuals.weak_text_color(),
            Self::Alive => visuals.text_color(),
        }
    }
}

/// `hung for 7 s in RegionTick`, `ready, with 28`.
pub(super) fn text(region: &RegionStatistics) -> String {
    let mut text = match (Condition::of(region), region.hung, &region.hung_in) {
        (Condition::Halted, ..) => "halted".to_owned(),
        (Condition::Hung, Some(time), Some(step)) => format!("hung for {} s in {step}", time.as_secs()),
        (Condition::Paused, ..) => "paused".to_owned(),
        _ => region.state.to_string(),
    };
    if let Some((_, first)) = region.coupled.first() {
        text += &format!(", with {}", first.index());
        if region.coupled.len() > 1 {
            text += &format!(" and {} more", region.coupled.len() - 1);
        }
    }
    text
}

/// `28, 4 of nether`: the regions that a region in `here` is coupled with.
pub(super) fn coupled(
    regions: &[(DimensionId, RegionId)],
    here: DimensionId,
    dimension_name: impl Fn(DimensionId) -> String,
) -> String {
    list(regions, |(dimension, region)| match *dimension == here {
        true => region.index().to_string(),
        false => format!("{} of {}", region.index(), dimension_name(*dimension)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_summary_shows_problems() {
        let region = || RegionStatistics::new(DimensionId(0), RegionId::new(5));
        let halted = RegionStatistics { halted: true, paused: true, ..region() };
        let hung_in = Some("RegionTick".to_owned());
        let hung = RegionStatistics { hung: Some(Duration::from_millis(7_900)), hung_in, ..region() };
        let paused = RegionStatistics { paused: true, ..region() };
        let coupled = vec![(DimensionId(0), RegionId::new(28)), (DimensionId(1), RegionId::new(4))];
        let pair = RegionStatistics { coupled: coupled[..1].to_vec(), ..region() };
        let three = RegionStatistics { coupled: coupled.clone(), state: RegionState::Ticking, ..region() };
        let regions = [halted, hung, paused, pair, three];
        let expected =
            ["halted", "hung for 7 s in RegionTick", "paused", "ready, with 28", "ticking, with 28 and 1 more"];
        assert_eq!(regions.each_ref().map(text), expected);
        assert!(regions.each_ref().map(Condition::of).is_sorted());
        assert_eq!(super::coupled(&coupled, DimensionId(0), |_| "nether".to_owned()), "28, 4 of nether");
    }
}
