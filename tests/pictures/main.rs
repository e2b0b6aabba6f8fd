//! Tests that draw pictures: by the software driver if there is no graphics card. With `TERRANE_PICTURES=FOLDER` the pictures are
//! saved there.

mod gizmos;
mod order;
mod seams;
mod studio;
mod turns;

/// The number of repetitions of a long test: `few`, multiplied by `TERRANE_ROUNDS`.
fn rounds(few: usize) -> usize {
    few * std::env::var("TERRANE_ROUNDS").ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}
