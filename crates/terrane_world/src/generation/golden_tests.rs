//! Generators must not change their results, because worlds are continued by the generators that began them.

use super::digest::Digest;
use super::*;
use crate::space::{BlockPos, ColumnPos};

/// The digests of the identity and of all blocks of some columns.
fn digests(generator: &dyn Generator) -> (u64, u64) {
    let registry = basic_blocks();
    let GeneratorIdentity { name, version, seed } = generator.identity();
    let identity = Digest::new().text(&name).number(version.into()).number(seed).finish();
    let mut blocks = Digest::new();
    for pos in [ColumnPos::new(0, 0), ColumnPos::new(-7, 12), ColumnPos::new(1 << 40, -5)] {
        let column =
            generator.generate(&GenerateRequest { column: pos, heights: -80..200, blocks: &registry }).unwrap();
        let corner = pos.min_block(0);
        for (x, y, z) in (0..16).flat_map(|x| (-80..200).flat_map(move |y| (0..16).map(move |z| (x, y, z)))) {
            let block = column.block(BlockPos::new(corner.x + x, y, corner.z + z));
            blocks = blocks.number(block.index().into());
        }
    }
    (identity, blocks.finish())
}

#[test]
fn generators_reproduce_the_golden_columns() {
    let hills = || Hills::seeded(11).with_frequency(0.02);
    let map = || Heightmap::open(concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/jacksboro_fault_dem.png")).unwrap();
    let map = map().with_blocks_per_sample([7.4, 9.3]).unwrap().with_blocks_per_unit(0.2).unwrap();
    let map = map.with_sea_level(600.0).unwrap().with_water(590.0, "terrane:water").unwrap();
    let features = || {
        let placement = Placement::seeded(4).with_spacing(5).with_covered(true);
        let features = Features::new(placement).with(Tree::round(), 2).unwrap().with(Tree::conifer(), 1).unwrap();
        features.with(Boulder::new(1..=4), 1).unwrap()
    };
    let all: [(&str, Box<dyn Generator>, (u64, u64)); 9] = [
        ("flat", Box::new(Flat::new()), (0x79c1_3fb1_0b05_b6f5, 0x8ce8_5a1b_45bb_0325)),
        ("hills", Box::new(hills()), (0x01bd_409c_27c0_54fc, 0xe867_272e_bc1b_b142)),
        (
            "high hills",
            Box::new(hills().with_sea_level(31).with_amplitude(90.0)),
            (0x9b3d_6f77_41c7_dfd8, 0x4b57_a02f_e119_2ce2),
        ),
        ("map", Box::new(map.clone()), (0x2fd8_abc2_2518_2436, 0x12f7_ee63_cbfe_2602)),
        (
            "cover",
            Box::new(Layers::new(hills()).with(GroundCover::new("terrane:snow", "terrane:dirt").with_heights(9..40))),
            (0x36f4_c9cd_f7a6_6b7a, 0x2a3c_af95_063b_1f42),
        ),
        (
            "caves, veins",
            Box::new(Layers::new(hills()).with(Caves::seeded(2)).with(Veins::seeded(1, "terrane:gravel"))),
            (0x85e1_1f21_2245_4530, 0x12a5_8f88_8764_95c2),
        ),
        ("water", Box::new(Layers::new(map).with(WaterFill::new(30))), (0x3b09_3815_12c5_a4f6, 0x233f_eea6_34a4_6ac2)),
        ("features", Box::new(Layers::new(hills()).with(features())), (0xb62f_5af6_821e_7909, 0x823d_41a2_5ba9_7b6f)),
        (
            "choice",
            Box::new(Select::new(hills(), Flat::new(), NoiseMask::seeded(6).with_size(60.0))),
            (0xaa3c_5ddd_4d21_090c, 0x27ad_7cd6_919b_2682),
        ),
    ];
    let found = all.iter().map(|(name, generator, expected)| (*name, digests(&**generator), *expected));
    let wrong: Vec<_> = found.filter(|(_, found, expected)| found != expected).collect();
    assert!(wrong.is_empty(), "{wrong:#x?}");
}
