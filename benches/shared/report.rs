//! Figures of a running system.

/// Prints a figure and its goal.
pub fn report(name: &str, ours: String, goal: &str) {
    println!("{name:<28} {ours:<64} goal: {goal}");
}

/// Resident memory of this process, in KiB.
pub fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or_default()
}
