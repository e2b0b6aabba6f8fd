//! Windows over a region's ticks.

use crate::coordinator::figures::history::*;
use proptest::collection::vec;
use proptest::prelude::*;

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Ticks at this rate from `from` to `until`, in seconds.
fn tick(history: &mut TickHistory, per_second: u64, from: u64, until: u64, took: impl Fn(u64) -> Duration) {
    for number in 1..=(until - from) * per_second {
        let since = Duration::from_nanos(1_000_000_000 * number / per_second);
        history.push(Duration::from_secs(from) + since, took(number));
    }
}

/// The memory use of the history.
fn bytes(history: &TickHistory) -> usize {
    size_of::<TickHistory>()
        + history.slots.capacity() * size_of::<Slot>()
        + history.samples.capacity() * size_of::<u16>()
}

fn is_near(found: Duration, exact: Duration) -> bool {
    found.abs_diff(exact).as_nanos() * 2048 <= exact.as_nanos()
}

#[test]
fn a_steady_region_is_measured_as_it_is() {
    let mut history = TickHistory::default();
    tick(&mut history, 20, 100, 200, |number| millis(if number % 10 == 0 { 20 } else { 5 }));
    for window in TimeWindow::ALL {
        let found = history.window(Duration::from_secs(200), window);
        let length = window.length().as_secs();
        // Both edges are inside.
        assert_eq!(u64::from(found.ticks), length * 20 + 1);
        let rate = found.ticks_per_second.unwrap();
        assert!((rate - 20.0).abs() <= 1.0 / length as f64 + 1e-9, "{rate}");
        assert!((found.utilisation - 0.13).abs() < 0.001, "{found:?}");
        assert!(is_near(found.median, millis(5)) && is_near(found.p95, millis(20)) && is_near(found.worst, millis(20)));
    }
    assert_eq!(history.ticks(), 2000);
}

#[test]
fn nothing_is_said_of_a_region_that_never_ticked() {
    let mut history = TickHistory::default();
    assert!(!history.refresh(Duration::from_secs(50)));
    assert_eq!(history.windows(), &[TickWindow::default(); 3]);
    assert_eq!(history.window(Duration::from_secs(50), TimeWindow::OneMinute), TickWindow::default());
    assert_eq!(history.ticks(), 0);
}

#[test]
fn a_young_regions_rates_are_over_its_age() {
    let mut history = TickHistory::default();
    let first = seconds(1000.3);
    for number in 0..=40 {
        history.push(first + millis(50) * number, millis(10));
        let age = millis(50) * number;
        let found = history.window(first + age, TimeWindow::OneMinute);
        assert_eq!(found.ticks, number + 1);
        assert_eq!(found.ticks_per_second.is_some(), age >= millis(500), "{age:?}");
        if let Some(rate) = found.ticks_per_second {
            assert!((rate - 20.0).abs() < 1e-9, "{rate}");
            assert!((found.utilisation - 0.2).abs() < 1e-9, "{found:?}");
        }
    }
    // The history ages even without further ticks.
    let found = history.window(first + seconds(20.0), TimeWindow::OneMinute);
    assert!((found.ticks_per_second.unwrap() - 2.0).abs() < 1e-9, "{found:?}");
}

#[test]
fn idle_time_counts() {
    let mut history = TickHistory::default();
    tick(&mut history, 20, 0, 100, |_| millis(5));
    let window = |after: f64, window| history.window(seconds(100.0 + after), window);
    for after in [5.001, 5.5, 7.0] {
        let found = window(after, TimeWindow::FiveSeconds);
        assert_eq!(found, TickWindow { ticks_per_second: Some(0.0), ..TickWindow::default() });
        assert!(window(after, TimeWindow::FifteenSeconds).ticks > 100);
    }
    let found = window(30.0, TimeWindow::OneMinute);
    assert!((found.ticks_per_second.unwrap() - 10.0).abs() < 0.02, "{found:?}");
    assert_eq!(window(61.0, TimeWindow::OneMinute).ticks, 0);
    // A region that resumes after that begins with empty seconds.
    tick(&mut history, 20, 200, 201, |_| millis(5));
    let found = history.window(seconds(201.0), TimeWindow::FiveSeconds);
    assert_eq!((found.ticks, found.ticks_per_second), (20, Some(4.0)));
    assert_eq!(history.window(seconds(201.0), TimeWindow::OneMinute).ticks, 20);
}

#[test]
fn a_long_tick_keeps_its_region_busy_all_the_time() {
    let mut history = TickHistory::default();
    history.push(seconds(10.0), millis(1));
    history.push(seconds(40.5), seconds(30.5));
    let found = history.window(seconds(40.5), TimeWindow::FiveSeconds);
    assert_eq!((found.ticks, found.utilisation), (1, 1.0));
    assert!(is_near(found.worst, seconds(30.5)));
    let found = history.window(seconds(70.5), TimeWindow::OneMinute);
    // The tick began before the minute: 29.5 of its seconds are in the window of 59.5.
    assert!((found.utilisation - 29.5 / 59.5).abs() < 1e-9, "{found:?}");
    // A tick that is longer than the whole history.
    history.push(seconds(1000.25), seconds(900.0));
    let found = history.window(seconds(1000.25), TimeWindow::OneMinute);
    assert!(found.utilisation > 0.999_999 && found.ticks == 1);
}

#[test]
fn slow_and_fast_regions_are_counted_exactly() {
    for per_second in [1, 60, 1000] {
        let mut history = TickHistory::default();
        tick(&mut history, per_second, 0, 90, |number| Duration::from_micros(100 + number % 100));
        for window in TimeWindow::ALL {
            let length = window.length().as_secs();
            let found = history.window(seconds(90.0), window);
            assert_eq!(u64::from(found.ticks), length * per_second + 1, "{per_second} {window:?}");
            // The second that the window's edge cuts is left out, so the window is that much shorter.
            let found = history.window(seconds(90.9), window);
            assert_eq!(u64::from(found.ticks), (length - 1) * per_second + 1, "{per_second} {window:?}");
            let rate = f64::from(found.ticks) / (length as f64 - 0.1);
            assert!((found.ticks_per_second.unwrap() - rate).abs() < 1e-9, "{found:?}");
        }
        assert_eq!(history.ticks(), 90 * per_second);
    }
}

#[test]
fn a_random_choice_of_many_ticks_stands_for_all() {
    let mut history = TickHistory::default();
    // From 1 to 100 ms, each equally often, in an order independent of seconds; one of them is much longer.
    tick(
        &mut history,
        1000,
        0,
        60,
        |number| if number == 31_415 { seconds(1.5) } else { millis(1 + number * 7 % 100) },
    );
    let found = history.window(seconds(60.0), TimeWindow::OneMinute);
    assert_eq!(found.ticks, 60_000);
    assert!((44..=57).contains(&found.median.as_millis()), "{found:?}");
    assert!((92..=98).contains(&found.p95.as_millis()), "{found:?}");
    assert!(is_near(found.worst, seconds(1.5)));
    // The early ticks of a second must not be chosen more often than the late ones.
    let mut history = TickHistory::default();
    tick(&mut history, 1000, 0, 60, |number| millis(1 + (number - 1) % 1000));
    let found = history.window(seconds(60.0), TimeWindow::OneMinute);
    assert!((460..=540).contains(&found.median.as_millis()), "{found:?}");
    assert!((930..=970).contains(&found.p95.as_millis()), "{found:?}");
}

#[test]
fn a_minute_takes_four_kilobytes_at_most() {
    let mut history = TickHistory::default();
    assert!(bytes(&history) < 450, "{}", bytes(&history));
    tick(&mut history, 20, 0, 300, |_| millis(5));
    assert!(bytes(&history) <= 4096, "{}", bytes(&history));
    let mut history = TickHistory::default();
    tick(&mut history, 1000, 0, 100, |_| millis(1));
    assert!(bytes(&history) <= 4096, "{}", bytes(&history));
    let mut history = TickHistory::default();
    tick(&mut history, 1, 0, 300, |_| millis(5));
    assert!(bytes(&history) < 1500, "{}", bytes(&history));
}

#[test]
fn windows_are_computed_again_when_they_are_old() {
    let mut history = TickHistory::default();
    tick(&mut history, 20, 0, 100, |_| millis(5));
    history.refresh(seconds(100.0));
    let mut at: [Vec<u32>; 3] = Default::default();
    let mut before = *history.windows();
    for tenth in 1..=200 {
        let now = seconds(100.0) + millis(100) * tenth;
        history.push(now, millis(u64::from(tenth)));
        let refreshed = history.refresh(now);
        let changed = [0, 1, 2].map(|index| before[index] != history.windows()[index]);
        assert_eq!(refreshed, changed.contains(&true));
        before = *history.windows();
        for index in (0..3).filter(|index| changed[*index]) {
            assert_eq!(before[index], history.window(now, TimeWindow::ALL[index]));
            at[index].push(tenth);
        }
    }
    for (at, period) in at.into_iter().zip([10, 20, 50]) {
        assert_eq!(at.len() as u32, 200 / period);
        assert!(at.windows(2).all(|pair| pair[1] - pair[0] == period), "{at:?}");
    }
    // The clock jumps back.
    assert!(history.refresh(seconds(50.0)));
    assert!(!history.refresh(seconds(50.0)));
}

#[test]
fn regions_that_were_made_together_are_not_all_refreshed_together() {
    let made = |number: u64| {
        let mut history = TickHistory::default();
        history.push(seconds(10.0), Duration::from_nanos(1_000_000 + number * 100));
        history.refresh(seconds(10.0));
        history
    };
    let mut histories: Vec<TickHistory> = (0..1000).map(made).collect();
    let mut most = 0;
    for pass in 1..=400 {
        let now = seconds(10.0) + millis(50) * pass;
        most = most.max(histories.iter_mut().filter_map(|history| history.refresh(now).then_some(())).count());
    }
    // There are 20 passes per second: each refreshes the shortest window of 50 regions, and longer ones of 25 and 10.
    assert!((60..150).contains(&most), "{most}");
}

#[test]
fn a_copy_goes_its_own_way() {
    let mut history = TickHistory::default();
    tick(&mut history, 20, 0, 100, |_| millis(5));
    history.refresh(seconds(100.0));
    let mut part = history.clone();
    assert_eq!((part.ticks(), part.windows()), (history.ticks(), history.windows()));
    part.push(seconds(101.0), millis(50));
    assert_eq!((part.ticks(), history.ticks()), (2001, 2000));
    assert!(part.refresh(seconds(101.0)));
    assert!(part.windows()[0].worst > history.windows()[0].worst);
}

/// A list of all ticks, unrounded.
#[derive(Default)]
struct Model(Vec<(Duration, Duration)>);

impl Model {
    fn window(&self, now: Duration, window: TimeWindow) -> TickWindow {
        let Some((first, _)) = self.0.first() else { return TickWindow::default() };
        let mut begins = now.saturating_sub(window.length());
        if begins.subsec_nanos() > 0 {
            begins = Duration::from_secs(begins.as_secs() + 1);
        }
        let mut inside: Vec<Duration> =
            self.0.iter().filter(|(ended, _)| *ended >= begins).map(|(_, took)| *took).collect();
        let is_young = begins <= *first;
        begins = begins.max(*first);
        let length = (now - begins).as_secs_f64();
        let busy: Duration =
            self.0.iter().map(|(ended, took)| ended.saturating_sub(ended.saturating_sub(*took).max(begins))).sum();
        inside.sort();
        let ticks = inside.len();
        TickWindow {
            ticks_per_second: (length >= 0.5).then(|| (ticks - usize::from(is_young)) as f64 / length),
            median: inside.get(ticks / 2).copied().unwrap_or_default(),
            // The least time that 95 % do not exceed.
            p95: inside
                .iter()
                .enumerate()
                .find(|(rank, _)| (rank + 1) * 100 >= ticks * 95)
                .map_or(Duration::ZERO, |at| *at.1),
            worst: inside.last().copied().unwrap_or_default(),
            utilisation: if length > 0.0 { busy.as_secs_f64() / length } else { 0.0 },
            ticks: ticks as u32,
        }
    }
}

fn any_time() -> impl Strategy<Value = Duration> {
    prop_oneof![
        (0..200_000_u64).prop_map(millis),
        (any::<u64>(), 0..1_000_000_000_u32).prop_map(|(seconds, nanos)| Duration::new(seconds, nanos)),
        Just(Duration::ZERO),
        Just(Duration::MAX),
    ]
}

proptest! {
    /// Compares ticks at any rate that keeps all samples, with pauses, with a list of all of them.
    #[test]
    fn windows_agree_with_a_list_of_all_ticks(
        start in 0..5000_u64,
        gaps in vec((42..3000_u64, 0..1000_u64, prop_oneof![9 => Just(0), 1 => 0..80_000_u64]), 0..300),
        after in 0..70_000_u64,
    ) {
        let (mut history, mut model) = (TickHistory::default(), Model::default());
        let mut now = millis(start);
        for (gap, share, pause) in gaps {
            // At most 24 ticks per second, and never longer than the time since the last tick.
            now += millis(gap + pause);
            let took = millis(gap) * share as u32 / 1000;
            history.push(now, took);
            model.0.push((now, took));
        }
        for now in [now, now + millis(after)] {
            for window in TimeWindow::ALL {
                let (found, exact) = (history.window(now, window), model.window(now, window));
                prop_assert_eq!(found.ticks, exact.ticks);
                prop_assert_eq!(found.ticks_per_second, exact.ticks_per_second);
                prop_assert!((found.utilisation - exact.utilisation).abs() < 1e-9, "{:?} {:?}", found, exact);
                prop_assert!(is_near(found.median, exact.median), "{:?} {:?}", found, exact);
                prop_assert!(is_near(found.p95, exact.p95), "{:?} {:?}", found, exact);
                prop_assert!(is_near(found.worst, exact.worst), "{:?} {:?}", found, exact);
            }
        }
        prop_assert_eq!(history.ticks(), model.0.len() as u64);
    }

    #[test]
    fn figures_stay_in_bounds_for_any_clock(
        steps in vec((any_time(), any_time(), any_time()), 0..200),
    ) {
        let mut history = TickHistory::default();
        for (ended, took, now) in steps {
            history.push(ended, took);
            history.refresh(now);
            let windows = TimeWindow::ALL.map(|window| history.window(now, window));
            for found in windows.iter().chain(history.windows()) {
                prop_assert!(found.ticks_per_second.is_none_or(|rate| rate.is_finite() && rate >= 0.0));
                prop_assert!((0.0..=1.0).contains(&found.utilisation));
                prop_assert!(found.median <= found.p95 && found.p95 <= found.worst);
                prop_assert!(u64::from(found.ticks) <= history.ticks());
            }
            prop_assert!(history.slots.len() <= SLOTS && bytes(&history) <= 4096);
            let sampled: usize = history.slots.iter().map(|slot| usize::from(slot.sampled)).sum();
            prop_assert_eq!(sampled, history.samples.len());
        }
    }

    #[test]
    fn quantised_times_keep_their_order_and_nearly_their_value(a in any_time(), b in any::<u64>(), shift in 0..64_u32) {
        let b = Duration::from_nanos(b >> shift);
        prop_assert!(is_near(expanded(quantised(b)), b));
        if a <= b {
            prop_assert!(quantised(a) <= quantised(b));
        } else {
            prop_assert!(quantised(a) >= quantised(b));
        }
    }
}
