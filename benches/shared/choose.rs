//! Selecting workloads by name.

/// Runs the workloads named on the command line, or all.
pub fn run(workloads: &[(&str, fn())]) {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    for (name, run) in workloads {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted.eq_ignore_ascii_case(name)) {
            run();
        }
    }
}
