//! A profile of a region: which of its systems takes the time.

use super::format::{count, duration, percent};
use crate::view::RegionKey;
use bevy_egui::egui::{Button, Grid, Label, ProgressBar, RichText, Ui};
use bevy_terrane::simulation::RegionProfile;
use std::time::Duration;
use terrane_inspect::{Asked, InspectError, Inspector};

/// The length of a profile.
const LENGTH: Duration = Duration::from_secs(10);
/// The number of parts that are shown.
const MOST_PARTS: usize = 10;

/// The profile of one region.
#[derive(Default)]
pub(super) struct Profile {
    of: Option<RegionKey>,
    /// The question, with the time when it was asked.
    asked: Option<(Asked<RegionProfile>, f64)>,
    answer: Option<Result<RegionProfile, InspectError>>,
}

impl Profile {
    /// Shows the button, the progress, and the profile.
    pub fn show(&mut self, ui: &mut Ui, inspector: &mut Inspector, region: RegionKey) {
        if self.of != Some(region) {
            *self = Self { of: Some(region), ..Self::default() };
        }
        let now = ui.input(|input| input.time);
        if let Some(answer) = self.asked.as_mut().and_then(|(asked, _)| asked.take()) {
            (self.answer, self.asked) = (Some(answer), None);
        }
        ui.horizontal(|ui| {
            let name = format!("profile {} s", LENGTH.as_secs());
            let button = ui.add_enabled(self.asked.is_none(), Button::new(name));
            if button.on_hover_text("measures which system takes how much of a tick").clicked() {
                match inspector.profile(region, LENGTH) {
                    Ok(asked) => (self.asked, self.answer) = (Some((asked, now)), None),
                    Err(error) => self.answer = Some(Err(error)),
                }
            }
            if let Some((_, began)) = &self.asked {
                let done = (now - began) / LENGTH.as_secs_f64();
                let text = if done < 1.0 { "measuring" } else { "waiting for a tick" };
                ui.add(ProgressBar::new(done as f32).text(text));
            }
        });
        match &self.answer {
            Some(Ok(profile)) => show(ui, profile),
            Some(Err(error)) => drop(ui.colored_label(ui.visuals().warn_fg_color, error.to_string())),
            None => {}
        }
    }
}

fn show(ui: &mut Ui, profile: &RegionProfile) {
    let ticks = profile.ticks.max(1);
    let of_all = percent(profile.busy.as_secs_f64() / profile.elapsed.as_secs_f64().max(1e-9));
    let each = duration(profile.busy / ticks);
    ui.label(format!("{} ticks of {each}, {of_all} of the time", count(profile.ticks.into())));
    Grid::new("profile").num_columns(3).striped(true).spacing([8.0, 2.0]).show(ui, |ui| {
        for part in profile.parts.iter().take(MOST_PARTS) {
            ui.label(RichText::new(percent(profile.share(part))).strong());
            ui.label(duration(part.time / ticks));
            let place = if part.schedule.is_empty() { "a step of the tick" } else { &part.schedule };
            let hint = format!("{}\n{place}, ran {} times", part.name, count(part.runs.into()));
            ui.add(Label::new(short(&part.name)).truncate()).on_hover_text(hint);
            ui.end_row();
        }
    });
}

/// The last two parts of a path: `bodies::move_bodies`.
fn short(name: &str) -> &str {
    // Type parameters have paths of their own.
    let path = name.split('<').next().unwrap_or(name);
    let mut ends = path.rmatch_indices("::").map(|(at, _)| at + 2);
    let begin = ends.nth(1).unwrap_or(0);
    &name[begin..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short() {
        assert_eq!(short("my_game::sheep::eat"), "sheep::eat");
        assert_eq!(short("eat"), "eat");
        assert_eq!(short("a::b::grow<c::d::Grass>"), "b::grow<c::d::Grass>");
        assert_eq!(short("handing out changes"), "handing out changes");
    }
}
