//! Plugins for ground that lives.

use super::TerraneAppExt;
use crate::liquid::LiquidRules;
use crate::simulation::{FallingBlock, GrowthRule, add_falling_blocks, add_growth, add_liquids};
use bevy::prelude::*;

/// Liquids that spread and dry in all regions. Add it after [`TerranePlugin`](super::TerranePlugin).
///
/// A liquid is registered with the states that [`liquid_states`](crate::liquid::liquid_states) makes. It moves after a block
/// beside it has changed; liquid that was generated rests until then.
///
/// ```no_run
/// use bevy_terrane::prelude::*;
/// use bevy_terrane::liquid::{LiquidRules, liquid_states};
/// use bevy_terrane::plugin::LiquidsPlugin;
///
/// let mut app = App::new();
/// app.add_plugins((MinimalPlugins, TerranePlugin::in_memory()));
/// for (name, light) in [("game:water", 0), ("game:lava", 15)] {
///     app.register_block_states(liquid_states(BlockType::new(name).transparent().with_light(light)))?;
/// }
/// app.add_plugins(LiquidsPlugin::new([
///     LiquidRules::new("game:water").renewing(),
///     LiquidRules::new("game:lava").with_steps(3).with_delay(30).with_meeting("game:water", "terrane:stone"),
/// ]));
/// # Ok::<(), bevy_terrane::block::BlockRegistryError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct LiquidsPlugin {
    rules: Vec<LiquidRules>,
}

impl LiquidsPlugin {
    /// Liquids with these rules. If they do not fit the registered blocks, the app gets a
    /// [`WorldFailure`](super::WorldFailure).
    pub fn new(rules: impl IntoIterator<Item = LiquidRules>) -> Self {
        Self { rules: rules.into_iter().collect() }
    }
}

impl Plugin for LiquidsPlugin {
    fn build(&self, app: &mut App) {
        let rules = self.rules.clone();
        app.add_region_plugins(move |region| add_liquids(region, &rules));
    }
}

/// Blocks that fall, in all regions: those with the tags [`FALLS`](crate::block::tags::FALLS) and
/// [`NOTICES`](crate::block::tags::NOTICES), such as sand, if a block beside them has changed and nothing solid is below them. While
/// they fall they are entities with a [`FallingBlock`], which the main world sees as mirrors. No block is doubled on the way, and a
/// [`BlockDropped`](crate::simulation::BlockDropped) tells of one that finds no place.
///
/// Blocks with [components](crate::block::BlockType::with_component) do not fall. Add it after
/// [`TerranePlugin`](super::TerranePlugin).
#[derive(Clone, Copy, Debug, Default)]
pub struct FallingBlocksPlugin;

impl Plugin for FallingBlocksPlugin {
    fn build(&self, app: &mut App) {
        app.register_saved_component::<FallingBlock>()
            .mirror_region_component::<FallingBlock>()
            .add_region_plugins(add_falling_blocks);
    }
}

/// Growth by light, in all regions: see [`GrowthRule`]. Add it after [`TerranePlugin`](super::TerranePlugin).
#[derive(Clone, Debug, Default)]
pub struct GrowthPlugin {
    rules: Vec<GrowthRule>,
}

impl GrowthPlugin {
    /// Growth by these rules. For a block with several rules they are tried in this order, until one changes a block. If
    /// they do not fit the registered blocks, the app gets a [`WorldFailure`](super::WorldFailure).
    pub fn new(rules: impl IntoIterator<Item = GrowthRule>) -> Self {
        Self { rules: rules.into_iter().collect() }
    }
}

impl Plugin for GrowthPlugin {
    fn build(&self, app: &mut App) {
        let rules = self.rules.clone();
        app.add_region_plugins(move |region| add_growth(region, &rules));
    }
}
