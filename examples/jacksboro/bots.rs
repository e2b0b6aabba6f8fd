//! Bots: entities of the region worlds that ride through the land and keep it loaded around them.

use crate::arguments::Arguments;
use crate::bodies::Part;
use crate::landmarks::Landmark;
use crate::palette::Palette;
use bevy::math::DVec2;
use bevy_terrane::prelude::*;
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;

/// A bot that rides through the land. It is saved with its position, and mirrored in the main world.
#[derive(Component, Clone, Debug, PartialEq, Serialize, Deserialize, TypePath)]
#[type_path = "jacksboro"]
pub struct Bot {
    pub number: u32,
    /// Its home, in blocks along x and z.
    home: [f64; 2],
    /// Its current destination.
    goal: [f64; 2],
    errand: Errand,
}

/// The way in which a bot chooses its next goal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum Errand {
    /// A random place within this many blocks of its home.
    Wander(f64),
    /// Back and forth between its home and this place, where it comes near its partner.
    Meet([f64; 2]),
}

/// The viewing distance of a bot, in columns.
const RADIUS: u32 = 3;
/// Regions merge when bots come within about 30 columns of each other. Partners live further apart than that and meet at a
/// shorter distance; other pairs stay away.
const PARTNERS_APART: f64 = 40.0 * 16.0;
const MEETING_APART: f64 = 24.0 * 16.0;
const PAIRS_APART: f64 = 36.0 * 16.0;
/// The distance between two cairns, in blocks.
const CAIRNS_APART: f64 = 24.0;

/// Spawns, saves and moves bots.
pub struct BotPlugin;

impl Plugin for BotPlugin {
    fn build(&self, app: &mut App) {
        app.register_saved_component::<Bot>()
            .mirror_region_component::<Bot>()
            .add_region_plugins(|region| {
                region.add_systems(RegionTick, (ride, trample, build_cairns).chain());
            })
            .add_systems(Update, spawn_missing);
    }
}

/// Spawns the bots that no earlier run has saved.
fn spawn_missing(mut commands: Commands, mut opened: MessageReader<DimensionOpened>, arguments: Res<Arguments>) {
    for DimensionOpened { dimension, viewers, .. } in opened.read() {
        for number in *viewers as u32..arguments.viewers {
            let bot = Bot::new(number, arguments.radius);
            let [x, z] = bot.home.map(|blocks| blocks as i64);
            let start = BlockPos::new(x, 0, z);
            // `ride` puts the bot on the ground in the next tick.
            commands.spawn_in_region(*dimension, start, (bot, Viewer::new().with_radius(RADIUS)));
        }
    }
}

impl Bot {
    /// One bot in six wanders near the camera. The others live in pairs on rings around it.
    fn new(number: u32, camera_radius: u32) -> Self {
        let camera = f64::from(camera_radius) * 16.0;
        if number % 6 == 5 {
            let home = crate::view::CENTRE.as_dvec2() + DVec2::from_angle(2.4 * f64::from(number)) * camera * 0.5;
            let home = home.to_array();
            return Self { number, home, goal: home, errand: Errand::Wander(camera * 0.4) };
        }
        let place = number - number / 6;
        let (mut pair, partner) = (place / 2, place % 2);
        let mut ring = camera + 40.0 * 16.0;
        let pairs_on = |ring: f64| (TAU * ring / PAIRS_APART) as u32;
        while pair >= pairs_on(ring) {
            pair -= pairs_on(ring);
            ring += PARTNERS_APART + PAIRS_APART;
        }
        let direction = DVec2::from_angle(TAU * f64::from(pair) / f64::from(pairs_on(ring)));
        let middle = crate::view::CENTRE.as_dvec2() + direction * (ring + PARTNERS_APART / 2.0);
        let side = if partner == 0 { -0.5 } else { 0.5 };
        let [home, meeting] =
            [PARTNERS_APART, MEETING_APART].map(|apart| (middle + direction * side * apart).to_array());
        Self { number, home, goal: meeting, errand: Errand::Meet(meeting) }
    }

    /// Speed in blocks per second. Pairs differ, so that they do not all meet at the same time.
    fn speed(&self) -> f64 {
        10.0 + f64::from(self.number / 2 % 5)
    }
}

/// A different colour for each bot.
fn color(number: u32) -> Color {
    Color::hsl((number as f32 * 137.5) % 360.0, 0.75, 0.5)
}

/// A bot's body in the main world: a trunk and a head.
pub fn body(bot: &Bot) -> Vec<Part> {
    vec![(Vec3::new(1.6, 2.2, 1.6), color(bot.number)), (Vec3::splat(1.1), Color::srgb(0.93, 0.85, 0.74))]
}

/// Moves each bot over the ground, or waits until the land is loaded.
fn ride(
    time: Res<Time>,
    blocks: RegionBlocks,
    palette: Res<Palette>,
    mut random: ResMut<RegionRandom>,
    mut bots: Query<(&mut Bot, &mut Position)>,
) {
    let seconds = time.delta_secs_f64().min(0.25);
    for (mut bot, mut position) in &mut bots {
        let here = DVec2::new(position.block.x as f64, position.block.z as f64)
            + DVec2::new(position.offset.x.into(), position.offset.z.into());
        if here.distance(bot.goal.into()) < 8.0 {
            bot.goal = match bot.errand {
                Errand::Meet(place) if bot.goal == place => bot.home,
                Errand::Meet(place) => place,
                Errand::Wander(reach) => {
                    let angle = TAU * f64::from(random.0.unit());
                    let away = DVec2::from_angle(angle) * reach * f64::from(random.0.unit());
                    (DVec2::from_array(bot.home) + away).to_array()
                }
            };
        }
        // The path sways instead of being a straight line.
        let sway = 0.7 * (time.elapsed_secs_f64() * 0.8 + f64::from(bot.number)).sin();
        let step = DVec2::from_angle(sway).rotate((DVec2::from_array(bot.goal) - here).normalize_or_zero())
            * bot.speed()
            * seconds;
        let mut next = *position;
        next.translate(Vec3::new(step.x as f32, 0.0, step.y as f32));
        if let Some(ground) = ground(&blocks, &palette, next.block) {
            next.block.y = ground.y + 1;
            next.offset.y = 0.0;
            *position = next;
        }
    }
}

/// The highest block to stand on, ignoring trees; `None` where the region has no land.
fn ground(blocks: &RegionBlocks, palette: &Palette, place: BlockPos) -> Option<BlockPos> {
    let mut ground = blocks.surface(place.x, place.z)?;
    loop {
        let block = blocks.block(ground).ok()?;
        if block != BlockId::AIR && !palette.is_tree(block) {
            return Some(ground);
        }
        ground.y -= 1;
    }
}

/// Turns turf under hooves into dirt.
fn trample(mut blocks: RegionBlocks, palette: Res<Palette>, bots: Query<&Position, With<Bot>>) -> Result {
    for position in &bots {
        let ground = position.block.offset(0, -1, 0);
        if blocks.contains(ground) && palette.is_turf(blocks.block(ground)?) {
            blocks.set_block(ground, palette.dirt)?;
        }
    }
    Ok(())
}

/// Lets bots pile up stones where there are none yet, recorded as landmarks.
fn build_cairns(
    mut commands: Commands,
    mut blocks: RegionBlocks,
    palette: Res<Palette>,
    types: Res<BlockTypes>,
    run: Res<crate::landmarks::Run>,
    mut random: ResMut<RegionRandom>,
    bots: Query<&Position, With<Bot>>,
    landmarks: Query<&Position, With<Landmark>>,
) -> Result {
    for position in &bots {
        let (foot, ground) = (position.block, position.block.offset(0, -1, 0));
        if random.0.below(60) != 0 || !blocks.contains(ground) || !types.block(blocks.block(ground)?).is_solid() {
            continue;
        }
        let near = |other: &Position| other.relative_to(foot).length() < CAIRNS_APART as f32;
        if landmarks.iter().any(near) {
            continue;
        }
        let landmark = Landmark { height: 3, run: run.0 };
        for block in landmark.blocks(foot) {
            blocks.set_block(block, palette.cairn)?;
        }
        commands.spawn((landmark, Position::new(position.dimension, foot)));
    }
    Ok(())
}
