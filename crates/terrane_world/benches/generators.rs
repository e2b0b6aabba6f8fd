//! The cost of a column with each generator, in microseconds: `cargo bench --profile dev --all-features --bench generators`.
//!
//! Each generator is asked for a row of columns that it has not made before, in the heights that a dimension has unless
//! it says otherwise.

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use terrane_world::block::BlockRegistry;
use terrane_world::chunk::Column;
use terrane_world::generation::{
    Boulder, Caves, Features, Flat, GenerateError, GenerateRequest, Generator, GeneratorIdentity, GroundCover,
    Heightmap, Hills, Layers, NoiseMask, Placement, Select, Tree, Veins, Void, WaterFill,
};
use terrane_world::space::ColumnPos;

/// Hills that do not announce their surface, like a game's own generator.
struct Silent(Hills);

impl Generator for Silent {
    fn identity(&self) -> GeneratorIdentity {
        self.0.identity()
    }

    fn generate(&self, request: &GenerateRequest<'_>) -> Result<Column, GenerateError> {
        self.0.generate(request)
    }
}

fn hills() -> Layers {
    Layers::new(Hills::seeded(1))
}

fn forest() -> Features {
    let placement = Placement::seeded(2).with_spacing(4).with_soil(["terrane:grass"]);
    Features::new(placement).with(Tree::round(), 2).and_then(|trees| trees.with(Tree::conifer(), 1)).expect("trees fit")
}

fn boulders() -> Features {
    Features::new(Placement::seeded(3).with_spacing(12)).with(Boulder::default(), 1).expect("boulders fit")
}

fn mountains_and_plains() -> Select {
    let mask = NoiseMask::seeded(4).with_size(64.0).with_transition(0.5);
    Select::new(Hills::seeded(1).with_amplitude(8.0), Hills::seeded(2).with_amplitude(90.0), mask)
}

fn overworld(ground: impl Generator) -> Layers {
    Layers::new(ground)
        .with(Veins::seeded(5, "terrane:gravel"))
        .with(Caves::seeded(6))
        .with(GroundCover::new("terrane:snow", "terrane:dirt").with_heights(30..i64::MAX))
        .with(boulders())
        .with(forest())
}

fn heightmap() -> Heightmap {
    Heightmap::open("assets/jacksboro_fault_dem.png")
        .and_then(|map| map.with_blocks_per_sample([7.4, 9.3]))
        .and_then(|map| map.with_blocks_per_unit(0.2))
        .expect("the map that comes with the project")
}

fn generators(criterion: &mut Criterion) {
    let all: Vec<(&str, Box<dyn Generator>)> = vec![
        ("void", Box::new(Void)),
        ("flat", Box::new(Flat::new())),
        ("hills", Box::new(Hills::seeded(1))),
        ("heightmap", Box::new(heightmap())),
        ("hills + cover", Box::new(hills().with(GroundCover::new("terrane:snow", "terrane:dirt")))),
        ("hills + veins", Box::new(hills().with(Veins::seeded(5, "terrane:gravel")))),
        ("hills + caves", Box::new(hills().with(Caves::seeded(6)))),
        ("hills + water", Box::new(hills().with(WaterFill::new(20)))),
        ("hills + forest", Box::new(hills().with(forest()))),
        ("hills + boulders", Box::new(hills().with(boulders()))),
        ("silent hills + forest", Box::new(Layers::new(Silent(Hills::seeded(1))).with(forest()))),
        ("heightmap + forest", Box::new(Layers::new(heightmap()).with(forest()))),
        ("select", Box::new(mountains_and_plains())),
        ("overworld on hills", Box::new(overworld(Hills::seeded(1)))),
        ("overworld on select", Box::new(overworld(mountains_and_plains()))),
    ];
    let mut blocks = BlockRegistry::new();
    blocks.register_basic_blocks();
    let mut group = criterion.benchmark_group("column");
    group.sample_size(20);
    for (name, generator) in &all {
        let mut next = 0;
        group.bench_function(*name, |bencher| {
            bencher.iter(|| {
                // Row by row: each column is a neighbour of the previous one.
                let column = ColumnPos::new(next % 64, next / 64);
                next += 1;
                let request = GenerateRequest { column, heights: -64..320, blocks: &blocks };
                black_box(generator.generate(&request).expect("ground"))
            });
        });
    }
    group.finish();
}

criterion_group!(benches, generators);
criterion_main!(benches);
