//! Translates entities between records and schematics.

use crate::entity::{ChildRecord, EntityRecord, ViewerRecord};
use crate::snapshot::Relocation;
use crate::snapshot::schematic::SchematicEntity;
use crate::snapshot::schematic::nbt::{Compound, Nbt, NbtKind};
use crate::space::{BlockBox, BlockPos, DimensionId};
use uuid::{Builder, Uuid};

/// The component of an entity from another program: an unnamed compound of `Id`, `Offset` and `Data`. Games that do
/// not register it keep it unchanged.
pub const SCHEMATIC_ENTITY: &str = "terrane:schematic_entity";

/// The id of this crate's entities for other programs.
const ENTITY: &str = "terrane:entity";
/// The compound with this crate's additional data of an entity from another program.
const OWN: &str = "bevy_terrane";
/// The distance in blocks by which entities may be outside of the box.
const MARGIN: f64 = 2.0;

type Component = (String, Vec<u8>);

/// Translates an entity whose position is relative to the minimum corner. An entity from another program is written
/// with its stable id if `keeps_id` is set or if it has additional data.
pub(super) fn to_schematic(entity: &EntityRecord, keeps_id: bool) -> SchematicEntity {
    let is_foreign = |(name, _): &&Component| name == SCHEMATIC_ENTITY;
    let foreign = entity.components.iter().find(is_foreign).and_then(|(_, value)| foreign_from_bytes(value));
    let Some(SchematicEntity { position: offset, id, mut data }) = foreign else {
        let position = position(entity.block, entity.offset.map(f64::from));
        return SchematicEntity { position, id: ENTITY.to_owned(), data: record(entity) };
    };
    // The exact original position, unless the entity moved within its block.
    let has_stayed = offset.map(in_block) == entity.offset;
    let position = position(entity.block, if has_stayed { offset } else { entity.offset.map(f64::from) });
    let has_more = entity.components.len() > 1 || !entity.children.is_empty() || entity.viewer.is_some();
    if has_more || keeps_id {
        let mut own = entity.clone();
        if let Some((_, value)) = own.components.iter_mut().find(|(name, _)| name == SCHEMATIC_ENTITY)
            && has_stayed
        {
            // The other data determines this value.
            value.clear();
        }
        data.set(OWN, Nbt::Compound(record(&own)));
    }
    SchematicEntity { position, id, data }
}

/// Translates an entity of a schematic in a box with the minimum corner 0, 0, 0; `None` if it is too far outside. An
/// entity without a stable id gets one derived from `seed`.
pub(super) fn from_schematic(
    entity: &SchematicEntity,
    dimension: DimensionId,
    area: &BlockBox,
    seed: [u64; 2],
) -> Option<EntityRecord> {
    if let Some(own) = own(entity) {
        let moved = at_position(own, entity.position)?;
        return Some(in_dimension(moved, dimension)).filter(|entity| area.contains(entity.block));
    }
    let (mut data, own) = (entity.data.clone(), entity.data.get(OWN).and_then(Nbt::as_compound).and_then(from_record));
    if own.is_some() {
        data.take(OWN);
    }
    let block = nearest(entity.position, area)?;
    let exact = [block.x, block.y, block.z];
    let offset: [f64; 3] = std::array::from_fn(|axis| entity.position[axis] - exact[axis] as f64);
    let value = foreign_to_bytes(SchematicEntity { position: offset, id: entity.id.clone(), data })?;
    let mut record = own.unwrap_or_else(|| EntityRecord {
        id: foreign_id(seed),
        dimension,
        block,
        offset: [0.0; 3],
        viewer: None,
        components: Vec::new(),
        children: Vec::new(),
    });
    match record.components.iter_mut().find(|(name, _)| name == SCHEMATIC_ENTITY) {
        Some((_, known)) if known.is_empty() => *known = value,
        Some(_) => {}
        None => record.components.push((SCHEMATIC_ENTITY.to_owned(), value)),
    }
    let to = Relocation { from: record.block, to: block, ..Relocation::default() };
    let moved = to.entity(&record).ok()?;
    Some(in_dimension(EntityRecord { offset: offset.map(in_block), ..moved }, dimension))
}

/// The record of an entity that this crate wrote; `None` for other entities.
fn own(entity: &SchematicEntity) -> Option<EntityRecord> {
    if entity.id == ENTITY { from_record(&entity.data) } else { None }
}

/// The record, moved to the position in the schematic if that is different.
fn at_position(record: EntityRecord, at: [f64; 3]) -> Option<EntityRecord> {
    if position(record.block, record.offset.map(f64::from)).map(f64::to_bits) == at.map(f64::to_bits) {
        return Some(record);
    }
    let floor = at.map(f64::floor);
    // NaN and huge values are never near the box.
    let is_block = floor.iter().all(|at| at.abs() < 2_f64.powi(62));
    let block = is_block.then(|| BlockPos::new(floor[0] as i64, floor[1] as i64, floor[2] as i64))?;
    let to = Relocation { from: record.block, to: block, ..Relocation::default() };
    let moved = to.entity(&record).ok()?;
    let offset = std::array::from_fn(|axis| in_block(at[axis] - floor[axis]));
    Some(EntityRecord { offset, ..moved })
}

/// The same entity in another dimension, with the children that were in its old dimension.
fn in_dimension(mut entity: EntityRecord, dimension: DimensionId) -> EntityRecord {
    let from = std::mem::replace(&mut entity.dimension, dimension);
    let places = entity.children.iter_mut().filter_map(|child| child.place.as_mut());
    places.filter(|place| place.0 == from).for_each(|place| place.0 = dimension);
    entity
}

/// The block of the box nearest to a position; `None` if the position is too far outside.
fn nearest(position: [f64; 3], area: &BlockBox) -> Option<BlockPos> {
    let bounds = [(area.min.x, area.max.x), (area.min.y, area.max.y), (area.min.z, area.max.z)];
    let mut block = [0; 3];
    for (axis, (low, high)) in bounds.into_iter().enumerate() {
        let is_near = (low as f64 - MARGIN..=high as f64 + 1.0 + MARGIN).contains(&position[axis]);
        block[axis] = (is_near && low <= high).then(|| (position[axis].floor() as i64).clamp(low, high))?;
    }
    Some(BlockPos::new(block[0], block[1], block[2]))
}

fn position(block: BlockPos, offset: [f64; 3]) -> [f64; 3] {
    let block = [block.x, block.y, block.z];
    std::array::from_fn(|axis| block[axis] as f64 + offset[axis])
}

/// A position within a block, clamped to at least 0 and less than 1.
fn in_block(offset: f64) -> f32 {
    (offset as f32).clamp(0.0, 1.0_f32.next_down())
}

/// A stable id derived from the numbers.
fn foreign_id([seed, number]: [u64; 2]) -> Uuid {
    // The finalizer of SplitMix64.
    let mix = |mut bits: u64| {
        bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ bits >> 31
    };
    let low = mix(mix(seed ^ 0x9E37_79B9_7F4A_7C15).wrapping_add(number));
    let high = mix(low ^ 0xD1B5_4A32_D192_ED03);
    Builder::from_random_bytes((u128::from(high) << 64 | u128::from(low)).to_be_bytes()).into_uuid()
}

/// The value of [`SCHEMATIC_ENTITY`] for an entity whose position is relative to the corner of its block. It may be
/// slightly outside of the block.
fn foreign_to_bytes(entity: SchematicEntity) -> Option<Vec<u8>> {
    let mut compound = Compound::new();
    compound.set("Id", Nbt::String(entity.id));
    compound.set("Offset", Nbt::List(NbtKind::Double, entity.position.map(Nbt::Double).to_vec()));
    compound.set("Data", Nbt::Compound(entity.data));
    compound.to_bytes().ok()
}

/// The inverse of [`foreign_to_bytes`].
fn foreign_from_bytes(bytes: &[u8]) -> Option<SchematicEntity> {
    let mut compound = Compound::from_bytes(bytes).ok()?;
    let id = compound.get("Id")?.as_str()?.to_owned();
    let position = compound.get("Offset")?.as_numbers()?;
    match compound.take("Data")? {
        Nbt::Compound(data) => Some(SchematicEntity { position, id, data }),
        _ => None,
    }
}

fn record(entity: &EntityRecord) -> Compound {
    let mut compound = Compound::new();
    compound.set("UUID", id(entity.id));
    put_place(&mut compound, (entity.dimension, entity.block, entity.offset));
    put_viewer(&mut compound, entity.viewer);
    compound.set("Components", components(&entity.components));
    let children = entity.children.iter().map(|child| {
        let mut compound = Compound::new();
        if let Some(parent) = child.parent {
            compound.set("Parent", Nbt::Long(parent.into()));
        }
        if let Some(own) = child.id {
            compound.set("UUID", id(own));
        }
        if let Some(place) = child.place {
            put_place(&mut compound, place);
        }
        put_viewer(&mut compound, child.viewer);
        compound.set("Components", components(&child.components));
        Nbt::Compound(compound)
    });
    compound.set("Children", Nbt::List(NbtKind::Compound, children.collect()));
    compound
}

/// The inverse of [`record`].
fn from_record(compound: &Compound) -> Option<EntityRecord> {
    let (dimension, block, offset) = place(compound)?;
    let children = compounds(compound.get("Children")?)?.map(|child| {
        Some(ChildRecord {
            parent: optional(child.get("Parent"), |number| number.as_integer()?.try_into().ok())?,
            id: optional(child.get("UUID"), as_id)?,
            place: optional(child.get("Block"), |_| place(child))?,
            viewer: optional(child.get("Viewer"), as_viewer)?,
            components: as_components(child)?,
        })
    });
    let children: Vec<ChildRecord> = children.collect::<Option<_>>()?;
    // Each child comes after its parent.
    let is_tree = (0..).zip(&children).all(|(at, child)| child.parent.is_none_or(|parent| parent < at));
    is_tree.then_some(())?;
    Some(EntityRecord {
        id: as_id(compound.get("UUID")?)?,
        dimension,
        block,
        offset,
        viewer: optional(compound.get("Viewer"), as_viewer)?,
        components: as_components(compound)?,
        children,
    })
}

/// A UUID in Minecraft's form: four numbers, the highest bits first.
fn id(id: Uuid) -> Nbt {
    let bits = id.as_u128();
    Nbt::IntArray([96, 64, 32, 0].map(|shift| (bits >> shift) as u32 as i32).to_vec())
}

fn as_id(value: &Nbt) -> Option<Uuid> {
    let Nbt::IntArray(numbers) = value else { return None };
    let numbers: [i32; 4] = numbers.as_slice().try_into().ok()?;
    Some(Uuid::from_u128(numbers.iter().fold(0, |bits, number| bits << 32 | u128::from(*number as u32))))
}

fn put_place(compound: &mut Compound, (dimension, block, offset): (DimensionId, BlockPos, [f32; 3])) {
    compound.set("Dimension", Nbt::Long(dimension.0 as i64));
    compound.set("Block", Nbt::LongArray(vec![block.x, block.y, block.z]));
    compound.set("Offset", Nbt::List(NbtKind::Float, offset.map(Nbt::Float).to_vec()));
}

fn place(compound: &Compound) -> Option<(DimensionId, BlockPos, [f32; 3])> {
    let dimension = compound.get("Dimension")?.as_integer()?;
    let Nbt::LongArray(block) = compound.get("Block")? else { return None };
    let [x, y, z] = block.as_slice().try_into().ok()?;
    let Nbt::List(NbtKind::Float, offset) = compound.get("Offset")? else { return None };
    let float = |value: &Nbt| if let Nbt::Float(number) = value { Some(*number) } else { None };
    let offset: Vec<f32> = offset.iter().map(float).collect::<Option<_>>()?;
    Some((DimensionId(dimension as u64), BlockPos::new(x, y, z), offset.try_into().ok()?))
}

fn put_viewer(compound: &mut Compound, viewer: Option<ViewerRecord>) {
    if let Some(ViewerRecord { radius, generation_radius, vertical_radius }) = viewer {
        let radii = [radius, generation_radius, vertical_radius].map(|radius| radius as i32);
        compound.set("Viewer", Nbt::IntArray(radii.to_vec()));
    }
}

fn as_viewer(value: &Nbt) -> Option<ViewerRecord> {
    let Nbt::IntArray(radii) = value else { return None };
    let [radius, generation_radius, vertical_radius] = <[i32; 3]>::try_from(radii.as_slice()).ok()?.map(|it| it as u32);
    Some(ViewerRecord { radius, generation_radius, vertical_radius })
}

/// Reads a value that may be missing; `None` if it is present but invalid.
fn optional<T>(value: Option<&Nbt>, read: impl FnOnce(&Nbt) -> Option<T>) -> Option<Option<T>> {
    value.map_or(Some(None), |value| read(value).map(Some))
}

fn components(components: &[Component]) -> Nbt {
    let item = |(name, value): &Component| {
        let mut compound = Compound::new();
        compound.set("Name", Nbt::String(name.clone()));
        compound.set("Value", Nbt::ByteArray(value.clone()));
        Nbt::Compound(compound)
    };
    Nbt::List(NbtKind::Compound, components.iter().map(item).collect())
}

fn as_components(compound: &Compound) -> Option<Vec<Component>> {
    let item = |item: &Compound| match item.get("Value")? {
        Nbt::ByteArray(value) => Some((item.get("Name")?.as_str()?.to_owned(), value.clone())),
        _ => None,
    };
    compounds(compound.get("Components")?)?.map(item).collect()
}

fn compounds(list: &Nbt) -> Option<impl Iterator<Item = &Compound>> {
    let Nbt::List(_, items) = list else { return None };
    items.iter().all(|item| item.as_compound().is_some()).then(|| items.iter().filter_map(Nbt::as_compound))
}
