//! [`CharacterController`]: walks, jumps, swims, climbs and flies by an [`Intent`].

use super::BlockBody;
use crate::body::{Body, BodyMover, Contact, approached};
use crate::path::{BANK_HEIGHT, SWIMS_FROM, Walker};
use crate::simulation::components::mirrored::Look;
use bevy::prelude::*;
use serde::{Deserialize, Serialize};

/// The wish of a character, such as a player's keys. An input system, a network layer or a mob's mind fills it; it holds until it
/// is changed. It is saved, so a player looks where it looked when it left.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, Reflect)]
#[type_path = "bevy_terrane"]
#[reflect(Component, Default, Clone)]
pub struct Intent {
    /// The wished direction in the world, of length up to 1: half of it is half as fast. Its y counts while swimming and flying.
    pub direction: Vec3,
    /// Where the character looks, in radians: the turn to the left of north (-z), and up from the horizon. It does not affect movement.
    pub look: Vec2,
    /// Jumps from the ground; goes up in liquids, on ladders, and in flight.
    pub jumps: bool,
    /// Walks slowly and does not fall from edges; goes down in liquids and in flight, and holds on to ladders.
    pub sneaks: bool,
    /// Walks and flies faster.
    pub sprints: bool,
    /// Flies, without gravity.
    pub flies: bool,
}

impl Look for Intent {
    fn look(&self) -> [f32; 2] {
        self.look.to_array()
    }

    fn looking(look: [f32; 2]) -> Self {
        Self { look: look.into(), ..Self::default() }
    }
}

/// Moves the [`BlockBody`](super::BlockBody) of its entity as its [`Intent`] says. Speeds are in blocks per second.
#[derive(Component, Clone, Copy, Debug, PartialEq, Serialize, Deserialize, Reflect)]
#[type_path = "bevy_terrane"]
#[require(Intent)]
#[reflect(Component, Default, Clone)]
pub struct CharacterController {
    /// The speed of walking.
    pub walk: f32,
    /// The speed of sprinting. In flight, sprinting doubles [`fly`](Self::fly).
    pub sprint: f32,
    /// The speed of sneaking.
    pub sneak: f32,
    /// The speed of swimming.
    pub swim: f32,
    /// The speed on ladders.
    pub climb: f32,
    /// The speed of flight; 0 for a character that cannot fly.
    pub fly: f32,
    /// The height of a jump, in blocks.
    pub jump_height: f32,
}

impl Intent {
    /// The rotation of eyes that look there.
    pub fn rotation(&self) -> Quat {
        Quat::from_euler(EulerRot::YXZ, self.look.x, self.look.y, 0.0)
    }

    /// Sets the direction to the sides by keys or a stick: `ahead` and `right`, -1 to 1, as seen by the character.
    pub fn walk(&mut self, ahead: f32, right: f32) {
        let direction = Quat::from_rotation_y(self.look.x) * Vec3::new(right, 0.0, -ahead);
        self.direction = direction.clamp_length_max(1.0);
    }
}

impl Default for CharacterController {
    /// A person who jumps onto a block.
    fn default() -> Self {
        Self { walk: 4.3, sprint: 5.6, sneak: 1.3, swim: 2.6, climb: 2.4, fly: 11.0, jump_height: 1.25 }
    }
}

/// A swimmer rises a little higher over a bank than a path asks for, in blocks.
const MARGIN: f64 = 1.0 / 16.0;
/// How fast a body that neither swims up nor down sinks.
const SINKING: f64 = 0.6;

impl CharacterController {
    /// Moves a body for some seconds. `gravity` is in blocks per second squared.
    pub fn advance(&self, body: &mut Body, intent: &Intent, gravity: f64, mover: &mut BodyMover<'_>, seconds: f64) {
        let Contact { ground, wall, climbable, submerged, drift, .. } = body.contact;
        let climbs = climbable && self.climb > 0.0;
        let wish = if intent.direction.is_finite() { intent.direction.clamp_length_max(1.0) } else { Vec3::ZERO };
        let wish = wish.as_dvec3();
        let (flies, swims) = (intent.flies && self.fly > 0.0, is_swimming(&body.contact));
        let (speed, rate) = self.gait(&body.contact, intent);
        let up = wish.y + f64::from(u8::from(intent.jumps)) - f64::from(u8::from(intent.sneaks));
        let [x, y, z] = body.velocity;
        let vertical = if flies {
            approached(y, speed * up.clamp(-1.0, 1.0), rate, seconds)
        } else if swims {
            let target = if up == 0.0 { -SINKING } else { speed * up.clamp(-1.0, 1.0) };
            approached(y, target + drift[1], rate, seconds)
        } else if climbs && !(ground && intent.sneaks) {
            let climb = f64::from(self.climb);
            let rises = intent.jumps || wall && (wish.x != 0.0 || wish.z != 0.0);
            if rises {
                climb
            } else if intent.sneaks {
                0.0
            } else {
                (y - gravity * seconds).max(-climb)
            }
        } else {
            if intent.jumps && ground {
                body.velocity[1] = speed_to(self.jump_height.into(), gravity);
            }
            body.velocity[1] - gravity * (1.0 - submerged) * seconds
        };
        // Over the edge of a bank, out of the liquid altogether.
        let leaves = wall && intent.jumps && submerged > 0.0 && submerged < 0.9 && !flies && !climbs;
        let bank = speed_to(f64::from(BANK_HEIGHT) + MARGIN, gravity);
        let vertical = if leaves { vertical.max(bank) } else { vertical };
        let [east, _, south] = if flies { [0.0; 3] } else { drift };
        let (east, south) = (speed * wish.x + east, speed * wish.z + south);
        let velocity = [approached(x, east, rate, seconds), vertical, approached(z, south, rate, seconds)];
        body.advance(mover, velocity, seconds, intent.sneaks && !flies && !swims);
    }

    /// The highest speed to the sides, and the share of the difference to the wished speed that fades in a second.
    pub(super) fn gait(&self, contact: &Contact, intent: &Intent) -> (f64, f64) {
        let level = if intent.sneaks {
            self.sneak
        } else if intent.sprints {
            self.sprint
        } else {
            self.walk
        };
        let (speed, rate) = match (intent.flies && self.fly > 0.0, is_swimming(contact)) {
            (true, _) => (if intent.sprints { 2.0 * self.fly } else { self.fly }, 8.0),
            (_, true) => (self.swim, 4.0),
            _ => (level, if contact.ground || contact.climbable { 14.0 } else { 2.5 }),
        };
        (speed.into(), rate)
    }

    /// The walker that is as big as this body and does what this character can: for a [`PathTo`](crate::simulation::PathTo). It swims if
    /// there is hardly another way.
    pub fn walker(&self, body: &BlockBody) -> Walker {
        // The body keeps a gap to what it touches, and does not hit the middle of a cell exactly. A tick may miss the top of its jump.
        Walker {
            width: body.width + 1.0 / 32.0,
            height: body.height + 1.0 / 512.0,
            step: body.step_height,
            jump: (self.jump_height - 1.0 / 16.0).max(0.0),
            swim: (self.swim > 0.0).then_some(8.0),
            climb: self.climb > 0.0,
            ..Walker::default()
        }
    }
}

/// Returns `true` if a body swims rather than walks.
pub(super) fn is_swimming(contact: &Contact) -> bool {
    contact.submerged > f64::from(SWIMS_FROM)
}

/// The speed at which a body rises to this height.
fn speed_to(height: f64, gravity: f64) -> f64 {
    (2.0 * gravity.max(0.0) * height.max(0.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::tags::CLIMBABLE;
    use crate::block::{BlockId, BlockRegistry, BlockShape, BlockType};
    use crate::body::BodyTable;
    use crate::chunk::Chunk;
    use crate::space::{BlockPos, ChunkPos};

    const GRAVITY: f64 = 32.0;
    const TICK: f64 = 0.05;

    /// One chunk with a floor at y = 0, and these blocks.
    fn ground(blocks: &[(std::ops::Range<usize>, std::ops::Range<usize>, &str)]) -> (BodyTable, Chunk) {
        let mut types = BlockRegistry::new();
        let stone = types.register(BlockType::new("game:stone")).unwrap();
        let water = types.register(BlockType::new("game:water").with_shape(BlockShape::liquid(8).unwrap())).unwrap();
        let ladder = BlockType::new("game:ladder").with_shape(BlockShape::Cross).with_tag(CLIMBABLE);
        let ladder = types.register(ladder).unwrap();
        let mut chunk = Chunk::from_fn(|[_, y, _]| if y == 0 { stone } else { BlockId::AIR });
        for (xs, ys, name) in blocks {
            let block = [("stone", stone), ("water", water), ("ladder", ladder)].into_iter().find(|it| it.0 == *name);
            for (x, y, z) in xs.clone().flat_map(|x| ys.clone().flat_map(move |y| (0..16).map(move |z| (x, y, z)))) {
                chunk.set_block([x, y, z], block.unwrap().1);
            }
        }
        (BodyTable::new(&types), chunk)
    }

    /// The places of a person who stands at x = 3 and does this for some ticks, from the corner of the chunk.
    fn person(world: &(BodyTable, Chunk), intent: Intent, ticks: usize) -> (Vec<Vec3>, Body) {
        let chunk = |pos: ChunkPos| (pos == ChunkPos::new(0, 0, 0)).then_some(Some(&world.1));
        let mut mover = BodyMover::new(&world.0, &chunk);
        let mut body = Body::new(BlockPos::new(3, 1, 8), 0.6, 1.8);
        let controller = CharacterController::default();
        // It stands first.
        (0..2).for_each(|_| controller.advance(&mut body, &Intent::default(), GRAVITY, &mut mover, TICK));
        let places = (0..ticks).map(|_| {
            controller.advance(&mut body, &intent, GRAVITY, &mut mover, TICK);
            let BlockPos { x, y, z } = body.block;
            Vec3::new(x as f32, y as f32, z as f32) + Vec3::from_array(body.offset.map(|along| along as f32))
        });
        (places.collect(), body)
    }

    fn to_east(intent: Intent) -> Intent {
        Intent { direction: Vec3::X, ..intent }
    }

    #[test]
    fn a_character_walks_sprints_and_sneaks_at_its_speeds() {
        let world = ground(&[]);
        let still = Intent::default();
        for (intent, speed) in [
            (still, 4.3),
            (Intent { sprints: true, ..still }, 5.6),
            (Intent { sneaks: true, ..still }, 1.3),
            (Intent { sprints: true, sneaks: true, ..still }, 1.3),
        ] {
            let (places, body) = person(&world, to_east(intent), 30);
            let step = places[29].x - places[28].x;
            assert!((step / 0.05 - speed).abs() < 0.02, "{intent:?}: {step}");
            assert!(body.contact.ground);
        }
        let half = Intent { direction: Vec3::X * 0.5, ..still };
        assert!((person(&world, half, 30).1.velocity[0] - 2.15).abs() < 0.02);
        let (places, _) = person(&world, still, 30);
        assert_eq!(places[29], places[0]);
    }

    #[test]
    fn a_character_jumps_onto_a_block_and_not_onto_two() {
        for (height, gets_up) in [(1, true), (2, false)] {
            let world = ground(&[(6..16, 1..1 + height, "stone")]);
            let (places, _) = person(&world, to_east(Intent { jumps: true, ..Intent::default() }), 40);
            assert_eq!(places[39].x > 6.5, gets_up, "{height}");
        }
        let (places, _) = person(&ground(&[]), Intent { jumps: true, ..Intent::default() }, 9);
        let highest = places.iter().map(|place| place.y).fold(0.0, f32::max);
        assert!((2.2..2.26).contains(&highest), "{highest}");
    }

    #[test]
    fn a_character_swims_up_and_leaves_the_water_over_a_bank() {
        let world = ground(&[(0..8, 1..5, "water"), (8..16, 1..5, "stone")]);
        let rising = Intent { jumps: true, ..Intent::default() };
        let (places, body) = person(&world, rising, 60);
        assert!((3.0..5.0).contains(&places[59].y) && body.contact.submerged > 0.0, "at the surface: {body:?}");
        let (places, body) = person(&world, to_east(rising), 120);
        assert!(places[119].x > 8.5 && places[119].y >= 5.0, "on the bank: {body:?}");
        let (_, body) = person(&world, Intent { sneaks: true, ..Intent::default() }, 20);
        assert!(body.contact.ground && body.contact.submerged == 1.0, "on the ground of the lake");
    }

    #[test]
    fn a_character_climbs_a_ladder_holds_on_and_slides_down() {
        let world = ground(&[(3..4, 1..12, "ladder")]);
        let (places, _) = person(&world, Intent { jumps: true, ..Intent::default() }, 40);
        assert!((5.0..6.5).contains(&places[39].y), "2.4 blocks a second: {}", places[39].y);
        let chunk = |pos: ChunkPos| (pos == ChunkPos::new(0, 0, 0)).then_some(Some(&world.1));
        let mut mover = BodyMover::new(&world.0, &chunk);
        let controller = CharacterController::default();
        let mut body = Body::new(BlockPos::new(3, 8, 8), 0.6, 1.8);
        let holds = Intent { sneaks: true, ..Intent::default() };
        controller.advance(&mut body, &holds, GRAVITY, &mut mover, TICK);
        let held = body.block.y as f64 + body.offset[1];
        (0..20).for_each(|_| controller.advance(&mut body, &holds, GRAVITY, &mut mover, TICK));
        assert!((body.block.y as f64 + body.offset[1] - held).abs() < 0.05);
        (0..20).for_each(|_| controller.advance(&mut body, &Intent::default(), GRAVITY, &mut mover, TICK));
        assert!(body.velocity[1] >= -2.41 && body.block.y < 7);
    }

    #[test]
    fn a_character_flies_without_gravity_and_stops() {
        let world = ground(&[]);
        let up = Intent { flies: true, jumps: true, ..Intent::default() };
        let (places, _) = person(&world, up, 10);
        assert!(places[9].y > 4.0, "{}", places[9].y);
        let (places, body) = person(&world, Intent { flies: true, ..Intent::default() }, 40);
        assert_eq!(places[0].y, places[39].y);
        assert_eq!(body.velocity[1], 0.0);
    }

    #[test]
    fn a_character_that_cannot_fly_falls_whatever_it_intends() {
        let world = ground(&[]);
        let chunk = |pos: ChunkPos| (pos == ChunkPos::new(0, 0, 0)).then_some(Some(&world.1));
        let mut mover = BodyMover::new(&world.0, &chunk);
        let mut body = Body::new(BlockPos::new(3, 9, 8), 0.6, 1.8);
        let walker = CharacterController { fly: 0.0, ..CharacterController::default() };
        let flies = Intent { flies: true, ..Intent::default() };
        (0..40).for_each(|_| walker.advance(&mut body, &flies, GRAVITY, &mut mover, TICK));
        assert!(body.contact.ground && body.block.y == 1, "{body:?}");
    }

    #[test]
    fn a_character_walks_where_it_looks() {
        for (yaw, expected) in [(0.0, Vec3::NEG_Z), (std::f32::consts::FRAC_PI_2, Vec3::NEG_X)] {
            let mut intent = Intent { look: Vec2::new(yaw, -0.5), ..Intent::default() };
            intent.walk(1.0, 0.0);
            assert!(intent.direction.distance(expected) < 1e-6);
            assert!((intent.rotation() * Vec3::NEG_Z).with_y(0.0).normalize().distance(expected) < 1e-6);
            intent.walk(1.0, 1.0);
            assert!((intent.direction.length() - 1.0).abs() < 1e-6, "not faster across");
        }
    }

    #[test]
    fn an_intent_that_is_no_direction_does_no_harm() {
        let odd = Intent { direction: Vec3::new(f32::NAN, f32::INFINITY, 1e30), ..Intent::default() };
        let (places, body) = person(&ground(&[]), odd, 10);
        assert!(places[9].is_finite() && body.velocity.iter().all(|along| along.is_finite()));
        let long = Intent { direction: Vec3::X * 1e20, ..Intent::default() };
        assert!(person(&ground(&[]), long, 30).1.velocity[0] <= 4.3);
    }
}
