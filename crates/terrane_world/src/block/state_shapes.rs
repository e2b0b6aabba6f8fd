//! The shapes of a type's states, which follow from the shape of the default state.

use super::{BlockName, BlockShape, BlockType, turned_state};
use crate::space::Turn;

/// The shapes of the states that are the default state turned, turned upside down, or both.
pub(super) struct StateShapes {
    default: UprightAndTipped,
    /// The properties that a turn changes, with their values after each turn, and the turned shapes.
    turned: Vec<(Vec<(String, String)>, UprightAndTipped)>,
    /// The property of the default state that is `bottom` or `top`, with its other value.
    tipped: Option<(String, &'static str)>,
}

type UprightAndTipped = [BlockShape; 2];

impl StateShapes {
    pub fn new(default: &BlockName, shape: &BlockShape) -> Self {
        let names: Vec<_> = Turn::all().map(|turn| (turn, turned_state(default, turn))).collect();
        let is_kept =
            |property: &(&str, &str)| names.iter().all(|(_, name)| name.properties().any(|it| it == *property));
        let mut turned: Vec<(Vec<_>, _)> = Vec::new();
        for (turn, name) in &names {
            let properties = name.properties().filter(|property| !is_kept(property));
            let properties = properties.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            // Two turns can lead to one state. The first is none, and quarter turns come before flips.
            if turned.iter().all(|(others, _)| *others != properties) {
                turned.push((properties, upright_and_tipped(shape.turned(*turn))));
            }
        }
        let default_shapes = upright_and_tipped(shape.clone());
        turned.retain(|(_, shapes)| *shapes != default_shapes);
        let other = |(name, value): (&str, &str)| match (name, value) {
            ("half" | "type", "bottom") => Some((name.to_owned(), "top")),
            ("half" | "type", "top") => Some((name.to_owned(), "bottom")),
            _ => None,
        };
        Self { default: default_shapes, turned, tipped: default.properties().find_map(other) }
    }

    pub fn of(&self, state: &BlockType) -> BlockShape {
        let has = |(name, value): &(String, String)| state.property(name) == Some(value);
        let turned = self.turned.iter().find(|(properties, _)| properties.iter().all(has));
        let [upright, tipped] = turned.map_or(&self.default, |(_, shapes)| shapes);
        let is_tipped = self.tipped.as_ref().is_some_and(|(name, value)| state.property(name) == Some(*value));
        if is_tipped { tipped.clone() } else { upright.clone() }
    }
}

fn upright_and_tipped(shape: BlockShape) -> UprightAndTipped {
    let tipped = shape.upside_down();
    [shape, tipped]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{BlockStates, ShapeBox};
    use crate::space::Face;

    const SIDES: [&str; 4] = ["north", "east", "south", "west"];

    fn states(shape: BlockShape, properties: &[(&'static str, &[&'static str])]) -> Vec<BlockType> {
        let states = BlockStates::new(BlockType::new("game:block").with_shape(shape));
        let with = |states: BlockStates, (name, values): &(&'static str, &[&'static str])| {
            states.with_property(*name, values.iter().copied())
        };
        properties.iter().fold(states, with).types().unwrap()
    }

    /// The shape of the state with exactly these values, in the order of the properties' names.
    fn shape<'a>(states: &'a [BlockType], values: &[&str]) -> &'a BlockShape {
        let state = |state: &&BlockType| state.properties().map(|(_, value)| value).eq(values.iter().copied());
        states.iter().find(state).unwrap().shape()
    }

    /// Promise, blocks: The states of a block type turn its shape, and turn it upside down.
    #[test]
    fn stairs_lead_up_to_the_side_that_they_face_and_hang_from_above() {
        let stairs = BlockShape::stairs();
        let properties: [(_, &[_]); 3] =
            [("facing", &SIDES), ("half", &["bottom", "top"]), ("wet", &["false", "true"])];
        let states = states(stairs.clone(), &properties);
        for ((quarters, side), wet) in (0..).zip(SIDES).flat_map(|it| ["false", "true"].map(|wet| (it, wet))) {
            let turned = stairs.turned(Turn::quarters(quarters));
            assert_eq!(shape(&states, &[side, "bottom", wet]), &turned);
            assert_eq!(shape(&states, &[side, "top", wet]), &turned.upside_down());
            let full_side = Face::SIDES[usize::from(quarters)];
            assert!(turned.closed_faces().contains(full_side) && !turned.closed_faces().contains(full_side.opposite()));
        }
    }

    #[test]
    fn a_shape_turns_from_whatever_the_default_is() {
        let shape_of_west = BlockShape::stairs().turned(Turn::quarters(3));
        let found =
            states(shape_of_west.upside_down(), &[("facing", &["west", "up", "north"]), ("half", &["top", "bottom"])]);
        assert_eq!(shape(&found, &["north", "bottom"]), &BlockShape::stairs());
        assert_eq!(shape(&found, &["west", "bottom"]), &shape_of_west);
        assert_eq!(shape(&found, &["up", "top"]), &shape_of_west.upside_down(), "no turn leads there");
    }

    #[test]
    fn a_flip_leads_to_the_states_that_no_quarter_turn_reaches() {
        let door =
            BlockShape::from_boxes([ShapeBox::new([0, 0, 13], [16, 16, 16]), ShapeBox::new([0, 7, 11], [2, 9, 13])]);
        let door = door.unwrap();
        let found = states(door.clone(), &[("facing", &SIDES), ("hinge", &["left", "right"])]);
        assert_eq!(shape(&found, &["north", "right"]), &door.turned(Turn::FLIP_X));
        assert_eq!(shape(&found, &["west", "left"]), &door.turned(Turn::quarters(3)));
        assert_eq!(shape(&found, &["east", "right"]), &door.turned(Turn::FLIP_X.then(Turn::quarters(1))));
        // Without the other hinge, the shape is never flipped.
        let found = states(door.clone(), &[("facing", &SIDES)]);
        assert_eq!(shape(&found, &["south"]), &door.turned(Turn::quarters(2)));
        assert_eq!(shape(&found, &["north"]), &door);
    }

    #[test]
    fn what_is_no_turn_keeps_the_default_shape_until_it_is_varied() {
        let slab = BlockStates::new(BlockType::new("game:slab").with_shape(BlockShape::slab()))
            .with_property("type", ["bottom", "top", "double"])
            .varied_by(|state| match state.property("type") {
                Some("double") => {
                    assert_eq!(state.shape(), &BlockShape::slab());
                    state.with_shape(BlockShape::Cube)
                }
                _ => state,
            });
        let slabs = slab.types().unwrap();
        let expected = [BlockShape::slab(), BlockShape::slab().upside_down(), BlockShape::Cube];
        assert!(slabs.iter().map(BlockType::shape).eq(&expected));
        assert!(slabs.iter().map(BlockType::is_opaque).eq([false, false, true]));
        let log = BlockShape::from_boxes([ShapeBox::new([0, 6, 6], [16, 10, 10])]).unwrap();
        let logs = states(log.clone(), &[("axis", &["x", "y", "z"])]);
        assert!(logs.iter().map(BlockType::shape).eq([&log, &log, &log.turned(Turn::quarters(1))]));
    }

    #[test]
    fn sides_that_are_properties_turn_the_shape() {
        let board = BlockShape::from_boxes([ShapeBox::new([0, 0, 0], [16, 16, 1])]).unwrap();
        let both: [_; 2] = ["true", "false"];
        let sides: [(_, &[_]); 4] = [
            ("north", &both),
            ("east", &["false", "true"]),
            ("south", &["false", "true"]),
            ("west", &["false", "true"]),
        ];
        let found = states(board.clone(), &sides);
        let only =
            |side: usize| ["east", "north", "south", "west"].map(|it| if it == SIDES[side] { "true" } else { "false" });
        for (quarters, side) in (0..4).zip(0..) {
            assert_eq!(shape(&found, &only(side)), &board.turned(Turn::quarters(quarters)));
        }
        assert_eq!(shape(&found, &["true"; 4]), &board);
    }
}
