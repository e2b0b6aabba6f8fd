//! [`BackToFront`]: the order in which the blended quads of a mesh are drawn, from wherever they are seen.
//!
//! Blended faces do not hide what is behind them, so whatever is behind must be drawn before. With faces that are joined, no order
//! by distance is right: the middle of a long face may be farther away than that of a face behind one of its ends.
//!
//! # Why the order is right
//!
//! Quads are divided by planes along the axes, again and again (Fuchs, Kedem and Naylor, "On Visible Surface Generation by A Priori
//! Tree Structures", 1980). A line of sight crosses a plane at most once, from the side of the eye to the other side. So what is
//! beyond the plane hides nothing in the plane or on this side of it, and what is in the plane hides nothing on this side. The parts
//! are drawn in this order: beyond the plane, in the plane, on this side of it. Both sides are divided and drawn in the same way. A quad
//! that is on both sides is cut.
//!
//! * Of two faces in one plane, the one that looks towards the eye belongs to the block behind, and is drawn first.
//! * The planes are those that cut the fewest quads, so a lake or a wall stays whole as long as nothing stands before and behind it.
//! * Diagonals, and faces of liquids with corners of different heights, are not cut. Planes avoid them, so their order is right too,
//!   except among the quads of their own block.
//! * The order changes only when the eye passes one of the planes. Until then nothing is sorted again.
//!
//! # Among chunks
//!
//! Along each axis, a line of sight goes only forward, so with each chunk that it enters it is one chunk farther from the
//! eye, and never nearer along another axis. The chunks are drawn by the sum of these distances along the three axes, the farthest
//! first. Bevy sorts entities by their depth in the view instead, which is wrong away from the middle of the view:
//! [`order_chunks`] lets the chunks keep the places that Bevy has given them among other things, and orders them in these places.

use super::quad_memory::QuadMemory;
use super::quads::{Quad, Rectangle};
use crate::chunk_meshes::ChunkMesh;
use bevy::camera::Projection;
use bevy::core_pipeline::core_3d::{Transparent3d, TransparentSortingInfo3d};
use bevy::prelude::*;
use bevy::render::render_phase::{PhaseItem, ViewSortedRenderPhases};
use bevy::render::sync_world::{MainEntity, MainEntityHashMap};
use bevy::render::view::ExtractedView;
use bevy::render::{Extract, ExtractSchedule, Render, RenderApp, RenderSystems};
use std::cmp::Reverse;
use std::ops::Range;

/// The planes that divide quads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BackToFront {
    /// The last one divides all quads.
    planes: Vec<Plane>,
    /// The coordinates of all planes along each axis, in ascending order.
    levels: [Vec<u16>; 3],
}

/// A plane at a coordinate in sixteenths along an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Plane {
    axis: usize,
    at: u16,
    /// The quads in the plane that look to lower coordinates, and to higher ones.
    within: [Range<usize>; 2],
    /// The numbers of the planes that divide the lower and the higher side, if there are quads.
    sides: [Option<usize>; 2],
}

/// A quad while quads are divided.
struct Piece {
    quad: Rectangle,
    low: [u16; 3],
    high: [u16; 3],
    /// What it costs to let a plane cross it.
    cost: u64,
}

impl Piece {
    /// More than the cuts of all straight quads of a chunk.
    const UNCUTTABLE: u64 = 1 << 32;

    fn new(quad: Rectangle) -> Self {
        let [low, high] = quad.bounds();
        Self { quad, low, high, cost: if quad.is_straight() { 1 } else { Self::UNCUTTABLE } }
    }

    fn is_within(&self, axis: usize, at: u16) -> bool {
        self.low[axis] == at && self.high[axis] == at
    }
}

impl BackToFront {
    /// Divides quads. Brings them into the order that this needs, and cuts some of them.
    pub fn new(quads: &mut Vec<Quad>) -> Self {
        let mut order = Self::default();
        let pieces = quads.drain(..).map(|quad| Piece::new(Rectangle::unpack(quad))).collect();
        order.divide(pieces, quads);
        for (axis, levels) in order.levels.iter_mut().enumerate() {
            levels.extend(order.planes.iter().filter(|plane| plane.axis == axis).map(|plane| plane.at));
            levels.sort_unstable();
            levels.dedup();
        }
        order
    }

    /// Returns the number of the plane that divides the pieces.
    fn divide(&mut self, pieces: Vec<Piece>, quads: &mut Vec<Quad>) -> Option<usize> {
        if pieces.is_empty() {
            return None;
        }
        let first = quads.len();
        let Some((axis, at)) = best_plane(&pieces) else {
            // Only quads that cannot be cut, of a single block.
            quads.extend(pieces.iter().map(|piece| piece.quad.pack()));
            let within = [first..quads.len(), quads.len()..quads.len()];
            self.planes.push(Plane { axis: 0, at: 0, within, sides: [None; 2] });
            return Some(self.planes.len() - 1);
        };
        let (mut lower, mut higher, mut within) = (Vec::new(), Vec::new(), [Vec::new(), Vec::new()]);
        for piece in pieces {
            if piece.is_within(axis, at) {
                within[usize::from(piece.quad.side >= 3)].push(piece.quad.pack());
            } else if piece.high[axis] <= at {
                lower.push(piece);
            } else if piece.low[axis] >= at {
                higher.push(piece);
            } else if piece.quad.is_straight() {
                let [before, after] = piece.quad.cut(axis, at);
                lower.push(Piece::new(before));
                higher.push(Piece::new(after));
            } else if piece.low[axis] + piece.high[axis] < 2 * at {
                lower.push(piece);
            } else {
                higher.push(piece);
            }
        }
        let within = within.map(|part| {
            let first = quads.len();
            quads.extend(part);
            first..quads.len()
        });
        let sides = [lower, higher].map(|side| self.divide(side, quads));
        self.planes.push(Plane { axis, at, within, sides });
        Some(self.planes.len() - 1)
    }

    /// How many planes are below a place, along each axis. The order is the same from all places with the same numbers.
    fn cell(&self, eye: Vec3) -> [usize; 3] {
        [0, 1, 2].map(|axis| self.levels[axis].partition_point(|at| f32::from(*at) <= eye[axis]))
    }

    /// Calls `draw` for ranges of the quads in the order in which they are drawn. `eye` is in sixteenths of a block from the origin of
    /// the mesh.
    fn for_each(&self, eye: Vec3, draw: &mut impl FnMut(Range<usize>)) {
        self.draw(self.planes.len().checked_sub(1), eye, draw);
    }

    fn draw(&self, plane: Option<usize>, eye: Vec3, draw: &mut impl FnMut(Range<usize>)) {
        let Some(Plane { axis, at, within, sides }) = plane.map(|plane| &self.planes[plane]) else { return };
        let own = usize::from(f32::from(*at) <= eye[*axis]);
        self.draw(sides[1 - own], eye, draw);
        draw(within[own].clone());
        draw(within[1 - own].clone());
        self.draw(sides[own], eye, draw);
    }
}

/// The plane that crosses the fewest pieces, and of these the one that divides them most evenly. It contains pieces, or has some on
/// both sides. Returns `None` if there is no such plane.
fn best_plane(pieces: &[Piece]) -> Option<(usize, u16)> {
    let mut best = None;
    for axis in 0..3 {
        let lowest = pieces.iter().map(|piece| piece.low[axis]).min()?;
        let highest = pieces.iter().map(|piece| piece.high[axis]).max()?;
        // For each coordinate the pieces, and their costs, that begin there, that end there, and that are within the plane.
        let mut counts = vec![[[0_u64; 2]; 3]; usize::from(highest - lowest) + 1];
        for piece in pieces {
            let mut count = |at: u16, kind: usize| {
                let [number, cost] = &mut counts[usize::from(at - lowest)][kind];
                (*number, *cost) = (*number + 1, *cost + piece.cost);
            };
            match piece.is_within(axis, piece.low[axis]) {
                true => count(piece.low[axis], 2),
                false => {
                    count(piece.low[axis], 0);
                    count(piece.high[axis], 1);
                }
            }
        }
        // Those below the plane, and those that it crosses.
        let (mut below, mut crossing) = ([0; 2], [0; 2]);
        for (at, [begin, end, within]) in (lowest..).zip(counts) {
            for kind in 0..2 {
                below[kind] += end[kind];
                crossing[kind] -= end[kind];
            }
            let above = pieces.len() as u64 - below[0] - crossing[0] - within[0];
            if within[0] > 0 || below[0] > 0 && above > 0 {
                let choice = (crossing[1], below[0].max(above), axis, at);
                best = Some(best.map_or(choice, |best: (u64, u64, usize, u16)| best.min(choice)));
            }
            for kind in 0..2 {
                below[kind] += within[kind];
                crossing[kind] += begin[kind];
            }
        }
    }
    best.map(|(_, _, axis, at)| (axis, at))
}

/// The blended quads of a chunk or a block, sorted as they are seen by the camera.
#[derive(Component)]
pub(super) struct Blended {
    quads: Vec<Quad>,
    order: BackToFront,
    /// The place of the quads on the graphics card.
    first: u32,
    /// The [cell](BackToFront::cell) from which they were sorted.
    sorted_from: Option<[usize; 3]>,
}

impl Blended {
    /// Quads that are in the memory from `first` on.
    pub fn new(quads: Vec<Quad>, order: BackToFront, first: u32) -> Self {
        Self { quads, order, first, sorted_from: None }
    }

    /// Replaces the quads by others of the same shape.
    pub fn replace(&mut self, quads: Vec<Quad>) {
        (self.quads, self.sorted_from) = (quads, None);
    }

    fn sort(&mut self, eye: Vec3, memory: &QuadMemory) {
        let cell = Some(self.order.cell(eye));
        if self.sorted_from != cell {
            self.sorted_from = cell;
            let mut sorted = Vec::with_capacity(self.quads.len());
            self.order.for_each(eye, &mut |range| sorted.extend_from_slice(&self.quads[range]));
            memory.overwrite(self.first, &sorted);
        }
    }
}

/// From so many blocks away, all lines of sight are as good as parallel.
const FAR_AWAY: f32 = 1e6;

/// The place from which a camera sees: without perspective, one far behind it.
fn eye(world_from_view: &GlobalTransform, is_orthographic: bool) -> Vec3 {
    let backwards =
        if is_orthographic { Vec3::from(world_from_view.affine().matrix3.z_axis) * FAR_AWAY } else { Vec3::ZERO };
    world_from_view.translation() + backwards
}

/// Sorts blended quads as the first active camera sees them. Nothing is sorted that is seen from the same cell as before.
pub(super) fn sort_blended(
    cameras: Query<(&Camera, &Projection, &GlobalTransform), With<Camera3d>>,
    mut blended: Query<(Ref<GlobalTransform>, Mut<Blended>)>,
    memory: Res<QuadMemory>,
    mut last: Local<Option<Vec3>>,
) {
    let Some((_, projection, camera)) = cameras.iter().find(|(camera, ..)| camera.is_active) else {
        // What changes meanwhile is sorted for the next camera.
        *last = None;
        return;
    };
    let eye = eye(camera, matches!(projection, Projection::Orthographic(_)));
    let has_moved = last.replace(eye) != Some(eye);
    for (place, mut blended) in &mut blended {
        if has_moved || place.is_changed() || blended.is_changed() {
            let eye = place.affine().inverse().transform_point3(eye) * 16.0;
            blended.bypass_change_detection().sort(eye, &memory);
        }
    }
}

/// The lowest corners of the chunks with blended quads.
#[derive(Resource, Default)]
struct BlendedChunks(MainEntityHashMap<Vec3>);

/// Adds the order among chunks to the renderer.
pub(super) fn add_chunk_order(app: &mut App) {
    if let Some(renderer) = app.get_sub_app_mut(RenderApp) {
        let after_bevy = bevy::render::render_phase::sort_phase_system::<Transparent3d>;
        renderer
            .init_resource::<BlendedChunks>()
            .add_systems(ExtractSchedule, extract_chunks)
            .add_systems(Render, order_chunks.in_set(RenderSystems::PhaseSort).after(after_bevy));
    }
}

fn extract_chunks(
    mut chunks: ResMut<BlendedChunks>,
    blended: Extract<Query<(Entity, &GlobalTransform), (With<Blended>, With<ChunkMesh>)>>,
) {
    chunks.0.clear();
    chunks.0.extend(blended.iter().map(|(entity, place)| (MainEntity::from(entity), place.translation())));
}

/// Orders the chunks of each view, in the places that they have among other blended things.
fn order_chunks(
    views: Query<&ExtractedView>,
    mut phases: ResMut<ViewSortedRenderPhases<Transparent3d>>,
    chunks: Res<BlendedChunks>,
    mut places: Local<Vec<usize>>,
    mut order: Local<Vec<(Reverse<i64>, usize)>>,
) {
    for view in &views {
        let Some(phase) = phases.get_mut(&view.retained_view_entity) else { continue };
        let eye = eye(&view.world_from_view, view.clip_from_view.w_axis.w == 1.0);
        places.clear();
        order.clear();
        for (place, item) in phase.items.values_mut().enumerate() {
            let Some(corner) = chunks.0.get(&item.main_entity()) else { continue };
            // Bevy keeps the place where the mesh was when it was first seen, and sorts by that.
            if let TransparentSortingInfo3d::Sorted { mesh_center, .. } = &mut item.sorting_info {
                *mesh_center = *corner + CHUNK / 2.0;
            }
            order.push((Reverse(distance(eye - *corner)), places.len()));
            places.push(place);
        }
        order.sort_unstable();
        permute(&order, |a, b| phase.items.swap_indices(places[a], places[b]));
    }
}

/// Brings the item with the number in the n-th pair to the n-th place, with swaps.
fn permute<T>(order: &[(T, usize)], mut swap: impl FnMut(usize, usize)) {
    for place in 0..order.len() {
        let mut from = order[place].1;
        // The item has made room for another one.
        while from < place {
            from = order[from].1;
        }
        swap(place, from);
    }
}

/// The size of a chunk, in blocks.
const CHUNK: f32 = bevy_terrane::space::CHUNK_SIZE as f32;

/// The number of chunks from the one with the eye to another one, along all axes together. `eye` is relative to the lowest corner of
/// the other chunk.
fn distance(eye: Vec3) -> i64 {
    (eye / CHUNK).floor().abs().as_i64vec3().element_sum()
}

#[cfg(test)]
mod tests;
