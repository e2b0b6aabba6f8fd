//! Figures of a running system.

/// Prints a figure and its goal.
pub fn report(name: &str, ours: String, goal: &str) {
    println!("{name:<28} {ours:<64} goal: {goal}");
}
