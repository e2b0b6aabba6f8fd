//! Files of other programs are unchanged after passing through a world without their blocks. Ignored if there are no
//! files: see `snapshot::schematic::tests::real_files`.

use super::*;
use crate::snapshot::schematic::normalized;
use crate::snapshot::schematic::tests::files_alone;

#[test]
#[ignore = "needs files of other programs"]
fn real_files_come_out_of_a_world_as_they_went_in() {
    let registry = registry(&[]);
    for (name, bytes) in files_alone() {
        let (original, _) = Schematic::read(&bytes[..], &ReadOptions::default()).unwrap();
        let (snapshot, report) = read(original.clone(), &registry);
        let is_inside = |entity: &&BlockEntity| {
            let within = |(at, side): (&i32, u32)| u32::try_from(*at).is_ok_and(|at| at < side);
            entity.position.iter().zip(original.size()).all(within)
        };
        let mut expected: Vec<_> = original.block_entities.iter().filter(is_inside).cloned().collect();
        assert_eq!(report.block_entities as usize, original.block_entities.len() - expected.len(), "{name}");
        // Entities may be slightly outside; one file has some with positions in their source world.
        let is_near = |entity: &&SchematicEntity| {
            let near = |(at, side): (&f64, u32)| (-2.0..=f64::from(side) + 2.0).contains(at);
            entity.position.iter().zip(original.size()).all(near)
        };
        let entities: Vec<_> = original.entities.iter().filter(is_near).cloned().collect();
        assert_eq!(report.entities as usize, original.entities.len() - entities.len(), "{name}");
        assert_eq!(report.components, 0, "{name}");
        assert_eq!(report.has_biomes, original.biomes.is_some(), "{name}");

        let again = through_file(&written(&snapshot, &registry), 3);
        assert_eq!(again.size(), original.size(), "{name}");
        let [width, height, length] = original.size();
        let rows = (0..height).flat_map(|y| (0..length).map(move |z| (y, z)));
        for at in rows.flat_map(|(y, z)| (0..width).map(move |x| [x, y, z])) {
            let state = original.state(at).map(|state| normalized(state.to_owned()));
            assert_eq!(again.state(at).map(str::to_owned), state, "{name}: {at:?}");
        }
        let mut found = again.block_entities.clone();
        found.sort_by_key(|entity| entity.position);
        expected.sort_by_key(|entity| entity.position);
        assert_eq!(found, expected, "{name}");
        assert_eq!(again.entities, entities, "{name}");
        assert!(again.components.is_empty(), "{name}");
    }
}
