//! `cargo xtask count` says how much code the libraries have, which functions and structs are large, and which files import each
//! other in circles.

use super::imports::Imports;
use super::{Item, LIBRARIES, read};
use crate::test::root;
use std::process::ExitCode;

/// The lines of a function, and the public fields of a struct, above which they are listed.
const LONG: usize = 60;
const WIDE: usize = 16;

/// Prints the figures.
pub fn run() -> Result<ExitCode, String> {
    println!("{:<30} {:>7} {:>6} {:>6} {:>7}", "without tests", "lines", "files", "types", "median");
    let mut all = Vec::new();
    let (mut circles, mut large) = (Vec::new(), Vec::new());
    for folder in LIBRARIES {
        let imports = Imports::new(read(&root().join(folder))?);
        let files: Vec<_> = imports.files.iter().map(|file| (file.lines, file.types())).collect();
        row(folder, &files);
        for circle in imports.circles() {
            let names: Vec<_> = circle.iter().map(|file| imports.files[*file].module.join("/")).collect();
            circles.push(format!("{folder}: {} files: {}", names.len(), names.join(", ")));
        }
        for file in &imports.files {
            let place = |item: &Item| format!("{folder}/{}:{}: {}", file.path.display(), item.line, item.name);
            let long = file.functions().into_iter().filter(|item| item.size > LONG);
            large.extend(long.map(|item| format!("{}, {} lines", place(&item), item.size)));
            let wide = file.structs().into_iter().filter(|item| item.size > WIDE);
            large.extend(wide.map(|item| format!("{}, {} public fields", place(&item), item.size)));
        }
        all.extend(files);
    }
    row("all", &all);
    println!("\n{} functions of over {LONG} lines, and structs of over {WIDE} public fields", large.len());
    large.iter().for_each(|item| println!("{item}"));
    println!("\n{} circles of imports over more than two files", circles.len());
    circles.iter().for_each(|circle| println!("{circle}"));
    Ok(ExitCode::SUCCESS)
}

/// Prints the lines of code and the types of files.
fn row(name: &str, files: &[(usize, usize)]) {
    let mut lines: Vec<usize> = files.iter().map(|(lines, _)| *lines).collect();
    lines.sort_unstable();
    let median = lines.get(lines.len() / 2).copied().unwrap_or_default();
    let types: usize = files.iter().map(|(_, types)| types).sum();
    println!("{name:<30} {:>7} {:>6} {types:>6} {median:>7}", lines.iter().sum::<usize>(), files.len());
}
