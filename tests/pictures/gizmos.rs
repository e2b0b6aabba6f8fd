//! Gizmos are seen when they are on.

use crate::studio::{Paint, Scene, Studio};
use bevy::prelude::*;
use bevy_terrane::prelude::*;
use bevy_terrane::view::WorldStatistics;
use std::any::TypeId;
use std::sync::Arc;
use terrane_gizmos::{ChunkGizmos, RegionGizmos};
use terrane_render::{ChunkRenderPlugin, RenderMode};

const SIZE: UVec2 = UVec2::new(640, 360);
const FLOOR: [u8; 4] = [20, 60, 20, 255];

fn switch<Group: GizmoConfigGroup>(studio: &mut Studio, on: bool) {
    studio.app.world_mut().resource_mut::<GizmoConfigStore>().config_mut::<Group>().0.enabled = on;
}

/// The color of the lines that a group has drawn last.
fn color_of<Group: 'static>(studio: &Studio) -> Option<[u8; 3]> {
    let world = studio.app.world();
    let handle = world.resource::<bevy::gizmos::GizmoHandles>().handles().get(&TypeId::of::<Group>())?.as_ref()?;
    let color = world.resource::<Assets<GizmoAsset>>().get(handle)?.buffer().list_colors.first().copied()?;
    let [red, green, blue, _] = Srgba::from(color).to_u8_array();
    Some([red, green, blue])
}

fn pixels(picture: &[u8], color: [u8; 3]) -> usize {
    let is_like = |pixel: &&[u8; 4]| color.iter().zip(&pixel[..3]).all(|(a, b)| a.abs_diff(*b) < 8);
    picture.as_chunks::<4>().0.iter().filter(is_like).count()
}

/// Promise, gizmos: The borders of regions are seen exactly while they are switched on.
#[test]
fn the_border_of_a_region_is_seen_while_it_is_on() {
    let paint = Paint::new(BlockType::new("test:floor").with_color([20, 60, 20]), FLOOR, RenderMode::Opaque);
    let floor: Scene = Arc::new(|[_, y, _]| usize::from(y < 0));
    let mut studio = Studio::new("gizmos", SIZE, (vec![paint], floor), ChunkRenderPlugin::default(), Msaa::Off);
    let statistics = studio.app.world().resource::<WorldStatistics>();
    let [region] = &statistics.regions[..] else { panic!("{:?}", statistics.regions) };
    let west = (region.bounds().unwrap().0.x << statistics.section_shift) * 16;
    let view = Transform::from_xyz(west as f32 + 60.0, 12.0, 8.0).looking_to(Vec3::new(-1.0, -0.1, 0.2), Vec3::Y);

    let mut shoot = |switch: &dyn Fn(&mut Studio)| {
        switch(&mut studio);
        studio.look(view);
        (color_of::<RegionGizmos>(&studio), studio.shoot(view))
    };
    let (none, off) = shoot(&|_| {});
    let (color, on) = shoot(&|studio| switch::<RegionGizmos>(studio, true));
    let (_, chunks) = shoot(&|studio| {
        switch::<RegionGizmos>(studio, false);
        switch::<ChunkGizmos>(studio, true);
    });
    let (_, off_again) = shoot(&|studio| switch::<ChunkGizmos>(studio, false));
    assert_eq!(none, None);
    let color = color.expect("lines are drawn");
    let seen = [&off, &on, &chunks, &off_again].map(|picture| pixels(picture, color));
    assert!(seen[1] > 500 && [seen[0], seen[2], seen[3]] == [0; 3], "{seen:?} pixels of {color:?}");
    assert!(off == off_again && chunks != off);
}
