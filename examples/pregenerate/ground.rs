//! The available generators.

use super::arguments::{Arguments, Ground};
use bevy_terrane::generation::{Heightmap, Void};
use bevy_terrane::prelude::*;

pub fn dimension(arguments: &Arguments) -> Result<Dimension, String> {
    let (name, seed) = (arguments.dimension.as_str(), arguments.seed);
    let dimension = match (arguments.generator, &arguments.heightmap) {
        (Ground::Heightmap, Some(path)) => {
            let heightmap = Heightmap::open(path).map_err(|error| error.to_string())?;
            Dimension::new(name, heightmap.with_seed(seed))
        }
        (Ground::Heightmap, None) => return Err("the generator heightmap needs a --heightmap".to_owned()),
        (Ground::Hills, _) => Dimension::new(name, Hills::seeded(seed)),
        (Ground::Flat, _) => Dimension::new(name, Flat::new()),
        (Ground::Void, _) => Dimension::new(name, Void),
    };
    Ok(dimension.with_height(arguments.heights.0.clone()))
}
