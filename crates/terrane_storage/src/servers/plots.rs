//! The ground that servers own.

use super::{Incarnation, decode};
use crate::bytes::record;
use crate::space::{DimensionId, TilePos};
use crate::{Family, KeyValue, Read, StoreError, StoredItem, WriteBatch, keys};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

/// A square of 32 x 32 columns that one server owns, or none does: a tile of the stored graph.
pub type Plot = (DimensionId, TilePos);

/// The number of columns along the side of a plot.
pub const PLOT_SIZE: u64 = 32;

/// The stored owner of a plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Owned {
    /// The number of the owner's incarnation. If it has ended, the plot is free.
    pub owner: u64,
    /// The join that the plot takes part in.
    pub join: Option<JoinMark>,
    /// The incarnation that wrote this owner, and the number of that write. So the row of a plot that left a server and came
    /// back is a different one.
    pub since: (u64, u64),
}

/// The part of a plot in a join.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct JoinMark {
    /// The number of the join.
    pub join: u64,
    /// The server that gets all ground of the join.
    pub root: u64,
}

/// The rows of plots, each with its stored bytes for a precondition.
pub(super) type Rows = BTreeMap<Plot, (Vec<u8>, Owned)>;

impl Incarnation {
    /// Acquires plots, all or none of them. Each of them and its eight neighbors must be free, or this server's own.
    /// Returns the plots of other living servers that prevent it, with the numbers of their owners. There are none if
    /// the plots were acquired.
    ///
    /// # Errors
    /// The same as those of [`write`](Self::write).
    pub fn acquire(&self, plots: &BTreeSet<Plot>) -> Result<BTreeMap<Plot, u64>, StoreError> {
        loop {
            let near: BTreeSet<Plot> = plots.iter().flat_map(|plot| square(*plot)).collect();
            let rows = self.rows_of(&near)?;
            let others: BTreeSet<u64> =
                rows.values().map(|(_, row)| row.owner).filter(|owner| *owner != self.number).collect();
            let living = self.living(&others)?;
            let taken = rows.iter().filter(|(_, (_, row))| living.contains(&row.owner));
            let taken: BTreeMap<Plot, u64> = taken.map(|(plot, (_, row))| (*plot, row.owner)).collect();
            if !taken.is_empty() {
                return Ok(taken);
            }
            let mut batch = WriteBatch::default();
            // If any of these rows changes meanwhile, this is tried again. That includes own rows: a handover whose
            // answer was lost may still happen.
            for plot in near {
                let (key, stored) = (keys::plot_key(plot.0, plot.1), rows.get(&plot));
                batch.require(Family::Meta, key.clone(), stored.map(|(value, _)| value.clone()));
                if plots.contains(&plot) && stored.is_none_or(|(_, row)| row.owner != self.number) {
                    batch.put(Family::Meta, key, record::encode(&self.owned(self.number)));
                }
            }
            match self.write(batch) {
                Err(StoreError::PreconditionFailed { .. }) => {}
                written => return written.map(|()| BTreeMap::new()),
            }
        }
    }

    /// A row for a new owner.
    pub(super) fn owned(&self, owner: u64) -> Owned {
        Owned { owner, join: None, since: (self.number, self.beats.load(Ordering::Relaxed)) }
    }

    /// Those of these plots that this server owns.
    pub fn own_of(&self, plots: &BTreeSet<Plot>) -> Result<BTreeSet<Plot>, StoreError> {
        let rows = self.rows_of(plots)?;
        Ok(rows.into_iter().filter(|(_, (_, row))| row.owner == self.number).map(|(plot, _)| plot).collect())
    }

    /// The row of a plot if this server owns it. As long as this row is stored, no other server has owned the plot.
    pub(crate) fn own_row(&self, plot: Plot) -> Result<Option<Vec<u8>>, StoreError> {
        let row = self.rows_of(&[plot].into())?.remove(&plot);
        Ok(row.filter(|(_, row)| row.owner == self.number).map(|(value, _)| value))
    }

    /// Releases those of these plots that are this server's own. Everything on them must be saved, and everything that
    /// this server keeps of them must be dropped before.
    ///
    /// # Errors
    /// The same as those of [`write`](Self::write).
    pub fn release(&self, plots: &BTreeSet<Plot>) -> Result<(), StoreError> {
        loop {
            let mut batch = WriteBatch::default();
            for (plot, (value, row)) in self.rows_of(plots)? {
                if row.owner == self.number {
                    let key = keys::plot_key(plot.0, plot.1);
                    batch.require(Family::Meta, key.clone(), Some(value));
                    batch.delete(Family::Meta, key);
                }
            }
            match self.write(batch) {
                Err(StoreError::PreconditionFailed { .. }) => {}
                written => return written,
            }
        }
    }

    /// The rows of these plots.
    pub(super) fn rows_of(&self, plots: &BTreeSet<Plot>) -> Result<Rows, StoreError> {
        let keys = plots.iter().map(|plot| keys::plot_key(plot.0, plot.1)).collect();
        self.decode_rows(self.store.read(&[Read::Keys(Family::Meta, keys)])?.pop().unwrap_or_default())
    }

    /// The plots of a dimension that belong to living servers, with the numbers of their owners.
    pub fn owners(&self, dimension: DimensionId) -> Result<BTreeMap<Plot, u64>, StoreError> {
        let (rows, _) = self.living_rows(dimension)?;
        Ok(rows.into_iter().map(|(plot, (_, row))| (plot, row.owner)).collect())
    }

    /// The plots of living servers in a dimension, and the living servers.
    pub(super) fn living_rows(&self, dimension: DimensionId) -> Result<(Rows, BTreeSet<u64>), StoreError> {
        let range = keys::dimension_range(keys::PLOT, dimension);
        let found = self.store.read(&[Read::Range(Family::Meta, range, usize::MAX)])?.pop().unwrap_or_default();
        let mut rows = self.decode_rows(found)?;
        let servers = rows.values().flat_map(|(_, row)| [Some(row.owner), row.join.map(|mark| mark.root)]);
        let living = self.living(&servers.flatten().collect())?;
        rows.retain(|_, (_, row)| living.contains(&row.owner));
        Ok((rows, living))
    }

    /// The numbers of these servers that have not ended.
    pub(super) fn living(&self, servers: &BTreeSet<u64>) -> Result<BTreeSet<u64>, StoreError> {
        if servers.is_empty() {
            return Ok(BTreeSet::new());
        }
        let keys = servers.iter().map(|number| keys::server_key(*number)).collect();
        let found = self.store.read(&[Read::Keys(Family::Meta, keys)])?.pop().unwrap_or_default();
        Ok(found.iter().filter_map(|(key, _)| keys::parse_server_key(key)).collect())
    }

    /// Decodes the rows of plots.
    pub(super) fn decode_rows(&self, rows: Vec<KeyValue>) -> Result<Rows, StoreError> {
        let row = |(key, value): KeyValue| {
            let plot = keys::parse_plot_key(&key)?;
            let row = decode(&*self.store, &value, StoredItem::Plot(plot.0, plot.1));
            Some(row.map(|row| (plot, (value, row))))
        };
        rows.into_iter().filter_map(row).collect()
    }
}

/// A plot and its eight neighbors.
pub(super) fn square((dimension, TilePos { x, z }): Plot) -> impl Iterator<Item = Plot> {
    let near = |at: i64| at.saturating_sub(1)..=at.saturating_add(1);
    near(x).flat_map(move |x| near(z).map(move |z| (dimension, TilePos::new(x, z))))
}
