//! Turns the properties of blocks, such as the side that a block faces or the direction of rails.

use super::BlockName;
use crate::space::Turn;

/// The four sides, clockwise from north.
const SIDES: [&str; 4] = ["north", "east", "south", "west"];

/// The name of the state after a turn or flip, for the properties of Minecraft's blocks.
///
/// | property | how its value changes |
/// |---|---|
/// | `facing`, `orientation`, `hinge`, `type`, `side_chain` | words joined by `_`: sides turn, and a flip swaps `left` and `right` |
/// | `shape` of rails and stairs | the same, in the fixed order of the two sides: `north_south`, `south_east` |
/// | `axis` | quarter turns swap `x` and `z` |
/// | `rotation` | 0 to 15, clockwise seen from above, 0 in the south |
/// | `north`, `east`, `south`, `west` | the values move to the turned sides |
///
/// All other properties and all invalid values are unchanged. For other properties, give
/// [`BlockTurns`](crate::snapshot::BlockTurns) a function of the game's own.
///
/// ```
/// use terrane_world::block::{BlockName, turned_state};
/// use terrane_world::space::Turn;
///
/// let vine = BlockName::parse("minecraft:vine[east=false,north=true,south=false,up=true,west=false]")?;
/// let turned = turned_state(&vine, Turn::quarters(1));
/// assert_eq!(turned.as_str(), "minecraft:vine[east=true,north=false,south=false,up=true,west=false]");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn turned_state(block: &BlockName, turn: Turn) -> BlockName {
    let properties = block.properties().map(|(property, value)| {
        let turned = SIDES.iter().position(|side| *side == property).map(|side| SIDES[turn.side(side)]);
        format!("{}={}", turned.unwrap_or(property), turned_value(property, value, turn))
    });
    let properties: Vec<_> = properties.collect();
    if turn.is_none() || properties.is_empty() {
        return block.clone();
    }
    BlockName::parse(format!("{}[{}]", block.base(), properties.join(","))).unwrap_or_else(|_| block.clone())
}

fn turned_value(property: &str, value: &str, turn: Turn) -> String {
    match (property, value) {
        ("facing" | "orientation" | "hinge" | "type" | "side_chain", _) => turned_words(value, turn).join("_"),
        ("shape", _) => {
            let mut words = turned_words(value, turn);
            if let [first, second] = &mut words[..]
                && let Some(rank) = rail_rank(first)
                && rail_rank(second).is_some_and(|other| other < rank)
            {
                std::mem::swap(first, second);
            }
            words.join("_")
        }
        ("axis", "x") if turn.swaps_axes() => "z".to_owned(),
        ("axis", "z") if turn.swaps_axes() => "x".to_owned(),
        ("rotation", _) => match value.parse::<u8>() {
            Ok(angle @ 0..16) => {
                let angle = if turn.is_flipped() { 16 - angle } else { angle };
                ((angle + 4 * turn.quarter_turns()) % 16).to_string()
            }
            _ => value.to_owned(),
        },
        _ => value.to_owned(),
    }
}

fn turned_words(value: &str, turn: Turn) -> Vec<&str> {
    let turned = |word| match (SIDES.iter().position(|side| *side == word), word) {
        (Some(side), _) => SIDES[turn.side(side)],
        (None, "left") if turn.is_flipped() => "right",
        (None, "right") if turn.is_flipped() => "left",
        _ => word,
    };
    value.split('_').map(turned).collect()
}

/// The order of sides in names: north, south, east, west.
fn rail_rank(word: &str) -> Option<usize> {
    ["north", "south", "east", "west"].iter().position(|side| *side == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUARTER: Turn = Turn::quarters(1);
    const ALONG_X: Turn = Turn::FLIP_X;
    const ALONG_Z: Turn = Turn::FLIP_Z;

    fn turned(properties: &str, turn: Turn) -> String {
        let name = BlockName::parse(format!("minecraft:block[{properties}]")).unwrap();
        let turned = turned_state(&name, turn).to_string();
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
    fn values_that_a_rule_cannot_read_stay_unchanged() {
        for state in ["rotation=16", "rotation=300", "axis=none", "shape=_", "facing=.", "orientation=left"] {
            assert_eq!(turned(state, QUARTER), state);
        }
    }
}
