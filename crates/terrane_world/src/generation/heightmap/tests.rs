//! Height maps: the asset, drawn ones, and damaged files.

use super::*;
use crate::block::BlockRegistry;
use crate::generation::basic_blocks;
use crate::space::{BlockPos, ColumnPos};
use png::{BitDepth, ColorType};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::OnceLock;

const ASSET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/jacksboro_fault_dem.png");
/// The asset's metres above sea level, (row, column, value).
const KNOWN: [(i64, i64, i64); 7] =
    [(0, 0, 483), (0, 402, 444), (343, 0, 545), (343, 402, 272), (172, 201, 583), (100, 300, 537), (17, 5, 393)];

fn jacksboro() -> Heightmap {
    static MAP: OnceLock<Heightmap> = OnceLock::new();
    MAP.get_or_init(|| Heightmap::open(ASSET).unwrap()).clone()
}

/// Approximately true to scale at 10 m per block.
fn scaled() -> Heightmap {
    jacksboro().with_blocks_per_sample([7.4, 9.3]).unwrap().with_blocks_per_unit(0.1).unwrap()
}

fn encode(width: u32, height: u32, color: ColorType, depth: BitDepth, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(color);
    encoder.set_depth(depth);
    if color == ColorType::Indexed {
        encoder.set_palette([0, 0, 0, 255, 255, 255].as_slice());
    }
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(data).unwrap();
    writer.finish().unwrap();
    bytes
}

fn map_of(width: u32, values: &[u16]) -> Heightmap {
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_be_bytes()).collect();
    let height = values.len() as u32 / width;
    Heightmap::from_png(&encode(width, height, ColorType::Grayscale, BitDepth::Sixteen, &data)).unwrap()
}

fn column(map: &Heightmap, registry: &BlockRegistry, x: i64, z: i64) -> Column {
    let request = GenerateRequest { column: ColumnPos::new(x, z), heights: -64..320, blocks: registry };
    map.generate(&request).unwrap()
}

/// The y of the highest block of a column that is not air.
fn surface(column: &Column, x: i64, z: i64) -> Option<i64> {
    (-64..320).rev().find(|y| column.block(BlockPos::new(x, *y, z)) != BlockId::AIR)
}

#[test]
fn the_asset_is_the_published_map() {
    let map = jacksboro();
    assert_eq!((map.size(), map.units()), ([403, 344], 236..=1076));
    let samples = map.values.iter().fold(Digest::new(), |digest, value| digest.bytes(&value.to_le_bytes()));
    assert_eq!(samples.finish(), 0xeeaa_5884_6b25_a9f0, "FNV-1a of the little-endian samples");
}

/// Promise, ground: The generators `Void`, `Flat`, `Hills` and `Heightmap` work alone.
#[test]
fn the_surface_meets_the_samples() {
    let map = jacksboro().with_sea_level(0.0).unwrap();
    let corner = map.clone().with_centered(false);
    for (row, sample, metres) in KNOWN {
        assert_eq!(map.height_at(sample - 201, row - 172), metres, "row {row}, sample {sample}");
        assert_eq!(corner.height_at(sample, row), metres);
        let scaled = corner.clone().with_blocks_per_sample([8.0, 5.0]).unwrap().with_blocks_per_unit(0.25).unwrap();
        assert_eq!(scaled.height_at(8 * sample, 5 * row), (metres as f64 / 4.0).round() as i64);
        let shifted = scaled.with_sea_level(400.0).unwrap();
        assert_eq!(shifted.height_at(8 * sample, 5 * row), ((metres - 400) as f64 / 4.0).round() as i64);
    }
    assert_eq!(jacksboro().surface_heights(), 0..=840);
}

#[test]
fn columns_have_the_surface_that_height_at_says() {
    let registry = basic_blocks();
    let map = scaled();
    for (column_x, column_z) in [(0, 0), (-1, -1), (93, 99), (-94, -100), (95, 0), (-300, 7_000)] {
        let made = column(&map, &registry, column_x, column_z);
        for (x, z) in [(0, 0), (15, 0), (0, 15), (15, 15), (7, 9)] {
            let (x, z) = ((column_x << 4) + x, (column_z << 4) + z);
            assert_eq!(surface(&made, x, z), Some(map.height_at(x, z)), "at {x}, {z}");
        }
    }
}

#[test]
fn neighbouring_blocks_fit_also_across_columns_and_edges() {
    // 403 samples of 7.4 blocks: the eastern edge lies near x = 1488, the western one near x = -1487.
    let map = scaled();
    for z in [-1600, -77, 0, 15, 16, 1000, 1599] {
        for x in -1600..1600 {
            let step = map.height_at(x, z).abs_diff(map.height_at(x + 1, z));
            assert!(step <= 4, "{step} blocks up between {x} and the next, z = {z}");
        }
    }
}

#[test]
fn beyond_the_edge_the_ground_is_mirrored() {
    let map = jacksboro().with_blocks_per_sample([2.0, 3.0]).unwrap().with_centered(false);
    for (x, z) in [(1, 1), (2, 5), (77, 300), (400, 31)] {
        let here = map.height_at(x, z);
        assert_eq!(here, map.height_at(-x, z));
        assert_eq!(here, map.height_at(x, -z));
        assert_eq!(here, map.height_at(2 * 2 * 402 - x, z));
        assert_eq!(here, map.height_at(x, 2 * 3 * 343 - z));
        // The largest number of whole periods.
        let far = (i64::MAX / 2) / (2 * 2 * 402) * (2 * 2 * 402);
        assert_eq!(here, map.height_at(x + far, z));
        assert_eq!(here, map.height_at(x - far, z));
    }
}

#[test]
fn the_edges_of_the_world_do_no_harm() {
    let registry = basic_blocks();
    for map in [scaled(), map_of(1, &[7]), map_of(2, &[0, u16::MAX]), map_of(1, &[3, 1, 4])] {
        for (x, z) in [(i64::MIN, i64::MAX), (i64::MAX, i64::MAX), (i64::MIN, i64::MIN)] {
            assert!(map.surface_heights().contains(&map.height_at(x, z)));
            assert!(map.slope_at(x, z).is_finite());
            // The farthest column, and one beyond all blocks.
            column(&map, &registry, x >> 4, z >> 4);
            column(&map, &registry, x, z);
        }
    }
}

/// Promise, ground: A generated block depends only on its place and the settings, not on the requested heights.
#[test]
fn columns_are_the_same_in_any_order() {
    let registry = basic_blocks();
    let map = scaled();
    let places: Vec<_> = (-3..3).flat_map(|x| (-3..3).map(move |z| (x * 31, z * 33))).collect();
    let forth: Vec<_> = places.iter().map(|(x, z)| column(&map, &registry, *x, *z)).collect();
    let other = Heightmap::open(ASSET).unwrap().with_blocks_per_unit(0.1).unwrap();
    let other = other.with_blocks_per_sample([7.4, 9.3]).unwrap();
    let mut back: Vec<_> = places.iter().rev().map(|(x, z)| column(&other, &registry, *x, *z)).collect();
    back.reverse();
    assert!(forth == back);
}

#[test]
fn heights_are_cut() {
    let registry = basic_blocks();
    let map = scaled();
    let whole = column(&map, &registry, 2, 2);
    let request = GenerateRequest { column: ColumnPos::new(2, 2), heights: 3..21, blocks: &registry };
    let cut = map.generate(&request).unwrap();
    for y in -64..320 {
        for (x, z) in [(32, 32), (47, 32), (40, 45)] {
            let place = BlockPos::new(x, y, z);
            let expected = if (3..21).contains(&y) { whole.block(place) } else { BlockId::AIR };
            assert_eq!(cut.block(place), expected, "at {place}");
        }
    }
    for heights in [0..0, 1_000..2_000, i64::MIN..-10_000] {
        let nothing = map.generate(&GenerateRequest { heights, ..request.clone() }).unwrap();
        assert!((-64..320).all(|y| nothing.block(BlockPos::new(32, y, 32)) == BlockId::AIR));
    }
    let all = map.generate(&GenerateRequest { heights: i64::MIN..i64::MAX, ..request }).unwrap();
    assert_eq!(surface(&all, 32, 32), surface(&whole, 32, 32));
}

#[test]
fn every_band_and_the_cliffs_occur_on_the_real_map() {
    let registry = basic_blocks();
    let map = scaled().with_cliffs(0.6, "terrane:stone").unwrap();
    let mut tops = BTreeSet::new();
    for (x, z) in (-93..93).step_by(3).flat_map(|x| (-99..99).step_by(3).map(move |z| (x, z))) {
        let made = column(&map, &registry, x, z);
        let (x, z) = (x << 4, z << 4);
        tops.insert(made.block(BlockPos::new(x, map.height_at(x, z), z)));
    }
    for name in ["sand", "grass", "gravel", "snow", "stone"] {
        assert!(tops.contains(&registry.id(&format!("terrane:{name}")).unwrap()), "no {name} anywhere");
    }
}

#[test]
fn cliffs_are_where_the_ground_is_steep() {
    let registry = basic_blocks();
    let stone = registry.id("terrane:stone").unwrap();
    let bands = [HeightBand::new(f32::INFINITY, "terrane:grass", "terrane:dirt")];
    let map = scaled().with_bands(bands).unwrap().with_cliffs(0.3, "terrane:stone").unwrap();
    let (mut steep, mut level) = (0, 0);
    for (column_x, column_z) in (-90..90).step_by(9).flat_map(|x| (-90..90).step_by(9).map(move |z| (x, z))) {
        let made = column(&map, &registry, column_x, column_z);
        for at in (0..256).step_by(17) {
            let (x, z) = ((column_x << 4) + at % 16, (column_z << 4) + at / 16);
            let bare = made.block(BlockPos::new(x, map.height_at(x, z), z)) == stone;
            // The limit varies slightly from block to block.
            match map.slope_at(x, z) {
                slope if slope > 0.3 / 0.79 => {
                    steep += 1;
                    assert!(bare, "steep at {x}, {z}");
                }
                slope if slope < 0.3 / 1.21 => {
                    level += 1;
                    assert!(!bare, "level at {x}, {z}");
                }
                _ => {}
            }
        }
    }
    assert!(steep > 100 && level > 100, "both occur: {steep}, {level}");
}

#[test]
fn bands_mix_around_their_border_only() {
    let registry = basic_blocks();
    let [sand, grass] = ["terrane:sand", "terrane:grass"].map(|name| registry.id(name).unwrap());
    // A slope of one unit per block along x, from 0 to 99.
    let ramp: Vec<u16> = (0..100).chain(0..100).collect();
    let map = map_of(100, &ramp)
        .with_centered(false)
        .with_bands([
            HeightBand::new(48.0, "terrane:sand", "terrane:sand"),
            HeightBand::new(f32::INFINITY, "terrane:grass", "terrane:dirt"),
        ])
        .unwrap()
        .with_cliffs(f32::INFINITY, "terrane:stone")
        .unwrap();
    let tops = |map: &Heightmap, x: i64| -> Vec<BlockId> {
        let made = column(map, &registry, x >> 4, 0);
        (0..16).map(|z| made.block(BlockPos::new(x, map.height_at(x, z), z))).collect()
    };
    let soft = map.clone().with_transition(10.0).unwrap();
    let near: Vec<_> = (44..52).flat_map(|x| tops(&soft, x)).collect();
    assert!(near.contains(&sand) && near.contains(&grass));
    assert!(tops(&soft, 37).iter().all(|top| *top == sand) && tops(&soft, 59).iter().all(|top| *top == grass));
    let reseeded = soft.with_seed(1);
    assert_ne!(near, (44..52).flat_map(|x| tops(&reseeded, x)).collect::<Vec<_>>());

    let sharp = map.with_transition(0.0).unwrap();
    assert!(tops(&sharp, 47).iter().all(|top| *top == sand) && tops(&sharp, 48).iter().all(|top| *top == grass));
}

#[test]
fn slopes_are_blocks_up_per_block_along() {
    let ramp: Vec<u16> = (0..100).map(|value| 2 * value).cycle().take(300).collect();
    let map = map_of(100, &ramp).with_centered(false);
    assert_eq!(map.slope_at(50, 1), 2.0);
    let gentle = map.with_blocks_per_sample([4.0, 1.0]).unwrap();
    assert!((gentle.slope_at(200, 1) - 0.5).abs() < 1e-6);
    assert_eq!(map_of(1, &[9]).slope_at(5, 5), 0.0);
}

#[test]
fn water_fills_air_below_its_level() {
    let registry = basic_blocks();
    let water = registry.id("terrane:water").unwrap();
    let ramp: Vec<u16> = (0..32).chain(0..32).collect();
    let map = map_of(32, &ramp).with_centered(false).with_water(10.0, "terrane:water").unwrap();
    let made = column(&map, &registry, 0, 0);
    for x in 0..16 {
        for y in x + 1..20 {
            let expected = if y < 10 { water } else { BlockId::AIR };
            assert_eq!(made.block(BlockPos::new(x, y, 0)), expected, "at {x}, {y}");
        }
    }
}

#[test]
fn every_setting_is_part_of_the_identity() {
    let map = scaled();
    assert_eq!(map.identity(), scaled().identity());
    let bands = [HeightBand::new(1.0, "terrane:sand", "terrane:sand")];
    let others = [
        map.clone().with_blocks_per_sample([7.4, 9.4]).unwrap(),
        map.clone().with_blocks_per_sample([9.3, 7.4]).unwrap(),
        map.clone().with_blocks_per_unit(0.2).unwrap(),
        map.clone().with_sea_level(1.0).unwrap(),
        map.clone().with_centered(false),
        map.clone().with_bands(bands).unwrap(),
        map.clone().with_transition(1.0).unwrap(),
        map.clone().with_cliffs(2.0, "terrane:stone").unwrap(),
        map.clone().with_cliffs(1.25, "terrane:sand").unwrap(),
        map.clone().with_stone("terrane:sand"),
        map.clone().with_water(1.0, "terrane:water").unwrap(),
        map.clone().with_seed(1),
    ];
    let identities: BTreeSet<_> = others.iter().chain([&map]).map(|map| map.identity().seed).collect();
    assert_eq!(identities.len(), others.len() + 1);
    assert_ne!(map_of(2, &[1, 2, 3, 4]).identity(), map_of(4, &[1, 2, 3, 4]).identity());
    assert_ne!(map_of(2, &[1, 2, 3, 4]).identity(), map_of(2, &[1, 2, 4, 3]).identity());
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let map = || map_of(2, &[1, 2, 3, 4]);
    for bad in [0.0, -1.0, f32::NAN, f32::INFINITY, 1e-9, 1e9] {
        for result in [
            map().with_blocks_per_unit(bad),
            map().with_blocks_per_sample([bad, 1.0]),
            map().with_blocks_per_sample([1.0, bad]),
        ] {
            assert!(matches!(result, Err(HeightmapError::Setting { .. })), "{bad} was taken");
        }
    }
    let band = |below| HeightBand::new(below, "terrane:sand", "terrane:sand");
    for result in [
        map().with_sea_level(f32::NAN),
        map().with_water(f32::INFINITY, "terrane:water"),
        map().with_transition(-1.0),
        map().with_cliffs(f32::NAN, "terrane:stone"),
        map().with_bands([]),
        map().with_bands([band(f32::NAN)]),
        map().with_bands([band(2.0), band(2.0)]),
        map().with_bands([band(2.0), band(1.0)]),
    ] {
        assert!(matches!(result, Err(HeightmapError::Setting { .. })));
    }
    let error = map().with_blocks_per_unit(f32::NAN).unwrap_err().to_string();
    assert!(error.contains("blocks per unit") && error.contains("NaN"), "{error}");
}

/// Promise, ground: `Heightmap` reads 16-bit greyscale PNGs, and an error names the kind of any other PNG.
#[test]
fn other_kinds_of_png_are_named() {
    for (color, depth, bytes, expected) in [
        (ColorType::Grayscale, BitDepth::Eight, 1, "8-bit greyscale"),
        (ColorType::GrayscaleAlpha, BitDepth::Sixteen, 4, "16-bit greyscale with transparency"),
        (ColorType::Rgb, BitDepth::Eight, 3, "8-bit RGB"),
        (ColorType::Rgba, BitDepth::Sixteen, 8, "16-bit RGB with transparency"),
        (ColorType::Indexed, BitDepth::Eight, 1, "8-bit colour palette"),
    ] {
        let data = encode(3, 2, color, depth, &vec![0; 6 * bytes]);
        match Heightmap::from_png(&data) {
            Err(HeightmapError::Unfit { found, .. }) => assert_eq!(found, expected),
            other => panic!("{expected}: {other:?}"),
        }
    }
}

#[test]
fn errors_name_a_file_that_is_missing_or_not_a_png() {
    for data in [&b""[..], b"P5 2 2 65535", &b"\x89PNG"[..]] {
        match Heightmap::from_png(data) {
            Err(HeightmapError::Unfit { found, .. }) => assert_eq!(found, "no PNG file"),
            other => panic!("{other:?}"),
        }
    }
    let directory = tempfile::tempdir().unwrap();
    for path in [directory.path().join("missing.png"), directory.path().to_owned()] {
        let error = Heightmap::open(&path).unwrap_err();
        assert!(matches!(error, HeightmapError::Read { .. }), "{error}");
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    }
}

/// A PNG file's chunks: a length, a name, the data, a checksum.
fn png_with_header(width: u32, height: u32) -> Vec<u8> {
    let mut header = b"IHDR".to_vec();
    header.extend(width.to_be_bytes());
    header.extend(height.to_be_bytes());
    header.extend([16, 0, 0, 0, 0]);
    let checksum = header.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { 0xedb8_8320 ^ (crc >> 1) } else { crc >> 1 })
    });
    let mut file = b"\x89PNG\r\n\x1a\n\0\0\0\x0d".to_vec();
    file.extend(header);
    file.extend((!checksum).to_be_bytes());
    file
}

#[test]
fn huge_maps_are_refused_by_their_header() {
    for (width, height) in [(8_193, 8_192), (1 << 30, 1 << 30), (i32::MAX as u32, 1), (1, i32::MAX as u32)] {
        match Heightmap::from_png(&png_with_header(width, height)) {
            Err(HeightmapError::Unfit { found, .. }) => assert_eq!(found, format!("{width} x {height} samples")),
            other => panic!("{width} x {height}: {other:?}"),
        }
    }
    let nothing = Heightmap::from_png(&png_with_header(0, 5));
    assert!(matches!(nothing, Err(HeightmapError::Damaged { .. })), "{nothing:?}");
}

#[test]
fn truncated_and_damaged_files_are_refused() {
    let whole = std::fs::read(ASSET).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("part.png");
    for length in [9, 20, 33, 40, 1_000, whole.len() / 2, whole.len() - 100] {
        std::fs::write(&path, &whole[..length]).unwrap();
        match Heightmap::open(&path) {
            Err(error @ HeightmapError::Damaged { .. }) => assert!(error.to_string().contains("part.png")),
            other => panic!("cut to {length} bytes: {other:?}"),
        }
    }
    let mut flipped = whole;
    flipped[60_000] ^= 0x10;
    assert!(matches!(Heightmap::from_png(&flipped), Err(HeightmapError::Damaged { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any size and any scale: at the samples the ground equals the sample, between them it lies within the map's heights.
    #[test]
    fn the_ground_passes_through_the_samples(
        width in 1u32..9,
        values in proptest::collection::vec(0u16..500, 9..60),
        blocks in [1u8..9, 1u8..9],
        x in any::<i64>(),
        z in any::<i64>(),
    ) {
        let values = &values[..values.len() / width as usize * width as usize];
        let map = map_of(width, values).with_centered(false).with_sea_level(0.0).unwrap();
        let map = map.with_blocks_per_sample(blocks.map(f32::from)).unwrap();
        for (at, value) in values.iter().enumerate() {
            let (column, row) = (at as i64 % i64::from(width), at as i64 / i64::from(width));
            let height = map.height_at(column * i64::from(blocks[0]), row * i64::from(blocks[1]));
            prop_assert_eq!(height, i64::from(*value));
        }
        prop_assert!(map.surface_heights().contains(&map.height_at(x, z)));
    }

    /// The shortcut for whole columns and the plain way for one place agree to the last bit.
    #[test]
    fn whole_columns_agree_with_single_places(x in any::<i64>(), z in any::<i64>(), scale in 0.1f32..80.0) {
        let map = jacksboro().with_blocks_per_sample([scale, scale * 1.3]).unwrap();
        let (x, z) = (x & !15, z & !15);
        let field = map.field(x, z);
        for (at, units) in field.iter().enumerate() {
            let (x, z) = (i128::from(x) - 1 + (at % BORDERED) as i128, i128::from(z) - 1 + (at / BORDERED) as i128);
            prop_assert_eq!(*units, map.units_at(&map.x.tap(x), &map.z.tap(z)));
        }
    }

    /// Whatever is cut off or changed, the result is a map or an error.
    #[test]
    fn damaged_bytes_never_panic(at in 0usize..200, byte in any::<u8>(), length in 0usize..200) {
        let values: Vec<u8> = (0..64).flat_map(|value: u16| (value * 977).to_be_bytes()).collect();
        let mut data = encode(8, 8, ColorType::Grayscale, BitDepth::Sixteen, &values);
        let at = at % data.len();
        data[at] = byte;
        data.truncate(length.max(at + 1));
        let _ = Heightmap::from_png(&data);
    }
}
