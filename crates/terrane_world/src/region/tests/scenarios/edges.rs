//! Regions at the edges of the grid.

use super::*;

#[test]
fn everything_works_at_the_edges_of_the_grid() {
    for section_shift in 0..=RegionizerConfig::MAX_SECTION_SHIFT {
        for creation in [1, 2, RegionizerConfig::MAX_CREATION_RADIUS] {
            let config = RegionizerConfig {
                section_shift,
                empty_section_creation_radius: creation,
                section_merge_radius: creation,
                ..RegionizerConfig::default()
            };
            let mut world: World = Regionizer::new(config).unwrap();
            let corners: Vec<_> = [i64::MIN, i64::MAX]
                .into_iter()
                .flat_map(|z| [i64::MIN, i64::MAX].map(|x| ColumnPos::new(x, z)))
                .collect();
            let ids: Vec<_> = corners.iter().map(|&corner| world.add_column(corner).unwrap()).collect();
            assert_eq!(world.regions(), ids);
            world.check_invariants().unwrap();
            for (&corner, &id) in corners.iter().zip(&ids) {
                // No sections lie beyond the edge: a quarter of the square remains, with the middle lines.
                assert_eq!(world.section_count(id), (creation as usize + 1).pow(2));
                assert_eq!(world.columns(id).collect::<Vec<_>>(), [corner]);
                assert!(world.contains_column(corner) && world.region_at(corner) == Some(id));
                let data = begin(&mut world, id);
                let inward = ColumnPos::new(corner.x ^ 0xff, corner.z);
                world.add_column(inward).unwrap();
                world.remove_column(corner).unwrap();
                world.check_invariants().unwrap();
                end(&mut world, id, data);
                world.remove_column(inward).unwrap();
                for id in world.regions() {
                    if world.column_count(id) == 0 {
                        assert_eq!(tick(&mut world, id), DEAD);
                    }
                }
                assert_eq!(world.region_at(corner), None);
            }
            assert_eq!(world.region_count(), 0);
        }
    }
}

/// From each corner of the grid inwards, in columns.
fn corners() -> [impl Fn(i64, i64) -> ColumnPos; 4] {
    let axis = |edge: i64, inward: i64| if edge < 0 { edge + inward } else { edge - inward };
    [(i64::MIN, i64::MIN), (i64::MAX, i64::MIN), (i64::MIN, i64::MAX), (i64::MAX, i64::MAX)]
        .map(|(x, z)| move |inward_x: i64, inward_z: i64| ColumnPos::new(axis(x, inward_x), axis(z, inward_z)))
}

#[test]
fn regions_merge_and_split_in_the_corners_of_the_grid_and_nothing_wraps() {
    for (section_shift, creation) in
        [0, 2, 4, 6].into_iter().flat_map(|shift| [1, 2, 3, 8].map(|radius| (shift, radius)))
    {
        let config = RegionizerConfig {
            section_shift,
            empty_section_creation_radius: creation,
            section_merge_radius: 1,
            recalculation_section_count: 1,
            max_dead_section_percent: 0.0,
        };
        let mut world: World = Regionizer::new(config).unwrap();
        let width = 1 << section_shift;
        // Along the edge, with a distance at which two columns need a third in the middle to share a region.
        let step = i64::from(2 * creation + 1);
        for corner in corners() {
            let along = |n: i64| corner(n * step * width, 0);
            let section = |n: i64| along(n).section(section_shift);
            let near = world.add_column(along(0)).unwrap();
            let far = world.add_column(along(2)).unwrap();
            assert_ne!(near, far, "shift {section_shift}, radius {creation}");
            world.check_invariants().unwrap();

            // The middle one merges all, at once or when the tick ends.
            let data = begin(&mut world, near);
            assert_eq!(world.add_column(along(1)), Ok(far));
            assert_eq!(world.pending_merges(), [(far, near)]);
            assert_eq!(end(&mut world, near, data), STILL_READY);
            assert_eq!((world.state(far), world.region_at(along(2))), (Some(RegionState::Dead), Some(near)));
            let (low, high) = world.bounds(near).unwrap();
            let ends = [section(0).x, section(2).x + i64::from(creation) * (section(2).x - section(0).x).signum()];
            assert_eq!([low.x, high.x], [ends[0].min(ends[1]), ends[0].max(ends[1])]);
            assert_eq!(high.z.abs_diff(low.z), u64::from(creation));
            assert!(low.z == section(0).z || high.z == section(0).z);

            // Without it they split again; among equals the one with the lowest section keeps the id.
            world.remove_column(along(1)).unwrap();
            world.check_invariants().unwrap();
            let (RegionState::Ready, split_off) = tick(&mut world, near) else { panic!("it has columns") };
            let [other] = split_off[..] else { panic!("{split_off:?} at shift {section_shift}, radius {creation}") };
            let owners = [world.region_at(along(0)), world.region_at(along(2))];
            assert!(owners == [Some(near), Some(other)] || owners == [Some(other), Some(near)]);
            for id in [near, other] {
                let columns: Vec<_> = world.columns(id).collect();
                assert_eq!(columns.len(), 1);
                world.remove_column(columns[0]).unwrap();
                assert_eq!(tick(&mut world, id), DEAD);
            }
            assert_eq!((world.region_count(), world.bounds(near)), (0, None));
        }

        // All corners at once: there are no neighbours across an edge.
        let ids = corners().map(|corner| world.add_column(corner(0, 0)).unwrap());
        assert_eq!(world.regions(), ids);
        let ticking = ids.map(|id| begin(&mut world, id));
        for (corner, id) in corners().into_iter().zip(ids) {
            assert_eq!(world.add_column(corner(width, width)), Ok(id));
        }
        for (id, data) in ids.into_iter().zip(ticking) {
            assert_eq!(world.awaited_by(id).len(), 1);
            assert_eq!(end(&mut world, id, data), STILL_READY);
            assert_eq!(world.data(id).unwrap().0.len(), 2);
        }
        assert_eq!(world.regions(), ids);
    }
}
