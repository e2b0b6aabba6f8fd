//! The guide: a small game, built step by step. Its chapters are the pages of `docs/guide`, and their snippets are tests.
//!
//! | chapter | |
//! |---|---|
//! | [`first_world`] | Your first world |
//! | [`first_person`] | First person: a player who walks |
//! | [`blocks`] | Blocks |
//! | [`looks`] | Looks: textures, glass, water and light |
//! | [`light`] | Light |
//! | [`regions`] | Game logic in regions |
//! | [`main_world`] | The main world |
//! | [`bodies`] | Bodies: players, mobs, and what else stands on the ground |
//! | [`generation`] | Generation |
//! | [`dimensions_and_time`] | Dimensions and time |
//! | [`saving`] | Saving, and what a crash costs |
//! | [`snapshots`] | Snapshots and arenas |
//! | [`multiplayer`] | Multiplayer |
//! | [`testing`] | Testing your game |
//! | [`finding_out_why`] | Finding out why: five common problems |
//! | [`tuning`] | Measuring and tuning |
//! | [`operating`] | Operating a server |
//! | [`porting`] | Porting a game with one world |

macro_rules! chapters {
    ($($name:ident: $page:literal,)*) => {$(
        #[doc = include_str!(concat!("../docs/guide/", $page))]
        #[doc = include_str!("guide_links.html")]
        pub mod $name {}
    )*};
}

chapters! {
    first_world: "first-world.md",
    first_person: "first-person.md",
    blocks: "blocks.md",
    looks: "looks.md",
    light: "light.md",
    regions: "regions.md",
    main_world: "main-world.md",
    bodies: "bodies.md",
    generation: "generation.md",
    dimensions_and_time: "dimensions-and-time.md",
    saving: "saving.md",
    snapshots: "snapshots.md",
    multiplayer: "multiplayer.md",
    testing: "testing.md",
    finding_out_why: "finding-out-why.md",
    tuning: "tuning.md",
    operating: "operating.md",
    porting: "porting.md",
}
