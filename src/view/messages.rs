//! What the main world hears of the simulation.

use crate::coordinator::DimensionError;
use crate::region::RegionId;
use crate::space::{ChunkPos, ColumnPos, DimensionId};
use bevy::prelude::*;
use std::sync::Arc;

macro_rules! messages {
    ($($(#[$docs:meta])* $name:ident { $($(#[$field_docs:meta])* $field:ident: $type:ty),* $(,)? })*) => {
        $(
            $(#[$docs])*
            #[derive(Message, Clone, Debug)]
            pub struct $name {
                $($(#[$field_docs])* pub $field: $type,)*
            }
        )*

        pub(super) fn add(app: &mut App) {
            app$(.add_message::<$name>())*;
        }
    };
}

messages! {
    /// A dimension is open.
    DimensionOpened {
        /// The dimension's entity.
        entity: Entity,
        /// Its number in the world.
        dimension: DimensionId,
        /// Columns of it that the store holds.
        stored_columns: u64,
        /// Stored viewers that came back with it: entities of regions that hold ground loaded.
        viewers: usize,
    }
    /// A dimension could not be opened.
    DimensionFailed {
        /// The dimension's entity.
        entity: Entity,
        /// Why.
        error: Arc<DimensionError>,
    }
    /// A column can be read in the main world.
    ColumnLoaded {
        /// Its dimension.
        dimension: DimensionId,
        /// The column.
        column: ColumnPos,
    }
    /// A chunk of a loaded column changed.
    ColumnChanged {
        /// Its dimension.
        dimension: DimensionId,
        /// The chunk that changed.
        chunk: ChunkPos,
    }
    /// A column cannot be read in the main world any more.
    ColumnUnloaded {
        /// Its dimension.
        dimension: DimensionId,
        /// The column.
        column: ColumnPos,
    }
    /// A column could not be generated or loaded; it is tried again later.
    ColumnFailed {
        /// Its dimension.
        dimension: DimensionId,
        /// The column.
        column: ColumnPos,
        /// Why.
        error: String,
    }
    /// A region came to be.
    RegionCreated {
        /// Its dimension.
        dimension: DimensionId,
        /// The new region.
        region: RegionId,
    }
    /// A region became a part of another.
    RegionMerged {
        /// Their dimension.
        dimension: DimensionId,
        /// The region that is no more.
        from: RegionId,
        /// The region that took over.
        into: RegionId,
    }
    /// A region fell apart; it keeps its largest part.
    RegionSplit {
        /// Its dimension.
        dimension: DimensionId,
        /// The region.
        from: RegionId,
        /// The regions that its other parts became.
        into: Vec<RegionId>,
    }
    /// A region is no more.
    RegionDestroyed {
        /// Its dimension.
        dimension: DimensionId,
        /// The region.
        region: RegionId,
    }
    /// A region's tick panicked: it does not tick any more, its last saved state stays.
    RegionHalted {
        /// Its dimension.
        dimension: DimensionId,
        /// The region.
        region: RegionId,
        /// What the panic said.
        reason: String,
    }
    /// Everything that was unsaved when the [`SaveWorld`](super::SaveWorld) with this number was sent is durable.
    WorldSaved {
        /// The number of the request.
        request: u64,
    }
    /// The store could not write, which loses nothing since it is tried again; or a region halted before it could be
    /// saved, and a [`SaveWorld`](super::SaveWorld) that waited for it is not answered.
    SaveFailed {
        /// Why.
        error: String,
    }
}
