//! Random histories, compared with a slow and obvious model of plain sets.

use crate::region::*;
use crate::space::ColumnPos;
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Numbered tokens, each with the section in which it was placed.
type Tokens = BTreeMap<u64, SectionPos>;

/// Tokens, and the sections that the data was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Bag {
    tokens: Tokens,
    sections: BTreeSet<SectionPos>,
}

impl RegionData for Bag {
    fn new(_: RegionId) -> Self {
        Self::default()
    }

    fn merge(&mut self, _: RegionId, data: Self) {
        for (token, section) in data.tokens {
            assert_eq!(self.tokens.insert(token, section), None, "token {token} was doubled");
        }
        self.grow(&Vec::from_iter(data.sections));
    }

    fn split(&mut self, parts: &[RegionPart]) -> Vec<Self> {
        let take = |part: &RegionPart| {
            assert!(part.sections.is_sorted_by(|a, b| a < b));
            self.shrink(&part.sections);
            Self {
                tokens: self.tokens.extract_if(.., |_, section| part.sections.contains(section)).collect(),
                sections: part.sections.iter().copied().collect(),
            }
        };
        parts.iter().map(take).collect()
    }

    fn grow(&mut self, sections: &[SectionPos]) {
        assert!(!sections.is_empty());
        sections.iter().for_each(|section| assert!(self.sections.insert(*section), "{section} was its own before"));
    }

    fn shrink(&mut self, sections: &[SectionPos]) {
        assert!(!sections.is_empty());
        sections.iter().for_each(|section| assert!(self.sections.remove(section), "{section} was not its own"));
    }
}

#[derive(Debug)]
struct ModelRegion {
    state: RegionState,
    waits_for: BTreeSet<RegionId>,
    data: Tokens,
}

/// The regionizer's rules on plain sets, recomputed every time.
struct Model {
    config: RegionizerConfig,
    columns: BTreeSet<ColumnPos>,
    owner: BTreeMap<SectionPos, RegionId>,
    regions: BTreeMap<RegionId, ModelRegion>,
    next_id: u64,
    next_token: u64,
}

impl Model {
    fn section(&self, column: ColumnPos) -> SectionPos {
        column.section(self.config.section_shift)
    }

    fn around(&self, center: SectionPos, radius: u32) -> Vec<SectionPos> {
        let radius = i128::from(radius);
        let shift = self.config.section_shift;
        let valid = i128::from(i64::MIN >> shift)..=i128::from(i64::MAX >> shift);
        let axis = |center: i64| {
            let valid = valid.clone();
            let center = i128::from(center);
            (center - radius..=center + radius).filter(move |there| valid.contains(there)).map(|there| there as i64)
        };
        axis(center.x).flat_map(|x| axis(center.z).map(move |z| SectionPos::new(x, z))).collect()
    }

    fn sections(&self, id: RegionId) -> BTreeSet<SectionPos> {
        self.owner.iter().filter(|(_, owner)| **owner == id).map(|(section, _)| *section).collect()
    }

    fn dead_sections(&self, id: RegionId) -> BTreeSet<SectionPos> {
        let nonempty: BTreeSet<_> = self.columns.iter().map(|&column| self.section(column)).collect();
        let is_dead = |section: &SectionPos| {
            let mut near = self.around(*section, self.config.empty_section_creation_radius).into_iter();
            !near.any(|section| nonempty.contains(&section))
        };
        self.sections(id).into_iter().filter(is_dead).collect()
    }

    fn create(&mut self, state: RegionState, data: Tokens) -> RegionId {
        let id = RegionId::new(self.next_id);
        self.next_id += 1;
        self.regions.insert(id, ModelRegion { state, waits_for: BTreeSet::new(), data });
        id
    }

    fn merge(&mut self, from: RegionId, into: RegionId) {
        let gone = self.regions.remove(&from).expect("it is alive");
        self.owner.values_mut().filter(|owner| **owner == from).for_each(|owner| *owner = into);
        let region = self.regions.get_mut(&into).expect("it is alive");
        region.waits_for.extend(gone.waits_for.into_iter().filter(|id| *id != into));
        region.data.extend(gone.data);
    }

    fn add(&mut self, column: ColumnPos) -> Option<RegionId> {
        if self.columns.contains(&column) {
            return None;
        }
        let section = self.section(column);
        self.columns.insert(column);
        let RegionizerConfig { empty_section_creation_radius: creation, section_merge_radius: merge, .. } = self.config;
        let mut missing = self.around(section, creation);
        missing.retain(|section| !self.owner.contains_key(section));
        if !missing.is_empty() {
            let reach = self.around(section, creation + merge);
            let owners: BTreeSet<_> = reach.iter().filter_map(|section| self.owner.get(section)).copied().collect();
            let (ticking, idle): (Vec<_>, Vec<_>) =
                owners.into_iter().partition(|id| self.regions[id].state == RegionState::Ticking);
            let largest = idle.iter().copied().max_by_key(|&id| (self.sections(id).len(), Reverse(id)));
            let target = largest.unwrap_or_else(|| self.create(RegionState::Ready, Tokens::new()));
            missing.into_iter().for_each(|section| assert_eq!(self.owner.insert(section, target), None));
            for id in idle.into_iter().filter(|&id| id != target) {
                self.merge(id, target);
            }
            let region = self.regions.get_mut(&target).expect("it is alive");
            region.waits_for.extend(ticking);
            region.state = if region.waits_for.is_empty() { RegionState::Ready } else { RegionState::Transient };
        }
        Some(self.owner[&section])
    }

    fn end(&mut self, id: RegionId) -> Vec<RegionId> {
        let waiting: Vec<_> =
            self.regions.iter().filter(|(_, region)| region.waits_for.contains(&id)).map(|(id, _)| *id).collect();
        for &from in &waiting {
            self.merge(from, id);
        }
        let region = self.regions.get_mut(&id).expect("it is alive");
        if !region.waits_for.is_empty() {
            region.state = RegionState::Transient;
            return Vec::new();
        }
        region.state = RegionState::Ready;
        let (all, dead) = (self.sections(id), self.dead_sections(id));
        let over = all.len() >= self.config.recalculation_section_count
            && dead.len() as f64 / all.len() as f64 >= self.config.max_dead_section_percent;
        let mut split_off = Vec::new();
        if !dead.is_empty() && (!waiting.is_empty() || dead.len() == all.len() || over) {
            self.owner.retain(|section, _| !dead.contains(section));
            if dead.len() == all.len() {
                self.regions.remove(&id);
                return Vec::new();
            }
            let mut parts = self.parts(id);
            let largest = (0..parts.len()).max_by_key(|&place| (parts[place].len(), Reverse(place)));
            parts.remove(largest.expect("something is alive"));
            for part in parts {
                let data = &mut self.regions.get_mut(&id).expect("it is alive").data;
                let data = data.extract_if(.., |_, section| part.contains(section)).collect();
                let new = self.create(RegionState::Ready, data);
                part.into_iter().for_each(|section| assert_eq!(self.owner.insert(section, new), Some(id)));
                split_off.push(new);
            }
        }
        split_off
    }

    /// By their lowest section.
    fn parts(&self, id: RegionId) -> Vec<BTreeSet<SectionPos>> {
        let radius = self.config.empty_section_creation_radius.max(self.config.section_merge_radius);
        let mut rest = self.sections(id);
        let mut parts = Vec::new();
        while let Some(start) = rest.pop_first() {
            let mut part = BTreeSet::from([start]);
            let mut open = vec![start];
            while let Some(section) = open.pop() {
                for near in self.around(section, radius) {
                    if rest.remove(&near) {
                        part.insert(near);
                        open.push(near);
                    }
                }
            }
            parts.push(part);
        }
        parts
    }
}

/// The states of regions according to events and to the caller's own ticks.
#[derive(Default)]
struct Witness(BTreeMap<RegionId, Option<RegionState>>);

impl Witness {
    fn see(&mut self, event: RegionEvent) {
        let before = match &event {
            RegionEvent::Created(id) => {
                assert_eq!(self.0.insert(*id, None), None);
                return;
            }
            RegionEvent::Merged { from, into } => {
                assert!(self.0.contains_key(into));
                self.0.remove(from)
            }
            RegionEvent::Split { from, into } => {
                assert!(into.iter().all(|id| self.0.contains_key(id)));
                self.0.get(from).copied()
            }
            RegionEvent::Destroyed(id) => self.0.remove(id),
            RegionEvent::Ready(id) => self.0.insert(*id, Some(RegionState::Ready)),
            RegionEvent::Transient(id) => self.0.insert(*id, Some(RegionState::Transient)),
        };
        assert!(before.is_some(), "{event:?} of a region that is not alive");
    }
}

/// A regionizer and a model side by side.
struct Trial {
    regionizer: Regionizer<Bag>,
    model: Model,
    ticking: BTreeMap<RegionId, Bag>,
    witness: Witness,
    splits: usize,
}

impl Trial {
    fn new(config: RegionizerConfig) -> Self {
        let regionizer = Regionizer::new(config.clone()).expect("the strategy makes valid ones");
        let model = Model {
            config,
            columns: BTreeSet::new(),
            owner: BTreeMap::new(),
            regions: BTreeMap::new(),
            next_id: 0,
            next_token: 0,
        };
        Self { regionizer, model, ticking: BTreeMap::new(), witness: Witness::default(), splits: 0 }
    }

    fn add(&mut self, column: ColumnPos) {
        let Some(owner) = self.model.add(column) else {
            let region = self.regionizer.region_at(column).expect("its section exists");
            assert_eq!(self.regionizer.add_column(column), Err(RegionizerError::ColumnPresent { column, region }));
            return;
        };
        assert_eq!(self.regionizer.add_column(column), Ok(owner));
        let (token, section) = (self.model.next_token, self.model.section(column));
        self.model.next_token += 1;
        self.model.regions.get_mut(&owner).expect("it is alive").data.insert(token, section);
        let data = self.ticking.get_mut(&owner).or_else(|| self.regionizer.data_mut(owner));
        data.expect("data is in or out").tokens.insert(token, section);
    }

    fn remove(&mut self, column: ColumnPos) {
        let expected = match self.model.columns.remove(&column) {
            true => Ok(self.model.owner[&self.model.section(column)]),
            false => Err(RegionizerError::ColumnAbsent { column }),
        };
        assert_eq!(self.regionizer.remove_column(column), expected);
    }

    fn begin(&mut self, id: RegionId) {
        let data = self.regionizer.try_begin_tick(id);
        let region = self.model.regions.get_mut(&id).expect("it is alive");
        assert_eq!(data.is_some(), region.state == RegionState::Ready);
        if let Some(data) = data {
            region.state = RegionState::Ticking;
            self.witness.0.insert(id, Some(RegionState::Ticking));
            self.ticking.insert(id, data);
        }
    }

    fn end(&mut self, id: RegionId) {
        let data = self.ticking.remove(&id).expect("it ticks");
        let outcome = self.model.end(id);
        assert_eq!(self.regionizer.end_tick(id, data).as_ref(), Ok(&outcome));
        if self.regionizer.state(id) == Some(RegionState::Ready) {
            self.witness.0.insert(id, Some(RegionState::Ready));
            self.splits += outcome.len();
        }
    }

    fn end_all(&mut self) {
        while let Some(&id) = self.ticking.keys().next() {
            self.end(id);
        }
    }

    fn compare(&mut self) {
        let Self { regionizer, model, ticking, witness, .. } = self;
        regionizer.check_invariants().unwrap();
        regionizer.drain_events().into_iter().for_each(|event| witness.see(event));
        assert_eq!(regionizer.regions(), model.regions.keys().copied().collect::<Vec<_>>());
        assert_eq!(regionizer.region_count(), model.regions.len());
        assert!(witness.0.keys().eq(model.regions.keys()));
        let mut columns = BTreeSet::new();
        for (&id, region) in &model.regions {
            assert_eq!(regionizer.state(id), Some(region.state), "{id}");
            assert_eq!(witness.0[&id], Some(region.state), "{id}");
            assert!(regionizer.waits_for(id).eq(region.waits_for.iter().copied()), "{id}");
            let sections = model.sections(id);
            let data = regionizer.data(id).or(ticking.get(&id)).expect("data is in or out");
            assert_eq!((&data.tokens, &data.sections), (&region.data, &sections), "{id}");
            assert_eq!(regionizer.sections(id).collect::<BTreeSet<_>>(), sections, "{id}");
            assert_eq!(regionizer.section_count(id), sections.len());
            assert_eq!(regionizer.dead_sections(id).collect::<BTreeSet<_>>(), model.dead_sections(id), "{id}");
            let (x, z) = (sections.iter().map(|section| section.x), sections.iter().map(|section| section.z));
            let low = SectionPos::new(x.clone().min().unwrap(), z.clone().min().unwrap());
            let high = SectionPos::new(x.max().unwrap(), z.max().unwrap());
            assert_eq!(regionizer.bounds(id), Some((low, high)), "{id}");
            let count = columns.len();
            columns.extend(regionizer.columns(id));
            assert_eq!(regionizer.column_count(id), columns.len() - count, "{id}");
        }
        assert_eq!(columns, model.columns);
        for (&section, &id) in &model.owner {
            assert_eq!(regionizer.region_at_section(section), Some(id));
        }
        assert!(model.columns.iter().all(|&column| regionizer.contains_column(column)));
    }

    /// The invariants that must hold independently of the model once no region ticks.
    fn compare_at_rest(&self) {
        assert_eq!(self.regionizer.pending_merges(), []);
        for (&section, &id) in &self.model.owner {
            for near in self.model.around(section, self.model.config.section_merge_radius) {
                assert!(self.regionizer.region_at_section(near).is_none_or(|other| other == id));
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Add(i64, i64),
    /// One of the existing columns.
    Remove(prop::sample::Index),
    /// A column that may not exist.
    RemoveAt(i64, i64),
    /// All columns of a square.
    Clear(i64, i64, i64),
    Begin(prop::sample::Index),
    End(prop::sample::Index),
    EndAll,
}

const SIDE: i64 = 40;

/// Across the origin, or from an edge of the grid inwards.
const ORIGINS: [(i64, i64); 5] = [(0, 0), (0, 0), (i64::MIN, i64::MAX), (i64::MAX, 0), (i64::MIN, i64::MIN)];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = || (0..SIDE, 0..SIDE);
    let step = prop_oneof![
        16 => place().prop_map(|(x, z)| Step::Add(x, z)),
        5 => any::<prop::sample::Index>().prop_map(Step::Remove),
        1 => place().prop_map(|(x, z)| Step::RemoveAt(x, z)),
        1 => (place(), 2i64..16).prop_map(|((x, z), side)| Step::Clear(x, z, side)),
        5 => any::<prop::sample::Index>().prop_map(Step::Begin),
        4 => any::<prop::sample::Index>().prop_map(Step::End),
        1 => Just(Step::EndAll),
    ];
    prop::collection::vec(step, 1..100)
}

fn configs() -> impl Strategy<Value = RegionizerConfig> {
    let radii = (1u32..=3).prop_flat_map(|creation| (Just(creation), 1..=creation));
    let fraction = prop::sample::select(vec![0.0, 1.0 / 6.0, 0.5, 1.0]);
    // Columns share a word with those of other sections, have one to themselves, or several.
    let shifts = prop::sample::select(vec![0u32, 1, 2, 2, 3, 4]);
    (shifts, radii, prop::sample::select(vec![1usize, 30, 128]), fraction).prop_map(
        |(section_shift, (creation, merge), recalculation_section_count, max_dead_section_percent)| RegionizerConfig {
            section_shift,
            empty_section_creation_radius: creation,
            section_merge_radius: merge,
            recalculation_section_count,
            max_dead_section_percent,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    /// Promise, worlds: The coordinator changes region states in a fixed order.
    #[test]
    fn random_histories_are_as_the_model_says(
        config in configs(),
        steps in steps(),
        (east, south) in prop::sample::select(ORIGINS.to_vec()),
    ) {
        let axis = |origin: i64, place: i64| match origin {
            i64::MIN => i64::MIN + place,
            i64::MAX => i64::MAX - place,
            _ => place - SIDE / 2,
        };
        let column = |x, z| ColumnPos::new(axis(east, x), axis(south, z));
        let mut trial = Trial::new(config);
        for step in steps {
            match step {
                Step::Add(x, z) => trial.add(column(x, z)),
                Step::Remove(which) => {
                    if !trial.model.columns.is_empty() {
                        let column = *which.get(&Vec::from_iter(&trial.model.columns));
                        trial.remove(*column);
                    }
                }
                Step::RemoveAt(x, z) => trial.remove(column(x, z)),
                Step::Clear(x, z, side) => {
                    for (x, z) in (x..x + side).flat_map(|x| (z..z + side).map(move |z| (x, z))) {
                        if trial.model.columns.contains(&column(x, z)) {
                            trial.remove(column(x, z));
                        }
                    }
                }
                Step::Begin(which) => {
                    if !trial.model.regions.is_empty() {
                        trial.begin(**which.get(&Vec::from_iter(trial.model.regions.keys())));
                    }
                }
                Step::End(which) => {
                    if !trial.ticking.is_empty() {
                        trial.end(**which.get(&Vec::from_iter(trial.ticking.keys())));
                    }
                }
                Step::EndAll => trial.end_all(),
            }
            trial.compare();
        }
        trial.end_all();
        trial.compare();
        trial.compare_at_rest();
    }
}
