//! The rules. They need no window, so a test can play them.

pub mod bag;
pub mod chests;
pub mod hand;
pub mod land;
pub mod player;
pub mod sheep;

use bevy_terrane::prelude::*;

/// Adds the game to an app that has a `TerranePlugin` without basic blocks.
pub fn build(app: &mut App) -> Result {
    land::build(app)?;
    app.add_plugins(BodyPlugin);
    player::build(app);
    bag::build(app);
    hand::build(app);
    chests::build(app)?;
    sheep::build(app);
    Ok(())
}
