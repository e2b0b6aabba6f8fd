//! [`Flat`], and [`Void`] for no ground.

use super::digest::{Digest, GeneratorIdentity};
use super::generator::{GenerateError, GenerateRequest, Generator};
use super::surface::{Surface, SurfaceAnswer, SurfaceRequest};
use super::terrain::{chunk_heights, put_uniform};
use crate::block::BlockId;
use crate::chunk::{Chunk, Column};
use crate::space::CHUNK_SIZE;
use std::sync::Arc;

/// No ground at all, for worlds in which everything is built.
#[derive(Clone, Copy, Debug, Default)]
pub struct Void;

impl Generator for Void {
    fn identity(&self) -> GeneratorIdentity {
        GeneratorIdentity::new("terrane:void", 1, 0)
    }

    fn own_seed(&self) -> Option<u64> {
        None
    }

    fn generate(&self, request: &GenerateRequest<'_>) -> Result<Column, GenerateError> {
        Ok(Column::new(request.column))
    }

    fn surface(&self, _: &SurfaceRequest<'_>) -> Result<SurfaceAnswer, GenerateError> {
        Ok(SurfaceAnswer::Known(None))
    }
}

/// Level layers of blocks, the same everywhere.
#[derive(Clone, Debug)]
pub struct Flat {
    base: i64,
    layers: Vec<(String, u32)>,
}

impl Flat {
    /// Stone from y = -64, three blocks of dirt, and grass at y = 0.
    pub fn new() -> Self {
        Self { base: -64, layers: Vec::new() }
            .with_layers(-64, [("terrane:stone", 61), ("terrane:dirt", 3), ("terrane:grass", 1)])
    }

    /// Replaces the layers by these pairs of block name and thickness, from the lowest up. The first layer begins at y
    /// = `base`.
    #[must_use]
    pub fn with_layers<N: Into<String>>(mut self, base: i64, layers: impl IntoIterator<Item = (N, u32)>) -> Self {
        self.base = base;
        self.layers = layers.into_iter().map(|(name, thickness)| (name.into(), thickness)).collect();
        self
    }
}

impl Default for Flat {
    fn default() -> Self {
        Self::new()
    }
}

impl Generator for Flat {
    fn identity(&self) -> GeneratorIdentity {
        let digest = self.layers.iter().fold(Digest::new().number(self.base as u64), |digest, (name, thickness)| {
            digest.text(name).number(u64::from(*thickness))
        });
        GeneratorIdentity::new("terrane:flat", 1, digest.finish())
    }

    fn own_seed(&self) -> Option<u64> {
        None
    }

    fn generate(&self, request: &GenerateRequest<'_>) -> Result<Column, GenerateError> {
        let mut column = Column::new(request.column);
        // (y just above the layer, block), ascending, cut to the requested heights.
        let mut end = self.base;
        let mut layers = Vec::with_capacity(self.layers.len());
        for (name, thickness) in &self.layers {
            end = end.saturating_add(i64::from(*thickness));
            layers.push((end.min(request.heights.end), request.block(name)?));
        }
        let bottom = self.base.max(request.heights.start);
        let top = end.min(request.heights.end);
        if bottom >= top {
            return Ok(column);
        }
        let block_at = |y: i64| {
            let layer = layers.partition_point(|(end, _)| *end <= y);
            if y < bottom { BlockId::AIR } else { layers.get(layer).map_or(BlockId::AIR, |(_, block)| *block) }
        };

        let mut shared = None;
        for y in chunk_heights(request.column, bottom, top - 1)? {
            let blocks: [BlockId; CHUNK_SIZE] = std::array::from_fn(|within| block_at((y << 4) + within as i64));
            if blocks.iter().all(|block| *block == blocks[0]) {
                put_uniform(&mut column, y, blocks[0], &mut shared);
            } else {
                column.set_chunk(y, Arc::new(Chunk::from_fn(|[_, within, _]| blocks[within])));
            }
        }
        Ok(column)
    }

    fn surface(&self, request: &SurfaceRequest<'_>) -> Result<SurfaceAnswer, GenerateError> {
        let mut end = self.base;
        let mut surface: Option<Surface> = None;
        for (name, thickness) in &self.layers {
            let block = request.block(name)?;
            let start = end;
            end = end.saturating_add(i64::from(*thickness));
            if start == end {
                continue;
            }
            let top = end - 1;
            if request.blocks.block(block).is_solid() {
                surface = Some(Surface { y: top, block, covered_to: None });
            } else if let Some(ground) = &mut surface
                && block != BlockId::AIR
                && ground.covered_to.unwrap_or(ground.y) + 1 == start
            {
                ground.covered_to = Some(top);
            }
        }
        Ok(SurfaceAnswer::Known(surface))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::BlockRegistry;
    use crate::generation::basic_blocks;
    use crate::space::{BlockPos, ColumnPos};
    use proptest::prelude::*;

    fn request(registry: &BlockRegistry, heights: std::ops::Range<i64>) -> GenerateRequest<'_> {
        GenerateRequest { column: ColumnPos::new(3, -9), heights, blocks: registry }
    }

    fn names_at(column: &Column, registry: &BlockRegistry, y: i64) -> Option<&'static str> {
        ["terrane:stone", "terrane:dirt", "terrane:grass", "terrane:sand"]
            .into_iter()
            .find(|name| registry.id(name) == Some(column.block(BlockPos::new(50, y, -144))))
    }

    #[test]
    fn the_default_ends_in_grass_at_sea_level() {
        let registry = basic_blocks();
        let column = Flat::new().generate(&request(&registry, -64..320)).unwrap();
        for (y, name) in [
            (-65, None),
            (-64, Some("terrane:stone")),
            (-4, Some("terrane:stone")),
            (-3, Some("terrane:dirt")),
            (-1, Some("terrane:dirt")),
            (0, Some("terrane:grass")),
            (1, None),
        ] {
            assert_eq!(names_at(&column, &registry, y), name, "at y = {y}");
        }
        assert!(column.chunk(1).is_none() && column.chunk(0).is_some() && column.chunk(-5).is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Promise, ground: The generators `Void`, `Flat`, `Hills` and `Heightmap` work alone.
        #[test]
        fn layers_lie_on_each_other(
            base in -70i64..70,
            layers in proptest::collection::vec((0usize..4, 0u32..40), 0..6),
            from in -80i64..80,
            length in 0i64..160,
        ) {
            let names = ["terrane:stone", "terrane:dirt", "terrane:grass", "terrane:sand"];
            let stack: Vec<_> = layers.iter().flat_map(|(name, thickness)| vec![names[*name]; *thickness as usize]).collect();
            let flat = Flat::new().with_layers(base, layers.iter().map(|(name, thickness)| (names[*name], *thickness)));
            let registry = basic_blocks();
            let column = flat.generate(&request(&registry, from..from + length)).unwrap();
            for y in -100i64..400 {
                let expected = usize::try_from(y - base).ok().and_then(|at| stack.get(at)).copied();
                let expected = expected.filter(|_| (from..from + length).contains(&y));
                prop_assert_eq!(names_at(&column, &registry, y), expected, "at y = {}", y);
            }
        }
    }

    #[test]
    fn an_unknown_block_is_named() {
        let registry = basic_blocks();
        let flat = Flat::new().with_layers(0, [("game:chalk", 1)]);
        let error = flat.generate(&request(&registry, 0..16)).err();
        assert_eq!(error, Some(GenerateError::UnknownBlock { name: "game:chalk".to_owned(), nearest: None }));
    }

    #[test]
    fn edges_and_endless_layers_do_no_harm() {
        let registry = basic_blocks();
        let stone = |base, thickness| Flat::new().with_layers(base, [("terrane:stone", thickness)]);
        let everywhere = || request(&registry, i64::MIN..i64::MAX);
        assert!(matches!(stone(0, u32::MAX).generate(&everywhere()), Err(GenerateError::TooTall { .. })));
        assert_eq!(
            names_at(&stone(i64::MAX - 5, 100).generate(&everywhere()).unwrap(), &registry, i64::MAX - 1),
            Some("terrane:stone")
        );
        assert_eq!(
            names_at(&stone(i64::MIN, 1).generate(&everywhere()).unwrap(), &registry, i64::MIN),
            Some("terrane:stone")
        );
    }

    #[test]
    fn other_layers_are_another_generator() {
        let one = Flat::new();
        assert_eq!(one.identity(), Flat::default().identity());
        assert_ne!(one.identity(), one.clone().with_layers(-64, [("terrane:stone", 61)]).identity());
        assert_ne!(
            one.clone().with_layers(0, [("terrane:stone", 1)]).identity(),
            one.clone().with_layers(1, [("terrane:stone", 1)]).identity()
        );
    }

    /// Promise, ground: The generators `Void`, `Flat`, `Hills` and `Heightmap` work alone.
    #[test]
    fn the_void_is_empty() {
        let registry = basic_blocks();
        let column = Void.generate(&request(&registry, -64..64)).unwrap();
        assert!((-4..4).all(|y| column.chunk(y).is_none()));
    }
}
