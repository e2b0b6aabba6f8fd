//! The columns that one listener has in one dimension, and the next ones to send.

use super::sent::{Sent, SentColumns};
use crate::chunk::Detail;
use crate::coordinator::messages::far_views::FarView;
use crate::generation::{DistanceGraph, ListenerId};
use crate::space::ColumnPos;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// The columns that one listener has in one dimension, and the next ones to send.
///
/// Each detail has a ring: a disc within which columns are sent at least that fine, and a listener of the stored graph. That
/// listener has been given all columns that were chosen in this detail or finer and have not changed since. A choice for one
/// ring counts as given to all coarser rings, so the outer of two rings gets only the columns between them, and moving closer
/// gives a column to the inner one. The given columns do not depend on the ring's radius, which may change at any time.
pub struct Tracker {
    reach: FarView,
    center: ColumnPos,
    /// The rings by detail, finest first, including details beyond the reach, which still remember their columns.
    rings: [ListenerId; DETAILS],
    sent: SentColumns,
    /// Columns that were chosen and not sent yet, by the number of the choice.
    awaited: FxHashMap<ColumnPos, u64>,
    /// Columns that changed since they were sent.
    outdated: BTreeSet<ColumnPos>,
    /// `true` if some columns may be too far away.
    has_moved: bool,
    choices: u64,
}

/// The number of details.
const DETAILS: usize = Detail::COARSEST.level() as usize + 1;

/// A column that was chosen to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    pub column: ColumnPos,
    /// The detail.
    pub detail: Detail,
    /// The state of the column at the listener.
    pub sent: Option<Sent>,
    number: u64,
}

impl Tracker {
    pub fn new(graph: &mut DistanceGraph, center: ColumnPos, reach: FarView) -> Self {
        Self {
            reach,
            center,
            rings: std::array::from_fn(|_| graph.add_listener()),
            sent: SentColumns::default(),
            awaited: FxHashMap::default(),
            outdated: BTreeSet::new(),
            has_moved: false,
            choices: 0,
        }
    }

    /// Sets the position and the reach of the listener.
    pub fn aim(&mut self, center: ColumnPos, reach: FarView) {
        self.has_moved |= (center, reach) != (self.center, self.reach);
        (self.center, self.reach) = (center, reach);
    }

    /// The position of the listener.
    pub fn center(&self) -> ColumnPos {
        self.center
    }

    /// The next columns to send, at most `most`: those of finer rings first, and within a ring near to far.
    pub fn choose(&mut self, graph: &mut DistanceGraph, most: usize) -> Vec<Choice> {
        let mut choices = Vec::new();
        let mut columns = Vec::new();
        for (detail, radius) in self.reach.rings() {
            let (ring, coarser) =
                (self.rings[usize::from(detail.level())], &self.rings[usize::from(detail.level()) + 1..]);
            let left = most - choices.len();
            if left == 0 {
                break;
            }
            columns.clear();
            graph.collect_completed_in_range(ring, self.center, radius, left, &mut columns);
            for column in columns.drain(..) {
                for coarser in coarser {
                    graph.note_given(*coarser, column);
                }
                self.choices += 1;
                let (sent, number) = (self.sent.get(column), self.choices);
                self.awaited.insert(column, number);
                choices.push(Choice { column, detail, sent, number });
            }
        }
        choices
    }

    /// The number of columns that the listener has.
    pub fn len(&self) -> usize {
        self.sent.len()
    }

    /// The number of columns that were chosen and not sent yet.
    pub fn awaited(&self) -> usize {
        self.awaited.len()
    }

    /// Returns `true` if the choice still holds: the column has neither changed nor left since.
    pub fn awaits(&self, choice: &Choice) -> bool {
        self.awaited.get(&choice.column) == Some(&choice.number)
    }

    /// Returns `true` if a chosen column is still near enough to be sent.
    pub fn keeps(&self, column: ColumnPos) -> bool {
        self.reach.keeps(self.center, column)
    }

    /// Drops a chosen column without sending it. It is chosen again when it is in range.
    pub fn drop_choice(&mut self, graph: &mut DistanceGraph, column: ColumnPos) {
        self.awaited.remove(&column);
        for ring in self.rings {
            graph.take_back(ring, column);
        }
    }

    /// Notes that a chosen column was sent; `None` if the listener already had the same summary.
    pub fn settle(&mut self, column: ColumnPos, sent: Option<Sent>) {
        self.awaited.remove(&column);
        self.outdated.remove(&column);
        if let Some(sent) = sent {
            self.sent.insert(column, sent);
        }
    }

    /// Notes that a column changed, after the graph was updated.
    pub fn edited(&mut self, column: ColumnPos) {
        self.awaited.remove(&column);
        if self.sent.get(column).is_some() {
            self.outdated.insert(column);
        }
    }

    /// Columns that the listener has and that must be reported as gone, at most `most`.
    pub fn gone(&mut self, most: usize) -> Vec<ColumnPos> {
        // Beyond the radius the column is not sent again, and the old summary must not stay.
        let is_stuck = |column: &&ColumnPos| !self.reach.contains(self.center, **column);
        let mut gone: Vec<_> = self.outdated.iter().filter(is_stuck).copied().take(most).collect();
        if self.has_moved && gone.len() < most {
            let left = most - gone.len();
            let beyond = self.sent.beyond(self.center, self.reach.keeps_within(), left);
            self.has_moved = beyond.len() == left;
            gone.extend(beyond.into_iter().filter(|column| !self.outdated.contains(column)));
        }
        gone
    }

    /// Notes that more columns may be gone than were reported.
    pub fn gone_again(&mut self) {
        self.has_moved = true;
    }

    /// Removes a column from the listener. Returns its state before.
    pub fn forget(&mut self, graph: &mut DistanceGraph, column: ColumnPos) -> Option<Sent> {
        self.drop_choice(graph, column);
        self.outdated.remove(&column);
        self.sent.remove(column)
    }

    /// Removes the listener from the graph.
    pub fn leave(self, graph: &mut DistanceGraph) {
        for ring in self.rings {
            graph.remove_listener(ring);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordinator::messages::far_views::LET_GO;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, VecDeque};

    /// Columns, and how often each changed.
    type World = BTreeMap<ColumnPos, u32>;

    /// The tracker with a graph and a world, and the messages of its listener.
    struct Scene {
        graph: DistanceGraph,
        world: World,
        tracker: Tracker,
        center: ColumnPos,
        reach: FarView,
        /// Choices in flight, each with the column's state at that time.
        on_the_way: VecDeque<(Choice, u32)>,
        /// The columns that the listener has: the detail, and the number of changes.
        has: BTreeMap<ColumnPos, (Detail, u32)>,
    }

    #[derive(Clone, Debug)]
    enum Step {
        Generate(i64, i64),
        /// Generates the whole square around a column.
        GenerateAround(i64, i64),
        Edit(i64, i64),
        /// Edits a column without a visible change.
        EditUnseen(i64, i64),
        Move(i64, i64),
        Aim(u32, u32),
        Choose(usize),
        Arrive(usize),
        Tell(usize),
    }

    impl Scene {
        fn new() -> Self {
            let (mut graph, center) = (DistanceGraph::new(), ColumnPos::new(0, 0));
            let reach = FarView::new().with_radius(9).with_detail_radius(2);
            let tracker = Tracker::new(&mut graph, center, reach);
            let (world, on_the_way, has) = Default::default();
            Self { graph, world, tracker, center, reach, on_the_way, has }
        }

        fn generate(&mut self, column: ColumnPos) {
            self.world.entry(column).or_insert(1);
            self.graph.mark_completed(column);
        }

        fn run(&mut self, step: Step) {
            match step {
                Step::Generate(x, z) => self.generate(ColumnPos::new(x, z)),
                Step::GenerateAround(x, z) => (-3..=3)
                    .flat_map(|dx| (-3..=3).map(move |dz| ColumnPos::new(x + dx, z + dz)))
                    .for_each(|column| self.generate(column)),
                Step::Edit(x, z) | Step::EditUnseen(x, z) => {
                    let column = ColumnPos::new(x, z);
                    let Some(changes) = self.world.get_mut(&column) else { return };
                    *changes += u32::from(matches!(step, Step::Edit(..)));
                    self.graph.edited(column);
                    self.tracker.edited(column);
                }
                Step::Move(x, z) => self.center = ColumnPos::new(x, z),
                Step::Aim(radius, detail_radius) => {
                    self.reach = FarView::new().with_radius(radius).with_detail_radius(detail_radius)
                }
                Step::Choose(most) => {
                    let choices = self.tracker.choose(&mut self.graph, most);
                    assert!(choices.len() <= most);
                    for choice in choices {
                        self.check_choice(&choice);
                        self.on_the_way.push_back((choice, self.world[&choice.column]));
                    }
                }
                Step::Arrive(most) => (0..most).for_each(|_| self.arrive()),
                Step::Tell(most) => self.tell(most),
            }
            self.tracker.aim(self.center, self.reach);
        }

        /// Checks that the choice has the detail of the plain rule, or that the listener already has it that fine.
        fn check_choice(&self, choice: &Choice) {
            let wanted = self.wanted(choice.column).expect("it is in range");
            assert_eq!(choice.detail, wanted);
            assert_eq!(choice.sent.is_some(), self.has.contains_key(&choice.column));
        }

        /// The detail that a column should have, by a walk over all rings.
        fn wanted(&self, column: ColumnPos) -> Option<Detail> {
            let FarView { radius, detail_radius, .. } = self.reach;
            let within = |radius: u32| column.distance_squared(self.center) <= u128::from(radius).pow(2);
            let level = (0..4).find(|level| within(detail_radius << level)).unwrap_or(4);
            within(radius).then(|| Detail::new(level))
        }

        fn arrive(&mut self) {
            let Some((choice, changes)) = self.on_the_way.pop_front() else { return };
            let Choice { column, detail, sent, .. } = choice;
            if !self.tracker.awaits(&choice) {
                return;
            }
            if !self.tracker.keeps(column) {
                return self.tracker.drop_choice(&mut self.graph, column);
            }
            // The reader of summaries does the same.
            if matches!(sent, Some(Sent::Summary(fine, checksum)) if fine <= detail && checksum == changes) {
                return self.tracker.settle(column, None);
            }
            self.tracker.settle(column, Some(Sent::Summary(detail, changes)));
            let before = self.has.insert(column, (detail, changes));
            let is_needed = before.is_none_or(|(fine, known)| detail < fine || known != changes);
            assert!(is_needed, "{column} was sent twice: {before:?}, then {detail:?}");
        }

        fn tell(&mut self, most: usize) {
            for column in self.tracker.gone(most) {
                assert!(self.tracker.forget(&mut self.graph, column).is_some());
                assert!(self.has.remove(&column).is_some(), "{column} was told of twice");
            }
        }

        /// Lets all pending work finish, and compares the result with the plain rule.
        fn settle(&mut self) {
            self.tracker.aim(self.center, self.reach);
            self.tracker.gone_again();
            self.tell(usize::MAX);
            loop {
                self.run(Step::Choose(7));
                if self.on_the_way.is_empty() {
                    break;
                }
                self.run(Step::Arrive(7));
            }
            self.tell(usize::MAX);
            for (column, changes) in &self.world {
                let has = self.has.get(column);
                match self.wanted(*column) {
                    Some(wanted) => {
                        let (detail, known) = has.unwrap_or_else(|| panic!("{column} is missing"));
                        assert!(detail <= &wanted && known == changes, "{column}: {detail:?} {wanted:?}");
                    }
                    None => assert!(has.is_none_or(|(_, known)| known == changes), "{column} is outdated"),
                }
            }
            let most = u128::from(self.reach.radius + LET_GO).pow(2);
            assert!(self.has.keys().all(|column| column.distance_squared(self.center) <= most));
            assert_eq!(self.tracker.awaited(), 0);
        }
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let near = || -14..14i64;
        let step = prop_oneof![
            4 => (near(), near()).prop_map(|(x, z)| Step::Generate(x, z)),
            3 => (near(), near()).prop_map(|(x, z)| Step::GenerateAround(x, z)),
            4 => (near(), near()).prop_map(|(x, z)| Step::Edit(x, z)),
            2 => (near(), near()).prop_map(|(x, z)| Step::EditUnseen(x, z)),
            3 => (near(), near()).prop_map(|(x, z)| Step::Move(x, z)),
            1 => (0..16u32, 0..9u32).prop_map(|(radius, detail)| Step::Aim(radius, detail)),
            6 => (0..40usize).prop_map(Step::Choose),
            6 => (0..40usize).prop_map(Step::Arrive),
            2 => (0..40usize).prop_map(Step::Tell),
        ];
        prop::collection::vec(step, 1..120)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn a_listener_gets_each_column_of_the_plain_model_once(steps in steps()) {
            let mut scene = Scene::new();
            for step in steps {
                scene.run(step);
            }
            scene.settle();
        }
    }

    #[test]
    fn a_column_that_changed_before_the_listener_went_off_is_not_kept_as_it_was() {
        let mut scene = Scene::new();
        scene.run(Step::Generate(9, 0));
        scene.settle();
        scene.run(Step::Edit(9, 0));
        scene.run(Step::Move(-3, 0));
        scene.settle();
        assert!(scene.has.is_empty(), "it is near enough to be kept, and too far to be sent again");
        scene.run(Step::Move(0, 0));
        scene.settle();
        assert_eq!(scene.has[&ColumnPos::new(9, 0)].1, 2);
    }

    #[test]
    fn finer_rings_come_first_and_each_near_to_far() {
        let mut scene = Scene::new();
        (-9..=9).flat_map(|x| (-9..=9).map(move |z| ColumnPos::new(x, z))).for_each(|column| scene.generate(column));
        let choices = scene.tracker.choose(&mut scene.graph, usize::MAX);
        assert!(choices.is_sorted_by_key(|choice| choice.detail));
        let inner = choices.iter().filter(|choice| choice.detail == Detail::FINEST);
        assert!(inner.clone().count() == 13 && inner.clone().next().is_some_and(|first| first.column == scene.center));
        let nearest = |batch: &[Choice]| batch.iter().map(|choice| choice.column.distance_squared(scene.center)).min();
        let batches: Vec<_> =
            choices.chunk_by(|a, b| (a.detail, a.column.batch()) == (b.detail, b.column.batch())).collect();
        assert!(batches.is_sorted_by_key(|batch| (batch[0].detail, nearest(batch))));
    }
}
