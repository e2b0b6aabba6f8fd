//! The list of the entities of a region.

use super::entity::short;
use super::format::{count, counted, list};
use super::widgets::clickable_table;
use crate::view::RegionKey;
use bevy_egui::egui::{CollapsingHeader, DragValue, RichText, ScrollArea, TextEdit, TextStyle, Ui};
use bevy_terrane::space::BlockPos;
use egui_extras::Column;
use terrane_inspect::{ArchetypeLook, Asked, Cursor, Filter, Found, InspectError, Inspector, Listing};
use uuid::Uuid;

/// The distance of the list's filter, in blocks, until it is changed.
const FIRST_REACH: u64 = 32;
/// The time after which a list is read again, in seconds.
const REFRESH: f64 = 1.0;

/// The list, as far as it is known.
#[derive(Default)]
pub(super) struct Entities {
    filter: Filter,
    /// The place for [`Filter::near`], also while the filter does not use it.
    place: BlockPos,
    reach: Option<u64>,
    /// The region and the filter of the list.
    of: Option<(RegionKey, Filter)>,
    asked: Option<Asked<Listing>>,
    /// `true` if a page that was asked for follows those that are shown.
    adds: bool,
    found: Vec<Found>,
    kinds: Vec<ArchetypeLook>,
    next: Option<Cursor>,
    pages: usize,
    error: Option<InspectError>,
    /// The time of the next question.
    due: f64,
}

impl Entities {
    /// Lists only what is near this block from now on.
    pub fn look_near(&mut self, block: BlockPos) {
        self.place = block;
        self.filter.near = Some((block, *self.reach.get_or_insert(FIRST_REACH)));
    }

    /// Shows the entities of the selected region, and asks for them. A click on a row selects its entity.
    pub fn show(
        &mut self,
        ui: &mut Ui,
        inspector: &mut Inspector,
        region: Option<RegionKey>,
        selected: &mut Option<Uuid>,
    ) {
        let Some(region) = region else {
            *self = Self { filter: self.filter.clone(), place: self.place, reach: self.reach, ..Self::default() };
            ui.weak("Select a region in the map or in the table.");
            return;
        };
        self.filters(ui);
        self.hear();
        self.ask(ui.input(|input| input.time), inspector, region);
        if let Some(error) = &self.error {
            ui.colored_label(ui.visuals().warn_fg_color, error.to_string());
        }
        self.kinds(ui);
        self.rows(ui, selected);
    }

    fn filters(&mut self, ui: &mut Ui) {
        let reach = self.reach.get_or_insert(FIRST_REACH);
        ui.horizontal(|ui| {
            let mut part = |text: &mut String, hint: &str| {
                ui.add(TextEdit::singleline(text).hint_text(hint).desired_width(120.0));
            };
            part(&mut self.filter.name, "part of the name");
            part(&mut self.filter.component, "component");
            let mut is_near = self.filter.near.is_some();
            ui.checkbox(&mut is_near, "near").on_hover_text("around a block, along each axis");
            ui.add_enabled_ui(is_near, |ui| {
                for axis in [&mut self.place.x, &mut self.place.y, &mut self.place.z] {
                    ui.add(DragValue::new(axis));
                }
                ui.add(DragValue::new(&mut *reach).range(1..=1_000_000_u64).prefix("± "));
            });
            self.filter.near = is_near.then_some((self.place, *reach));
        });
    }

    /// Takes in an answer.
    fn hear(&mut self) {
        match self.asked.as_mut().and_then(Asked::take) {
            Some(Ok(listing)) => {
                // In another region, a list begins anew, with its kinds.
                if self.adds && listing.archetypes.is_empty() {
                    self.pages += 1;
                } else {
                    (self.kinds, self.pages) = (listing.archetypes, 1);
                    self.found.clear();
                }
                self.found.extend(listing.entities);
                self.next = listing.next;
                self.error = None;
            }
            Some(Err(error)) => self.error = Some(error),
            None => return,
        }
        self.asked = None;
    }

    /// Asks again if the region or the filter is another one, and from time to time. A list of several pages stays as it is.
    fn ask(&mut self, now: f64, inspector: &mut Inspector, region: RegionKey) {
        let of = Some((region, self.filter.clone()));
        if self.of != of {
            if self.of.as_ref().is_none_or(|(before, _)| *before != region) {
                (self.found, self.kinds) = (Vec::new(), Vec::new());
            }
            (self.of, self.asked, self.next, self.pages, self.error, self.due) = (of, None, None, 0, None, now);
        }
        if self.asked.is_none() && self.pages <= 1 && now >= self.due {
            self.due = now + REFRESH;
            self.question(inspector, region, None);
        }
    }

    fn question(&mut self, inspector: &mut Inspector, region: RegionKey, after: Option<Cursor>) {
        self.adds = after.is_some();
        match inspector.list(region, self.filter.clone(), after) {
            Ok(asked) => self.asked = Some(asked),
            Err(error) => self.error = Some(error),
        }
    }

    fn kinds(&self, ui: &mut Ui) {
        let all: usize = self.kinds.iter().map(|kind| kind.entities).sum();
        let title =
            [counted(all as u64, "entity", "entities"), counted(self.kinds.len() as u64, "kind", "kinds")].join(" of ");
        CollapsingHeader::new(title).id_salt("kinds").show(ui, |ui| {
            ScrollArea::vertical().id_salt("kinds").max_height(90.0).show(ui, |ui| {
                for kind in &self.kinds {
                    let components = list(&kind.components, |name| name.clone());
                    ui.label(format!("{} with {components}", count(kind.entities as u64)));
                }
            });
        });
    }

    fn rows(&mut self, ui: &mut Ui, selected: &mut Option<Uuid>) {
        if self.found.is_empty() && self.asked.is_none() && self.error.is_none() {
            ui.weak("No entity matches.");
            return;
        }
        let height = ui.text_style_height(&TextStyle::Body);
        let columns = [Column::remainder().at_least(80.0), Column::exact(80.0), Column::exact(200.0)];
        let table = columns
            .into_iter()
            .fold(clickable_table(ui, "entities").striped(true), |table, column| table.column(column.clip(true)));
        table.body(|body| {
            body.rows(height, self.found.len(), |mut row| {
                let Some(Found { id, name, kind, position }) = self.found.get(row.index()) else { return };
                row.set_selected(*selected == Some(*id));
                row.col(|ui| match name {
                    Some(name) => drop(ui.label(name)),
                    None => drop(ui.weak(&**kind)),
                });
                row.col(|ui| drop(ui.label(RichText::new(short(*id)).monospace())));
                row.col(|ui| drop(ui.label(position.map_or_else(String::new, |position| position.block.to_string()))));
                if row.response().clicked() {
                    *selected = Some(*id);
                }
            });
        });
    }

    /// Shows the button for the next page.
    pub fn more(&mut self, ui: &mut Ui, inspector: &mut Inspector) {
        let Some(((region, _), next)) = self.of.clone().zip(self.next) else { return };
        if ui.add_enabled(self.asked.is_none(), bevy_egui::egui::Button::new("more")).clicked() {
            self.question(inspector, region, Some(next));
        }
    }
}
