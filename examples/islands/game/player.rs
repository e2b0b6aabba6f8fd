//! The player: comes back where it left, and walks.

use super::{bag::Bag, chests::OpenChest, land, sheep};
use bevy_terrane::prelude::*;
use bevy_terrane::view::PlayerLoggedIn;
use terrane_dev::FirstPerson;

pub fn build(app: &mut App) {
    app.add_systems(Startup, start).add_systems(Update, (equip, stop_at_chests));
}

fn start(mut commands: Commands, dimensions: Res<Dimensions>) {
    let viewer = Viewer::in_dimension(dimensions.id(land::NAME)).with_radius(10);
    let [x, y, z] = [land::ARRIVAL.x, land::ARRIVAL.y, land::ARRIVAL.z].map(|at| at as f32);
    let look = Quat::from_euler(EulerRot::YXZ, -2.4, -0.25, 0.0);
    commands.spawn((FirstPerson::new("player"), viewer, Transform::from_xyz(x, y, z).with_rotation(look)));
}

/// A new player gets a bag and a flock of sheep in its region.
fn equip(mut commands: Commands, mut players: MessageReader<PlayerLoggedIn>) {
    for player in players.read().filter(|player| player.new) {
        let equip = |mut player: EntityWorldMut| {
            player.insert(Bag::new());
        };
        commands.run_on_region_entity(player.id, 0, equip, |_, lost| error!("no bag: {lost}"));
        sheep::settle(&mut commands, player.dimension);
    }
}

/// An open chest has the keys and the mouse.
fn stop_at_chests(chest: Res<OpenChest>, mut player: Single<&mut FirstPerson>) {
    if player.takes_input != chest.0.is_none() {
        player.takes_input = chest.0.is_none();
    }
}
