use crate::coordinator::columns::*;
use proptest::prelude::*;

const NOW: Duration = Duration::from_secs(10);
const WAIT: Duration = Duration::from_secs(1);
const COLUMN: ColumnPos = ColumnPos::new(1, 2);

fn order(claim: u64, attempts: u32, again: bool) -> Order {
    Order { claim, attempts, again }
}

fn failure(attempts: u32, due: Duration) -> Failure {
    Failure { attempts, again: false, due }
}

/// An event in the life of a column.
#[derive(Clone, Copy, Debug)]
enum Event {
    Want,
    Make(u64),
    Number(u64),
    Deliver,
    Fail,
    Retry,
    Fetch,
    Leave,
    LeaveInPart,
    Load(i64),
    Halt(u64),
    Revive,
    ReadAgain,
    Forget,
}

fn happen(columns: &mut Columns, column: ColumnPos, event: Event) {
    match event {
        Event::Want => drop(columns.want(column)),
        Event::Make(claim) => columns.make(column, claim),
        Event::Number(claim) => columns.number(column, claim),
        Event::Deliver => columns.deliver(column),
        Event::Fail => drop(columns.fail(column, NOW, false)),
        Event::Retry => drop(columns.retry(NOW + WAIT)),
        Event::Fetch => columns.fetch(column),
        Event::Leave => columns.leave(column),
        Event::LeaveInPart => columns.leave_in_part(column),
        Event::Load(height) => {
            columns.heights_mut(column).into_iter().for_each(|known| known.loaded.insert(height..height + 16));
        }
        Event::Halt(until) => columns.halt(column, until),
        Event::Revive => drop(columns.revive(|revived| revived == column)),
        Event::ReadAgain => columns.read_again(column),
        Event::Forget => columns.forget(column),
    }
}

#[test]
fn the_states_follow_each_other_as_the_table_says() {
    use ColumnState::{Failed, Fetched, ForStore, Halted, Leaving, Lost, Ordered, Owned};
    let whole = Owned(Rest::None);
    let rest = |order| Fetched(Rest::Ordered(order));
    let slabs = |order| Owned(Rest::Ordered(order));
    let (soon, late, over) = (NOW + wait_after(1), NOW + wait_after(3), Duration::MAX);
    let table = [
        (None, Event::Want, Some(Ordered(order(0, 0, false)))),
        (Some(ForStore(order(7, 0, false))), Event::Want, Some(Ordered(order(7, 0, false)))),
        (Some(Failed(failure(2, over))), Event::Want, Some(Ordered(order(0, 2, false)))),
        (Some(whole), Event::Want, Some(slabs(order(0, 0, false)))),
        (None, Event::Make(7), Some(ForStore(order(7, 0, false)))),
        (Some(Ordered(order(0, 2, true))), Event::Number(7), Some(Ordered(order(7, 2, true)))),
        (Some(rest(order(0, 0, false))), Event::Number(7), Some(rest(order(7, 0, false)))),
        (Some(slabs(order(0, 0, false))), Event::Number(7), Some(slabs(order(7, 0, false)))),
        (Some(whole), Event::Number(7), Some(whole)),
        (Some(Ordered(order(7, 2, true))), Event::Deliver, Some(whole)),
        (Some(rest(order(7, 2, true))), Event::Deliver, Some(whole)),
        (Some(slabs(order(7, 2, false))), Event::Deliver, Some(whole)),
        (Some(Owned(Rest::Leaving)), Event::Deliver, Some(whole)),
        (Some(Leaving), Event::Deliver, Some(whole)),
        (Some(Ordered(order(7, 2, true))), Event::Fail, Some(Failed(failure(3, late)))),
        (Some(rest(order(7, 2, false))), Event::Fail, Some(Fetched(Rest::Failed(failure(3, late))))),
        (Some(slabs(order(7, 0, false))), Event::Fail, Some(Owned(Rest::Failed(failure(1, soon))))),
        (
            Some(rest(order(7, 0, true))),
            Event::Fail,
            Some(Fetched(Rest::Failed(Failure { again: true, ..failure(1, soon) }))),
        ),
        (Some(ForStore(order(7, 1, false))), Event::Fail, Some(Failed(failure(2, NOW + wait_after(2))))),
        (Some(Failed(failure(2, over))), Event::Make(7), Some(ForStore(order(7, 2, false)))),
        (Some(Failed(failure(3, soon))), Event::Retry, Some(Failed(failure(3, over)))),
        (Some(Failed(failure(3, over))), Event::Retry, Some(Failed(failure(3, over)))),
        (Some(Fetched(Rest::Failed(failure(3, soon)))), Event::Retry, Some(rest(order(0, 3, false)))),
        (Some(Owned(Rest::Failed(failure(3, soon)))), Event::Retry, Some(Owned(Rest::Failed(failure(3, over))))),
        (Some(Owned(Rest::Failed(failure(3, over)))), Event::Want, Some(slabs(order(0, 3, false)))),
        (None, Event::Fetch, Some(rest(order(0, 0, false)))),
        (Some(ForStore(order(7, 0, false))), Event::Fetch, Some(rest(order(0, 0, false)))),
        (Some(Failed(failure(3, over))), Event::Fetch, Some(rest(order(0, 0, false)))),
        (Some(Ordered(order(7, 2, true))), Event::Fetch, Some(rest(order(7, 2, true)))),
        (Some(rest(order(7, 0, false))), Event::Fetch, Some(rest(order(7, 0, false)))),
        (Some(slabs(order(7, 0, false))), Event::Fetch, Some(slabs(order(7, 0, false)))),
        (Some(Leaving), Event::Fetch, Some(whole)),
        (Some(Lost { until: 5 }), Event::Fetch, Some(Fetched(Rest::After { until: 5 }))),
        (Some(whole), Event::Leave, Some(Leaving)),
        (Some(whole), Event::LeaveInPart, Some(Owned(Rest::Leaving))),
        (Some(whole), Event::Halt(5), Some(Halted { until: 5, again: false })),
        (Some(rest(order(7, 0, false))), Event::Halt(5), Some(Halted { until: 5, again: false })),
        (Some(Lost { until: 5 }), Event::Halt(6), Some(Halted { until: 6, again: true })),
        (Some(Ordered(order(7, 0, true))), Event::Halt(6), Some(Halted { until: 6, again: true })),
        (Some(Halted { until: 5, again: false }), Event::Revive, Some(Lost { until: 5 })),
        (Some(whole), Event::Revive, Some(whole)),
        (Some(Lost { until: 5 }), Event::ReadAgain, Some(Ordered(order(0, 0, true)))),
        (Some(Fetched(Rest::After { until: 5 })), Event::ReadAgain, Some(rest(order(0, 0, true)))),
        (Some(Leaving), Event::Forget, None),
    ];
    for (before, event, after) in table {
        let mut columns = Columns::default();
        columns.set(COLUMN, before);
        happen(&mut columns, COLUMN, event);
        assert_eq!(columns.get(COLUMN), after, "{before:?}, {event:?}");
    }
}

#[test]
fn an_outage_of_the_store_does_not_count() {
    let mut columns = Columns::default();
    columns.want(COLUMN);
    assert_eq!(columns.fail(COLUMN, NOW, false), (1, wait_after(1)));
    assert_eq!(columns.retry(NOW), (vec![], vec![]));
    assert_eq!(columns.retry(NOW + WAIT), (vec![COLUMN], vec![]));
    for _ in 0..100 {
        columns.want(COLUMN);
        assert_eq!(columns.fail(COLUMN, NOW, true), (1, OUTAGE_RETRY));
    }
    columns.want(COLUMN);
    assert_eq!(columns.fail(COLUMN, NOW, false).0, 2, "its own faults count as before");
}

#[test]
fn failures_that_may_be_ordered_again_make_room_for_others() {
    let mut columns = Columns::default();
    let fail = |columns: &mut Columns, x| {
        columns.make(ColumnPos::new(x, 0), 1);
        columns.fail(ColumnPos::new(x, 0), NOW, false);
        columns.has_room_for_failures()
    };
    assert!((0..MAX_RETRIED as i64).all(|x| fail(&mut columns, x)));
    assert!(!fail(&mut columns, -1));
    columns.forget(ColumnPos::new(-1, 0));
    assert_eq!(columns.retry(NOW + WAIT).0.len(), MAX_RETRIED);
    assert!(fail(&mut columns, -2));
    assert_eq!(columns.failed().collect::<Vec<_>>(), [(ColumnPos::new(-2, 0), NOW + WAIT)]);
}

#[test]
fn an_answer_counts_only_for_the_order_that_is_out() {
    let mut columns = Columns::default();
    columns.make(COLUMN, 7);
    assert!(columns.awaits(COLUMN, 7).is_some() && columns.awaits(COLUMN, 8).is_none());
    assert!(!columns.want(COLUMN), "it comes with the order for the store");
    assert!(matches!(columns.awaits(COLUMN, 7), Some(ColumnState::Ordered(_))));
    columns.fetch(COLUMN);
    assert!(matches!(columns.awaits(COLUMN, 7), Some(ColumnState::Fetched(_))), "the rest of it is still to come");
    columns.halt(COLUMN, 1);
    assert_eq!(columns.awaits(COLUMN, 7), None);
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        Just(Event::Want),
        (1..9_u64).prop_map(Event::Make),
        (1..9_u64).prop_map(Event::Number),
        Just(Event::Deliver),
        Just(Event::Fail),
        Just(Event::Retry),
        Just(Event::Fetch),
        Just(Event::Leave),
        Just(Event::LeaveInPart),
        (0..3_i64).prop_map(Event::Load),
        (1..9_u64).prop_map(Event::Halt),
        Just(Event::Revive),
        Just(Event::ReadAgain),
        Just(Event::Forget),
    ]
}

#[test]
fn waits_double_up_to_a_minute() {
    assert_eq!([1, 2, 3].map(|attempts| wait_after(attempts).as_secs()), [1, 2, 4]);
    assert_eq!(wait_after(u32::MAX), LAST_RETRY);
}

proptest! {
    #[test]
    fn the_work_lists_agree_with_a_scan_of_all_columns(
        events in prop::collection::vec((0..6_i64, event()), 1..200)
    ) {
        let mut columns = Columns::default();
        for (x, event) in events {
            happen(&mut columns, ColumnPos::new(x, 0), event);
            let states: std::collections::BTreeMap<_, _> = columns.iter().collect();
            let failed = states.iter().filter(|(_, state)| {
                matches!(
                    state,
                    ColumnState::Failed(_)
                        | ColumnState::Fetched(Rest::Failed(_))
                        | ColumnState::Owned(Rest::Failed(_))
                )
            });
            let failed: Vec<_> = failed.map(|(column, _)| *column).collect();
            prop_assert_eq!(columns.failures().into_iter().map(|(column, ..)| column).collect::<Vec<_>>(), failed);
            let lost = states.iter().filter(|(_, state)| {
                matches!(state, ColumnState::Lost { .. } | ColumnState::Fetched(Rest::After { .. }))
            });
            let lost: Vec<_> = lost.map(|(column, _)| *column).collect();
            prop_assert_eq!(columns.lost().into_iter().map(|(column, _)| column).collect::<Vec<_>>(), lost);
            let again = states.values().any(|state| match state {
                ColumnState::Ordered(order)
                | ColumnState::Fetched(Rest::Ordered(order))
                | ColumnState::Owned(Rest::Ordered(order)) => order.again,
                ColumnState::Failed(failure)
                | ColumnState::Fetched(Rest::Failed(failure))
                | ColumnState::Owned(Rest::Failed(failure)) => failure.again,
                ColumnState::Halted { again, .. } => *again,
                _ => false,
            });
            prop_assert_eq!(columns.is_reading_again(), again);
            for column in (0..6).map(|x| ColumnPos::new(x, 0)) {
                let is_there = states.get(&column).is_some_and(|state| state.is_there());
                prop_assert!(is_there || columns.heights(column).is_none(), "heights of {column}, which no region has");
            }
        }
        let halted: FxHashSet<_> = columns.iter().filter(|(_, state)| matches!(state, ColumnState::Halted { .. })).map(|(column, _)| column).collect();
        prop_assert_eq!(columns.revive(|_| true), halted);
    }
}
