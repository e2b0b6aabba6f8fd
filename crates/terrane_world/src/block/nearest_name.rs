//! Suggests a similar name when no block has the requested one.

/// The name most similar to `wanted`. The namespace may be missing, and up to a third of the letters may differ;
/// `None` if no name is that similar.
pub(super) fn nearest_name<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let likely = names.into_iter().map(|name| (difference(wanted, name), name));
    let (difference, name) = likely.min_by_key(|(difference, _)| *difference)?;
    (difference <= (path(wanted).chars().count() / 3).max(1)).then_some(name)
}

/// The number of letters that differ; a different namespace counts as one.
fn difference(wanted: &str, name: &str) -> usize {
    let is_other = namespace(wanted).is_some_and(|wanted| Some(wanted) != namespace(name));
    distance(path(wanted), path(name)) + usize::from(is_other)
}

fn namespace(name: &str) -> Option<&str> {
    Some(name.split_once(':')?.0)
}

fn path(name: &str) -> &str {
    let base = name.split_once('[').map_or(name, |(base, _)| base);
    base.split_once(':').map_or(base, |(_, path)| path)
}

/// Levenshtein distance: letters to insert, remove or replace.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (above, of_a) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], above + 1);
        for (at, of_b) in b.chars().enumerate() {
            let replaced = diagonal + usize::from(of_a != of_b);
            diagonal = row[at + 1];
            row[at + 1] = replaced.min(row[at] + 1).min(diagonal + 1);
        }
    }
    row[row.len() - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_its_namespace_or_with_a_slip_is_found() {
        let names = ["terrane:air", "terrane:grass", "game:glass", "game:oak_stairs[facing=north]"];
        let nearest = |wanted| nearest_name(wanted, names);
        assert_eq!(nearest("grass"), Some("terrane:grass"));
        assert_eq!(nearest("game:grass"), Some("terrane:grass"), "not the one of the same namespace");
        assert_eq!(nearest("terrane:gras"), Some("terrane:grass"));
        assert_eq!(nearest("oak_stair"), Some("game:oak_stairs[facing=north]"));
        assert_eq!((nearest("lava"), nearest("game:diamond_ore"), nearest("")), (None, None, None));
        assert_eq!(nearest_name("grass", []), None);
    }

    #[test]
    fn letters_are_counted() {
        for (a, b, letters) in [("", "", 0), ("", "abc", 3), ("kitten", "sitting", 3), ("flaw", "lawn", 2)] {
            assert_eq!((distance(a, b), distance(b, a)), (letters, letters));
        }
    }
}
