//! The methods: their parameters, what they ask the regions, and their results.

use crate::error::{RpcError, code};
use crate::json;
use bevy::ecs::reflect::AppTypeRegistry;
use bevy::ecs::system::SystemParam;
use bevy::prelude::*;
use bevy_terrane::block::{BlockId, BlockRegistry};
use bevy_terrane::region::RegionId;
use bevy_terrane::simulation::{
    BlockAccessError, BlockTypes, Position, RegionColumns, RegionInfo, RegionProfile, Undeliverable,
};
use bevy_terrane::space::{BlockPos, DimensionId};
use bevy_terrane::view::{Dimensions, RegionStatistics, WorldStatistics};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use terrane_inspect::{Asked, Cursor, EntityLook, Filter, InspectError, Inspector, Listing, Value};
use uuid::Uuid;

/// The regions of a page.
const MOST_REGIONS: usize = 256;
/// The bytes of an entity that are not for the values of its components.
const REST: usize = 64 << 10;
/// The parts of a profile.
const MOST_PARTS: usize = 1_000;
/// The longest profile, in seconds.
const LONGEST_PROFILE: u64 = 60;

/// The answer to a request, once it is there.
pub type Poll = Box<dyn FnMut() -> Option<Reply> + Send>;
/// What the main world sends back.
pub type Reply = Result<Render, RpcError>;
/// Makes the JSON of a result, up to a number of bytes, on the thread of the client.
pub type Render = Box<dyn FnOnce(usize) -> Result<String, RpcError> + Send>;

/// The main world, for questions.
#[derive(SystemParam)]
pub struct Asker<'w, 's> {
    inspector: Inspector<'w, 's>,
    statistics: Res<'w, WorldStatistics>,
    dimensions: Res<'w, Dimensions>,
    types: Option<Res<'w, BlockTypes>>,
}

/// What clients may do, and the types of the values that they read and write.
pub struct Rights {
    pub allow_writes: bool,
    pub types: AppTypeRegistry,
}

/// A request whose parameters were read.
pub enum Question {
    Regions(RegionsParams),
    Query(QueryParams),
    Get(EntityParams, AppTypeRegistry),
    Insert(Uuid, Vec<(String, Box<dyn PartialReflect>)>),
    Despawn(EntityParams),
    Block(BlockParams),
    Profile(ProfileParams),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegionsParams {
    dimension: Option<DimensionName>,
    after: Option<(u64, u64)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueryParams {
    dimension: DimensionName,
    region: u64,
    #[serde(default)]
    name: String,
    #[serde(default)]
    component: String,
    near: Option<Near>,
    after: Option<[u64; 3]>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Near {
    block: [i64; 3],
    reach: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntityParams {
    entity: Uuid,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InsertParams {
    entity: Uuid,
    components: BTreeMap<String, serde_json::Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockParams {
    dimension: DimensionName,
    position: [i64; 3],
    block: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileParams {
    dimension: DimensionName,
    region: u64,
    seconds: u64,
}

/// A dimension in parameters.
#[derive(Deserialize)]
#[serde(untagged)]
enum DimensionName {
    Id(u64),
    Name(String),
}

impl Question {
    /// Reads the parameters of a method.
    pub fn parse(method: &str, params: serde_json::Value, rights: &Rights) -> Result<Self, RpcError> {
        let may_write = || match rights.allow_writes {
            true => Ok(()),
            false => Err(RpcError::new(
                code::FORBIDDEN,
                "clients may not change this world: the game can set RegionRemotePlugin::allow_writes",
            )),
        };
        match method {
            "terrane.regions" => Ok(Self::Regions(read(params)?)),
            "terrane.query" => Ok(Self::Query(read(params)?)),
            "terrane.get" => Ok(Self::Get(read(params)?, rights.types.clone())),
            "terrane.insert" => {
                may_write()?;
                let InsertParams { entity, components } = read(params)?;
                let types = rights.types.read();
                let read = |(path, value): (String, serde_json::Value)| {
                    json::component(&types, &path, &value).map(|value| (path, value))
                };
                Ok(Self::Insert(entity, components.into_iter().map(read).collect::<Result<_, _>>()?))
            }
            "terrane.despawn" => {
                may_write()?;
                Ok(Self::Despawn(read(params)?))
            }
            "terrane.block" => {
                let block: BlockParams = read(params)?;
                if block.block.is_some() {
                    may_write()?;
                }
                Ok(Self::Block(block))
            }
            "terrane.profile" => {
                let profile: ProfileParams = read(params)?;
                if !(1..=LONGEST_PROFILE).contains(&profile.seconds) {
                    let message = format!("\"seconds\" is from 1 to {LONGEST_PROFILE}");
                    return Err(RpcError::new(code::PARAMS, message));
                }
                Ok(Self::Profile(profile))
            }
            _ => Err(RpcError::new(
                code::METHOD,
                "the methods are terrane.regions, terrane.query, terrane.get, terrane.insert, terrane.despawn, terrane.block and \
                 terrane.profile",
            )),
        }
    }

    /// How long the answer takes by itself.
    pub fn length(&self) -> Duration {
        match self {
            Self::Profile(profile) => Duration::from_secs(profile.seconds),
            _ => Duration::ZERO,
        }
    }

    /// Asks the regions, in the main world.
    pub fn ask(self, asker: &mut Asker) -> Result<Poll, RpcError> {
        match self {
            Self::Regions(params) => params.ask(asker),
            Self::Query(params) => params.ask(asker),
            Self::Get(EntityParams { entity }, types) => {
                let asked = asker.inspector.look(entity, None)?;
                let dimensions = asker.dimensions.clone();
                Ok(poll(asked, move |look, most| entity_text(&look, &dimensions, &types, most)))
            }
            Self::Insert(entity, components) => Ok(done(asker.inspector.insert(entity, None, components)?)),
            Self::Despawn(EntityParams { entity }) => Ok(done(asker.inspector.despawn(entity, None)?)),
            Self::Block(params) => params.ask(asker),
            Self::Profile(ProfileParams { dimension, region, seconds }) => {
                let dimension = asker.dimension(dimension)?;
                let asked =
                    asker.inspector.profile((dimension, RegionId::new(region)), Duration::from_secs(seconds))?;
                let dimensions = asker.dimensions.clone();
                Ok(poll(asked, move |profile, most| json::text(&profile_json(&profile, &dimensions), most)))
            }
        }
    }
}

fn read<T: for<'a> Deserialize<'a>>(params: serde_json::Value) -> Result<T, RpcError> {
    serde_json::from_value(params).map_err(|error| RpcError::new(code::PARAMS, error.to_string()))
}

/// Waits for the answer of a region, which the client's thread then turns into JSON.
fn poll<T: Send + 'static>(
    mut asked: Asked<T>,
    render: impl FnOnce(T, usize) -> Result<String, RpcError> + Send + 'static,
) -> Poll {
    let mut render = Some(render);
    Box::new(move || {
        let answer = asked.take()?;
        let render = render.take()?;
        Some(answer.map_err(RpcError::from).map(|answer| -> Render { Box::new(move |most| render(answer, most)) }))
    })
}

fn done(asked: Asked<()>) -> Poll {
    poll(asked, |(), _| Ok("null".to_owned()))
}

impl Asker<'_, '_> {
    fn dimension(&self, name: DimensionName) -> Result<DimensionId, RpcError> {
        let (found, name) = match name {
            DimensionName::Id(id) => {
                (Some(DimensionId(id)).filter(|id| self.dimensions.name(*id).is_some()), id.to_string())
            }
            DimensionName::Name(name) => (self.dimensions.find(&name), name),
        };
        found.ok_or_else(|| RpcError::new(code::NO_PLACE, format!("there is no dimension {name:?}")))
    }
}

impl From<InspectError> for RpcError {
    fn from(error: InspectError) -> Self {
        let code = match &error {
            InspectError::NoSuchRegion(_) | InspectError::NotLoaded(_) => code::NO_PLACE,
            InspectError::Halted(_) | InspectError::Unreachable(Undeliverable::Halted(_)) => code::HALTED,
            InspectError::Unreachable(Undeliverable::NoSuchEntity(_)) => code::NO_ENTITY,
            InspectError::Unreachable(_) | InspectError::Dropped => code::NO_ANSWER,
            InspectError::NoComponent(_) => code::NO_COMPONENT,
            InspectError::Player(_) => code::FORBIDDEN,
            InspectError::Refused { .. } | InspectError::WrongValue { .. } => code::COMPONENT,
        };
        Self::new(code, error.to_string())
    }
}

/// A dimension in a result: its name, or its number while it has none.
#[derive(Serialize)]
#[serde(untagged)]
enum DimensionJson {
    Name(String),
    Id(u64),
}

impl DimensionJson {
    fn new(id: DimensionId, dimensions: &Dimensions) -> Self {
        dimensions.name(id).map_or(Self::Id(id.0), Self::Name)
    }
}

#[derive(Serialize)]
struct PositionJson {
    dimension: DimensionJson,
    block: [i64; 3],
    offset: [f32; 3],
}

#[derive(Serialize)]
struct RegionsJson {
    regions: Vec<RegionJson>,
    next: Option<(u64, u64)>,
}

#[derive(Serialize)]
struct RegionJson {
    dimension: DimensionJson,
    region: u64,
    state: String,
    halted: bool,
    fault: Option<String>,
    paused: bool,
    hung_seconds: Option<f64>,
    ticks: u64,
    /// Over five seconds, as are the times.
    ticks_per_second: Option<f64>,
    median_ms: f64,
    p95_ms: f64,
    worst_ms: f64,
    columns: usize,
    entities: usize,
    viewers: usize,
}

impl RegionJson {
    fn new(region: &RegionStatistics, dimensions: &Dimensions) -> Self {
        let [window, ..] = &region.windows;
        Self {
            dimension: DimensionJson::new(region.dimension, dimensions),
            region: region.region.index(),
            state: region.state.to_string(),
            halted: region.halted,
            fault: region.fault.as_ref().map(|fault| fault.reason.chars().take(1_000).collect()),
            paused: region.paused,
            hung_seconds: region.hung.map(|hung| hung.as_secs_f64()),
            ticks: region.ticks,
            ticks_per_second: region.ticks_per_second(),
            median_ms: milliseconds(window.median),
            p95_ms: milliseconds(window.p95),
            worst_ms: milliseconds(window.worst),
            columns: region.columns,
            entities: region.entities,
            viewers: region.viewers,
        }
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

impl RegionsParams {
    fn ask(self, asker: &mut Asker) -> Result<Poll, RpcError> {
        let only = self.dimension.map(|dimension| asker.dimension(dimension)).transpose()?;
        let place = |region: &RegionStatistics| (region.dimension.0, region.region.index());
        let all = &asker.statistics.regions;
        let begin = self.after.map_or(0, |after| all.partition_point(|region| place(region) <= after));
        let mut wanted = all[begin..].iter().filter(|region| only.is_none_or(|only| region.dimension == only));
        let page: Vec<RegionStatistics> = wanted.by_ref().take(MOST_REGIONS).cloned().collect();
        let next = page.last().map(place).filter(|_| wanted.next().is_some());
        let dimensions = asker.dimensions.clone();
        let mut render = Some(move |most| {
            let regions = page.iter().map(|region| RegionJson::new(region, &dimensions)).collect();
            json::text(&RegionsJson { regions, next }, most)
        });
        Ok(Box::new(move || {
            let render: Render = Box::new(render.take()?);
            Some(Ok(render))
        }))
    }
}

#[derive(Serialize)]
struct ListingJson {
    dimension: DimensionJson,
    region: u64,
    tick: u64,
    entities: Vec<FoundJson>,
    kinds: Vec<KindJson>,
    next: Option<[u64; 3]>,
}

#[derive(Serialize)]
struct FoundJson {
    entity: Uuid,
    name: Option<String>,
    kind: String,
    position: Option<PositionJson>,
}

#[derive(Serialize)]
struct KindJson {
    components: Vec<String>,
    entities: usize,
}

impl QueryParams {
    fn ask(self, asker: &mut Asker) -> Result<Poll, RpcError> {
        let Self { dimension, region, name, component, near, after } = self;
        let dimension = asker.dimension(dimension)?;
        let near = near.map(|Near { block: [x, y, z], reach }| (BlockPos::new(x, y, z), reach));
        let filter = Filter { name, component, near };
        let after = after.map(Cursor::from_numbers);
        let asked = asker.inspector.list((dimension, RegionId::new(region)), filter, after)?;
        let dimensions = asker.dimensions.clone();
        Ok(poll(asked, move |listing, most| json::text(&listing_json(listing, &dimensions), most)))
    }
}

fn listing_json(listing: Listing, dimensions: &Dimensions) -> ListingJson {
    let Listing { region, dimension, tick, archetypes, entities, next } = listing;
    let position = |Position { dimension, block, offset }: Position| PositionJson {
        dimension: DimensionJson::new(dimension, dimensions),
        block: [block.x, block.y, block.z],
        offset: offset.to_array(),
    };
    let entities = entities.into_iter().map(|found| FoundJson {
        entity: found.id,
        name: found.name,
        kind: found.kind.to_string(),
        position: found.position.map(position),
    });
    let kinds = archetypes.into_iter().map(|kind| KindJson { components: kind.components, entities: kind.entities });
    ListingJson {
        dimension: DimensionJson::new(dimension, dimensions),
        region: region.index(),
        tick,
        entities: entities.collect(),
        kinds: kinds.collect(),
        next: next.map(Cursor::to_numbers),
    }
}

#[derive(Serialize)]
struct LookJson<'a> {
    entity: Uuid,
    name: Option<&'a str>,
    dimension: DimensionJson,
    region: u64,
    tick: u64,
    /// Why components have no value.
    unavailable: BTreeMap<&'a str, String>,
}

/// The JSON of an entity. Values are written one by one, so that one that cannot be written leaves the others.
fn entity_text(
    look: &EntityLook,
    dimensions: &Dimensions,
    types: &AppTypeRegistry,
    most: usize,
) -> Result<String, RpcError> {
    let (mut values, mut unavailable) = (String::new(), BTreeMap::new());
    for component in &look.components {
        let name = &*component.name;
        let left = most.saturating_sub(REST + values.len() + name.len());
        let value = match &component.value {
            Value::Copy(value) => json::component_text(&**value, &types.read(), left),
            Value::Unknown => Err("it has no reflection, or a part of it cannot be copied".to_owned()),
            Value::TooLarge => Err("it is too large, or nested too deep".to_owned()),
            Value::NotRead => Err("the time for this answer was over".to_owned()),
        };
        match value {
            Ok(value) => {
                let comma = if values.is_empty() { "" } else { "," };
                values.push_str(&format!("{comma}{}:{value}", json::text(&name, most)?));
            }
            Err(reason) => drop(unavailable.insert(name, reason)),
        }
    }
    let rest = LookJson {
        entity: look.id,
        name: look.name.as_deref(),
        dimension: DimensionJson::new(look.dimension, dimensions),
        region: look.region.index(),
        tick: look.tick,
        unavailable,
    };
    let rest = json::text(&rest, most - values.len().min(most))?;
    // An object with one more field.
    Ok(format!(r#"{{"components":{{{values}}},{}"#, &rest[1..]))
}

#[derive(Serialize)]
struct BlockJson {
    dimension: DimensionJson,
    region: u64,
    position: [i64; 3],
    block: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    light: Option<LightJson>,
}

#[derive(Serialize)]
struct LightJson {
    sky: u8,
    block: u8,
    now: u8,
}

impl BlockParams {
    fn ask(self, asker: &mut Asker) -> Result<Poll, RpcError> {
        let Self { dimension, position: [x, y, z], block } = self;
        let dimension = asker.dimension(dimension)?;
        let no_world = || RpcError::new(code::NO_ANSWER, "the world is not open yet");
        let blocks = asker.types.as_ref().ok_or_else(no_world)?.0.clone();
        let new = block.map(|name| block_id(&blocks, &name)).transpose()?;
        let place = BlockPos::new(x, y, z);
        let asked = asker.inspector.ask(dimension, place, move |world| look_at_block(world, place, new))?;
        let dimensions = asker.dimensions.clone();
        let name = move |block: BlockId| blocks.block(block).name().to_owned();
        Ok(poll(asked, move |look, most| {
            let BlockLook { region, dimension, block, before, light } =
                look.map_err(|error| RpcError::new(code::NO_PLACE, error.to_string()))?;
            let look = BlockJson {
                dimension: DimensionJson::new(dimension, &dimensions),
                region: region.index(),
                position: [x, y, z],
                block: name(block),
                before: before.map(name),
                light,
            };
            json::text(&look, most)
        }))
    }
}

fn block_id(blocks: &BlockRegistry, name: &str) -> Result<BlockId, RpcError> {
    blocks.id(name).ok_or_else(|| {
        let nearest = blocks.nearest_name(name).map(|nearest| format!("; is {nearest:?} meant?"));
        let message = format!("there is no block type {name:?}{}", nearest.unwrap_or_default());
        RpcError::new(code::PARAMS, message)
    })
}

/// What a region says of a block.
struct BlockLook {
    region: RegionId,
    dimension: DimensionId,
    block: BlockId,
    before: Option<BlockId>,
    light: Option<LightJson>,
}

/// Reads a block in its region, or sets it as an edit of the main world does.
fn look_at_block(world: &mut World, place: BlockPos, new: Option<BlockId>) -> Result<BlockLook, BlockAccessError> {
    let RegionInfo { region, dimension, .. } = *world.resource::<RegionInfo>();
    let mut columns = world.resource_mut::<RegionColumns>();
    // Changes are tracked by chunk.
    let columns = columns.bypass_change_detection();
    let before = new.map(|block| columns.set_block(place, block)).transpose()?;
    let block = columns.block(place)?;
    // The light of a new block comes at the end of the tick.
    let light = columns.light(place).ok().filter(|_| new.is_none());
    let light = light.map(|light| LightJson { sky: light.sky, block: light.block, now: light.now });
    Ok(BlockLook { region, dimension, block, before, light })
}

#[derive(Serialize)]
struct ProfileJson<'a> {
    dimension: DimensionJson,
    region: u64,
    ticks: u32,
    elapsed_ms: f64,
    busy_ms: f64,
    parts: Vec<PartJson<'a>>,
}

#[derive(Serialize)]
struct PartJson<'a> {
    schedule: &'a str,
    name: &'a str,
    runs: u32,
    ms: f64,
}

fn profile_json<'a>(profile: &'a RegionProfile, dimensions: &Dimensions) -> ProfileJson<'a> {
    let parts = profile.parts.iter().take(MOST_PARTS).map(|part| PartJson {
        schedule: &part.schedule,
        name: &part.name,
        runs: part.runs,
        ms: milliseconds(part.time),
    });
    ProfileJson {
        dimension: DimensionJson::new(profile.dimension, dimensions),
        region: profile.region.index(),
        ticks: profile.ticks,
        elapsed_ms: milliseconds(profile.elapsed),
        busy_ms: milliseconds(profile.busy),
        parts: parts.collect(),
    }
}
