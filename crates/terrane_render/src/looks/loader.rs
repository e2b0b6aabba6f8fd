//! Files of looks.

use super::{BlockLook, BlockLooks, FaceLook, QuadSide};
use bevy::asset::io::Reader;
use bevy::asset::{AssetLoader, AssetPath, LoadContext};
use bevy::prelude::*;
use bevy::tasks::futures_lite::AsyncReadExt;
use ron::extensions::Extensions;
use thiserror::Error;

/// The largest file of looks that is read, in bytes.
const MAX_FILE: u64 = 16 << 20;
/// The maximum number of quads of a look, and of frames of a texture.
const MAX_QUADS: usize = 256;

/// Reads [`BlockLooks`] from files with the extension `.looks.ron`.
#[derive(Clone, Copy, Debug, Default, TypePath)]
#[type_path = "terrane_render"]
pub struct BlockLooksLoader;

/// A file of looks that cannot be used. Until it is mended, the looks stay as they were.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BlockLooksError {
    /// The file cannot be read.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// The reason.
        source: std::io::Error,
    },
    /// The file is not text, or larger than 16 MiB.
    #[error("{file} is not a file of looks: {what}")]
    NotLooks {
        /// The file.
        file: String,
        /// The reason.
        what: String,
    },
    /// The text does not have the expected form.
    #[error("{file}:{line}:{column}: {what}{}", block.as_ref().map(|block| format!(", in the look of {block:?}")).unwrap_or_default())]
    Syntax {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// The block whose look it is, if that is known.
        block: Option<String>,
        /// The reason.
        what: String,
    },
    /// A look has a value that is not allowed.
    #[error("{file}:{line}: the look of {block:?}: {what}")]
    Look {
        /// The file.
        file: String,
        /// The line with the block's name, from 1.
        line: usize,
        /// The block.
        block: String,
        /// The reason.
        what: String,
    },
}

impl AssetLoader for BlockLooksLoader {
    type Asset = BlockLooks;
    type Settings = ();
    type Error = BlockLooksError;

    async fn load(
        &self,
        reader: &mut dyn Reader,
        _settings: &(),
        context: &mut LoadContext<'_>,
    ) -> Result<BlockLooks, BlockLooksError> {
        let file = context.path().to_string();
        let mut bytes = Vec::new();
        // One more than is allowed, so that a larger file is found out.
        let mut reader = AsyncReadExt::take(reader, MAX_FILE + 1);
        let read_all = AsyncReadExt::read_to_end(&mut reader, &mut bytes).await;
        read_all.map_err(|source| BlockLooksError::Io { file: file.clone(), source })?;
        let mut looks = read(&bytes, &file)?;
        let here = context.path().clone();
        let folder = here.parent().unwrap_or_default();
        for texture in looks.blocks.values_mut().flat_map(BlockLook::textures_mut) {
            // A path with a source, such as `embedded://`, stays as it is.
            if !texture.contains("://") {
                let path = folder.resolve_str(texture).unwrap_or_else(|_| AssetPath::parse(texture).into_owned());
                *texture = path.to_string();
            }
        }
        Ok(looks)
    }

    fn extensions(&self) -> &[&str] {
        &["looks.ron"]
    }
}

/// Reads a file of looks. Paths of textures stay as they are.
pub(super) fn read(bytes: &[u8], file: &str) -> Result<BlockLooks, BlockLooksError> {
    let not_looks = |what: String| BlockLooksError::NotLooks { file: file.to_owned(), what };
    if bytes.len() as u64 > MAX_FILE {
        return Err(not_looks(format!("it has more than {MAX_FILE} bytes")));
    }
    let text = str::from_utf8(bytes).map_err(|error| not_looks(error.to_string()))?;
    let options = ron::Options::default().with_default_extension(Extensions::IMPLICIT_SOME);
    let looks: BlockLooks = options.from_str(text).map_err(|error| {
        let (line, column) = (error.span.start.line, error.span.start.col);
        let block = block_before(text, line).map(str::to_owned);
        BlockLooksError::Syntax { file: file.to_owned(), line, column, block, what: error.code.to_string() }
    })?;
    for (block, look) in &looks.blocks {
        check(look).map_err(|what| {
            let line = text.lines().position(|line| line.contains(&format!("{block:?}"))).map_or(0, |line| line + 1);
            BlockLooksError::Look { file: file.to_owned(), line, block: block.clone(), what }
        })?;
    }
    Ok(looks)
}

/// The last text in quotes at the start of a line, up to this line: the name of the block that an error is about.
fn block_before(text: &str, line: usize) -> Option<&str> {
    let lines: Vec<_> = text.lines().take(line).collect();
    let names = lines.into_iter().rev().filter_map(|line| line.trim_start_matches(['{', ' ', '\t']).strip_prefix('"'));
    names.flat_map(|rest| rest.split('"').next()).next()
}

/// Checks the values of a look, also of one that the game made.
pub(super) fn check(look: &BlockLook) -> Result<(), String> {
    if look.emission > 15 {
        return Err(format!("its emission is {}, and at most 15", look.emission));
    }
    if let Some((_, distance)) = look.fog
        && !(distance.is_finite() && distance > 0.0)
    {
        return Err(format!("its fog ends after {distance} blocks, which must be more than 0"));
    }
    let faces = [&look.all, &look.sides, &look.top, &look.bottom, &look.north, &look.east, &look.south, &look.west];
    faces.into_iter().flatten().try_for_each(check_face)?;
    let quads = look.quads.as_deref().unwrap_or_default();
    if quads.len() > MAX_QUADS {
        return Err(format!("it has {} quads, and at most {MAX_QUADS}", quads.len()));
    }
    for (number, quad) in quads.iter().enumerate() {
        let flat = match quad.side {
            QuadSide::West | QuadSide::East => Some(0),
            QuadSide::Bottom | QuadSide::Top => Some(1),
            QuadSide::North | QuadSide::South => Some(2),
            QuadSide::Diagonal | QuadSide::OtherDiagonal => None,
        };
        let is_fine = |axis: usize| match flat == Some(axis) {
            true => quad.from[axis] == quad.to[axis] && quad.to[axis] <= 16,
            false => quad.from[axis] < quad.to[axis] && quad.to[axis] <= 16,
        };
        let size = |axis: usize| quad.to[axis].checked_sub(quad.from[axis]);
        let is_square = flat.is_some() || size(0) == size(2);
        if !(0..3).all(is_fine) || !is_square {
            let (from, to) = (quad.from, quad.to);
            return Err(format!(
                "quad {number}, {:?} from {from:?} to {to:?}, is no rectangle within 0 to 16",
                quad.side
            ));
        }
        quad.look.as_ref().map_or(Ok(()), check_face)?;
    }
    Ok(())
}

fn check_face(face: &FaceLook) -> Result<(), String> {
    let FaceLook { texture, frames, seconds_per_frame, .. } = face;
    if !(1..=MAX_QUADS).contains(&usize::from(*frames)) {
        return Err(format!("{texture:?} has {frames} frames, and it must be 1 to {MAX_QUADS}"));
    }
    if !(seconds_per_frame.is_finite() && *seconds_per_frame > 0.0) {
        return Err(format!("a frame of {texture:?} takes {seconds_per_frame} seconds, which must be more than 0"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::looks::{FaceOverlay, RenderMode};

    fn error(text: &str) -> String {
        read(text.as_bytes(), "my.looks.ron").unwrap_err().to_string()
    }

    #[test]
    fn a_path_alone_is_a_texture_and_the_rest_has_defaults() {
        let text = r#"{
            "game:ore": (all: "ore.png"),
            "game:lamp[lit=true]": (
                top: (texture: "lamp.png", tint: (1, 2, 3), frames: 4, random_turn: true,
                      overlay: (texture: "glow.png")),
                mode: Blended, emission: 15, fog: ((10, 20, 30), 24),
            ),
        }"#;
        let looks = read(text.as_bytes(), "my.looks.ron").unwrap();
        assert_eq!(looks.blocks["game:ore"], BlockLook::all("ore.png"));
        let lamp = &looks.blocks["game:lamp[lit=true]"];
        assert_eq!((lamp.mode, lamp.emission, lamp.fog), (RenderMode::Blended, 15, Some(([10, 20, 30], 24.0))));
        let overlay = Some(FaceOverlay { texture: "glow.png".into(), tint: [255; 3] });
        let top = FaceLook { tint: [1, 2, 3], frames: 4, random_turn: true, overlay, ..FaceLook::new("lamp.png") };
        assert_eq!(lamp.top, Some(top));
    }

    /// Promise, looks: A file of looks with a mistake is refused with file, line and block name.
    #[test]
    fn an_error_names_file_line_and_block() {
        let unknown = error("{\n  \"game:ore\": (\n    all: \"a.png\",\n    colour: 3,\n  ),\n}");
        assert!(unknown.starts_with("my.looks.ron:4:") && unknown.contains("colour"), "{unknown}");
        assert!(unknown.ends_with("in the look of \"game:ore\""), "{unknown}");
        let bright = error("{\n\"game:a\": (all: \"a.png\"),\n\"game:b\": (all: \"a.png\", emission: 16),\n}");
        assert_eq!(bright, "my.looks.ron:3: the look of \"game:b\": its emission is 16, and at most 15");
        let frames = error("{\"game:a\": (all: (texture: \"a.png\", frames: 0))}");
        assert!(frames.contains("0 frames") && frames.contains("game:a"), "{frames}");
        let time = error("{\"game:a\": (all: (texture: \"a.png\", seconds_per_frame: -1))}");
        assert!(time.contains("-1 seconds"), "{time}");
        let quad = error("{\"game:a\": (quads: [(side: Top, from: (0, 3, 0), to: (16, 4, 16))])}");
        assert!(quad.contains("quad 0, Top") && quad.contains("no rectangle"), "{quad}");
        assert!(error("{\"game:a\": 3}").contains("game:a"));
        assert!(read(&[0xff, 0xfe], "my.looks.ron").unwrap_err().to_string().contains("my.looks.ron is not"));
    }

    #[test]
    fn a_million_quads_are_refused() {
        let quad = "(side: Top, from: (0, 8, 0), to: (16, 8, 16)),";
        let text = format!("{{\"game:a\": (quads: [{}])}}", quad.repeat(300));
        assert!(error(&text).contains("300 quads, and at most 256"));
        let million = format!("{{\"game:a\": (quads: [{}])}}", quad.repeat(1_000_000));
        assert!(error(&million).contains("is not a file of looks"), "it is larger than files of looks are");
    }
}
