//! Features of common dependencies, and nothing else.
//!
//! Cargo compiles a dependency again for each set of its features. The repository of
//! [bevy_terrane](https://crates.io/crates/bevy_terrane) also builds a physics engine, a database client and benchmarks, which
//! switch on features of dependencies that every game has as well. `terrane_dev` depends on this crate, which
//! switches on the same features. So a game that is made from the template can use the repository's build directory, and compiles
//! neither Bevy nor RocksDB again. The crates behind these features are part of every game with Bevy already.
