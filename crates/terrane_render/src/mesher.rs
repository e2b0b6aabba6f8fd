//! Turns blocks into quads.
//!
//! Whole cubes are meshed with one bit for each block: a face is visible where a cube's bit is set and that of the block in front
//! is not, and equal faces are joined to larger quads, row by row (Mikola Lysenko, "Meshing in a Minecraft Game", 2012). Two faces
//! are joined only if their corners are equally open and equally lit. Other shapes add their own quads.
//!
//! The light of a corner is the mean of the up to four cells in front of the face that touch it and do not hide all behind them. A cell
//! that is diagonally behind two such blocks does not count.

use super::RenderMode;
use super::back_to_front::BackToFront;
use super::block_mesher::{MeshPart, Meshing};
use super::looks::{CLEAR, CUBE, Drawn, Form, HIDES, LookTable, OTHER, PART, SHAPED, liquid_height};
use super::neighborhood::{Neighborhood, PADDED, PaddedBlocks};
use super::quads::{
    CornerLight, DIAGONAL, OPEN_SKY, PASSES, Quad, Rectangle, Side, UP, normal_axis, opposite, salt, salted,
};
use bevy::camera::primitives::Aabb;
use bevy::math::Vec3;
use bevy_terrane::block::{BlockId, BlockRegistry};
use bevy_terrane::space::{CHUNK_SIZE, ChunkPos, Face};
use std::cell::RefCell;

/// Quads and the box around them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Quads {
    pub quads: Vec<Quad>,
    /// The lowest and highest corner, in sixteenths of a block.
    pub bounds: [[u16; 3]; 2],
    /// The order of blended quads.
    pub order: Option<BackToFront>,
}

/// The quads of a chunk or a block, by [`RenderMode`](super::RenderMode).
pub(super) type Meshed = [Quads; PASSES];

/// A bit for each block of a padded chunk: rows along one axis, by the other two.
type Rows = [u32; PADDED * PADDED];

/// The visible faces of one side: for each layer 16 rows of 16 bits.
type Planes = [[u32; CHUNK_SIZE]; CHUNK_SIZE];

/// The bits of the inner blocks of a row.
const INNER: u32 = 0xffff << 1;

thread_local! {
    static MESHER: RefCell<Mesher> = RefCell::new(Mesher::new());
}

/// The visible faces of the chunk in the middle, and the parts that the game's meshers make; `None` if there is nothing.
pub(super) fn mesh(
    chunk: ChunkPos,
    neighborhood: &Neighborhood,
    (looks, types): (&LookTable, &BlockRegistry),
    meshing: &Meshing,
) -> Option<(Meshed, Vec<MeshPart>)> {
    MESHER.with_borrow_mut(|mesher| {
        mesher.even_light = neighborhood.copy_into(&mut mesher.blocks);
        mesher.ambient_occlusion = meshing.ambient_occlusion;
        let mut meshed = mesher.mesh(looks);
        let salt = salt(chunk);
        for quad in meshed.iter_mut().flatten().flat_map(|of_mode| &mut of_mode.quads) {
            *quad = salted(*quad, salt);
        }
        let others = if mesher.has_others { &meshing.meshers[..] } else { &[] };
        let parts: Vec<_> = others.iter().filter_map(|other| other.mesh(chunk, &mesher.blocks, types)).collect();
        (meshed.is_some() || !parts.is_empty()).then(|| (meshed.unwrap_or(EMPTY), parts))
    })
}

const EMPTY: Meshed = [const { Quads::new() }; PASSES];

/// All faces of a single block, with its lowest corner at the origin.
pub(super) fn mesh_block(block: BlockId, looks: &LookTable) -> Option<Meshed> {
    MESHER.with_borrow_mut(|mesher| {
        mesher.blocks = PaddedBlocks::air();
        mesher.even_light = Some(OPEN_SKY);
        mesher.blocks.ids[index([1; 3])] = block;
        mesher.mesh(looks)
    })
}

/// Memory that is used again for each chunk of a thread. Coordinates are padded: 1 to 16 are the chunk's own blocks.
struct Mesher {
    blocks: PaddedBlocks,
    /// The light, if it is known to be the same everywhere.
    even_light: Option<CornerLight>,
    /// Blocks that hide all behind them, along z.
    full: Box<Rows>,
    /// The same along y, by z and x.
    full_along_y: Box<Rows>,
    /// Cubes that are drawn, and those of them that are not opaque, along z.
    cubes: Box<Rows>,
    clear: Box<Rows>,
    /// Blocks of other shapes that hide what is behind one of their faces, along z, by that face.
    part: Box<[Rows; 6]>,
    has_part: bool,
    /// `true` if corners between blocks are shaded.
    ambient_occlusion: bool,
    /// `true` if there are blocks that the game's meshers read.
    has_others: bool,
    /// The chunk's own blocks with other shapes.
    shaped: Vec<[usize; 3]>,
    planes: Box<[Planes; 6]>,
    /// The layers with visible faces, one bit each.
    layers: [u16; 6],
    keys: Box<[[u64; CHUNK_SIZE]; CHUNK_SIZE]>,
    quads: Meshed,
}

impl Quads {
    /// The box around the quads, in blocks.
    pub fn aabb(&self) -> Aabb {
        let [low, high] = self.bounds.map(|corner| Vec3::from(corner.map(f32::from)) / 16.0);
        Aabb::from_min_max(low, high)
    }

    const fn new() -> Self {
        Self { quads: Vec::new(), bounds: [[u16::MAX; 3], [0; 3]], order: None }
    }

    fn push(&mut self, rectangle: Rectangle) {
        self.quads.push(rectangle.pack());
        let [low, high] = &mut self.bounds;
        let far = rectangle.far_corner();
        for axis in 0..3 {
            low[axis] = low[axis].min(rectangle.corner[axis]);
            high[axis] = high[axis].max(far[axis]);
        }
    }
}

const fn index([x, y, z]: [usize; 3]) -> usize {
    (x * PADDED + y) * PADDED + z
}

/// The numbers of the bits that are set, in ascending order.
fn bits(mut bits: u16) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let next = bits.trailing_zeros() as usize;
        bits &= bits.checked_sub(1)?;
        Some(next)
    })
}

/// The block in front of a face.
fn beside(mut place: [usize; 3], side: Side) -> [usize; 3] {
    let axis = normal_axis(side);
    place[axis] = if side < 3 { place[axis] - 1 } else { place[axis] + 1 };
    place
}

impl Mesher {
    fn new() -> Self {
        let rows = || Box::new([0; PADDED * PADDED]);
        Self {
            blocks: PaddedBlocks::air(),
            even_light: None,
            full: rows(),
            full_along_y: rows(),
            cubes: rows(),
            clear: rows(),
            part: Box::new([[0; PADDED * PADDED]; 6]),
            has_part: false,
            ambient_occlusion: true,
            has_others: false,
            shaped: Vec::new(),
            planes: Box::new([[[0; CHUNK_SIZE]; CHUNK_SIZE]; 6]),
            layers: [0; 6],
            keys: Box::new([[0; CHUNK_SIZE]; CHUNK_SIZE]),
            quads: EMPTY,
        }
    }

    fn mesh(&mut self, looks: &LookTable) -> Option<Meshed> {
        self.sort_blocks(looks);
        (0..6).for_each(|side| self.find_faces(side, looks));
        for place in std::mem::take(&mut self.shaped) {
            self.add_shape(place, looks);
        }
        for side in 0..6 {
            bits(self.layers[usize::from(side)]).for_each(|layer| self.join_faces(side, layer, looks));
        }
        let mut quads = std::mem::replace(&mut self.quads, EMPTY);
        let blended = &mut quads[RenderMode::Blended as usize];
        if !blended.quads.is_empty() {
            blended.order = Some(BackToFront::new(&mut blended.quads));
        }
        quads.iter().any(|pass| !pass.quads.is_empty()).then_some(quads)
    }

    /// Sets the bits of all blocks.
    fn sort_blocks(&mut self, looks: &LookTable) {
        let Self {
            blocks,
            full: all_full,
            full_along_y,
            cubes: all_cubes,
            clear: all_clear,
            part,
            has_part,
            has_others,
            shaped,
            ..
        } = self;
        *has_others = false;
        full_along_y.fill(0);
        if *has_part {
            part.iter_mut().for_each(|rows| rows.fill(0));
            *has_part = false;
        }
        shaped.clear();
        for (row, blocks) in blocks.ids.as_chunks::<PADDED>().0.iter().enumerate() {
            let (x, y) = (row / PADDED, row % PADDED);
            let is_own = (1..=CHUNK_SIZE).contains(&x) && (1..=CHUNK_SIZE).contains(&y);
            let [mut full, mut cubes, mut clear] = [0; 3];
            let mut z = 0;
            while z < PADDED {
                // Equal blocks in a row are sorted together.
                let block = blocks[z];
                let start = z;
                while z < PADDED && blocks[z] == block {
                    z += 1;
                }
                let class = looks.class(block);
                let bits: u32 = (1 << z) - (1 << start);
                let when = |has: u8| if class & has == 0 { 0 } else { bits };
                full |= when(HIDES);
                cubes |= when(CUBE);
                clear |= when(CLEAR);
                *has_others |= class & OTHER != 0;
                if class & SHAPED != 0 && is_own {
                    shaped.extend((start.max(1)..z.min(CHUNK_SIZE + 1)).map(|z| [x, y, z]));
                }
                if class & PART != 0 {
                    *has_part = true;
                    let hides = looks.of(block).hides;
                    (0..6).filter(|side| hides >> side & 1 == 1).for_each(|side| part[side][row] |= bits);
                }
            }
            let mut left = full;
            while left != 0 {
                full_along_y[left.trailing_zeros() as usize * PADDED + x] |= 1 << y;
                left &= left - 1;
            }
            (all_full[row], all_cubes[row], all_clear[row]) = (full, cubes, clear);
        }
    }

    /// Finds the visible faces of cubes on one side.
    fn find_faces(&mut self, side: Side, looks: &LookTable) {
        let planes = &mut self.planes[usize::from(side)];
        bits(self.layers[usize::from(side)]).for_each(|layer| planes[layer].fill(0));
        let mut layers = 0;
        let hides = |row: usize| match self.has_part {
            false => self.full[row],
            true => self.full[row] | self.part[usize::from(opposite(side))][row],
        };
        for x in 1..=CHUNK_SIZE {
            for y in 1..=CHUNK_SIZE {
                let row = x * PADDED + y;
                let cubes = self.cubes[row] & INNER;
                if cubes == 0 {
                    continue;
                }
                let hidden = match side {
                    0 => hides(row - PADDED),
                    1 => hides(row - 1),
                    2 => hides(row) << 1,
                    3 => hides(row + PADDED),
                    4 => hides(row + 1),
                    _ => hides(row) >> 1,
                };
                let mut visible = cubes & !hidden;
                let mut clear = visible & self.clear[row];
                while clear != 0 {
                    let z = clear.trailing_zeros() as usize;
                    clear &= clear - 1;
                    let [own, other] = [[x, y, z], beside([x, y, z], side)].map(|place| self.blocks.ids[index(place)]);
                    if own == other || looks.of(own).name == looks.of(other).name {
                        visible &= !(1 << z);
                    }
                }
                let mut visible = visible >> 1;
                if visible == 0 {
                    continue;
                }
                match side {
                    0 | 3 => {
                        planes[x - 1][y - 1] = visible;
                        layers |= 1 << (x - 1);
                    }
                    1 | 4 => {
                        planes[y - 1][x - 1] = visible;
                        layers |= 1 << (y - 1);
                    }
                    _ => {
                        layers |= visible as u16;
                        while visible != 0 {
                            planes[visible.trailing_zeros() as usize][x - 1] |= 1 << (y - 1);
                            visible &= visible - 1;
                        }
                    }
                }
            }
        }
        self.layers[usize::from(side)] = layers;
    }

    /// Joins the visible faces of a layer. `a` is the axis of the rows, `b` that of the bits.
    fn join_faces(&mut self, side: Side, layer: usize, looks: &LookTable) {
        let mut rows = self.planes[usize::from(side)][layer];
        let front: [u32; PADDED] = std::array::from_fn(|a| self.row_in_front(side, layer, a));
        for (a, row) in rows.iter().enumerate() {
            let mut faces = *row;
            while faces != 0 {
                let b = faces.trailing_zeros() as usize;
                faces &= faces - 1;
                let place = place(side, layer, a, b);
                let drawn = looks.of(self.blocks.ids[index(place)]);
                let walls = [0, 1, 2].map(|row| front[a + row] >> b & 0b111);
                let openness = if self.ambient_occlusion { openness(walls, side) } else { OPEN };
                let light = self.corner_lights(place, side, walls);
                self.keys[a][b] = key(drawn, side, openness) | u64::from(u32::from_le_bytes(light)) << 32;
            }
        }
        for a in 0..CHUNK_SIZE {
            while rows[a] != 0 {
                let b = rows[a].trailing_zeros() as usize;
                let key = self.keys[a][b];
                let [joins_a, joins_b] = joins(key, side);
                let mut end_b = b + 1;
                while joins_b && end_b < CHUNK_SIZE && rows[a] >> end_b & 1 == 1 && self.keys[a][end_b] == key {
                    end_b += 1;
                }
                let mask = ((1 << (end_b - b)) - 1) << b;
                let is_alike = |keys: &[u64; CHUNK_SIZE]| keys[b..end_b].iter().all(|other| *other == key);
                let mut end_a = a + 1;
                while joins_a && end_a < CHUNK_SIZE && rows[end_a] & mask == mask && is_alike(&self.keys[end_a]) {
                    end_a += 1;
                }
                rows[a..end_a].iter_mut().for_each(|row| *row &= !mask);
                self.add_face(side, layer, [a, end_a], [b, end_b], key);
            }
        }
    }

    fn add_face(&mut self, side: Side, layer: usize, a: [usize; 2], b: [usize; 2], key: u64) {
        let sixteenths = |blocks: usize| blocks as u16 * 16;
        let normal = sixteenths(layer) + if side < 3 { 0 } else { 16 };
        let [at_a, at_b] = [a, b].map(|[start, _]| sixteenths(start));
        let [size_a, size_b] = [a, b].map(|[start, end]| sixteenths(end - start));
        let (corner, size) = match side {
            0 | 3 => ([normal, at_a, at_b], [size_b, size_a]),
            1 | 4 => ([at_a, normal, at_b], [size_a, size_b]),
            _ => ([at_a, at_b, normal], [size_a, size_b]),
        };
        let openness = [16, 18, 20, 22].map(|from| (key >> from & 3) as u8);
        let drops = [(key >> 26 & 15) as u8; 4];
        let rectangle = Rectangle { corner, side, size, openness, look: key as u16, drops, light: lights(key) };
        self.quads[(key >> 24 & 3) as usize].push(rectangle);
    }

    /// The blocks in front of a layer that hide all behind them: the padded row `a`.
    fn row_in_front(&self, side: Side, layer: usize, a: usize) -> u32 {
        let front = if side < 3 { layer } else { layer + 2 };
        match side {
            0 | 3 => self.full[front * PADDED + a],
            1 | 4 => self.full[a * PADDED + front],
            _ => self.full_along_y[front * PADDED + a],
        }
    }

    /// The light of the corners of a face, in the order of [`Quad`]. `walls` are the blocks in front that hide all behind them, as for
    /// [`openness`].
    fn corner_lights(&self, place: [usize; 3], side: Side, walls: [u32; 3]) -> [CornerLight; 4] {
        if let Some(light) = self.even_light {
            return [light; 4];
        }
        let [along_rows, along_bits] = match side {
            0 | 3 => [PADDED, 1],
            1 | 4 => [PADDED * PADDED, 1],
            _ => [PADDED * PADDED, PADDED],
        };
        let first = index(beside(place, side)) - along_rows - along_bits;
        let cells =
            [0, 1, 2].map(|row| [0, 1, 2].map(|bit| self.blocks.light[first + row * along_rows + bit * along_bits]));
        let own = cells[1][1];
        let is_even = |row: usize| (0..3).all(|bit| cells[row][bit] == own || walls[row] >> bit & 1 == 1);
        if (0..3).all(is_even) {
            return [own; 4];
        }
        let [low, along_bits, along_rows, both] =
            [[0, 0], [0, 2], [2, 0], [2, 2]].map(|[row, bit]| mean_light(&cells, walls, row, bit));
        match side {
            0 | 3 => [low, along_bits, along_rows, both],
            _ => [low, along_rows, along_bits, both],
        }
    }

    /// The light of a quad of a block that is no joined cube: smooth on a whole side of the block, otherwise that of the block or, if
    /// that is brighter, of the block in front.
    fn quad_lights(&self, place: [usize; 3], quad: &Rectangle) -> [CornerLight; 4] {
        let own = self.blocks.light[index(place)];
        if quad.side >= DIAGONAL {
            return [own; 4];
        }
        let front = self.blocks.light[index(beside(place, quad.side))];
        let brightest = (own & 15).max(front & 15) | (own & 0xf0).max(front & 0xf0);
        let normal = normal_axis(quad.side);
        let is_whole = quad.size == [16; 2] && quad.corner[normal].is_multiple_of(16);
        let [layer, a, b] = match quad.side {
            0 | 3 => place,
            1 | 4 => [place[1], place[0], place[2]],
            _ => [place[2], place[0], place[1]],
        }
        .map(|axis| axis - 1);
        let walls = [0, 1, 2].map(|row| self.row_in_front(quad.side, layer, a + row) >> b & 0b111);
        if !is_whole || walls[1] & 0b010 != 0 || front != brightest {
            return [brightest; 4];
        }
        self.corner_lights(place, quad.side, walls)
    }

    /// Adds the quads of a block that is no cube.
    fn add_shape(&mut self, place: [usize; 3], looks: &LookTable) {
        let drawn = looks.of(self.blocks.ids[index(place)]);
        match &drawn.form {
            Form::Quads(quads) => self.add_quads(place, drawn, quads, looks),
            Form::Joined(by_sides) => {
                let joined = JOINING.iter().enumerate().fold(0, |joined, (bit, (side, face))| {
                    let other = looks.of(self.blocks.ids[index(beside(place, *side))]);
                    joined | usize::from(drawn.shape.joins(&other.shape, *face)) << bit
                });
                self.add_quads(place, drawn, &by_sides[joined], looks);
            }
            Form::Liquid(level) => self.add_liquid(place, drawn, *level, looks),
            Form::Nothing | Form::Cube => {}
        }
    }

    fn add_quads(&mut self, place: [usize; 3], drawn: &Drawn, quads: &[super::looks::FormQuad], looks: &LookTable) {
        for quad in quads {
            if quad.on_border && self.is_hidden(place, drawn, &quad.rectangle, looks) {
                continue;
            }
            let mut rectangle = quad.rectangle;
            rectangle.light = self.quad_lights(place, &rectangle);
            (0..3).for_each(|axis| rectangle.corner[axis] += (place[axis] as u16 - 1) * 16);
            self.quads[drawn.mode as usize].push(rectangle);
        }
    }

    /// Returns `true` if the block beside it hides a quad on the border.
    fn is_hidden(&self, place: [usize; 3], drawn: &Drawn, quad: &Rectangle, looks: &LookTable) -> bool {
        let other = looks.of(self.blocks.ids[index(beside(place, quad.side))]);
        let facing = opposite(quad.side);
        if other.hides >> facing & 1 == 1 {
            return true;
        }
        // An opaque block of the same shape, or another part of the same glass.
        if other.name != drawn.name {
            return false;
        }
        match &other.form {
            Form::Quads(quads) => quads
                .iter()
                .any(|other| other.on_border && other.rectangle.side == facing && other.rectangle.covers(quad)),
            Form::Joined(_) => normal_axis(quad.side) != 1,
            Form::Cube => true,
            Form::Nothing | Form::Liquid(_) => false,
        }
    }

    fn add_liquid(&mut self, place: [usize; 3], drawn: &Drawn, level: u8, looks: &LookTable) {
        let own = self.blocks.ids[index(place)];
        let is_hidden = |side: Side| {
            let other = self.blocks.ids[index(beside(place, side))];
            other == own || {
                let other = looks.of(other);
                other.hides >> opposite(side) & 1 == 1 || other.name == drawn.name
            }
        };
        let visible = (0..6).filter(|side| !is_hidden(*side)).fold(0, |visible, side| visible | 1 << side);
        // Most blocks of a lake have no visible side.
        if visible == 0_u8 {
            return;
        }
        let heights = self.surface(place, drawn, level, looks);
        let corner = place.map(|axis| (axis as u16 - 1) * 16);
        for side in (0..6).filter(|side| visible >> side & 1 == 1) {
            if side == UP && heights == [liquid_height(level); 4] {
                // Even surfaces are joined with others.
                self.planes[usize::from(UP)][place[1] - 1][place[0] - 1] |= 1 << (place[2] - 1);
                self.layers[usize::from(UP)] |= 1 << (place[1] - 1);
                continue;
            }
            let [low_west_north, east_north, west_south, east_south] = heights.map(|height| 16 - height);
            let drops = match side {
                0 => [0, 0, low_west_north, west_south],
                3 => [0, 0, east_north, east_south],
                1 => [0; 4],
                2 => [0, 0, low_west_north, east_north],
                4 => [low_west_north, east_north, west_south, east_south],
                _ => [0, 0, west_south, east_south],
            };
            let mut corner = corner;
            corner[normal_axis(side)] += if side < 3 { 0 } else { 16 };
            let mut rectangle = Rectangle {
                corner,
                side,
                size: [16; 2],
                openness: [3; 4],
                look: drawn.faces[usize::from(side)],
                drops,
                light: [OPEN_SKY; 4],
            };
            rectangle.light = self.quad_lights(place, &rectangle);
            self.quads[drawn.mode as usize].push(rectangle);
        }
    }

    /// The heights of a liquid's corners, in sixteenths: north-west, north-east, south-west, south-east. Neighbors agree on
    /// them, since each corner is as high as the highest liquid that touches it.
    fn surface(&self, [x, y, z]: [usize; 3], drawn: &Drawn, level: u8, looks: &LookTable) -> [u8; 4] {
        let ids = &self.blocks.ids;
        let is_even = |y: usize, id: BlockId| {
            let row = |x: usize| &ids[index([x, y, z - 1])..][..3];
            [x - 1, x, x + 1].into_iter().all(|x| row(x) == [id; 3])
        };
        let above = ids[index([x, y + 1, z])];
        if looks.of(above).name != drawn.name && is_even(y, ids[index([x, y, z])]) && is_even(y + 1, above) {
            return [liquid_height(level); 4];
        }
        let height = |x: usize, z: usize| {
            let same =
                |y: usize| Some(looks.of(self.blocks.ids[index([x, y, z])])).filter(|other| other.name == drawn.name);
            match (same(y + 1), same(y).map(|other| &other.form)) {
                (Some(_), _) => 16,
                (None, Some(Form::Liquid(level))) => liquid_height(*level),
                _ => 0,
            }
        };
        [(0, 0), (1, 0), (0, 1), (1, 1)].map(|(east, south)| {
            let touching =
                [(0, 0), (1, 0), (0, 1), (1, 1)].map(|(dx, dz)| height(x + east + dx - 1, z + south + dz - 1));
            touching.into_iter().max().unwrap_or(0).max(liquid_height(level))
        })
    }
}

/// The sides that shapes join, in the order of [`Form::Joined`].
const JOINING: [(Side, Face); 4] = [(0, Face::West), (2, Face::North), (3, Face::East), (5, Face::South)];

/// The padded place of a face.
fn place(side: Side, layer: usize, a: usize, b: usize) -> [usize; 3] {
    match side {
        0 | 3 => [layer + 1, a + 1, b + 1],
        1 | 4 => [a + 1, layer + 1, b + 1],
        _ => [a + 1, b + 1, layer + 1],
    }
}

/// The key of a face without its light. Faces with equal keys may be joined: they have the same look (16 bits), openness (8), mode (2)
/// and drop (4), and the same light in the higher 32 bits.
fn key(drawn: &Drawn, side: Side, openness: u32) -> u64 {
    let drop = match drawn.form {
        Form::Liquid(level) => 16 - u32::from(liquid_height(level)),
        _ => 0,
    };
    let key = u32::from(drawn.faces[usize::from(side)]) | openness << 16 | (drawn.mode as u32) << 24 | drop << 26;
    u64::from(key)
}

/// The light of the corners of a face with this key.
fn lights(key: u64) -> [CornerLight; 4] {
    ((key >> 32) as u32).to_le_bytes()
}

/// Returns `true` for each of the axes of rows and of bits along which faces with this key may be joined: the light must not change
/// along it.
fn joins(key: u64, side: Side) -> [bool; 2] {
    let lights = lights(key);
    let corner = |number: usize| (key >> (16 + 2 * number) & 3, lights[number]);
    let [low, along_width, along_height, both] = [0, 1, 2, 3].map(corner);
    let along = [low == along_width && along_height == both, low == along_height && along_width == both];
    match side {
        0 | 3 => [along[1], along[0]],
        _ => along,
    }
}

/// The openness of four corners in the open.
const OPEN: u32 = 0xff;

/// The openness of the corners of a face, 2 bits each: 0 between two walls, 3 in the open. `walls` are three rows of three blocks, of
/// which the face is in front of the middle one.
fn openness([before, own, after]: [u32; 3], side: Side) -> u32 {
    if before | own | after == 0 {
        return OPEN;
    }
    let corner = |row: u32, bit: u32| {
        let (by_row, by_bit, both) = (row >> 1 & 1, own >> bit & 1, row >> bit & 1);
        if by_row & by_bit == 1 { 0 } else { 3 - by_row - by_bit - both }
    };
    // By rows and bits: lowest, along the bits, along the rows, both.
    let [low, along_bits, along_rows, both] =
        [corner(before, 0), corner(before, 2), corner(after, 0), corner(after, 2)];
    match side {
        0 | 3 => low | along_bits << 2 | along_rows << 4 | both << 6,
        _ => low | along_rows << 2 | along_bits << 4 | both << 6,
    }
}

/// The mean light of the cells that touch a corner: of the one in the middle of `cells`, and of those of row 0 or 2 and bit 0 or 2
/// that no wall is in.
fn mean_light(cells: &[[CornerLight; 3]; 3], walls: [u32; 3], row: usize, bit: usize) -> CornerLight {
    // The weight of a cell among 1, 2, 3 or 4, in twelfths.
    const SHARES: [u32; 4] = [12, 6, 4, 3];
    let is_open = |row: usize, bit: usize| walls[row] >> bit & 1 == 0;
    // Sky light in the lower half, block light in the higher one.
    let light = |row: usize, bit: usize| u32::from(cells[row][bit] & 15) | u32::from(cells[row][bit] >> 4) << 16;
    let (by_row, by_bit) = (is_open(row, 1), is_open(1, bit));
    let others = [(by_row, row, 1), (by_bit, 1, bit), ((by_row || by_bit) && is_open(row, bit), row, bit)];
    let (mut sum, mut count) = (light(1, 1), 0);
    for (counts, row, bit) in others {
        if counts {
            sum += light(row, bit);
            count += 1;
        }
    }
    let sum = sum * SHARES[count];
    let mean = |sum: u32| ((sum + 6) / 12) as u8;
    mean(sum & 0xffff) | mean(sum >> 16) << 4
}

#[cfg(test)]
mod tests;
