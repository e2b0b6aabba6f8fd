//! Which file of a crate imports which. Names are followed through re-exports to the file that defines them.

use super::Source;
use std::collections::{BTreeMap, HashMap};

/// A module's path from the crate's root.
type Path = Vec<String>;

/// The files of a crate, and the imports between them.
pub struct Imports {
    /// The files.
    pub files: Vec<Source>,
    /// For each pair of files the line of the first import.
    pub arrows: BTreeMap<(usize, usize), usize>,
}

/// A path in a file's code.
struct Named {
    line: usize,
    /// The module in which it stands.
    module: Path,
    path: Path,
    /// The name under which a `use` makes it known; `None` for a path in an expression or a type.
    known_as: Option<String>,
    is_public: bool,
}

/// The names that a module re-exports; `None` for names of another crate.
type Exports = HashMap<Path, HashMap<String, Option<Path>>>;

impl Imports {
    /// Finds the imports between files.
    pub fn new(files: Vec<Source>) -> Self {
        // The file of each module, modules within files included.
        let mut modules: HashMap<Path, usize> = HashMap::new();
        let mut all = Vec::new();
        modules.extend(files.iter().enumerate().map(|(index, file)| (file.module.clone(), index)));
        for (index, file) in files.iter().enumerate() {
            for named in named(file, &modules) {
                modules.entry(named.module.clone()).or_insert(index);
                all.push((index, named));
            }
        }
        let mut exports = Exports::new();
        for (_, named) in all.iter().filter(|(_, named)| named.is_public) {
            let Some(name) = &named.known_as else { continue };
            let path = absolute(&modules, &named.module, &named.path);
            exports.entry(named.module.clone()).or_default().insert(name.clone(), path);
        }
        let mut arrows = BTreeMap::new();
        for (from, named) in &all {
            let path = absolute(&modules, &named.module, &named.path);
            if let Some(to) = path.and_then(|path| definition(&modules, &exports, &path, 0)).filter(|to| to != from)
                && !named.is_public
            {
                arrows.entry((*from, to)).or_insert(named.line);
            }
        }
        Self { files, arrows }
    }

    /// The circles of imports over more than two files: groups of files in which each imports the next one, and the last the
    /// first, largest first. Two files that import each other are no such circle, and many pairs around one file are none. The
    /// crate's root assembles all files and does not count.
    pub fn circles(&self) -> Vec<Vec<usize>> {
        let is_root = |index: usize| self.files[index].module.is_empty();
        let mut to: Vec<Vec<usize>> = vec![Vec::new(); self.files.len()];
        for (from, other) in self.arrows.keys().filter(|(from, to)| !is_root(*from) && !is_root(*to)) {
            to[*from].push(*other);
        }
        // An arrow is part of such a circle if another way than the opposite arrow leads back.
        let is_in_circle = |from: usize, other: usize| reach(&to, other, Some((other, from)))[from];
        let circling: Vec<Vec<usize>> = (0..to.len())
            .map(|from| to[from].iter().copied().filter(|other| is_in_circle(from, *other)).collect())
            .collect();
        let reached: Vec<Vec<bool>> = (0..to.len()).map(|from| reach(&circling, from, None)).collect();
        let mut left: Vec<usize> = (0..to.len()).collect();
        let mut circles = Vec::new();
        while let Some(first) = left.first().copied() {
            let is_with_it = |other: &usize| *other == first || (reached[first][*other] && reached[*other][first]);
            let (circle, others): (Vec<_>, Vec<_>) = left.into_iter().partition(is_with_it);
            left = others;
            circles.extend(Some(circle).filter(|circle| circle.len() > 2));
        }
        circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
        circles
    }
}

/// The files that a file imports, directly or through others, without one of the arrows.
fn reach(to: &[Vec<usize>], from: usize, without: Option<(usize, usize)>) -> Vec<bool> {
    let mut reached = vec![false; to.len()];
    let mut open = vec![from];
    while let Some(file) = open.pop() {
        for next in to[file].iter().copied().filter(|next| Some((file, *next)) != without) {
            if !std::mem::replace(&mut reached[next], true) {
                open.push(next);
            }
        }
    }
    reached
}

/// The paths in a file that may lead to other files.
fn named(file: &Source, modules: &HashMap<Path, usize>) -> Vec<Named> {
    let mut found = Vec::new();
    let mut module = file.module.clone();
    // The number of open braces at the start of each enclosing module of the file.
    let mut within = Vec::new();
    let (mut braces, mut index) = (0_usize, 0);
    while index < file.tokens.len() {
        let (token, before) = (file.text(index), index.checked_sub(1).map_or("", |before| file.text(before)));
        match token {
            "{" => {
                if index >= 2 && file.text(index - 2) == "mod" {
                    within.push(braces);
                    module.push(file.text(index - 1).to_owned());
                }
                braces += 1;
            }
            "}" => {
                braces = braces.saturating_sub(1);
                if within.pop_if(|start| *start == braces).is_some() {
                    module.pop();
                }
            }
            // Not the `use<..>` of a captured lifetime.
            "use" if file.text(index + 1) != "<" => {
                let is_public = is_public(file, index);
                let mut tree = Tree { file, at: index + 1, module: &module, is_public, found: &mut found };
                tree.read(Vec::new());
                index = tree.at;
            }
            // The path of a visibility imports nothing.
            _ if before == "in" && index >= 3 && file.text(index - 3) == "pub" => {}
            _ if before != "::" && file.text(index + 1) == "::" => {
                let mut child = module.clone();
                child.push(token.to_owned());
                if matches!(token, "crate" | "super" | "self") || modules.contains_key(&child) {
                    let (line, mut path) = (file.tokens[index].line, vec![token.to_owned()]);
                    while file.text(index + 1) == "::" && is_name(file.text(index + 2)) {
                        path.push(file.text(index + 2).to_owned());
                        index += 2;
                    }
                    found.push(Named { line, module: module.clone(), path, known_as: None, is_public: false });
                }
            }
            _ => {}
        }
        index += 1;
    }
    found
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// Returns `true` if `pub` or `pub(..)` stands before the token.
fn is_public(file: &Source, index: usize) -> bool {
    let before: Vec<&str> = (0..index).rev().take(12).map(|before| file.text(before)).collect();
    match before.first() {
        Some(&")") => {
            before.iter().position(|token| *token == "(").is_some_and(|open| before.get(open + 1) == Some(&"pub"))
        }
        first => first == Some(&"pub"),
    }
}

/// Reads the tree of names of a `use`.
struct Tree<'a> {
    file: &'a Source,
    at: usize,
    module: &'a Path,
    is_public: bool,
    found: &'a mut Vec<Named>,
}

impl Tree<'_> {
    /// Reads up to the `,`, `}` or `;` that ends this part of the tree.
    fn read(&mut self, mut path: Path) {
        let mut known_as = None;
        while self.at < self.file.tokens.len() {
            match self.file.text(self.at) {
                "{" => {
                    self.at += 1;
                    while !matches!(self.file.text(self.at), "}" | "") {
                        self.read(path.clone());
                        self.at += usize::from(self.file.text(self.at) == ",");
                    }
                    self.at += 1;
                    return;
                }
                "," | "}" | ";" => break,
                "::" => {}
                "as" => {
                    known_as = Some(self.file.text(self.at + 1).to_owned());
                    self.at += 1;
                }
                name => path.push(name.to_owned()),
            }
            self.at += 1;
        }
        if path.len() > 1 {
            path.pop_if(|last| last == "self");
        }
        let known_as = known_as.or_else(|| path.last().cloned());
        let line = self.file.tokens.get(self.at).map_or(0, |token| token.line);
        let (module, is_public) = (self.module.clone(), self.is_public);
        self.found.push(Named { line, module, path, known_as, is_public });
    }
}

/// A path from the crate's root; `None` if it leads to another crate.
fn absolute(modules: &HashMap<Path, usize>, module: &Path, path: &[String]) -> Option<Path> {
    let first = path.first()?.as_str();
    let (mut base, rest) = match first {
        "crate" => (Vec::new(), &path[1..]),
        "self" => (module.clone(), &path[1..]),
        "super" => {
            let up = path.iter().take_while(|name| *name == "super").count();
            (module[..module.len().checked_sub(up)?].to_vec(), &path[up..])
        }
        _ => {
            let mut child = module.clone();
            child.push(first.to_owned());
            (modules.contains_key(&child).then(|| module.clone())?, path)
        }
    };
    base.extend(rest.iter().cloned());
    Some(base)
}

/// The file that defines what a path names; `None` if that is in another crate.
fn definition(modules: &HashMap<Path, usize>, exports: &Exports, path: &[String], depth: usize) -> Option<usize> {
    if depth > 16 {
        return None;
    }
    let mut module = Vec::new();
    for (place, name) in path.iter().enumerate() {
        let exported = exports.get(&module);
        if let Some(target) = exported.and_then(|exported| exported.get(name)) {
            let path: Path = target.iter().flatten().chain(&path[place + 1..]).cloned().collect();
            return target.as_ref().and_then(|_| definition(modules, exports, &path, depth + 1));
        }
        module.push(name.clone());
        if !modules.contains_key(&module) {
            module.pop();
            // A name that the module defines, or that it has from all names of another one.
            let all = exported.and_then(|exported| exported.get("*")?.clone());
            let through = all.and_then(|mut all| {
                all.pop();
                let home = definition(modules, exports, &all, depth + 1);
                all.extend_from_slice(&path[place..]);
                definition(modules, exports, &all, depth + 1).filter(|found| Some(*found) != home)
            });
            return through.or_else(|| modules.get(&module).copied());
        }
    }
    modules.get(&module).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports(files: &[(&str, &str)]) -> Imports {
        Imports::new(files.iter().map(|(path, text)| Source::new(path.as_ref(), text)).collect())
    }

    /// The arrows as `from -> to`, by the files' names.
    fn arrows(files: &[(&str, &str)]) -> Vec<String> {
        let imports = imports(files);
        let name = |index: usize| imports.files[index].path.display();
        imports.arrows.keys().map(|(from, to)| format!("{} -> {}", name(*from), name(*to))).collect()
    }

    #[test]
    fn each_form_of_an_import_is_found() {
        for text in [
            "use crate::wall::Brick;",
            "use super::wall::Brick;",
            "use crate::{wall::{self, Brick}};",
            "fn lay(brick: &crate::wall::Brick) {}",
            "fn lay() { super::wall::lay(); }",
            "mod inner { use super::super::wall::Brick; }",
            "pub(crate) fn lay() -> impl Sized + use<> { crate::wall::lay() }",
        ] {
            assert_eq!(arrows(&[("roof.rs", text), ("wall.rs", "")]), ["roof.rs -> wall.rs"], "{text}");
        }
        assert_eq!(arrows(&[("wall.rs", "mod brick; fn lay() { brick::lay(); }"), ("wall/brick.rs", "")]).len(), 1);
        assert_eq!(arrows(&[("roof.rs", "pub(in crate::wall) struct Roof;"), ("wall.rs", "")]), [""; 0]);
        assert_eq!(arrows(&[("roof.rs", "// use crate::wall;\nuse std::wall;"), ("wall.rs", "")]), [""; 0]);
    }

    #[test]
    fn a_name_is_followed_to_its_definition() {
        let wall = ("wall.rs", "pub use brick::Brick;\npub use brick::kinds::*;\npub struct Wall;");
        let [brick, kinds] = [("wall/brick.rs", ""), ("wall/brick/kinds.rs", "")];
        for (name, to) in [("Brick", "wall/brick.rs"), ("Wall", "wall.rs")] {
            let roof = format!("use crate::wall::{name};");
            assert_eq!(arrows(&[("roof.rs", &roof), wall, brick, kinds]), [format!("roof.rs -> {to}")]);
        }
        // A name of another crate leads nowhere.
        let root = ("lib.rs", "pub use stones::space;");
        assert_eq!(arrows(&[("roof.rs", "use crate::space::Pos;"), root]), [""; 0]);
    }

    #[test]
    fn circles_of_more_than_two_files_are_found() {
        let pair = [("a.rs", "use crate::b::B;"), ("b.rs", "use crate::a::A;")];
        assert!(imports(&pair).circles().is_empty());
        let three = [("a.rs", "use crate::b::B;"), ("b.rs", "use crate::c::C;"), ("c.rs", "use crate::a::A;")];
        assert_eq!(imports(&three).circles(), [[0, 1, 2]]);
        let star =
            [("a.rs", "use crate::b::B;"), ("b.rs", "use crate::a::A; use crate::c::C;"), ("c.rs", "use crate::b::B;")];
        assert!(imports(&star).circles().is_empty(), "two pairs");
        let through_root = [("a.rs", "use crate::b::B;"), ("b.rs", "use crate::R;"), ("lib.rs", "struct R; use a::A;")];
        assert!(imports(&through_root).circles().is_empty());
    }
}
