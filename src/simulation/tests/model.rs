//! Random trees of entities on random journeys, against a plain model.

use super::*;
use proptest::prelude::*;

#[derive(Component)]
struct Points(#[entities] Entity);

#[derive(Component)]
#[relationship(relationship_target = Followers)]
struct Follows(Entity);

#[derive(Component)]
#[relationship_target(relationship = Follows)]
struct Followers(Vec<Entity>);

#[derive(Component, PartialEq, Debug)]
struct Value(u32);

const COLUMNS: i64 = 4;

#[derive(Clone, Debug)]
enum Step {
    /// A new entity in a column, or below an entity.
    Spawn {
        column: i64,
        parent: Option<prop::sample::Index>,
        value: u32,
    },
    Point {
        from: prop::sample::Index,
        to: prop::sample::Index,
    },
    Follow {
        from: prop::sample::Index,
        to: prop::sample::Index,
    },
    /// A root walks to a column.
    Walk {
        who: prop::sample::Index,
        column: i64,
    },
    /// A column becomes a region of its own, or goes back to region 1.
    Part {
        column: i64,
    },
    Join {
        column: i64,
    },
    Tick,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let index = any::<prop::sample::Index>;
    let step = prop_oneof![
        4 => (0..COLUMNS, prop::option::of(index()), any::<u32>())
            .prop_map(|(column, parent, value)| Step::Spawn { column, parent, value }),
        3 => (index(), index()).prop_map(|(from, to)| Step::Point { from, to }),
        3 => (index(), index()).prop_map(|(from, to)| Step::Follow { from, to }),
        2 => (index(), 0..COLUMNS).prop_map(|(who, column)| Step::Walk { who, column }),
        2 => (1..COLUMNS).prop_map(|column| Step::Part { column }),
        2 => (1..COLUMNS).prop_map(|column| Step::Join { column }),
        1 => Just(Step::Tick),
    ];
    prop::collection::vec(step, 1..40)
}

/// The known state of an entity, by its stable id.
#[derive(Debug, PartialEq, Clone)]
struct Known {
    column: i64,
    value: u32,
    parent: Option<Uuid>,
    points: Option<Option<Uuid>>,
    follows: Option<Uuid>,
}

struct Model {
    entities: BTreeMap<Uuid, Known>,
    /// Children are in the order of their parent's list.
    order: Vec<Uuid>,
    /// The region of each column.
    regions: Vec<u64>,
}

impl Model {
    fn root(&self, mut id: Uuid) -> Uuid {
        while let Some(parent) = self.entities[&id].parent {
            id = parent;
        }
        id
    }

    fn region(&self, id: Uuid) -> u64 {
        self.regions[self.entities[&self.root(id)].column as usize]
    }

    /// Updates references after the entities for which `moved` returns `true` were separated from the others.
    fn part(&mut self, moved: impl Fn(&Self, Uuid) -> bool, held: &BTreeMap<Uuid, u64>) {
        let ids: Vec<_> = self.entities.keys().copied().collect();
        let moves: BTreeMap<_, _> = ids.iter().map(|id| (*id, moved(self, *id))).collect();
        // A reference survives the move of both, and of neither; it dangles if only its target moved.
        for id in ids {
            let Some(known) = self.entities.get_mut(&id) else { continue };
            let together = |other: &Uuid| moves[other] == moves[&id] && held[other] == held[&id];
            if let Some(Some(to)) = known.points
                && !together(&to)
            {
                known.points = Some(None);
            }
            known.follows = known.follows.filter(together);
        }
    }
}

/// Reads the same state from the worlds.
fn read(regions: &mut Regions) -> BTreeMap<Uuid, (u64, Known)> {
    let mut found = BTreeMap::new();
    let numbers: Vec<_> = regions.worlds.keys().copied().collect();
    for region in numbers {
        let world = regions.world(region);
        let mut query = world.query::<EntityRef>();
        let stable = |entity: Entity| world.get::<StableId>(entity).map(|id| id.0);
        for entity in query.query(world).iter().filter(|entity| entity.contains::<Value>()) {
            let known = Known {
                column: entity.get::<Position>().map_or(0, |position| position.column().x),
                value: entity.get::<Value>().unwrap().0,
                parent: entity.get::<ChildOf>().map(|parent| stable(parent.parent()).unwrap()),
                points: entity.get::<Points>().map(|points| stable(points.0)),
                follows: entity.get::<Follows>().map(|follows| stable(follows.0).unwrap()),
            };
            if let Some(Points(to)) = entity.get::<Points>() {
                assert!(*to == Entity::PLACEHOLDER || known.points != Some(None) || world.get_entity(*to).is_err());
            }
            assert!(found.insert(stable(entity.id()).unwrap(), (region, known)).is_none(), "twice");
        }
    }
    found
}

fn children(regions: &mut Regions, region: u64, id: Uuid) -> Vec<Uuid> {
    let world = regions.world(region);
    let entity = world.resource::<crate::simulation::entities::EntityIndex>().entity(id).unwrap();
    world.get::<Children>(entity).into_iter().flatten().map(|child| super::id(world, *child)).collect()
}

fn entity(regions: &mut Regions, region: u64, id: Uuid) -> EntityWorldMut<'_> {
    let world = regions.world(region);
    let entity = world.resource::<crate::simulation::entities::EntityIndex>().entity(id).unwrap();
    world.entity_mut(entity)
}

fn check(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut regions = Regions::new(|components| {
        components.register::<Value>();
        components.register::<Points>();
        components.register_relationship::<Follows>();
    });
    let columns = (0..COLUMNS).map(loaded).collect();
    regions.tick_with(1, Inbox { columns, ..Inbox::default() });
    let mut model = Model { entities: BTreeMap::new(), order: Vec::new(), regions: vec![1; COLUMNS as usize] };
    let mut next = 2;
    for step in steps {
        let held: BTreeMap<_, _> = model.order.iter().map(|id| (*id, model.region(*id))).collect();
        let pick =
            |model: &Model, index: prop::sample::Index| (!model.order.is_empty()).then(|| *index.get(&model.order));
        match step {
            Step::Spawn { column, parent, value } => {
                let id = Uuid::from_u128(model.order.len() as u128 + 1);
                let parent = parent.and_then(|parent| pick(&model, parent));
                let region = parent.map_or(model.regions[column as usize], |parent| model.region(parent));
                match parent {
                    Some(parent) => {
                        let parent = entity(&mut regions, region, parent).id();
                        regions.world(region).spawn((Value(value), StableId(id), ChildOf(parent)));
                    }
                    None => drop(regions.world(region).spawn((Value(value), StableId(id), place(column)))),
                }
                let column = if parent.is_some() { 0 } else { column };
                model.entities.insert(id, Known { column, value, parent, points: None, follows: None });
                model.order.push(id);
            }
            Step::Point { from, to } => {
                let (Some(from), Some(to)) = (pick(&model, from), pick(&model, to)) else { continue };
                if held[&from] == held[&to] {
                    let target = entity(&mut regions, held[&to], to).id();
                    entity(&mut regions, held[&from], from).insert(Points(target));
                    model.entities.get_mut(&from).unwrap().points = Some(Some(to));
                }
            }
            Step::Follow { from, to } => {
                let (Some(from), Some(to)) = (pick(&model, from), pick(&model, to)) else { continue };
                if held[&from] == held[&to] && from != to {
                    let target = entity(&mut regions, held[&to], to).id();
                    entity(&mut regions, held[&from], from).insert(Follows(target));
                    model.entities.get_mut(&from).unwrap().follows = Some(to);
                }
            }
            Step::Walk { who, column } => {
                let Some(root) = pick(&model, who).map(|who| model.root(who)) else { continue };
                let (from, to) = (held[&root], model.regions[column as usize]);
                entity(&mut regions, from, root).insert(place(column));
                let travellers = regions.tick(from).travellers;
                prop_assert_eq!(travellers.len(), usize::from(from != to));
                if from != to {
                    regions.arrive(to, travellers);
                    model.part(|model, id| model.root(id) == root, &held);
                }
                model.entities.get_mut(&root).unwrap().column = column;
            }
            Step::Part { column } => {
                let from = model.regions[column as usize];
                if model.regions.iter().filter(|region| **region == from).count() > 1 {
                    regions.split(from, next, &[column]);
                    model
                        .part(|model, id| held[&id] == from && model.entities[&model.root(id)].column == column, &held);
                    model.regions[column as usize] = next;
                    next += 1;
                }
            }
            Step::Join { column } => {
                let from = model.regions[column as usize];
                let into = model.regions[0];
                if from != into {
                    regions.merge(from, into);
                    model.regions.iter_mut().filter(|region| **region == from).for_each(|region| *region = into);
                }
            }
            Step::Tick => {
                let numbers: Vec<_> = regions.worlds.keys().copied().collect();
                numbers.into_iter().for_each(|region| drop(regions.tick(region)));
            }
        }
        let expected: BTreeMap<_, _> =
            model.entities.iter().map(|(id, known)| (*id, (model.region(*id), known.clone()))).collect();
        prop_assert_eq!(read(&mut regions), expected);
        for parent in model.order.clone() {
            let expected: Vec<_> =
                model.order.iter().filter(|id| model.entities[*id].parent == Some(parent)).copied().collect();
            let region = model.region(parent);
            prop_assert_eq!(children(&mut regions, region, parent), expected);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Promise, travel: An entity travels whole: registered components, children, linked entities, references and change ticks.
    #[test]
    fn forests_that_travel_agree_with_the_model(steps in steps()) {
        check(steps)?;
    }
}
