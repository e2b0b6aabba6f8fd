//! What the properties of blocks become when they are turned: which side they face, how rails run.

use super::Turn;
use crate::block::BlockName;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The four sides, clockwise from north.
const SIDES: [&str; 4] = ["north", "east", "south", "west"];

/// How the properties of block states follow when blocks are turned or flipped.
///
/// The [default](Self::default) knows the properties of Minecraft's blocks; a game adds its own.
///
/// ```
/// use bevy_terrane::block::BlockName;
/// use bevy_terrane::snapshot::{Flip, StateRule, StateTurns, Turn};
///
/// let table = StateTurns::default().with_rule("pipe", StateRule::Words).with_block_rule("game:clock", "facing", StateRule::Fixed);
/// let turned = |name| table.turned(&BlockName::parse(name).unwrap(), Turn::new(1, Flip::None)).to_string();
/// assert_eq!(turned("game:pump[pipe=north_down]"), "game:pump[pipe=east_down]");
/// assert_eq!(turned("game:clock[facing=north]"), "game:clock[facing=north]");
/// assert_eq!(turned("minecraft:vine[east=false,north=true,south=false,up=true,west=false]"),
///     "minecraft:vine[east=true,north=false,south=false,up=true,west=false]");
/// ```
#[derive(Clone, Debug)]
pub struct StateTurns {
    rules: BTreeMap<String, StateRule>,
    /// By the block's name without properties, and the property.
    block_rules: BTreeMap<(String, String), StateRule>,
    /// Properties that are named after a side each, clockwise from the north.
    sides: Vec<[String; 4]>,
}

/// How the values of one property follow.
#[derive(Clone)]
pub enum StateRule {
    /// They stay as they are.
    Fixed,
    /// Words with `_` between them: sides turn, `left` and `right` change places when flipped, all others stay.
    Words,
    /// Like [`Words`](Self::Words), but which side is named first follows from the sides: `north_south`, `east_west`,
    /// `south_east`.
    Rail,
    /// `x` and `z` change places by quarter turns.
    Axis,
    /// 0 to 15, clockwise seen from above, 0 in the south.
    Sixteenths,
    /// What this function says. A value that it gives and that cannot be one leaves the block as it is.
    Custom(Arc<dyn Fn(&str, Turn) -> String + Send + Sync>),
}

impl StateTurns {
    /// A table without rules: every block stays as it is.
    pub const fn empty() -> Self {
        Self { rules: BTreeMap::new(), block_rules: BTreeMap::new(), sides: Vec::new() }
    }

    /// With a rule for a property, whatever block has it.
    pub fn with_rule(mut self, property: impl Into<String>, rule: StateRule) -> Self {
        self.rules.insert(property.into(), rule);
        self
    }

    /// With a rule for a property of one type of block, named without properties. It comes before those for all blocks.
    pub fn with_block_rule(mut self, block: impl Into<String>, property: impl Into<String>, rule: StateRule) -> Self {
        self.block_rules.insert((block.into(), property.into()), rule);
        self
    }

    /// With four properties that are named after a side each, clockwise from north: their values move from one to the next.
    pub fn with_sides(mut self, properties: [impl Into<String>; 4]) -> Self {
        self.sides.push(properties.map(Into::into));
        self
    }

    /// The name of the state that this one becomes.
    pub fn turned(&self, block: &BlockName, turn: Turn) -> BlockName {
        if turn.is_none() {
            return block.clone();
        }
        let properties = block.properties().map(|(property, value)| {
            format!(
                "{}={}",
                self.turned_property(property, turn),
                self.turned_value(block.base(), property, value, turn)
            )
        });
        let properties: Vec<_> = properties.collect();
        if properties.is_empty() {
            return block.clone();
        }
        BlockName::parse(format!("{}[{}]", block.base(), properties.join(","))).unwrap_or_else(|_| block.clone())
    }

    fn turned_property<'a>(&'a self, property: &'a str, turn: Turn) -> &'a str {
        let of_sides = |sides: &'a [String; 4]| {
            let side = sides.iter().position(|name| name == property)?;
            Some(sides[turned_side(side, turn)].as_str())
        };
        self.sides.iter().find_map(of_sides).unwrap_or(property)
    }

    fn turned_value(&self, base: &str, property: &str, value: &str, turn: Turn) -> String {
        let of_block = || self.block_rules.get(&(base.to_owned(), property.to_owned()));
        let of_block = if self.block_rules.is_empty() { None } else { of_block() };
        match of_block.or_else(|| self.rules.get(property)) {
            Some(rule) => rule.turned(value, turn),
            None => value.to_owned(),
        }
    }
}

impl StateRule {
    fn turned(&self, value: &str, turn: Turn) -> String {
        match self {
            Self::Fixed => value.to_owned(),
            Self::Words => turned_words(value, turn).join("_"),
            Self::Rail => {
                let mut words = turned_words(value, turn);
                if let [first, second] = &mut words[..]
                    && let Some(rank) = rail_rank(first)
                    && rail_rank(second).is_some_and(|other| other < rank)
                {
                    std::mem::swap(first, second);
                }
                words.join("_")
            }
            Self::Axis => match value {
                "x" if turn.swaps_axes() => "z".to_owned(),
                "z" if turn.swaps_axes() => "x".to_owned(),
                _ => value.to_owned(),
            },
            Self::Sixteenths => match value.parse::<u8>() {
                Ok(angle @ 0..16) => {
                    let angle = if turn.is_flipped() { 16 - angle } else { angle };
                    ((angle + 4 * turn.quarter_turns()) % 16).to_string()
                }
                _ => value.to_owned(),
            },
            Self::Custom(rule) => rule(value, turn),
        }
    }
}

impl Default for StateTurns {
    /// What the blocks of Minecraft need.
    fn default() -> Self {
        let words = ["facing", "orientation", "hinge", "type", "side_chain"];
        let table =
            words.into_iter().fold(Self::empty(), |table, property| table.with_rule(property, StateRule::Words));
        table
            .with_rule("axis", StateRule::Axis)
            .with_rule("rotation", StateRule::Sixteenths)
            // Of rails, and of stairs: `inner_left`.
            .with_rule("shape", StateRule::Rail)
            .with_sides(SIDES)
    }
}

impl fmt::Debug for StateRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fixed => "Fixed",
            Self::Words => "Words",
            Self::Rail => "Rail",
            Self::Axis => "Axis",
            Self::Sixteenths => "Sixteenths",
            Self::Custom(_) => "Custom",
        })
    }
}

/// Where a side goes, both counted clockwise from north.
fn turned_side(side: usize, turn: Turn) -> usize {
    let side = if turn.is_flipped() { (4 - side) % 4 } else { side };
    (side + usize::from(turn.quarter_turns())) % 4
}

fn turned_words(value: &str, turn: Turn) -> Vec<&str> {
    let turned = |word| match (SIDES.iter().position(|side| *side == word), word) {
        (Some(side), _) => SIDES[turned_side(side, turn)],
        (None, "left") if turn.is_flipped() => "right",
        (None, "right") if turn.is_flipped() => "left",
        _ => word,
    };
    value.split('_').map(turned).collect()
}

/// North and south are named before east and west, north before south, and east before west.
fn rail_rank(word: &str) -> Option<usize> {
    ["north", "south", "east", "west"].iter().position(|side| *side == word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::Flip;

    const QUARTER: Turn = Turn::new(1, Flip::None);
    const ALONG_X: Turn = Turn::new(0, Flip::X);
    const ALONG_Z: Turn = Turn::new(0, Flip::Z);

    fn turned(properties: &str, turn: Turn) -> String {
        let name = BlockName::parse(format!("minecraft:block[{properties}]")).unwrap();
        let turned = StateTurns::default().turned(&name, turn).to_string();
        turned.trim_start_matches("minecraft:block[").trim_end_matches(']').to_owned()
    }

    #[test]
    fn every_property_follows_a_quarter_turn_and_both_flips() {
        for (before, quarter, along_x, along_z) in [
            ("facing=north", "facing=east", "facing=north", "facing=south"),
            ("facing=west", "facing=north", "facing=east", "facing=west"),
            ("facing=up", "facing=up", "facing=up", "facing=up"),
            ("axis=x", "axis=z", "axis=x", "axis=x"),
            ("axis=y", "axis=y", "axis=y", "axis=y"),
            ("rotation=0", "rotation=4", "rotation=0", "rotation=8"),
            ("rotation=3", "rotation=7", "rotation=13", "rotation=5"),
            ("rotation=13", "rotation=1", "rotation=3", "rotation=11"),
            ("shape=north_south", "shape=east_west", "shape=north_south", "shape=north_south"),
            ("shape=east_west", "shape=north_south", "shape=east_west", "shape=east_west"),
            ("shape=ascending_east", "shape=ascending_south", "shape=ascending_west", "shape=ascending_east"),
            ("shape=south_east", "shape=south_west", "shape=south_west", "shape=north_east"),
            ("shape=north_west", "shape=north_east", "shape=north_east", "shape=south_west"),
            (
                "facing=east,shape=inner_left",
                "facing=south,shape=inner_left",
                "facing=west,shape=inner_right",
                "facing=east,shape=inner_right",
            ),
            ("shape=outer_right", "shape=outer_right", "shape=outer_left", "shape=outer_left"),
            ("shape=straight", "shape=straight", "shape=straight", "shape=straight"),
            ("hinge=left", "hinge=left", "hinge=right", "hinge=right"),
            ("type=right", "type=right", "type=left", "type=left"),
            ("type=single", "type=single", "type=single", "type=single"),
            ("orientation=up_north", "orientation=up_east", "orientation=up_north", "orientation=up_south"),
            ("orientation=east_up", "orientation=south_up", "orientation=west_up", "orientation=east_up"),
            (
                "east=low,north=tall,south=none,west=up",
                "east=tall,north=up,south=low,west=none",
                "east=up,north=tall,south=none,west=low",
                "east=low,north=none,south=tall,west=up",
            ),
            ("lit=true,power=12", "lit=true,power=12", "lit=true,power=12", "lit=true,power=12"),
        ] {
            let found = [QUARTER, ALONG_X, ALONG_Z].map(|turn| turned(before, turn));
            assert_eq!(found, [quarter, along_x, along_z], "{before}");
        }
    }

    #[test]
    fn turned_twice_is_turned_by_both_at_once() {
        let states = ["rotation=5", "facing=east,hinge=left", "shape=south_east", "east=a,north=b,south=c,west=d"];
        for (state, first) in states.into_iter().flat_map(|state| Turn::all().map(move |turn| (state, turn))) {
            for second in Turn::all() {
                assert_eq!(turned(&turned(state, first), second), turned(state, first.then(second)));
            }
            assert_eq!(turned(&turned(state, first), first.inverse()), state);
        }
    }

    #[test]
    fn what_a_rule_cannot_read_stays_as_it_is() {
        for state in ["rotation=16", "rotation=300", "axis=none", "shape=_", "facing=.", "orientation=left"] {
            assert_eq!(turned(state, QUARTER), state);
        }
        let table = StateTurns::empty().with_rule("a", StateRule::Custom(Arc::new(|_, _| "not a word".to_owned())));
        let name = BlockName::parse("game:block[a=b]").unwrap();
        assert_eq!(table.turned(&name, QUARTER), name);
    }
}
