//! The demand for ground: tickets of viewers and letters, their turns and limits, and how much may be in flight.

pub mod failures;
pub mod generation;
pub mod outlook;
pub mod pacing;
pub mod shares;
pub mod tickets;
pub mod viewer_caps;

use crate::coordinator::demand::failures::ColumnComplaints;
use crate::coordinator::demand::shares::Coverage;
use crate::coordinator::messages::generation::DimensionGeneration;
use crate::coordinator::messages::settings::ViewerLimits;
use crate::coordinator::messages::why::Ticket;
use crate::generation::Completion;
use crate::simulation::ColumnError;
use crate::space::{ColumnPos, TilePos};
use crate::storage::PregenerationEntry;
use generation::GenerationState;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tickets::ViewerState;
use viewer_caps::ViewerCaps;

/// The demand for the ground of a dimension.
#[derive(Default)]
pub struct Demand {
    pub viewers: BTreeMap<Ticket, ViewerState>,
    /// The viewers' allowances.
    pub caps: ViewerCaps,
    /// The viewers that may want something; `None` for all. A viewer that wants nothing is examined again only after a change, so
    /// thousands of satisfied viewers cost nothing.
    pub wanting: Option<Vec<Ticket>>,
    /// `true` if viewers moved since the orders were last examined.
    pub has_moved_viewers: bool,
    /// The number of tickets of each column.
    pub holds: FxHashMap<ColumnPos, u32>,
    /// Resident columns without a ticket.
    pub unneeded: BTreeSet<ColumnPos>,
    /// The areas of the viewers' discs for loading and for generating, until they change.
    pub coverage: Option<[Coverage; 2]>,
    /// How far loading and generating had come around the viewers at the last count.
    pub progress: Option<[Completion; 2]>,
    /// Plots on which players are to appear that are not this server's own.
    pub sought: BTreeSet<TilePos>,
}

impl Demand {
    pub fn new(limits: ViewerLimits) -> Self {
        Self { caps: ViewerCaps::new(limits), ..Self::default() }
    }
}

/// The orders for columns of a dimension.
#[derive(Default)]
pub struct DimensionOrders {
    pub generation: GenerationState,
    /// The number of columns on order.
    pub in_flight: usize,
    /// The number of the last order.
    pub last_claim: u64,
    /// Columns whose wanted slabs may have changed, if it is sparse.
    pub revised: BTreeSet<ColumnPos>,
    /// Columns whose blocks regions already have, and whose other parts must be ordered.
    pub to_complete: Vec<ColumnPos>,
    /// Columns that wait for another try and have lost their tickets.
    pub left_failures: Vec<ColumnPos>,
    /// Stored jobs that have not been resumed yet.
    pub stored_jobs: Vec<PregenerationEntry>,
    /// Columns that jobs generate for the store, each with the error if it failed.
    pub for_jobs: BTreeMap<ColumnPos, Option<ColumnError>>,
    /// The number of columns in a row that failed because of a store outage.
    pub outages: u32,
    /// After such failures, no order is placed before this time.
    pub rest_until: Duration,
    pub complaints: ColumnComplaints,
}

impl DimensionOrders {
    pub fn new(settings: DimensionGeneration) -> Self {
        Self { generation: GenerationState::new(settings), ..Self::default() }
    }
}
