//! The boxes and paths of entities that live in regions.

use crate::eyes::Eyes;
use crate::sight::{SeenPath, Sights};
use crate::{BodyGizmos, PathGizmos};
use bevy::color::palettes::css::{LIME, RED, WHITE};
use bevy::ecs::system::SystemParam;
use bevy::prelude::*;
use bevy_terrane::simulation::{Position, StableId};
use bevy_terrane::view::{Mirror, MirrorIndex, OwnBody};
use std::iter;

/// Paths are drawn so far above the feet of their walkers, in blocks, that the ground does not hide them.
const PATH_HEIGHT: f32 = 0.1;

/// Where the main world shows entities of regions.
#[derive(SystemParam)]
pub struct Shown<'w, 's> {
    index: Res<'w, MirrorIndex>,
    mirrors: Query<'w, 's, (&'static Mirror, Option<&'static GlobalTransform>)>,
    own: Query<'w, 's, (&'static OwnBody, &'static Position)>,
}

impl Shown<'_, '_> {
    /// The place of an entity, in the space of what is drawn; where its region has told of it last if it has no mirror.
    fn place(&self, id: StableId, last: Position, eyes: &Eyes) -> Vec3 {
        let own = self.own.iter().find(|(own, _)| own.id() == id.0 && own.state().is_some());
        if let Some((_, position)) = own {
            return position.relative_to(eyes.origin());
        }
        let mirror = self.index.entity(id.0).and_then(|mirror| self.mirrors.get(mirror).ok());
        match mirror.filter(|(mirror, _)| mirror.current.0.dimension == last.dimension) {
            Some((_, Some(transform))) => transform.translation(),
            Some((mirror, None)) => mirror.current.0.relative_to(eyes.origin()),
            None => last.relative_to(eyes.origin()),
        }
    }
}

pub fn draw_bodies(mut gizmos: Gizmos<BodyGizmos>, eyes: Eyes, sights: Res<Sights>, shown: Shown) {
    for (id, position, body) in sights.near(&eyes.places()).flat_map(|seen| &seen.bodies) {
        let size = Vec3::new(body.width, body.height, body.width);
        let middle = shown.place(*id, *position, &eyes) + Vec3::Y * (body.height / 2.0);
        gizmos.cube(Transform::from_translation(middle).with_scale(size), WHITE);
    }
}

pub fn draw_paths(mut gizmos: Gizmos<PathGizmos>, eyes: Eyes, sights: Res<Sights>, shown: Shown) {
    for SeenPath { walker, position, rest, is_complete } in sights.near(&eyes.places()).flat_map(|seen| &seen.paths) {
        let start = shown.place(*walker, *position, &eyes);
        let waypoints = rest.iter().map(|point| {
            let offset = Vec3::from_array(point.offset);
            Position { dimension: position.dimension, block: point.block, offset }.relative_to(eyes.origin())
        });
        let points = iter::once(start).chain(waypoints).map(|point| point + Vec3::Y * PATH_HEIGHT);
        gizmos.linestrip(points, if *is_complete { LIME } else { RED });
    }
}
