//! Takes the statistics, hands over the published changes, and logs repeated problems.

use crate::coordinator::clock::Clock;
use crate::coordinator::demand::failures::ColumnComplaints;
use crate::coordinator::dimension::progress::count_again_at;
use crate::coordinator::dimension::{DimensionBook, OpenDimension};
use crate::coordinator::figures::totals::PERIOD;
use crate::coordinator::mail::directory::Directory;
use crate::coordinator::mail::queue::MailQueue;
use crate::coordinator::messages::events::EntityPlaced;
use crate::coordinator::messages::settings::Settings;
use crate::coordinator::messages::statistics::{RegionStatistics, WorldStatistics};
use crate::coordinator::publish::Publisher;
use crate::coordinator::saves::Saves;
use crate::coordinator::schedule::control::Couplings;
use crate::coordinator::schedule::deadlines::Deadlines;
use crate::coordinator::servers::tend::Servers;
use crate::coordinator::stream::orders::Orders;
use crate::coordinator::threads::Threads;
use crate::coordinator::tiers::Tiers;
use crate::region::{RegionId, RegionState};
use crate::space::SectionPos;
use crate::work::return_freed_memory;
use bevy::prelude::*;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub fn publish(
    clock: Res<Clock>,
    mut dimensions: ResMut<DimensionBook>,
    mut post: ResMut<MailQueue>,
    mut directory: ResMut<Directory>,
    mut publisher: ResMut<Publisher>,
) {
    for (id, place) in directory.take_moves() {
        publisher.event(EntityPlaced { id, at: clock.now, place });
    }
    tell_complaints(&mut dimensions, &mut post, &mut publisher, clock.now);
    let with_days = dimensions.open.iter().filter(|(_, dimension)| dimension.time.time_of_day.is_some());
    publisher.clocks(with_days.map(|(id, dimension)| (*id, dimension.time.now)));
    publisher.hand_over();
}

/// Logs repeated problems.
pub fn tell_complaints(dimensions: &mut DimensionBook, post: &mut MailQueue, publisher: &mut Publisher, now: Duration) {
    const OTHERS: &str = "more columns failed";
    if let Some(line) = publisher.refused.take(now, "more edits were refused") {
        warn!("a SetBlock was refused: {line}");
    }
    if let Some(line) = post.backlog.refused.take(now, "more letters came back") {
        warn!("{line}");
    }
    for dimension in dimensions.open.values_mut() {
        let ColumnComplaints { retried, set_aside, unread } = &mut dimension.orders.complaints;
        retried.take(now, OTHERS).into_iter().for_each(|line| warn!("{line}"));
        for line in [set_aside.take(now, OTHERS), unread.take(now, OTHERS)].into_iter().flatten() {
            error!("{line}");
        }
    }
}

/// Takes the statistics four times a second.
pub fn take_statistics(
    config: Res<Settings>,
    clock: Res<Clock>,
    mut dimensions: ResMut<DimensionBook>,
    mut deadlines: ResMut<Deadlines>,
    orders: Res<Orders>,
    saves: Res<Saves>,
    tiers: Res<Tiers>,
    couplings: Res<Couplings>,
    servers: Option<Res<Servers>>,
    mut threads: ResMut<Threads>,
    mut publisher: ResMut<Publisher>,
) {
    let now = clock.now;
    let totals = &mut publisher.totals;
    if now < totals.due {
        return;
    }
    totals.due = now.saturating_add(PERIOD);
    let began = Instant::now();
    // In lockstep the count must not depend on time.
    if config.tick_mode.is_lockstep() || totals.count_at.is_none_or(|due| due <= began) {
        dimensions.open.values_mut().for_each(OpenDimension::count_progress);
        totals.count_at = count_again_at(began, Instant::now());
    }
    let regions = region_statistics(&config, &couplings, &mut dimensions, &mut deadlines, now);
    let of_dimensions: Vec<_> = dimensions.open.values_mut().map(OpenDimension::statistics).collect();
    let remaining: u64 = of_dimensions.iter().map(|dimension| dimension.to_load.missing).sum();
    let states = dimensions.open.values().flat_map(|dimension| dimension.columns.iter());
    let columns = states.filter(|(_, state)| state.is_in_region()).count();
    let viewers = dimensions.open.iter().flat_map(|(id, dimension)| {
        dimension.real_viewers().map(move |viewer| (*id, viewer.center, viewer.radii.load))
    });
    let viewers = viewers.collect();
    let statistics = WorldStatistics {
        columns,
        in_flight: orders.in_flight(),
        in_flight_limit: orders.limit.columns(),
        remaining: usize::try_from(remaining).unwrap_or(usize::MAX),
        saves: saves.count,
        bytes_saved: saves.bytes,
        bytes_written: threads.store.written_bytes(),
        save_time: saves.time,
        unsaved: saves.unwritten_len(),
        backlog: saves.backlog(),
        tiers: tiers.statistics.clone(),
        dimensions: of_dimensions,
        regions,
        viewers,
        section_shift: config.regionizer.section_shift,
        servers: servers.as_ref().map(|servers| servers.statistics()).unwrap_or_default(),
        is_frozen: servers.is_some_and(|servers| servers.is_frozen()),
        ..totals.statistics(now)
    };
    if totals.burst.is_over(statistics.regions.len(), statistics.columns) {
        threads.ask(Some("terrane memory"), |_, _| return_freed_memory(), |_, _| {});
    }
    publisher.statistics(statistics);
}

fn region_statistics(
    config: &Settings,
    couplings: &Couplings,
    dimensions: &mut DimensionBook,
    deadlines: &mut Deadlines,
    now: Duration,
) -> Vec<RegionStatistics> {
    let groups = couplings.groups(dimensions);
    let coupled = |region| {
        let group = groups.iter().find(|group| group.contains(&region));
        group.into_iter().flatten().copied().filter(|other| *other != region).collect()
    };
    let mut regions = Vec::new();
    for (id, dimension) in &mut dimensions.open {
        for region in dimension.regions.regionizer.regions() {
            let state = dimension.regions.regionizer.state(region).unwrap_or(RegionState::Dead);
            let is_paused = dimension.time.settings.paused;
            let is_away = deadlines.running.contains_key(&(*id, region));
            let Some(slot) = deadlines.slot_mut(dimension, region) else { continue };
            slot.history.refresh(now);
            let running_for = slot.progress.running_for();
            let hung = Some(running_for).filter(|running| is_away && *running > config.faults.watchdog_limit);
            let known = slot.listed_sections.clone();
            let statistics = RegionStatistics {
                state,
                halted: slot.halted.is_some(),
                fault: slot.halted.as_ref().map(|halted| halted.fault.clone()),
                paused: slot.control.paused || is_paused,
                paused_itself: slot.control.paused,
                tick_rate: slot.control.ticks_per_second,
                hung,
                hung_in: hung.map(|_| slot.progress.step()),
                coupled: coupled((*id, region)),
                columns: slot.numbers.columns,
                entities: slot.numbers.entities,
                viewers: slot.numbers.viewers,
                ticks: slot.history.ticks(),
                windows: *slot.history.windows(),
                ..RegionStatistics::new(*id, region)
            };
            let sections = known.unwrap_or_else(|| deadlines.list_sections(dimension, region));
            regions.push(RegionStatistics { sections, ..statistics });
        }
    }
    regions
}

impl Deadlines {
    /// The sections of a region, sorted.
    fn list_sections(&mut self, dimension: &mut OpenDimension, region: RegionId) -> Arc<[SectionPos]> {
        let mut sections: Vec<_> = dimension.regions.regionizer.sections(region).collect();
        sections.sort_unstable();
        let sections = Arc::<[SectionPos]>::from(sections);
        if let Some(slot) = self.slot_mut(dimension, region) {
            slot.listed_sections = Some(sections.clone());
        }
        sections
    }
}
