//! The land: islands in a sea, whose sand falls, whose water flows, and whose grass grows by day.

use bevy_terrane::block::{BlockRegistryError, tags};
use bevy_terrane::liquid::{LiquidRules, liquid_states};
use bevy_terrane::plugin::{FallingBlocksPlugin, GrowthPlugin, LiquidsPlugin};
use bevy_terrane::prelude::*;
use bevy_terrane::simulation::GrowthRule;

pub const NAME: &str = "islands";
/// Where new players arrive, some blocks above the ground.
pub const ARRIVAL: BlockPos = BlockPos::new(8, 20, 8);

pub fn build(app: &mut App) -> Result<(), BlockRegistryError> {
    register_blocks(app)?;
    app.add_plugins((
        LiquidsPlugin::new([LiquidRules::new("terrane:water").renewing()]),
        FallingBlocksPlugin,
        GrowthPlugin::new([
            GrowthRule::spreading("terrane:grass", "terrane:dirt").with_light(9..=15),
            GrowthRule::new("terrane:grass", "terrane:dirt").with_light(0..=3),
        ]),
    ));
    app.add_systems(Startup, |mut commands: Commands| {
        let generator = Hills::seeded(14).with_amplitude(18.0).with_frequency(0.012);
        commands.spawn((Dimension::new(NAME, generator), TimeOfDay { seconds_per_day: 600.0, ..default() }));
    });
    Ok(())
}

fn register_blocks(app: &mut App) -> Result<(), BlockRegistryError> {
    let water = BlockType::new("terrane:water").with_color([66, 110, 142]).transparent().with_attenuation(2);
    app.register_block_states(liquid_states(water))?;
    for block in [
        BlockType::new("terrane:stone").with_color([125, 122, 117]),
        BlockType::new("terrane:dirt").with_color([119, 90, 66]),
        BlockType::new("terrane:grass").with_color([104, 139, 76]).with_tag(tags::RANDOM_TICKS),
        BlockType::new("terrane:sand").with_color([211, 196, 152]).with_tag(tags::NOTICES).with_tag(tags::FALLS),
        BlockType::new("terrane:wood").with_color([101, 78, 54]),
        BlockType::new("islands:lamp").with_color([250, 214, 130]).with_light(15),
    ] {
        app.register_block(block)?;
    }
    Ok(())
}
