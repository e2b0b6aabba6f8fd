//! Ground of two servers that comes near each other ends on one of them.
//!
//! Plots of one server that touch each other are a *territory*. No other server may own a neighbor of theirs, so a
//! territory changes hands as a whole. A server that wants a plot beside another server's territory asks for a join: in one
//! transaction all territories around that plot are marked with the same join, which has one *root*. Joins are only united
//! and never parted, so several servers that want to join each other at once end with one root.

use super::plots::{JoinMark, Owned, Rows, square};
use super::{Incarnation, Plot, decode};
use crate::bytes::record;
use crate::space::DimensionId;
use crate::{Family, KeyValue, Read, StoreError, StoredItem, WriteBatch, keys};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The answer to a request for a join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// No other server is near. The plot can be acquired.
    Free,
    /// The server that asked has no territory beside the plot, so whatever needs the plot must go to this server.
    Belongs(u64),
    /// All territories around the plot go to this server, which may be the one that asked. That server can acquire the
    /// plot once they have.
    Root(u64),
}

type Plots = BTreeMap<Plot, Owned>;

impl Incarnation {
    /// Asks that all territories around a plot end on one server.
    ///
    /// # Errors
    /// The same as those of [`write`](Self::write).
    pub fn ask_to_join(&self, wanted: Plot) -> Result<Join, StoreError> {
        self.unite(wanted.0, |plots| {
            let beside: BTreeSet<Plot> = square(wanted).filter(|plot| plots.contains_key(plot)).collect();
            let owners: BTreeSet<u64> = beside.iter().filter_map(|plot| Some(plots.get(plot)?.owner)).collect();
            match owners.iter().find(|owner| **owner != self.number) {
                None => Err(Join::Free),
                Some(owner) if !owners.contains(&self.number) => Err(Join::Belongs(*owner)),
                Some(_) => Ok(beside),
            }
        })
    }

    /// The territories of this server in a dimension that a join gives to another server, with that server.
    ///
    /// # Errors
    /// The same as those of [`write`](Self::write).
    pub fn leaving_territories(&self, dimension: DimensionId) -> Result<Vec<(BTreeSet<Plot>, u64)>, StoreError> {
        let (rows, living) = self.living_rows(dimension)?;
        let plots = without_bytes(&rows);
        let (mut leaving, mut seen) = (Vec::new(), BTreeSet::new());
        for plot in plots.iter().filter(|(_, row)| row.owner == self.number).map(|(plot, _)| *plot) {
            if seen.contains(&plot) {
                continue;
            }
            let territory = territory(&plots, plot);
            seen.extend(territory.iter().copied());
            let marked: BTreeSet<Plot> = territory.iter().copied().filter(|plot| plots[plot].join.is_some()).collect();
            let joins: BTreeSet<JoinMark> = marked.iter().filter_map(|plot| plots[plot].join).collect();
            let root = match joins.first() {
                Some(mark) if joins.len() == 1 && living.contains(&mark.root) => mark.root,
                Some(_) => match self.unite(dimension, |plots| {
                    Ok(marked.iter().copied().filter(|plot| plots.contains_key(plot)).collect())
                })? {
                    Join::Root(root) => root,
                    Join::Free | Join::Belongs(_) => continue,
                },
                None => continue,
            };
            if root != self.number {
                leaving.push((territory, root));
            }
        }
        self.end_joins(dimension)?;
        Ok(leaving)
    }

    /// Removes the marks of joins that have reached their goal: all of their ground is this server's.
    fn end_joins(&self, dimension: DimensionId) -> Result<(), StoreError> {
        let counter = keys::key_of_dimension(keys::JOINS, dimension);
        let count = self.store.get(Family::Meta, &counter)?;
        let (rows, _) = self.living_rows(dimension)?;
        let joins_of = |is_own: bool| {
            let rows = rows.values().filter(move |(_, row)| (row.owner == self.number) == is_own);
            rows.filter_map(|(_, row)| row.join).map(|mark| mark.join).collect::<BTreeSet<u64>>()
        };
        let ended = &joins_of(true) - &joins_of(false);
        let mut batch = WriteBatch::default();
        // No other server can be drawn into one of these joins meanwhile.
        batch.require(Family::Meta, counter, count);
        for (plot, (value, row)) in rows {
            if row.join.is_some_and(|mark| ended.contains(&mark.join)) {
                let key = keys::plot_key(plot.0, plot.1);
                batch.require(Family::Meta, key.clone(), Some(value));
                batch.put(Family::Meta, key, record::encode(&Owned { join: None, ..row }));
            }
        }
        if batch.is_empty() {
            return Ok(());
        }
        match self.write(batch) {
            // The next call finds what is left.
            Err(StoreError::PreconditionFailed { .. }) => Ok(()),
            written => written,
        }
    }

    /// Hands a territory over to another server. Everything on it must be saved, and everything that this server keeps
    /// of it must be dropped before. Returns `false`, and hands over nothing, if the territory or its join has changed or
    /// the other server has ended.
    ///
    /// # Errors
    /// The same as those of [`write`](Self::write). After an outage the handover may have happened: the next
    /// [heartbeat](Self::beat) settles it.
    pub fn hand_over(&self, territory: &BTreeSet<Plot>, to: u64) -> Result<bool, StoreError> {
        let Some(dimension) = territory.first().map(|plot| plot.0) else { return Ok(false) };
        let near: BTreeSet<Plot> = territory.iter().flat_map(|plot| square(*plot)).collect();
        let counter = keys::key_of_dimension(keys::JOINS, dimension);
        let count = self.store.get(Family::Meta, &counter)?;
        let rows = self.rows_of(&near)?;
        let server = keys::server_key(to);
        let Some(living) = self.store.get(Family::Meta, &server)? else { return Ok(false) };
        let mut batch = WriteBatch::default();
        // The other server sees by the counter that it has got ground.
        batch.put(Family::Meta, counter.clone(), record::encode(&self.after(dimension, count.as_deref())?));
        batch.require(Family::Meta, counter, count);
        batch.require(Family::Meta, server, Some(living));
        for plot in near {
            let (key, stored) = (keys::plot_key(plot.0, plot.1), rows.get(&plot));
            batch.require(Family::Meta, key.clone(), stored.map(|(value, _)| value.clone()));
            let own = stored.map(|(_, row)| *row).filter(|row| row.owner == self.number);
            match own {
                Some(row) if territory.contains(&plot) && row.join.is_none_or(|mark| mark.root == to) => {
                    batch.put(Family::Meta, key, record::encode(&Owned { join: row.join, ..self.owned(to) }));
                }
                None if !territory.contains(&plot) => {}
                _ => return Ok(false),
            }
        }
        match self.write(batch) {
            Err(StoreError::PreconditionFailed { .. }) => Ok(false),
            written => written.map(|()| true),
        }
    }

    /// Numbers that change with each join and each handover in these dimensions. While they stay the same, no server gives
    /// ground to another one, and none is asked to.
    pub fn join_counts(&self, dimensions: &[DimensionId]) -> Result<BTreeMap<DimensionId, u64>, StoreError> {
        let keys = dimensions.iter().map(|dimension| keys::key_of_dimension(keys::JOINS, *dimension)).collect();
        let found = self.store.read(&[Read::Keys(Family::Meta, keys)])?.pop().unwrap_or_default();
        let count = |(key, value): KeyValue| {
            let dimension = keys::parse_key_of_dimension(keys::JOINS, &key)?;
            Some(decode(&*self.store, &value, StoredItem::Joins(dimension)).map(|count| (dimension, count)))
        };
        found.into_iter().filter_map(count).collect()
    }

    /// The next number after this stored one.
    fn after(&self, dimension: DimensionId, count: Option<&[u8]>) -> Result<u64, StoreError> {
        let count: Option<u64> =
            count.map(|count| decode(&*self.store, count, StoredItem::Joins(dimension))).transpose()?;
        Ok(count.unwrap_or(0).saturating_add(1))
    }

    /// Unites the joins of some territories. `around` names a plot of each, or an answer without a join.
    fn unite(
        &self,
        dimension: DimensionId,
        around: impl Fn(&Plots) -> Result<BTreeSet<Plot>, Join>,
    ) -> Result<Join, StoreError> {
        let counter = keys::key_of_dimension(keys::JOINS, dimension);
        loop {
            // A batch of reads is not a snapshot, so the counter is read before everything that it guards.
            let count = self.store.get(Family::Meta, &counter)?;
            let (rows, living) = self.living_rows(dimension)?;
            let plots = without_bytes(&rows);
            let beside = match around(&plots) {
                Ok(beside) => beside,
                Err(answer) => return Ok(answer),
            };
            let next = self.after(dimension, count.as_deref())?;
            let Some((root, changed)) = united(&plots, &living, &beside, next) else { return Ok(Join::Free) };
            if changed.is_empty() {
                return Ok(Join::Root(root));
            }
            let mut batch = WriteBatch::default();
            batch.require(Family::Meta, counter.clone(), count);
            batch.put(Family::Meta, counter.clone(), record::encode(&next));
            for (plot, row) in changed {
                let key = keys::plot_key(plot.0, plot.1);
                batch.require(Family::Meta, key.clone(), rows.get(&plot).map(|(value, _)| value.clone()));
                batch.put(Family::Meta, key, record::encode(&row));
            }
            match self.write(batch) {
                Err(StoreError::PreconditionFailed { .. }) => {}
                written => return written.map(|()| Join::Root(root)),
            }
        }
    }
}

fn without_bytes(rows: &Rows) -> Plots {
    rows.iter().map(|(plot, (_, row))| (*plot, *row)).collect()
}

/// The plots that are connected with `plot` by plots of the same owner, none if it has no owner. A plot has eight neighbors.
fn territory(plots: &Plots, plot: Plot) -> BTreeSet<Plot> {
    let Some(owner) = plots.get(&plot).map(|row| row.owner) else { return BTreeSet::new() };
    let (mut territory, mut open) = (BTreeSet::from([plot]), vec![plot]);
    while let Some(plot) = open.pop() {
        let own = square(plot).filter(|near| plots.get(near).is_some_and(|row| row.owner == owner));
        open.extend(own.filter(|near| territory.insert(*near)));
    }
    territory
}

/// The root of the territories that contain the plots `beside`, and the rows that change to give them the same join; `None`
/// without plots. `plots` are those of living servers, and `new` is the number of a new join.
///
/// The root is the server that has most of the ground already, or will have it by the joins so far. Of several, it is
/// the one with the smallest number.
fn united(plots: &Plots, living: &BTreeSet<u64>, beside: &BTreeSet<Plot>, new: u64) -> Option<(u64, Plots)> {
    let (mut together, mut open) = (BTreeSet::new(), beside.clone());
    let (mut joins, mut sizes) = (BTreeSet::new(), BTreeMap::<u64, usize>::new());
    while let Some(plot) = open.pop_first() {
        if together.contains(&plot) {
            continue;
        }
        let territory = territory(plots, plot);
        let marks: Vec<JoinMark> = territory.iter().filter_map(|plot| plots.get(plot)?.join).collect();
        let root = marks.iter().map(|mark| mark.root).find(|root| living.contains(root));
        *sizes.entry(root.or(plots.get(&plot).map(|row| row.owner))?).or_default() += territory.len();
        together.extend(territory);
        for join in marks.into_iter().map(|mark| mark.join).filter(|join| joins.insert(*join)).collect::<Vec<_>>() {
            let others = plots.iter().filter(|(_, row)| row.join.is_some_and(|mark| mark.join == join));
            open.extend(others.map(|(plot, _)| *plot));
        }
    }
    let (root, _) = sizes.into_iter().max_by_key(|(server, size)| (*size, Reverse(*server)))?;
    let mark = JoinMark { join: joins.first().copied().unwrap_or(new), root };
    // The mark of one plot counts for its whole territory.
    let marked =
        together.iter().filter(|plot| beside.contains(plot) || plots.get(plot).is_some_and(|row| row.join.is_some()));
    let rows = marked.filter_map(|plot| Some((*plot, Owned { join: Some(mark), ..*plots.get(plot)? })));
    Some((root, rows.filter(|(plot, row)| plots.get(plot) != Some(row)).collect()))
}
