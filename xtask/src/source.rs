//! The project's sources, read as tokens: which file imports which, how long functions are, and how much there is of everything.

pub mod count;
pub mod imports;
mod tokens;

use std::fs;
use std::path::{Path, PathBuf};
use tokens::{Token, tokens};

/// The folders of the libraries' sources, relative to the repository.
pub const LIBRARIES: [&str; 13] = [
    "src",
    "crates/terrane_dev/src",
    "crates/terrane_gizmos/src",
    "crates/terrane_inspect/src",
    "crates/terrane_metrics/src",
    "crates/terrane_net/src",
    "crates/terrane_objects/src",
    "crates/terrane_overlay/src",
    "crates/terrane_postgres/src",
    "crates/terrane_remote/src",
    "crates/terrane_render/src",
    "crates/terrane_storage/src",
    "crates/terrane_world/src",
];

/// A source file without its tests.
pub struct Source {
    /// Its path below the folder of the crate's sources.
    pub path: PathBuf,
    /// Its module, from the crate's root: empty for `lib.rs` and `main.rs`.
    pub module: Vec<String>,
    /// The number of lines with code.
    pub lines: usize,
    /// Its tokens.
    pub tokens: Vec<Token>,
}

/// A function, or a struct with its public fields.
#[derive(Debug, PartialEq, Eq)]
pub struct Item {
    /// Its name.
    pub name: String,
    /// The line of its name.
    pub line: usize,
    /// The lines of a function from its name to its end, or the public fields of a struct.
    pub size: usize,
}

impl Source {
    /// Reads the text of a file at `path` below the crate's sources.
    pub fn new(path: &Path, text: &str) -> Self {
        let mut module: Vec<String> =
            path.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
        module.pop_if(|name| name == "lib" || name == "main" || name == "mod");
        let tokens = without_tests(tokens(text));
        let mut lines: Vec<usize> = tokens.iter().map(|token| token.line).collect();
        lines.dedup();
        Self { path: path.to_owned(), module, lines: lines.len(), tokens }
    }

    /// The text of a token, or an empty one behind the end.
    pub fn text(&self, index: usize) -> &str {
        self.tokens.get(index).map_or("", |token| &token.text)
    }

    /// The number of structs, enums, unions and traits.
    pub fn types(&self) -> usize {
        let is_type = |index: &usize| {
            let is_word = matches!(self.text(*index), "struct" | "enum" | "union" | "trait");
            is_word && self.text(index + 1).starts_with(|c: char| c.is_uppercase())
        };
        (0..self.tokens.len()).filter(is_type).count()
    }

    /// The functions with a body.
    pub fn functions(&self) -> Vec<Item> {
        let starts = (0..self.tokens.len()).filter(|index| self.text(*index) == "fn");
        let function = |start: usize| {
            let (name, line) = (self.text(start + 1), self.tokens.get(start + 1)?.line);
            let open = (start..self.tokens.len()).find(|index| matches!(self.text(*index), "{" | ";"))?;
            let end = self.tokens.get(self.end_of_block(open).filter(|_| self.text(open) == "{")?)?.line;
            Some(Item { name: name.to_owned(), line, size: end - line + 1 })
        };
        starts.filter_map(function).collect()
    }

    /// The structs with named fields.
    pub fn structs(&self) -> Vec<Item> {
        let starts = (0..self.tokens.len()).filter(|index| self.text(*index) == "struct");
        let fields = |start: usize| {
            let (name, line) = (self.text(start + 1), self.tokens.get(start + 1)?.line);
            let open = (start..self.tokens.len()).find(|index| matches!(self.text(*index), "{" | ";" | "("))?;
            let end = self.end_of_block(open).filter(|_| self.text(open) == "{")?;
            let public = (open..end).filter(|index| self.text(*index) == "pub").count();
            Some(Item { name: name.to_owned(), line, size: public })
        };
        starts.filter_map(fields).collect()
    }

    /// The index of the token that closes the brace at `open`.
    fn end_of_block(&self, open: usize) -> Option<usize> {
        let mut braces = 0_usize;
        (open..self.tokens.len()).find(|index| {
            match self.text(*index) {
                "{" => braces += 1,
                "}" => braces -= 1,
                _ => {}
            }
            braces == 0
        })
    }
}

/// The tokens without modules that only tests have.
fn without_tests(tokens: Vec<Token>) -> Vec<Token> {
    let mut kept: Vec<Token> = Vec::with_capacity(tokens.len());
    let mut skipped = None;
    for token in tokens {
        if let Some(braces) = &mut skipped {
            match &*token.text {
                "{" => *braces += 1,
                "}" => *braces -= 1,
                _ => {}
            }
            if *braces == 0 {
                skipped = None;
            }
            continue;
        }
        let before: Vec<&str> = kept.iter().rev().take(9).map(|token| &*token.text).collect();
        if token.text == "{" && matches!(&*before, [_, "mod", "]", ")", "test", "(", "cfg", "[", "#"]) {
            kept.truncate(kept.len() - before.len());
            skipped = Some(1_usize);
            continue;
        }
        kept.push(token);
    }
    kept
}

/// The sources below a folder, sorted by path, without files of tests.
pub fn read(folder: &Path) -> Result<Vec<Source>, String> {
    let mut paths = Vec::new();
    collect(folder, &mut paths).map_err(|error| format!("cannot read {}: {error}", folder.display()))?;
    paths.sort();
    let mut sources = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        sources.push(Source::new(path.strip_prefix(folder).unwrap_or(&path), &text));
    }
    Ok(sources)
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.file_stem().is_some_and(|name| name == "tests") {
            continue;
        }
        if path.is_dir() {
            collect(&path, paths)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        //! A file.
        pub struct Wall { pub height: u32, width: u32, pub(crate) color: Color }
        enum Color { Red }

        /// Builds
        /// it.
        fn build(wall: &Wall) {
            for _ in 0..wall.height {
                lay("}");
            }
        }
        trait Builder { fn lay(&self); }

        #[cfg(test)]
        mod tests {
            struct Model { pub a: u8 }
            #[test]
            fn it_stands() { if true { build(); } }
        }
        fn after() {}
    "#;

    #[test]
    fn items_are_found_and_tests_are_left_out() {
        let source = Source::new(Path::new("house/wall.rs"), TEXT);
        assert_eq!(source.module, ["house", "wall"]);
        let item = |name: &str, line, size| Item { name: name.to_owned(), line, size };
        assert_eq!(source.functions(), [item("build", 8, 5), item("after", 21, 1)]);
        assert_eq!(source.structs(), [item("Wall", 3, 2)]);
        assert_eq!((source.types(), source.lines), (3, 9));
        assert_eq!(Source::new(Path::new("lib.rs"), "").module, [""; 0]);
    }
}
