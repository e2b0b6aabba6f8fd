//! The guide: a small game, built step by step. Its chapters are the pages of `docs/guide`, and their snippets are tests.
//!
//! | chapter | |
//! |---|---|
//! | [`first_world`] | Your first world |
//! | [`blocks`] | Blocks |
//! | [`regions`] | Game logic in regions |
//! | [`main_world`] | The main world |
//! | [`generation`] | Generation |
//! | [`dimensions_and_time`] | Dimensions and time |
//! | [`saving`] | Saving, and what a crash costs |
//! | [`snapshots`] | Snapshots and arenas |
//! | [`multiplayer`] | Multiplayer |
//! | [`testing`] | Testing your game |
//! | [`tuning`] | Measuring and tuning |
//! | [`operating`] | Operating a server |
//! | [`porting`] | Porting a game with one world |

#[doc = include_str!("../docs/guide/first-world.md")]
pub mod first_world {}

#[doc = include_str!("../docs/guide/blocks.md")]
pub mod blocks {}

#[doc = include_str!("../docs/guide/regions.md")]
pub mod regions {}

#[doc = include_str!("../docs/guide/main-world.md")]
pub mod main_world {}

#[doc = include_str!("../docs/guide/generation.md")]
pub mod generation {}

#[doc = include_str!("../docs/guide/dimensions-and-time.md")]
pub mod dimensions_and_time {}

#[doc = include_str!("../docs/guide/saving.md")]
pub mod saving {}

#[doc = include_str!("../docs/guide/snapshots.md")]
pub mod snapshots {}

#[doc = include_str!("../docs/guide/multiplayer.md")]
pub mod multiplayer {}

#[doc = include_str!("../docs/guide/testing.md")]
pub mod testing {}

#[doc = include_str!("../docs/guide/tuning.md")]
pub mod tuning {}

#[doc = include_str!("../docs/guide/operating.md")]
pub mod operating {}

#[doc = include_str!("../docs/guide/porting.md")]
pub mod porting {}
