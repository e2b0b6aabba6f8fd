//! `cargo xtask textures` draws the textures of the project, or checks that the files are what it draws.
//!
//! All arithmetic is with integers and the PNG writer is our own, so each machine writes the same bytes.

mod canvas;
mod ground;
mod liquids;
mod masonry;
mod noise;
mod plants;
mod png;
mod wood;

use canvas::Canvas;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The textures of the basic blocks, which are part of the crate.
const BUILT_IN: &str = "src/render/textures";
/// The textures that only examples use.
const EXAMPLES: &str = "assets/textures";

/// A picture of one block face. An animation has several frames, which the file shows from top to bottom.
#[derive(Clone)]
struct Texture {
    folder: &'static str,
    name: &'static str,
    frames: Vec<Canvas>,
}

impl Texture {
    fn still(folder: &'static str, name: &'static str, canvas: Canvas) -> Self {
        Self { folder, name, frames: vec![canvas] }
    }

    fn path(&self, root: &Path) -> PathBuf {
        root.join(self.folder).join(format!("{}.png", self.name))
    }

    fn file(&self) -> Vec<u8> {
        png::encode(&self.frames)
    }
}

/// Writes all textures. With `check`, writes nothing and fails if a file differs from its drawing.
pub fn run(check: bool) -> Result<ExitCode, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    if check {
        let findings = findings(&root, &all())?;
        return if findings.is_empty() { Ok(ExitCode::SUCCESS) } else { Err(findings.join("\n")) };
    }
    for texture in all() {
        let path = texture.path(&root);
        fs::write(&path, texture.file()).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Every texture, in the order of its group.
fn all() -> Vec<Texture> {
    [ground::textures(), liquids::textures(), wood::textures(), plants::textures(), masonry::textures()].concat()
}

/// Names each file that is missing, differs from its drawing, or has no drawing.
fn findings(root: &Path, textures: &[Texture]) -> Result<Vec<String>, String> {
    let mut findings = Vec::new();
    for texture in textures {
        let name = format!("{}/{}.png", texture.folder, texture.name);
        match fs::read(texture.path(root)) {
            Ok(file) if file == texture.file() => {}
            Ok(_) => findings.push(format!("{name} differs from its drawing: run `cargo xtask textures`")),
            Err(error) => findings.push(format!("{name} cannot be read: {error}")),
        }
    }
    for folder in [BUILT_IN, EXAMPLES] {
        let path = root.join(folder);
        let entries = fs::read_dir(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "png"));
        files.retain(|file| textures.iter().all(|texture| texture.path(root) != *file));
        files.sort();
        findings.extend(files.iter().map(|file| format!("{} has no drawing: delete it", file.display())));
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::canvas::everywhere;
    use super::*;
    use std::{env, process};

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
    }

    fn drawing(name: &str) -> Texture {
        all().into_iter().find(|texture| texture.name == name).unwrap_or_else(|| panic!("there is no {name}"))
    }

    /// Promise, commands: `cargo xtask textures` draws the textures as they are in the repository, byte for byte.
    #[test]
    fn the_files_are_what_the_program_draws() {
        assert_eq!(findings(&root(), &all()), Ok(Vec::new()));
    }

    #[test]
    fn changed_missing_and_unknown_files_are_named() {
        let root = env::temp_dir().join(format!("xtask_textures_{}", process::id()));
        for folder in [BUILT_IN, EXAMPLES] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        let textures = [drawing("stone"), drawing("sand"), drawing("planks")];
        fs::write(textures[0].path(&root), textures[0].file()).unwrap();
        fs::write(textures[1].path(&root), textures[0].file()).unwrap();
        fs::write(root.join(EXAMPLES).join("old.png"), []).unwrap();
        let findings = findings(&root, &textures).unwrap();
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(findings.len(), 3, "{findings:?}");
        assert!(findings[0].starts_with("src/render/textures/sand.png differs"), "{findings:?}");
        assert!(findings[1].starts_with("assets/textures/planks.png cannot be read"), "{findings:?}");
        assert!(findings[2].contains("old.png has no drawing"), "{findings:?}");
    }

    /// The color of a basic block in the source of its registry.
    fn block_color(source: &str, block: &str) -> Vec<u8> {
        let (_, rest) = source.split_once(&format!("\"terrane:{block}\")")).unwrap();
        let (_, rest) = rest.split_once(".with_color([").unwrap();
        rest.split(']').next().unwrap().split(", ").map(|value| value.parse().unwrap()).collect()
    }

    /// Far land is drawn in the colors of the blocks, and must look like land with textures.
    #[test]
    fn textures_have_the_colors_of_their_blocks() {
        let source = fs::read_to_string(root().join("crates/terrane_world/src/block/registry.rs")).unwrap();
        for block in ["stone", "dirt", "grass", "sand", "gravel", "water", "snow", "wood", "leaves"] {
            let texture = drawing(match block {
                "grass" => "grass_top",
                "wood" => "wood_side",
                same => same,
            });
            for frame in &texture.frames {
                let (mean, color) = (frame.mean(), block_color(&source, block));
                let is_near = mean.iter().zip(&color).all(|(mean, color)| mean.abs_diff(*color) <= 2);
                assert!(is_near, "{block} is {color:?}, and its texture {mean:?}");
            }
        }
    }

    #[test]
    fn each_mode_has_its_alpha() {
        let alphas = |name: &str| -> Vec<u8> {
            drawing(name).frames.iter().flat_map(Canvas::pixels).map(|pixel| pixel[3]).collect()
        };
        let blended = ["water", "ice", "glass", "stained_glass_red", "stained_glass_blue", "pane_edge"];
        let cut_out = ["leaves", "grass_side_overlay", "flower_red", "flower_yellow", "tall_grass", "fern", "mushroom"];
        let cut_out = [&cut_out[..], &["torch", "torch_flame", "iron_bars"]].concat();
        for texture in all() {
            let alphas = alphas(texture.name);
            let as_meant = if blended.contains(&texture.name) {
                alphas.iter().all(|alpha| (40..=220).contains(alpha))
            } else if cut_out.contains(&texture.name) {
                alphas.contains(&0) && alphas.iter().all(|alpha| matches!(alpha, 0 | 255))
            } else {
                alphas.iter().all(|alpha| *alpha == 255)
            };
            assert!(as_meant, "{}: {alphas:?}", texture.name);
        }
        let holes = alphas("leaves").iter().filter(|alpha| **alpha == 0).count() * 100 / 256;
        assert!((25..=30).contains(&holes), "{holes} % of the leaves are holes");
    }

    /// How much the colors of two neighbors differ.
    fn step(canvas: &Canvas, at: (i32, i32), to: (i32, i32)) -> i32 {
        let (from, to) = (canvas.get(at.0, at.1), canvas.get(to.0, to.1));
        (0..3).map(|channel| i32::from(from[channel].abs_diff(to[channel]))).sum()
    }

    #[test]
    fn edges_meet_without_a_seam() {
        for name in
            ["stone", "dirt", "grass_top", "sand", "gravel", "water", "snow", "wood_side", "lava", "marble", "basalt"]
        {
            for canvas in &drawing(name).frames {
                let all: i32 = everywhere()
                    .map(|(x, y)| step(canvas, (x, y), (x + 1, y)) + step(canvas, (x, y), (x, y + 1)))
                    .sum();
                let edge: i32 =
                    (0..16).map(|at| step(canvas, (15, at), (0, at)) + step(canvas, (at, 15), (at, 0))).sum();
                assert!(edge * 16 < all * 2, "{name}: {edge} at the edge, and {} on average", all / 16);
            }
        }
    }

    #[test]
    fn animations_loop_and_change_gently() {
        for name in ["water", "lava", "torch_flame"] {
            let frames = drawing(name).frames;
            let change = |one: &Canvas, other: &Canvas| {
                let pairs = one.pixels().zip(other.pixels());
                pairs
                    .map(|(one, other)| (0..3).map(|at| usize::from(one[at].abs_diff(other[at]))).sum::<usize>())
                    .sum::<usize>()
            };
            let changes: Vec<_> =
                (0..frames.len()).map(|at| change(&frames[at], &frames[(at + 1) % frames.len()])).collect();
            let (least, most) = (changes.iter().min().unwrap(), changes.iter().max().unwrap());
            assert!(*least > 0 && *most < 3 * least, "{name}: {changes:?}");
        }
    }

    #[test]
    fn what_examples_cut_out_of_textures_is_at_its_place() {
        let torch = &drawing("torch").frames[0];
        let is_stick = |x: i32, y: i32| matches!(x, 7 | 8) && y >= 6;
        assert!(everywhere().filter(|(_, y)| *y >= 6).all(|(x, y)| (torch.get(x, y)[3] == 255) == is_stick(x, y)));
        let corners = &drawing("colour_test").frames[0];
        let corners = [(0, 0), (15, 0), (0, 15), (15, 15)].map(|(x, y)| corners.get(x, y));
        assert_eq!(corners, [[255, 0, 0, 255], [0, 255, 0, 255], [0, 0, 255, 255], [255; 4]]);
    }
}
