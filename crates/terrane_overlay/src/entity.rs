//! The details of one entity, which is followed wherever it goes.

use super::format::time;
use super::log::RegionLog;
use super::widgets::{region_color, swatch};
use crate::view::{Overlay, RegionKey, View};
use bevy::prelude::*;
use bevy::reflect::{PartialReflect, TypeRegistry};
use bevy_egui::egui::{CollapsingHeader, Id, Label, RichText, ScrollArea, Ui};
use bevy_inspector_egui::reflect_inspector::{self, InspectorUi};
use bevy_terrane::simulation::Position;
use bevy_terrane::space::DimensionId;
use bevy_terrane::view::{EntityPlaced, FollowEntity, Whereabouts};
use std::collections::VecDeque;
use std::time::Duration;
use terrane_inspect::{Asked, ComponentLook, EntityLook, InspectError, Inspector, Value};
use uuid::Uuid;

/// The time after which an entity is read again, in seconds.
const REFRESH: f64 = 0.2;
/// The number of places of an entity that are remembered: ten crossings, each of which has a place on the way.
const PLACES: usize = 21;

/// The places of the followed entity, with the times on the coordinator's clock, oldest first. Noted while the overlay is hidden too.
#[derive(Resource, Default)]
pub(super) struct Crossings {
    id: Option<Uuid>,
    places: VecDeque<(Duration, Option<Whereabouts>)>,
}

impl Crossings {
    /// Follows this entity from now on, and no other.
    fn follow(&mut self, id: Option<Uuid>, commands: &mut Commands) {
        if self.id != id {
            let before = self.id.map(|id| FollowEntity { id, follow: false });
            let now = id.map(|id| FollowEntity { id, follow: true });
            for follow in before.into_iter().chain(now) {
                commands.write_message(follow);
            }
            *self = Self { id, ..Self::default() };
        }
    }

    fn push(&mut self, at: Duration, place: Option<Whereabouts>) {
        if self.places.len() == PLACES {
            self.places.pop_front();
        }
        self.places.push_back((at, place));
    }

    /// The last region.
    fn region(&self) -> Option<RegionKey> {
        self.places.iter().rev().find_map(|(_, place)| match place {
            Some(Whereabouts::Region(dimension, region)) => Some((*dimension, *region)),
            _ => None,
        })
    }

    /// Each move in words, the last first.
    fn lines(&self, log: &RegionLog, name: impl Fn(DimensionId) -> String) -> Vec<(Duration, String)> {
        let moves = self.places.iter().zip(self.places.iter().skip(1));
        let line = |((_, before), (at, place)): (&(_, Option<Whereabouts>), &(Duration, _))| {
            let text = match (before, place) {
                (Some(Whereabouts::Region(dimension, from)), Some(Whereabouts::Region(_, to))) => {
                    let cause = if log.has_merged((*dimension, *from), *to) { "merged into" } else { "split off into" };
                    format!("region {} {cause} region {}", from.index(), to.index())
                }
                (_, Some(Whereabouts::Region(dimension, region))) => {
                    format!("came to region {} of {}", region.index(), name(*dimension))
                }
                (_, Some(Whereabouts::OnTheWay(dimension, column))) => {
                    format!("left for column {column} of {}", name(*dimension))
                }
                (_, None) => "gone: despawned, unloaded with its ground, or lost with its region".to_owned(),
            };
            (*at, text)
        };
        moves.map(line).rev().collect()
    }
}

/// Follows the selected entity, and notes its places.
pub(super) fn note(
    mut crossings: ResMut<Crossings>,
    mut placed: MessageReader<EntityPlaced>,
    overlay: Res<Overlay>,
    mut commands: Commands,
) {
    crossings.follow(overlay.entity, &mut commands);
    for EntityPlaced { id, at, place } in placed.read() {
        if crossings.id == Some(*id) {
            crossings.push(*at, *place);
        }
    }
}

/// An entity, as far as it is known.
#[derive(Default)]
pub(super) struct Followed {
    id: Uuid,
    asked: Option<Asked<EntityLook>>,
    look: Option<EntityLook>,
    /// The component that was changed in the window, and not sent yet.
    changed: Option<usize>,
    written: Option<Asked<()>>,
    /// Why it cannot be read, and why a change was refused.
    error: Option<InspectError>,
    refused: Option<InspectError>,
    /// The time of the next question.
    due: f64,
}

/// The beginning of a stable id.
pub(super) fn short(id: Uuid) -> String {
    id.simple().to_string()[..8].to_owned()
}

impl Followed {
    /// Shows the entity, and asks about it.
    pub fn show(
        &mut self,
        ui: &mut Ui,
        view: &View,
        crossings: &Crossings,
        (overlay, id): (&mut Overlay, Uuid),
        inspector: &mut Inspector,
    ) {
        if self.id != id {
            *self = Self { id, ..Self::default() };
        }
        self.hear();
        self.contents(ui, view, crossings, overlay);
        self.send(inspector, crossings.region());
        // While a value is being changed, it is not overwritten by the one from the region.
        let is_busy = ui.input(|input| input.pointer.any_down()) || ui.ctx().egui_wants_keyboard_input();
        let now = ui.input(|input| input.time);
        if !is_busy && self.asked.is_none() && self.written.is_none() && now >= self.due {
            self.due = now + REFRESH;
            match inspector.look(id, crossings.region()) {
                Ok(asked) => self.asked = Some(asked),
                Err(error) => self.error = Some(error),
            }
        }
    }

    /// Takes in the answers.
    fn hear(&mut self) {
        if let Some(answer) = self.written.as_mut().and_then(Asked::take) {
            (self.written, self.refused) = (None, answer.err());
        }
        match self.asked.as_mut().and_then(Asked::take) {
            // It is older than the change.
            Some(Ok(_)) if self.changed.is_some() || self.written.is_some() => {}
            Some(Ok(look)) => (self.look, self.error) = (Some(look), None),
            Some(Err(error)) => self.error = Some(error),
            None => return,
        }
        self.asked = None;
    }

    /// Sends a change, one at a time.
    fn send(&mut self, inspector: &mut Inspector, last: Option<RegionKey>) {
        if self.written.is_some() {
            return;
        }
        let changed = self.changed.take().and_then(|number| self.look.as_ref()?.components.get(number));
        let Some(ComponentLook { name, value: Value::Copy(value), .. }) = changed else { return };
        let value = value.reflect_clone().map_or_else(|_| value.to_dynamic(), PartialReflect::into_partial_reflect);
        match inspector.write(self.id, last, name, value) {
            Ok(written) => self.written = Some(written),
            Err(error) => self.refused = Some(error),
        }
    }

    fn contents(&mut self, ui: &mut Ui, view: &View, crossings: &Crossings, overlay: &mut Overlay) {
        ui.add(Label::new(RichText::new(self.id.to_string()).monospace().small()).truncate());
        if let Some(error) = &self.error {
            ui.colored_label(ui.visuals().warn_fg_color, error.to_string());
        }
        let lines = crossings.lines(&view.log, |dimension| view.name(dimension));
        if !lines.is_empty() {
            CollapsingHeader::new("crossings").default_open(true).show(ui, |ui| {
                ScrollArea::vertical().id_salt("crossings").max_height(90.0).show(ui, |ui| {
                    lines.iter().for_each(|(at, text)| drop(ui.label(format!("{}  {text}", time(*at)))));
                });
            });
        }
        let Some(look) = &mut self.look else {
            if self.error.is_none() {
                ui.weak("Its region has not answered yet.");
            }
            return;
        };
        let here = (look.dimension, look.region);
        ui.horizontal(|ui| {
            swatch(ui, region_color(look.region));
            let name = format!("region {} of {}", look.region.index(), view.name(look.dimension));
            if ui.selectable_label(overlay.selected == Some(here), name).on_hover_text("select it").clicked() {
                overlay.selected = Some(here);
            }
            let place = look.components.iter().find_map(|component| match &component.value {
                Value::Copy(value) => value.try_downcast_ref::<Position>(),
                _ => None,
            });
            if let Some(place) = place.map(|place| (place.dimension, place.column()))
                && ui.button("its column").on_hover_text("why the ground below it is loaded").clicked()
            {
                overlay.column = Some(place);
            }
            ui.weak(format!("tick {}", look.tick));
        });
        if let Some(refused) = &self.refused {
            ui.colored_label(ui.visuals().error_fg_color, refused.to_string());
        }
        ui.separator();
        let types = view.types.read();
        ScrollArea::vertical().auto_shrink([false, false]).show(ui, |ui| {
            for (number, component) in look.components.iter_mut().enumerate() {
                if show_component(ui, component, &types) {
                    self.changed = Some(number);
                }
            }
        });
    }
}

/// Shows a component, and returns `true` if its value was changed.
fn show_component(ui: &mut Ui, component: &mut ComponentLook, types: &TypeRegistry) -> bool {
    let ComponentLook { name, size, is_mutable, value } = component;
    let title = match types.get_with_type_path(name) {
        Some(known) => known.type_info().type_path_table().short_path(),
        None => name.split('<').next().and_then(|path| path.rsplit("::").next()).unwrap_or(name),
    };
    let hint = format!("{name}, {size} bytes");
    let shown = CollapsingHeader::new(title).id_salt(&*name).show(ui, |ui| {
        let mut context = reflect_inspector::Context::default();
        let mut inspector = InspectorUi::new_no_short_circuit(types, &mut context);
        match value {
            Value::Copy(value) if *is_mutable => {
                return inspector.ui_for_reflect_with_options(&mut **value, ui, Id::new(&*name), &());
            }
            Value::Copy(value) => {
                inspector.ui_for_reflect_readonly_with_options(&**value, ui, Id::new(&*name), &());
            }
            Value::Unknown => drop(ui.weak("Its type has no reflection with `#[reflect(Component)]`.")),
            Value::TooLarge => drop(ui.weak("It is too large for an answer.")),
            Value::NotRead => drop(ui.weak("There was no time left to read it.")),
        }
        false
    });
    shown.header_response.on_hover_text(hint);
    shown.body_returned.unwrap_or(false)
}
