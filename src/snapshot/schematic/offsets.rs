//! Where a schematic comes from and goes to, which programs write in two ways.

use super::nbt::{Compound, Nbt};
use super::{SchematicEntity, position};

/// Which names of the metadata say where the corner is, seen from the origin.
const WORLD_EDIT_OFFSET: [&str; 3] = ["WEOffsetX", "WEOffsetY", "WEOffsetZ"];
/// Blocks that an entity may stand beyond the box: it is the middle of its feet that is within.
const MARGIN: f64 = 2.0;

/// Offset and origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Offsets {
    /// The minimum corner - the origin.
    pub offset: Option<[i32; 3]>,
    /// The origin in its world.
    pub origin: Option<[i32; 3]>,
    /// Entities may be where they were in their world.
    pub may_be_absolute: bool,
}

impl Offsets {
    /// Reads both, and takes them out of the metadata. `file` is the `Offset` of the file. Where `WEOffset` is there and no
    /// origin, a program wrote version 3 in the way of version 2.
    pub fn take(file: Option<[i32; 3]>, is_version_3: bool, metadata: &mut Compound) -> Self {
        let origin = if is_version_3 { take_origin(metadata) } else { None };
        let from_origin = WORLD_EDIT_OFFSET.map(|name| metadata.get(name).and_then(Nbt::as_integer));
        let from_origin = from_origin.map(|number| number.and_then(|number| i32::try_from(number).ok()));
        match (file, from_origin) {
            (Some(corner), [Some(x), Some(y), Some(z)]) => {
                WORLD_EDIT_OFFSET.iter().for_each(|name| drop(metadata.take(name)));
                if origin.is_some() {
                    return Self { offset: file, origin, may_be_absolute: false };
                }
                let offset = [x, y, z];
                Self { offset: Some(offset), origin: Some(difference(corner, offset)), may_be_absolute: true }
            }
            _ => Self { offset: file, origin, may_be_absolute: !is_version_3 },
        }
    }

    /// The `Offset` of a file, and its metadata.
    pub fn put(self, is_version_3: bool, metadata: &Compound) -> (Option<[i32; 3]>, Compound) {
        let mut metadata = metadata.clone();
        match (self.offset, self.origin) {
            (offset, Some(origin)) if is_version_3 => {
                put_origin(origin, &mut metadata);
                (offset, metadata)
            }
            (offset, Some(origin)) => {
                let offset = offset.unwrap_or_default();
                let names = WORLD_EDIT_OFFSET.iter().zip(offset);
                names.for_each(|(name, number)| metadata.set(name, Nbt::Int(number)));
                (Some(sum(origin, offset)), metadata)
            }
            (offset, None) => (offset, metadata),
        }
    }

    /// The corner in its world, if that is known.
    pub fn corner(self) -> Option<[i32; 3]> {
        self.origin.map(|origin| sum(origin, self.offset.unwrap_or_default()))
    }

    /// Makes an entity's position one from the corner. Files of versions 1 and 2 have it like that, or in the world. Where
    /// `WEOffset` tells that such a program wrote it, it is taken as one in the world unless only the other is within the box;
    /// else the other way round.
    pub fn correct(self, entity: &mut SchematicEntity, size: [u32; 3]) {
        if !self.may_be_absolute {
            return;
        }
        let corner = self.corner().or(self.offset).unwrap_or_default();
        let moved = std::array::from_fn(|axis| entity.position[axis] - f64::from(corner[axis]));
        let is_within = |position: [f64; 3]| {
            let reach = size.map(|side| f64::from(side) + MARGIN);
            position.iter().zip(reach).all(|(at, reach)| (-MARGIN..=reach).contains(at))
        };
        let (here, there) = (is_within(entity.position), is_within(moved));
        if if self.origin.is_some() { there || !here } else { there && !here } {
            entity.position = moved;
        }
    }
}

fn take_origin(metadata: &mut Compound) -> Option<[i32; 3]> {
    let Some(Nbt::Compound(world_edit)) = metadata.get_mut("WorldEdit") else { return None };
    let origin = world_edit.get("Origin")?.as_position()?;
    world_edit.take("Origin");
    if world_edit.is_empty() {
        metadata.take("WorldEdit");
    }
    Some(origin)
}

fn put_origin(origin: [i32; 3], metadata: &mut Compound) {
    match metadata.get_mut("WorldEdit") {
        Some(Nbt::Compound(world_edit)) => world_edit.set("Origin", position(origin)),
        _ => metadata.set("WorldEdit", Nbt::Compound(Compound(vec![("Origin".to_owned(), position(origin))]))),
    }
}

fn sum(a: [i32; 3], b: [i32; 3]) -> [i32; 3] {
    std::array::from_fn(|axis| a[axis].wrapping_add(b[axis]))
}

fn difference(a: [i32; 3], b: [i32; 3]) -> [i32; 3] {
    std::array::from_fn(|axis| a[axis].wrapping_sub(b[axis]))
}
