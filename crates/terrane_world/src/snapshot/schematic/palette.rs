//! Dense palettes from the numbered names of files.

use crate::block::joined;
use rustc_hash::FxHashMap;

/// The name of air, always the first in the palette of blocks.
pub const AIR: &str = "minecraft:air";

/// Marks a number that the palette does not have. A palette has fewer entries.
pub(super) const UNKNOWN: u16 = u16::MAX;

/// Numbers below this take one byte.
const SINGLE: usize = 128;

/// Maps the numbers of a file to indices in the dense palette.
#[derive(Clone, Debug)]
pub(super) struct Numbers {
    /// Indices of the numbers of one byte.
    pub single: [u16; SINGLE],
    /// Numbers below this are equal to their indices, and other numbers of one byte are unknown.
    pub same_below: Option<u8>,
    others: FxHashMap<u32, u16>,
}

impl Numbers {
    fn new(places: impl Iterator<Item = (u32, u16)>) -> Self {
        let mut numbers = Self { single: [UNKNOWN; SINGLE], same_below: None, others: FxHashMap::default() };
        for (number, place) in places {
            match numbers.single.get_mut(number as usize) {
                Some(single) => *single = place,
                None => drop(numbers.others.insert(number, place)),
            }
        }
        let same = numbers.single.iter().zip(0..).take_while(|(place, number)| **place == *number).count();
        let is_all = numbers.single[same..].iter().all(|place| *place == UNKNOWN);
        numbers.same_below = is_all.then_some(same as u8);
        numbers
    }

    /// The index of a number, or [`UNKNOWN`].
    #[inline]
    pub fn place(&self, number: u32) -> u16 {
        match self.single.get(number as usize) {
            Some(place) => *place,
            None => self.others.get(&number).copied().unwrap_or(UNKNOWN),
        }
    }
}

/// Sorts the entries of a file by number and makes them dense: names of the same state are merged, and air comes
/// first.
pub(super) fn blocks(entries: Vec<(u32, String)>) -> (Vec<String>, Numbers) {
    let entries = entries.into_iter().map(|(number, name)| (number, normalized(name))).collect();
    dense(vec![AIR.to_owned()], entries)
}

/// Like [`blocks`], but names are used unchanged, and nothing comes before them.
pub(super) fn names(entries: Vec<(u32, String)>) -> (Vec<String>, Numbers) {
    dense(Vec::new(), entries)
}

fn dense(mut palette: Vec<String>, mut entries: Vec<(u32, String)>) -> (Vec<String>, Numbers) {
    entries.sort_unstable();
    let mut places: FxHashMap<&str, u16> = palette.iter().map(String::as_str).zip(0..).collect();
    let numbers = entries.iter().map(|(number, name)| {
        let next = places.len() as u16;
        (*number, *places.entry(name).or_insert(next))
    });
    let numbers: Vec<(u32, u16)> = numbers.collect();
    for ((_, name), (_, place)) in entries.into_iter().zip(&numbers) {
        if usize::from(*place) == palette.len() {
            palette.push(name);
        }
    }
    (palette, Numbers::new(numbers.into_iter()))
}

/// The same state with its properties in alphabetical order. Text that is not a state is returned unchanged.
pub(in crate::snapshot) fn normalized(state: String) -> String {
    let Some((base, properties)) = split(&state) else { return state };
    let mut sorted = properties.clone();
    sorted.sort_by_key(|(name, _)| *name);
    if sorted == properties && !properties.is_empty() {
        return state;
    }
    joined(base, &sorted)
}

/// The same state without water, if it is a waterlogged one.
pub fn dry(state: &str) -> Option<String> {
    changed(state, "waterlogged", "true", "false")
}

/// The same state with water, if it is a dry one that can have water.
pub(super) fn wet(state: &str) -> Option<String> {
    changed(state, "waterlogged", "false", "true")
}

/// The same state with another value of a property, if the property has the value `from`.
fn changed(state: &str, name: &str, from: &str, to: &str) -> Option<String> {
    let (base, mut properties) = split(state)?;
    let (_, value) = properties.iter_mut().find(|(other, _)| *other == name)?;
    (std::mem::replace(value, to) == from).then(|| joined(base, &properties))
}

/// The name of a state without its properties.
pub(super) fn base(state: &str) -> &str {
    state.split_once('[').map_or(state, |(base, _)| base)
}

fn split(state: &str) -> Option<(&str, Vec<(&str, &str)>)> {
    let (base, rest) = state.split_once('[')?;
    let written = rest.strip_suffix(']')?;
    let properties = written.split(',').filter(|_| !written.is_empty()).map(|property| property.split_once('='));
    Some((base, properties.collect::<Option<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn palette(entries: &[(u32, &str)]) -> (Vec<String>, Numbers) {
        blocks(entries.iter().map(|(number, name)| (*number, (*name).to_owned())).collect())
    }

    #[test]
    fn a_palette_becomes_dense_with_air_first() {
        let (names, numbers) = palette(&[(900, "a:b"), (1, "a:c"), (7, AIR), (3, "a:d[y=1,x=2]"), (4, "a:d[x=2,y=1]")]);
        assert_eq!(names, [AIR, "a:c", "a:d[x=2,y=1]", "a:b"]);
        let places = [900, 1, 7, 3, 4, 0, 901].map(|number| numbers.place(number));
        assert_eq!(places, [3, 1, 0, 2, 2, UNKNOWN, UNKNOWN]);
        assert_eq!(numbers.same_below, None);
        assert_eq!(palette(&[(0, AIR), (1, "a:b")]).1.same_below, Some(2));
    }

    #[test]
    fn states_are_normalized_and_other_texts_left_alone() {
        for (state, expected) in [
            ("a:b[z=1,a=2]", "a:b[a=2,z=1]"),
            ("a:b[]", "a:b"),
            ("a:b[c", "a:b[c"),
            ("a:b[z,a=2]", "a:b[z,a=2]"),
            ("a:b:c/d", "a:b:c/d"),
            ("", ""),
        ] {
            assert_eq!(normalized(state.to_owned()), expected);
        }
        assert_eq!(changed("a:b[c=d,e=f]", "e", "f", "g").as_deref(), Some("a:b[c=d,e=g]"));
        assert_eq!(changed("a:b[c=d,e=f]", "e", "d", "g"), None);
        assert_eq!(changed("a:b[c=d]", "e", "f", "g"), None);
    }
}
