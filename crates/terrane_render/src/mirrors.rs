//! The motion of mirrors between two ticks of their regions.

use crate::chunk_meshes::RenderOrigin;
use bevy::prelude::*;
use bevy_terrane::simulation::Position;
use bevy_terrane::view::{Mirror, OwnBody};

/// The way of a mirror from the place where it was shown to its newest position. It takes as long as the region's last tick, so a
/// mirror is shown one tick late, and its speed is that of the entity.
#[derive(Component)]
pub(super) struct Glide {
    from: Position,
    to: Position,
    /// In seconds of the app's time.
    began: f64,
    seconds: f64,
}

impl Glide {
    /// Entities that move further at once are shown at their new place at once, in blocks.
    const JUMP: f32 = 32.0;

    fn at(&self, now: f64) -> Position {
        let way = self.to.relative_to(self.from.block) - self.from.offset;
        let part = (now - self.began) / self.seconds;
        if part >= 1.0 || self.from.dimension != self.to.dimension || way.length() > Self::JUMP {
            return self.to;
        }
        let mut shown = self.from;
        shown.translate(way * part.max(0.0) as f32);
        shown
    }
}

/// Moves the mirrors that have a `Transform`.
pub(super) fn move_mirrors(
    mut commands: Commands,
    time: Res<Time>,
    origin: Res<RenderOrigin>,
    mut mirrors: Query<(Entity, &Mirror, &mut Transform, Option<&mut Glide>)>,
) {
    let now = time.elapsed_secs_f64();
    for (entity, mirror, mut transform, glide) in &mut mirrors {
        let (to, clock) = mirror.current;
        let shown = match glide {
            Some(mut glide) => {
                if glide.to != to {
                    let seconds = clock.saturating_sub(mirror.previous.1).as_secs_f64().clamp(0.001, 0.5);
                    *glide = Glide { from: glide.at(now), to, began: now, seconds };
                }
                glide.at(now)
            }
            None => {
                commands.entity(entity).insert(Glide { from: to, to, began: now, seconds: 0.05 });
                to
            }
        };
        let translation = shown.relative_to(origin.0);
        if transform.translation != translation {
            transform.translation = translation;
        }
    }
}

/// Places the mirrors that got a `Transform` in this frame.
pub(super) fn place_mirrors(
    origin: Res<RenderOrigin>,
    mut mirrors: Query<(&Mirror, &mut Transform), (Without<Glide>, Added<Transform>)>,
) {
    for (mirror, mut transform) in &mut mirrors {
        transform.translation = mirror.current.0.relative_to(origin.0);
    }
}

/// Places the bodies that the main world moves itself.
pub(super) fn place_own_bodies(
    origin: Res<RenderOrigin>,
    mut bodies: Query<(&Position, &mut Transform), With<OwnBody>>,
) {
    for (position, mut transform) in &mut bodies {
        let translation = position.relative_to(origin.0);
        if transform.translation != translation {
            transform.translation = translation;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bevy_terrane::space::{BlockPos, DimensionId};
    use std::time::Duration;
    use uuid::Uuid;

    const TICK: u64 = 50;

    fn at(x: f32) -> Position {
        let mut position =
            Position { dimension: DimensionId(1), block: BlockPos::new(1 << 40, 0, 0), offset: Vec3::ZERO };
        position.translate(Vec3::X * x);
        position
    }

    fn app() -> (App, Entity) {
        let mut app = App::new();
        app.init_resource::<Time>().insert_resource(RenderOrigin(BlockPos::new(1 << 40, 0, 0)));
        app.add_systems(Update, move_mirrors);
        let current = (at(0.0), Duration::ZERO);
        let mirror = Mirror { id: Uuid::nil(), previous: current, current };
        let entity = app.world_mut().spawn((mirror, Transform::default())).id();
        app.update();
        (app, entity)
    }

    fn tick(app: &mut App, entity: Entity, to: Position) {
        let mut mirror = app.world_mut().get_mut::<Mirror>(entity).unwrap();
        let clock = mirror.current.1 + Duration::from_millis(TICK);
        (mirror.previous, mirror.current) = (mirror.current, (to, clock));
    }

    fn shown_after(app: &mut App, entity: Entity, millis: u64) -> f32 {
        app.world_mut().resource_mut::<Time>().advance_by(Duration::from_millis(millis));
        app.update();
        app.world().get::<Transform>(entity).unwrap().translation.x
    }

    #[test]
    fn a_mirror_moves_evenly_between_ticks() {
        let (mut app, entity) = app();
        let mut shown = 0.0;
        for number in 1..=20 {
            tick(&mut app, entity, at(number as f32));
            // Ten frames a tick. The first shows the mirror where it was.
            for frame in 0..10 {
                let now = shown_after(&mut app, entity, if frame == 0 { 5 } else { TICK / 10 });
                if number > 1 {
                    assert!((now - shown - 0.1).abs() < 1e-3, "tick {number}, frame {frame}: {shown}, {now}");
                }
                shown = now;
            }
        }
        assert_eq!(shown_after(&mut app, entity, TICK), 20.0, "it ends at its newest position");
        assert_eq!(shown_after(&mut app, entity, 10 * TICK), 20.0);
    }

    #[test]
    fn a_late_or_early_tick_makes_no_jump() {
        let (mut app, entity) = app();
        let mut shown = 0.0;
        for (number, delay) in [50, 20, 80, 35, 65, 10, 50].into_iter().cycle().take(70).enumerate() {
            tick(&mut app, entity, at(number as f32 + 1.0));
            for _ in 0..delay / 5 {
                let now = shown_after(&mut app, entity, 5);
                assert!((-1e-3..=0.4).contains(&(now - shown)), "{shown}, {now}");
                shown = now;
            }
        }
    }

    #[test]
    fn a_teleported_mirror_and_one_in_another_dimension_jump() {
        let (mut app, entity) = app();
        tick(&mut app, entity, at(500.0));
        assert_eq!(shown_after(&mut app, entity, 1), 500.0);
        tick(&mut app, entity, Position { dimension: DimensionId(2), ..at(501.0) });
        assert_eq!(shown_after(&mut app, entity, 1), 501.0);
    }
}
