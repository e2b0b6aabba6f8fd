//! The offset and the origin of a schematic, which programs write in two ways.

use super::nbt::{Compound, Nbt};
use super::{Schematic, SchematicEntity, position};

/// The compound of the metadata with the name of the program and the origin.
const WORLD_EDIT: &str = "WorldEdit";
/// Its values about the program. Some readers require them.
const PROGRAM: [&str; 3] = ["Version", "EditingPlatform", "Platforms"];
/// This crate's name as a program.
const PLATFORM: &str = "terrane:bevy";
/// The names of metadata values with the corner relative to the origin.
const WORLD_EDIT_OFFSET: [&str; 3] = ["WEOffsetX", "WEOffsetY", "WEOffsetZ"];
/// The distance in blocks by which entities may exceed the box: only the middle of their feet lies within it.
const MARGIN: f64 = 2.0;

impl Schematic {
    /// Removes offset and origin, and this crate's values about itself, from the metadata. `file` is the `Offset` of
    /// the file. A `WEOffset` without an origin means that a program wrote version 3 like version 2. Returns `true` if
    /// entities may have positions in their world.
    pub(super) fn take_offsets(&mut self, file: Option<[i32; 3]>, is_version_3: bool) -> bool {
        let may_be_absolute = self.take_places(file, is_version_3);
        if let Some(Nbt::Compound(world_edit)) = self.metadata.get_mut(WORLD_EDIT) {
            if world_edit.get(PROGRAM[1]).and_then(Nbt::as_str) == Some(PLATFORM) {
                PROGRAM.iter().for_each(|name| drop(world_edit.take(name)));
            }
            if world_edit.is_empty() {
                self.metadata.take(WORLD_EDIT);
            }
        }
        may_be_absolute
    }

    fn take_places(&mut self, file: Option<[i32; 3]>, is_version_3: bool) -> bool {
        let metadata = &mut self.metadata;
        let of_program = |name: &str| metadata.get(WORLD_EDIT)?.as_compound()?.get(name)?.as_position();
        let origin = of_program("Origin").filter(|_| is_version_3);
        let numbers = WORLD_EDIT_OFFSET.map(|name| i32::try_from(metadata.get(name)?.as_integer()?).ok());
        let from_origin = match numbers {
            [Some(x), Some(y), Some(z)] => Some([x, y, z]),
            _ => of_program("Offset").filter(|_| !is_version_3),
        };
        let mut forget = |name: &str| {
            if let Some(Nbt::Compound(world_edit)) = metadata.get_mut(WORLD_EDIT) {
                world_edit.take(name);
            }
        };
        if origin.is_some() {
            forget("Origin");
        }
        (self.offset, self.origin) = (file, origin);
        let (Some(corner), Some(offset)) = (file, from_origin) else { return !is_version_3 };
        if !is_version_3 {
            forget("Offset");
        }
        WORLD_EDIT_OFFSET.iter().for_each(|name| drop(metadata.take(name)));
        if origin.is_none() {
            (self.offset, self.origin) = (Some(offset), Some(difference(corner, offset)));
        }
        origin.is_none()
    }

    /// The `Offset` for a file, and its metadata.
    pub(super) fn written_offset(&self, is_version_3: bool) -> (Option<[i32; 3]>, Compound) {
        let mut metadata = self.metadata.clone();
        let Some(origin) = self.origin else { return (self.offset, metadata) };
        if is_version_3 {
            put_program("Origin", origin, &mut metadata);
            return (self.offset, metadata);
        }
        let offset = self.offset.unwrap_or_default();
        let names = WORLD_EDIT_OFFSET.iter().zip(offset);
        names.for_each(|(name, number)| metadata.set(name, Nbt::Int(number)));
        put_program("Offset", offset, &mut metadata);
        (Some(sum(origin, offset)), metadata)
    }

    /// The corner in its world, if it is known, in the form of a file, in which it may wrap around.
    pub(super) fn written_corner(&self) -> Option<[i32; 3]> {
        self.origin.map(|origin| sum(origin, self.offset.unwrap_or_default()))
    }
}

/// The position of a block relative to the corner. `block` may be relative to the corner or to the world's origin: the
/// interpretation that lies within the box is used, or the first if neither does.
pub(super) fn nearest(block: [i32; 3], corner: [i32; 3], size: [u32; 3]) -> [i32; 3] {
    let moved = difference(block, corner);
    if !is_inside(block, size) && is_inside(moved, size) { moved } else { block }
}

/// Makes an entity's position relative to the corner. Files of versions 1 and 2 have it like that, or relative to the
/// world. With an origin, known from `WEOffset`, it is read as relative to the world unless only the other
/// interpretation lies within the box; without an origin, the other way round.
pub(super) fn correct(entity: &mut SchematicEntity, corner: [i32; 3], has_origin: bool, size: [u32; 3]) {
    let moved = std::array::from_fn(|axis| entity.position[axis] - f64::from(corner[axis]));
    let is_within = |position: [f64; 3]| {
        let reach = size.map(|side| f64::from(side) + MARGIN);
        position.iter().zip(reach).all(|(at, reach)| (-MARGIN..=reach).contains(at))
    };
    let (here, there) = (is_within(entity.position), is_within(moved));
    if if has_origin { there || !here } else { there && !here } {
        entity.position = moved;
    }
}

/// Writes a position like WorldEdit 7.3: together with the program, unless the metadata already names one.
fn put_program(name: &str, at: [i32; 3], metadata: &mut Compound) {
    let text = |text: &str| Nbt::String(text.to_owned());
    if !matches!(metadata.get(WORLD_EDIT), Some(Nbt::Compound(_))) {
        metadata.set(WORLD_EDIT, Nbt::Compound(Compound::new()));
    }
    let Some(Nbt::Compound(world_edit)) = metadata.get_mut(WORLD_EDIT) else { return };
    let is_new = world_edit.get(PROGRAM[1]).is_none();
    if is_new {
        let version = text(env!("CARGO_PKG_VERSION"));
        let platform =
            Compound(vec![("Name".to_owned(), text("bevy_terrane")), ("Version".to_owned(), version.clone())]);
        let platforms = Compound(vec![(PLATFORM.to_owned(), Nbt::Compound(platform))]);
        let values = [version, text(PLATFORM), Nbt::Compound(platforms)];
        PROGRAM.iter().zip(values).for_each(|(name, value)| world_edit.set(name, value));
    }
    world_edit.set(name, position(at));
}

/// Returns `true` if a block, relative to the corner, lies within the box.
pub(super) fn is_inside(block: [i32; 3], size: [u32; 3]) -> bool {
    block.iter().zip(size).all(|(at, side)| u32::try_from(*at).is_ok_and(|at| at < side))
}

fn sum(a: [i32; 3], b: [i32; 3]) -> [i32; 3] {
    std::array::from_fn(|axis| a[axis].wrapping_add(b[axis]))
}

fn difference(a: [i32; 3], b: [i32; 3]) -> [i32; 3] {
    std::array::from_fn(|axis| a[axis].wrapping_sub(b[axis]))
}
