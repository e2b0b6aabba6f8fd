//! The window of one entity, which is followed wherever it goes.

use super::widgets::{region_color, swatch};
use crate::view::{RegionKey, View};
use bevy::reflect::{PartialReflect, TypeRegistry};
use bevy_egui::egui::{CollapsingHeader, Context, Id, Label, RichText, ScrollArea, Ui, Window};
use bevy_inspector_egui::reflect_inspector::{self, InspectorUi};
use std::collections::VecDeque;
use terrane_inspect::{Asked, ComponentLook, EntityLook, InspectError, Inspector, Value};
use uuid::Uuid;

/// The time after which an entity is read again, in seconds.
const REFRESH: f64 = 0.2;
/// The number of changes of its region that are remembered.
const CROSSINGS: usize = 10;

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
    /// The regions in which it was seen one after the other, with the tick when it was first seen there.
    crossings: VecDeque<(RegionKey, u64)>,
    /// The time of the next question.
    due: f64,
}

/// The beginning of a stable id.
pub(super) fn short(id: Uuid) -> String {
    id.simple().to_string()[..8].to_owned()
}

impl Followed {
    /// Shows the window of the selected entity. Closing it clears the selection.
    pub fn show(
        &mut self,
        context: &Context,
        view: &View,
        inspector: &mut Inspector,
        (region, selected): (&mut Option<RegionKey>, &mut Option<Uuid>),
    ) {
        let Some(id) = *selected else { return };
        if self.id != id {
            *self = Self { id, ..Self::default() };
        }
        self.hear();
        let mut is_open = true;
        Window::new("Entity")
            .id(Id::new("Terrane entity"))
            .default_pos([988.0, 12.0])
            .default_size([270.0, 400.0])
            .open(&mut is_open)
            .show(context, |ui| self.contents(ui, view, region));
        self.send(inspector);
        // While a value is being changed, it is not overwritten by the one from the region.
        let is_busy = context.input(|input| input.pointer.any_down()) || context.egui_wants_keyboard_input();
        let now = context.input(|input| input.time);
        if !is_busy && self.asked.is_none() && self.written.is_none() && now >= self.due {
            self.due = now + REFRESH;
            match inspector.look(id, self.last()) {
                Ok(asked) => self.asked = Some(asked),
                Err(error) => self.error = Some(error),
            }
        }
        if !is_open {
            *selected = None;
        }
    }

    /// The region in which it was seen last.
    fn last(&self) -> Option<RegionKey> {
        self.crossings.back().map(|(region, _)| *region)
    }

    /// Takes in the answers.
    fn hear(&mut self) {
        if let Some(answer) = self.written.as_mut().and_then(Asked::take) {
            (self.written, self.refused) = (None, answer.err());
        }
        match self.asked.as_mut().and_then(Asked::take) {
            // It is older than the change.
            Some(Ok(_)) if self.changed.is_some() || self.written.is_some() => {}
            Some(Ok(look)) => {
                let here = (look.dimension, look.region);
                if self.last() != Some(here) {
                    self.crossings.push_back((here, look.tick));
                    // The first one is no crossing.
                    if self.crossings.len() > CROSSINGS + 1 {
                        self.crossings.pop_front();
                    }
                }
                (self.look, self.error) = (Some(look), None);
            }
            Some(Err(error)) => self.error = Some(error),
            None => return,
        }
        self.asked = None;
    }

    /// Sends a change, one at a time.
    fn send(&mut self, inspector: &mut Inspector) {
        if self.written.is_some() {
            return;
        }
        let changed = self.changed.take().and_then(|number| self.look.as_ref()?.components.get(number));
        let Some(ComponentLook { name, value: Value::Copy(value), .. }) = changed else { return };
        let value = value.reflect_clone().map_or_else(|_| value.to_dynamic(), PartialReflect::into_partial_reflect);
        match inspector.write(self.id, self.last(), name, value) {
            Ok(written) => self.written = Some(written),
            Err(error) => self.refused = Some(error),
        }
    }

    fn contents(&mut self, ui: &mut Ui, view: &View, region: &mut Option<RegionKey>) {
        ui.add(Label::new(RichText::new(self.id.to_string()).monospace().small()).truncate());
        if let Some(error) = &self.error {
            ui.colored_label(ui.visuals().warn_fg_color, error.to_string());
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
            if ui.selectable_label(*region == Some(here), name).on_hover_text("select it").clicked() {
                *region = Some(here);
            }
            ui.weak(format!("tick {}", look.tick));
        });
        if self.crossings.len() > 1 {
            CollapsingHeader::new("crossings").show(ui, |ui| {
                for ((_, from), ((dimension, to), tick)) in
                    self.crossings.iter().map(|(region, _)| *region).zip(self.crossings.iter().skip(1))
                {
                    let dimension = view.name(*dimension);
                    ui.label(format!("{} to {} of {dimension}, seen at tick {tick}", from.index(), to.index()));
                }
            });
        }
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
