//! The nearest work, compared with a search over all ground.

use crate::coordinator::demand::outlook::Outlook;
use crate::coordinator::messages::settings::ViewerLimits;
use crate::coordinator::stream::nearest::*;
use crate::simulation::ViewerRadii;
use proptest::prelude::*;

/// A change of the ground or the viewers of a dimension.
#[derive(Clone, Debug)]
enum Step {
    /// A viewer comes, moves or changes its radii.
    Hold(u8, ColumnPos, u32, u32),
    Leave(u8),
    /// The next order, with `done` columns finished at once and the others given back.
    Order {
        may_generate: bool,
        done: usize,
    },
    /// A column is loaded or generated from elsewhere.
    Complete(Kind, ColumnPos),
    /// A column is missing again.
    Lose(Kind, ColumnPos),
    /// A claim is given back.
    Release(Kind, ColumnPos),
    Wait(u64),
}

/// A dimension reduced to the relevant parts.
#[derive(Default)]
struct Model {
    viewers: BTreeMap<Ticket, ViewerState>,
    wanting: Option<Vec<Ticket>>,
    resident: DistanceGraph,
    stored: DistanceGraph,
    turns: Turns,
    caps: ViewerCaps,
    heading_weight: f64,
    now: Duration,
}

impl Model {
    fn field(&mut self) -> Field<'_> {
        let Self { viewers, resident, stored, turns, caps, heading_weight, now, .. } = self;
        let (heading_weight, now) = (*heading_weight, *now);
        Field { viewers, resident, stored, turns, caps, heading_weight, now }
    }

    fn graph(&mut self, kind: Kind) -> &mut DistanceGraph {
        match kind {
            Kind::Load => &mut self.resident,
            Kind::Generate => &mut self.stored,
        }
    }

    fn hold(&mut self, ticket: Ticket, center: ColumnPos, radii: ViewerRadii) {
        let known = self.viewers.get(&ticket);
        let served = known.map_or(0, |viewer| viewer.served);
        let mut heading = known.map(|viewer| viewer.heading).unwrap_or_default();
        heading.note(known.map_or(center, |viewer| viewer.center), center, self.now);
        let (to_load, to_generate) = match known {
            Some(known) => (known.to_load.moved(center, radii.load), known.to_generate.moved(center, radii.generation)),
            None => (Outlook::new(center, radii.load), Outlook::new(center, radii.generation)),
        };
        self.viewers.insert(ticket, ViewerState { center, height: 0, radii, heading, to_load, to_generate, served });
        self.wanting = None;
    }

    fn note_reopened(&mut self, kind: Kind, column: ColumnPos) {
        self.wanting = None;
        let is_held = self
            .viewers
            .values()
            .any(|viewer| column.distance_squared(viewer.center) <= u128::from(viewer.radii.load + 2).pow(2));
        for viewer in self.viewers.values_mut() {
            match kind {
                Kind::Load if is_held => viewer.to_load.reopened(column),
                Kind::Load => {}
                Kind::Generate => viewer.to_generate.reopened(column),
            }
        }
    }

    /// The obvious answer: every viewer is searched, and nothing is remembered.
    fn expected(&self, may_generate: bool) -> Option<(Ticket, Kind, f64)> {
        let kinds = [(Kind::Load, &self.resident), (Kind::Generate, &self.stored)];
        let wants = self.viewers.iter().flat_map(|(ticket, viewer)| {
            kinds.into_iter().filter(move |(kind, _)| may_generate || *kind == Kind::Load).filter_map(
                |(kind, graph)| {
                    let radius = match kind {
                        Kind::Load => viewer.radii.load,
                        Kind::Generate => viewer.radii.generation,
                    };
                    let ahead = viewer.heading.ahead(viewer.center, self.now, radius / 2);
                    let distance = self.nearest(&mut graph.clone(), viewer, radius, ahead)?;
                    Some((self.turns.rank(viewer.served), distance, *ticket, kind))
                },
            )
        });
        let (_, distance, ticket, kind) = wants.min_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)))?;
        Some((ticket, kind, distance))
    }

    fn nearest(
        &self,
        graph: &mut DistanceGraph,
        viewer: &ViewerState,
        radius: u32,
        ahead: Option<ColumnPos>,
    ) -> Option<f64> {
        let (_, squared) = graph.nearest_missing(viewer.center, radius)?;
        let here = (squared as f64).sqrt();
        if self.heading_weight == 0.0 {
            return Some(here);
        }
        let Some(center) = ahead else { return Some(here) };
        let way = (center.distance_squared(viewer.center) as f64).sqrt();
        let found = graph.nearest_missing(center, radius.saturating_sub(way.ceil() as u32));
        let ahead = |(_, squared)| (squared as f64).sqrt() + way * (1.0 - self.heading_weight);
        Some(found.map_or(here, |found| here.min(ahead(found))))
    }

    /// Orders like a pass, and checks each choice.
    fn order(&mut self, may_generate: bool, done: usize) -> Result<(), TestCaseError> {
        let tickets = self.wanting.take().unwrap_or_else(|| self.viewers.keys().copied().collect());
        let mut candidates = Candidates::of(DimensionId(0), &self.field(), &tickets);
        self.wanting = Some(candidates.tickets.clone());
        for _ in 0..3 {
            let expected = self.expected(may_generate);
            let choice = candidates.choose(&mut self.field(), may_generate);
            prop_assert_eq!(choice.map(|choice| (choice.ticket, choice.kind, choice.near.distance)), expected);
            let Some(Choice { kind, near, .. }) = choice else { return Ok(()) };
            let work = self.graph(kind).claim(near.batch, near.center);
            prop_assert!(work.is_some(), "there is nothing in {:?}", near.batch);
            let columns: Vec<_> = work.into_iter().flatten().collect();
            for (place, column) in columns.iter().enumerate() {
                match place {
                    0 => drop(self.graph(kind).mark_completed(*column)),
                    _ if place <= done => {}
                    _ => drop(self.graph(kind).release(*column)),
                }
            }
            let turn = self.turns.end_turn();
            let nearest = columns[0];
            self.viewers.values_mut().filter(|viewer| viewer.reaches(nearest)).for_each(|viewer| viewer.served = turn);
        }
        Ok(())
    }

    fn apply(&mut self, step: Step) -> Result<(), TestCaseError> {
        let ticket = |number: u8| Ticket::Region(uuid::Uuid::from_u128(number.into()));
        match step {
            Step::Hold(viewer, center, load, more) => {
                self.hold(ticket(viewer), center, ViewerRadii::new(load, load + more, 0));
            }
            Step::Leave(viewer) => {
                self.viewers.remove(&ticket(viewer));
                self.wanting = None;
            }
            Step::Order { may_generate, done } => self.order(may_generate, done)?,
            Step::Complete(kind, column) => drop(self.graph(kind).mark_completed(column)),
            Step::Lose(kind, column) => {
                if self.graph(kind).unmark(column) {
                    self.note_reopened(kind, column);
                }
            }
            Step::Release(kind, column) => {
                if self.graph(kind).release(column) {
                    self.note_reopened(kind, column);
                }
            }
            Step::Wait(milliseconds) => self.now += Duration::from_millis(milliseconds),
        }
        Ok(())
    }
}

fn column() -> impl Strategy<Value = ColumnPos> {
    (-14..14_i64, -14..14_i64).prop_map(|(x, z)| ColumnPos::new(x, z))
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::Load), Just(Kind::Generate)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..6_u8, column(), 0..7_u32, 0..4_u32).prop_map(|(viewer, at, load, more)| Step::Hold(viewer, at, load, more)),
        1 => (0..6_u8).prop_map(Step::Leave),
        8 => (any::<bool>(), 0..16_usize).prop_map(|(may_generate, done)| Step::Order { may_generate, done }),
        3 => (kind(), column()).prop_map(|(kind, column)| Step::Complete(kind, column)),
        2 => (kind(), column()).prop_map(|(kind, column)| Step::Lose(kind, column)),
        2 => (kind(), column()).prop_map(|(kind, column)| Step::Release(kind, column)),
        2 => (0..2_000_u64).prop_map(Step::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Promise, overview: The nearest missing column is always generated first.
    #[test]
    fn the_cached_next_order_equals_a_fresh_search(
        weight in prop_oneof![Just(0.0), Just(0.5), Just(1.0)],
        steps in proptest::collection::vec(step(), 1..80),
    ) {
        let mut model = Model { heading_weight: weight, ..Model::default() };
        for step in steps {
            model.apply(step)?;
        }
    }

    /// A typical crowd that walks on: no viewer starves, and everything is done in the end.
    #[test]
    fn a_walk_of_several_viewers_is_served_in_the_same_order(
        steps in proptest::collection::vec((0..4_u8, -1..=1_i64, -1..=1_i64), 1..60),
    ) {
        let mut model = Model { heading_weight: 0.5, ..Model::default() };
        let mut places = [0, 5, 9, 40].map(|x| ColumnPos::new(x, -x));
        for (viewer, x, z) in steps {
            let place = &mut places[usize::from(viewer)];
            *place = ColumnPos::new(place.x + x, place.z + z);
            let center = *place;
            model.apply(Step::Hold(viewer, center, 6, 2))?;
            model.apply(Step::Wait(300))?;
            model.order(true, 16)?;
        }
        while model.expected(true).is_some() {
            model.order(true, 16)?;
        }
    }
}

/// Viewers that keep jumping get a bounded amount generated. A player who walks beside them gets everything in range, as if it
/// were alone.
///
/// Promise, worlds: A viewer that jumps around stays within its limits, and starves no other viewer.
#[test]
fn viewers_that_jump_on_and_on_have_their_share_and_starve_no_one() {
    let limits = ViewerLimits { generated_per_second: 50.0, loaded_per_second: 50.0, ..ViewerLimits::default() };
    let mut model = Model { caps: ViewerCaps::new(limits), ..Model::default() };
    let ticket = |number: u128| Ticket::Region(uuid::Uuid::from_u128(number));
    let (jumpers, radii) = (1..=4, ViewerRadii::new(4, 4, 0));
    let mut generated: BTreeMap<Ticket, usize> = BTreeMap::new();
    for step in 0..60_i64 * 20 {
        model.now += Duration::from_millis(50);
        let (now, viewers) = (model.now, model.viewers.keys().copied().collect::<Vec<_>>());
        model.caps.refill(now, |ticket| viewers.contains(ticket));
        for jumper in jumpers.clone() {
            model.hold(ticket(jumper), ColumnPos::new(step * 100, 1_000 * jumper as i64), radii);
        }
        model.hold(ticket(0), ColumnPos::new(step / 20, 0), radii);
        // As much as a server makes in a twentieth of a second.
        for _ in 0..8 {
            let tickets = model.wanting.take().unwrap_or_else(|| model.viewers.keys().copied().collect());
            let mut candidates = Candidates::of(DimensionId(0), &model.field(), &tickets);
            model.wanting = Some(candidates.tickets.clone());
            let Some(Choice { ticket, kind, near }) = candidates.choose(&mut model.field(), true) else { break };
            let columns = model.graph(kind).claim(near.batch, near.center).into_iter().flatten();
            let columns: Vec<_> = columns.collect();
            for column in &columns {
                model.graph(kind).mark_completed(*column);
            }
            let turn = model.turns.end_turn();
            let served = model.viewers.values_mut().filter(|viewer| viewer.reaches(columns[0]));
            served.for_each(|viewer| viewer.served = turn);
            match kind {
                Kind::Load => model.caps.note_loaded(ticket, columns.len()),
                Kind::Generate => {
                    model.caps.note_generated(ticket, columns.len());
                    *generated.entry(ticket).or_default() += columns.len();
                }
            }
        }
    }
    let most = 60 * 50 + 50 + 2 * 70 + 16;
    for jumper in jumpers {
        let generated = generated[&ticket(jumper)];
        assert!((2_500..=most).contains(&generated), "{generated} for {jumper}");
    }
    let walker = &model.viewers[&ticket(0)];
    assert_eq!(
        model.stored.clone().nearest_missing(walker.center, walker.radii.generation),
        None,
        "all that it sees is there"
    );
}
