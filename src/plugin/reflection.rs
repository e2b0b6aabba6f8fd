//! Reflection of all public components and resources, so that inspectors, scenes and remote tools see them.

use super::WorldFailure;
use crate::simulation::*;
use crate::view::*;
use bevy::prelude::*;

macro_rules! register {
    ($app:expr, $($name:ty),+ $(,)?) => { $($app.register_type::<$name>();)+ };
}

// As long as the list of types.
pub(super) fn register(app: &mut App) {
    register!(
        app,
        Arena,
        ArenaStatus,
        BlockBody,
        BlockTypes,
        BodyTypes,
        BodyVelocity,
        CharacterController,
        ChunkSyncClient,
        ChunkSyncPeer,
        Coupling,
        Dimension,
        DimensionClock,
        DimensionGeneration,
        DimensionOpen,
        Dimensions,
        EntityIndex,
        FallingBlock,
        FarColumns,
        FarView,
        Grounded,
        GroundSettings,
        Intent,
        Job,
        JobProgress,
        Jobs,
        LoggedOut,
        Mirror,
        MirrorIndex,
        Moving,
        OwnBody,
        Pacing,
        PathTo,
        Player,
        Position,
        Post,
        Pregeneration,
        PublishedColumns,
        RegionColumns,
        RegionInfo,
        RegionProfiler,
        RegionRandom,
        StableId,
        Steering,
        TimeOfDay,
        Actor,
        Viewer,
        Walk,
        WorldFailure,
        WorldStatistics,
    );
}
