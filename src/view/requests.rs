//! What the main world asks of the simulation.

use super::dimension::Reopening;
use super::{
    Coupling, Dimension, DimensionClock, DimensionGeneration, DimensionOpen, Pacing, RemoveDimension, RetryColumns,
};
use crate::coordinator::{BackupWorld, ControlRegion, FromMain, MainLink, SetBlock, StepDimension};
use crate::space::BlockPos;
use bevy::prelude::*;

/// Saves everything now. [`WorldSaved`](super::WorldSaved) with the same number answers when it is durable, or
/// [`SaveFailed`](super::SaveFailed) if a region halted before it had handed out what was unsaved.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaveWorld {
    /// A number of the game's choice, to know the answer by.
    pub request: u64,
}

/// Brings a player into the world, where it was when it left. [`PlayerLoggedIn`](super::PlayerLoggedIn) or
/// [`LogInRefused`](super::LogInRefused) answers.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct LogIn {
    /// Its name: 1 to 255 bytes.
    pub name: String,
    /// The dimension's entity and the block where it begins if nobody of this name has been in the world, or if the
    /// dimension where it left is removed; `None` if such a one is to be refused. What a new player has the game gives
    /// to its entity when it is there.
    pub first_place: Option<(Entity, BlockPos)>,
}

/// Has a player saved and taken out of the world: [`PlayerLoggedOut`](super::PlayerLoggedOut) answers. If no player of this
/// name is in the world, nothing happens; one who is on the way is not waited for any more, or leaves when it is there.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct LogOut {
    /// Its name.
    pub name: String,
}

pub(super) fn build(app: &mut App) {
    app.add_message::<SetBlock>()
        .add_message::<SaveWorld>()
        .add_message::<BackupWorld>()
        .add_message::<LogIn>()
        .add_message::<LogOut>()
        .add_message::<StepDimension>()
        .add_message::<ControlRegion>()
        .add_message::<RetryColumns>();
}

pub(super) fn send_edits(link: Res<MainLink>, mut edits: MessageReader<SetBlock>) {
    for edit in edits.read() {
        link.send(FromMain::Edit(*edit));
    }
}

pub(super) fn send_players(
    link: Res<MainLink>,
    mut log_outs: MessageReader<LogOut>,
    mut log_ins: MessageReader<LogIn>,
) {
    for LogOut { name } in log_outs.read() {
        link.send(FromMain::LogOut { name: name.clone() });
    }
    for LogIn { name, first_place } in log_ins.read() {
        link.send(FromMain::LogIn { name: name.clone(), first_place: *first_place });
    }
}

pub(super) fn send_saves(
    link: Res<MainLink>,
    mut saves: MessageReader<SaveWorld>,
    mut backups: MessageReader<BackupWorld>,
) {
    for save in saves.read() {
        link.send(FromMain::Save(save.request));
    }
    for backup in backups.read() {
        link.send(FromMain::BackUp(backup.clone()));
    }
}

pub(super) fn send_orders(
    link: Res<MainLink>,
    clocks: Query<(Entity, &DimensionClock), (With<Dimension>, Or<(Changed<DimensionClock>, Added<DimensionOpen>)>)>,
    couplings: Query<(Entity, &Coupling), Changed<Coupling>>,
    mut uncoupled: RemovedComponents<Coupling>,
    mut steps: MessageReader<StepDimension>,
    mut orders: MessageReader<ControlRegion>,
) {
    for (dimension, clock) in &clocks {
        link.send(FromMain::SetClock { dimension, clock: *clock });
    }
    uncoupled.read().for_each(|coupling| link.send(FromMain::Uncouple(coupling)));
    couplings.iter().for_each(|(entity, coupling)| link.send(FromMain::Couple(entity, *coupling)));
    steps.read().for_each(|step| link.send(FromMain::Step(*step)));
    orders.read().for_each(|order| link.send(FromMain::Control(*order)));
}

type ChangedGeneration = (With<Dimension>, Or<(Changed<DimensionGeneration>, Added<DimensionOpen>)>);

pub(super) fn send_generation(
    link: Res<MainLink>,
    dimensions: Query<(Entity, &DimensionGeneration), ChangedGeneration>,
    pacing: Option<Res<Pacing>>,
    mut retries: MessageReader<RetryColumns>,
) {
    for (dimension, generation) in &dimensions {
        link.send(FromMain::SetGeneration { dimension, generation: *generation });
    }
    if let Some(pacing) = pacing.filter(|pacing| pacing.is_changed()) {
        link.send(FromMain::SetPacing(*pacing));
    }
    retries.read().for_each(|retry| link.send(FromMain::Retry(*retry)));
}

pub(super) fn send_closings(
    link: Res<MainLink>,
    mut despawned: RemovedComponents<Dimension>,
    mut removed: MessageReader<RemoveDimension>,
    mut reopening: ResMut<Reopening>,
) {
    for RemoveDimension { dimension } in removed.read() {
        link.send(FromMain::CloseDimension { dimension: *dimension, remove: true });
    }
    for dimension in despawned.read() {
        link.send(FromMain::CloseDimension { dimension, remove: false });
    }
    reopening.0.drain(..).for_each(|spec| link.send(FromMain::OpenDimension(spec)));
}
