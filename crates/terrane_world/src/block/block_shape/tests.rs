use super::*;
use proptest::prelude::*;

fn any_box() -> impl Strategy<Value = ShapeBox> {
    // Many corners are on the block's faces or in the middle.
    let edge = prop_oneof![Just(0_u8), Just(16), Just(8), 0..=16_u8];
    let span =
        (edge.clone(), edge).prop_map(|(a, b)| if a == b { (a.min(15), a.min(15) + 1) } else { (a.min(b), a.max(b)) });
    prop::array::uniform3(span).prop_map(|spans| ShapeBox::new(spans.map(|span| span.0), spans.map(|span| span.1)))
}

fn boxes(count: impl Into<prop::collection::SizeRange>) -> impl Strategy<Value = Vec<ShapeBox>> {
    prop::collection::vec(any_box(), count)
}

fn any_shape() -> impl Strategy<Value = BlockShape> {
    prop_oneof![
        prop::sample::select(vec![BlockShape::Empty, BlockShape::Cube, BlockShape::Cross]),
        (1..=8_u8).prop_map(|level| BlockShape::liquid(level).unwrap()),
        boxes(0..6).prop_map(|boxes| BlockShape::from_boxes(boxes).unwrap()),
        (any_box(), boxes(0..3)).prop_map(|(post, arm)| BlockShape::joined(post, arm).unwrap()),
        prop::sample::select(vec![BlockShape::stairs(), BlockShape::fence(), BlockShape::pane()]),
    ]
}

fn any_turn() -> impl Strategy<Value = Turn> {
    prop::sample::select(Turn::all().collect::<Vec<_>>())
}

fn any_sides() -> impl Strategy<Value = FaceSet> {
    prop::sample::subsequence(Face::SIDES.to_vec(), 0..=4).prop_map(|sides| sides.into_iter().collect())
}

fn sorted_boxes(boxes: impl Iterator<Item = ShapeBox>) -> Vec<ShapeBox> {
    sorted(boxes).to_vec()
}

/// Whether the boxes take every one of the 256 cells behind a face.
fn is_closed(boxes: &[ShapeBox], face: Face) -> bool {
    let cells = (0..16).flat_map(|x| (0..16).flat_map(move |y| (0..16).map(move |z| [x, y, z])));
    let edge = if face.is_positive() { 15 } else { 0 };
    let mut behind = cells.filter(|cell: &[u8; 3]| cell[face.axis()] == edge);
    let holds =
        |part: &ShapeBox, cell: [u8; 3]| (0..3).all(|axis| (part.min[axis]..part.max[axis]).contains(&cell[axis]));
    behind.all(|cell| boxes.iter().any(|part| holds(part, cell)))
}

proptest! {
    /// Promise, blocks: A face of a block is closed if its shape covers every sixteenth of it.
    #[test]
    fn closed_faces_are_those_of_which_every_cell_is_covered(boxes in boxes(0..8)) {
        let expected: FaceSet = Face::ALL.into_iter().filter(|face| is_closed(&boxes, *face)).collect();
        prop_assert_eq!(BlockShape::from_boxes(boxes).unwrap().closed_faces(), expected);
    }

    #[test]
    fn boxes_that_divide_a_face_close_it_and_one_less_does_not(
        cut in prop::array::uniform2(1_u8..16), turn in any_turn(), missing in 0_usize..4, depth in 1_u8..16,
    ) {
        let [x, y] = cut;
        let spans = [([0, 0], [x, y]), ([x, 0], [16, y]), ([0, y], [x, 16]), ([x, y], [16, 16])];
        let parts = spans.map(|([x0, y0], [x1, y1])| ShapeBox::new([x0, y0, 0], [x1, y1, depth]));
        let face = Face::North.turned(turn);
        prop_assert!(BlockShape::from_boxes(parts).unwrap().turned(turn).closed_faces().contains(face));
        let rest = parts.into_iter().enumerate().filter(|(index, _)| *index != missing).map(|(_, part)| part);
        prop_assert!(!BlockShape::from_boxes(rest).unwrap().turned(turn).closed_faces().contains(face));
    }

    #[test]
    fn turns_of_a_shape_are_a_group(shape in any_shape(), first in any_turn(), second in any_turn()) {
        prop_assert_eq!(shape.turned(first).turned(second), shape.turned(first.then(second)));
        prop_assert_eq!(shape.turned(first).turned(first.inverse()), shape.clone());
        prop_assert_eq!(shape.turned(Turn::NONE), shape.clone());
        prop_assert_eq!(shape.upside_down().upside_down(), shape.clone());
        prop_assert_eq!(shape.upside_down().turned(first), shape.turned(first).upside_down());
    }

    #[test]
    fn boxes_and_closed_faces_turn_with_the_shape(shape in any_shape(), turn in any_turn(), joins in any_sides()) {
        let turned = shape.turned(turn);
        let expected = sorted_boxes(shape.boxes(joins).map(|part| part.turned(turn)));
        prop_assert_eq!(sorted_boxes(turned.boxes(joins.turned(turn))), expected);
        prop_assert_eq!(turned.closed_faces(), shape.closed_faces().turned(turn));
        let tipped = shape.closed_faces().iter().map(|face| if face.axis() == 1 { face.opposite() } else { face });
        prop_assert_eq!(shape.upside_down().closed_faces(), tipped.collect());
        prop_assert!(turned.boxes(joins).all(ShapeBox::is_valid));
    }

    /// Promise, blocks: Panes and fences that are neighbors join each other, and join the closed faces of other blocks.
    #[test]
    fn joined_shapes_join_each_other_and_closed_faces(one in any_shape(), other in any_shape()) {
        let has_arms = |shape: &BlockShape| matches!(shape, BlockShape::Joined { .. });
        for face in Face::ALL {
            let is_joined = one.joins(&other, face);
            if has_arms(&one) && has_arms(&other) {
                prop_assert_eq!(is_joined, face.axis() != 1);
                prop_assert_eq!(is_joined, other.joins(&one, face.opposite()));
            } else {
                let closed = other.closed_faces().contains(face.opposite());
                prop_assert_eq!(is_joined, has_arms(&one) && face.axis() != 1 && closed);
            }
        }
    }

    /// Promise, blocks: A list of boxes that is not a shape is refused, with the place of the first wrong box.
    #[test]
    fn any_boxes_are_a_shape_or_the_wrong_one_is_named(
        corners in prop::collection::vec((any::<[u8; 3]>(), any::<[u8; 3]>()), 0..4), good in boxes(0..70), at in 0_usize..70,
    ) {
        let mut boxes = good;
        let at = at.min(boxes.len());
        boxes.splice(at..at, corners.iter().map(|(min, max)| ShapeBox::new(*min, *max)));
        let wrong = boxes.iter().take(65).position(|part| !is_within_the_block(part));
        for result in [BlockShape::from_boxes(boxes.clone()), joined_from(&boxes)] {
            match (wrong, result) {
                (Some(index), result) => prop_assert_eq!(result, Err(ShapeError::InvalidBox { index, found: boxes[index] })),
                (None, Err(error)) => prop_assert!(error == ShapeError::TooManyBoxes && boxes.len() > 64),
                (None, Ok(shape)) => {
                    prop_assert!(boxes.len() <= 64);
                    prop_assert!(shape.boxes(FaceSet::ALL).all(|part| is_within_the_block(&part)));
                }
            }
        }
    }
}

fn is_within_the_block(part: &ShapeBox) -> bool {
    part.min.iter().zip(&part.max).all(|(min, max)| min < max) && part.max.iter().all(|max| *max <= 16)
}

fn joined_from(boxes: &[ShapeBox]) -> Result<BlockShape, ShapeError> {
    match boxes {
        [] => Ok(BlockShape::Empty),
        [post, arm @ ..] => BlockShape::joined(*post, arm.iter().copied()),
    }
}

#[test]
fn the_shapes_close_the_faces_that_they_are_known_for() {
    let closed = |shape: BlockShape| shape.closed_faces().iter().collect::<Vec<_>>();
    assert_eq!(closed(BlockShape::Cube), Face::ALL);
    assert_eq!(closed(BlockShape::slab()), [Face::Bottom]);
    assert_eq!(closed(BlockShape::slab().upside_down()), [Face::Top]);
    assert_eq!(closed(BlockShape::stairs()), [Face::Bottom, Face::North]);
    let source = BlockShape::liquid(8).unwrap();
    for open in
        [BlockShape::Empty, BlockShape::Cross, BlockShape::torch(), BlockShape::pane(), BlockShape::fence(), source]
    {
        assert_eq!(closed(open), []);
    }
}

#[test]
fn an_arm_reaches_from_the_post_to_each_side_that_is_joined() {
    let sides = |sides: &[Face]| sides.iter().copied().collect::<FaceSet>();
    for (shape, arm_boxes) in [(BlockShape::pane(), 1), (BlockShape::fence(), 2)] {
        assert_eq!(shape.boxes(FaceSet::NONE).count(), 1);
        assert_eq!(shape.boxes(FaceSet::ALL).count(), 1 + 4 * arm_boxes);
        assert_eq!(shape.boxes(sides(&[Face::Top, Face::Bottom])).count(), 1);
        for side in Face::SIDES {
            let boxes: Vec<_> = shape.boxes(sides(&[side])).collect();
            let touching = |face: Face| boxes[1..].iter().filter(|part| part.touches(face)).count();
            assert_eq!((touching(side), touching(side.opposite())), (arm_boxes, 0));
        }
    }
}

#[test]
fn a_ray_hits_a_plant_and_a_liquid_up_to_its_level() {
    let boxes = |shape: BlockShape| shape.boxes(FaceSet::ALL).collect::<Vec<_>>();
    assert_eq!(boxes(BlockShape::Cross), [CROSS]);
    assert_eq!(boxes(BlockShape::liquid(3).unwrap()), [ShapeBox::new([0; 3], [16, 6, 16])]);
    assert_eq!(boxes(BlockShape::liquid(8).unwrap()), boxes(BlockShape::Cube));
    assert_eq!(boxes(BlockShape::Empty), []);
}

#[test]
fn shapes_with_the_same_boxes_are_equal() {
    let [low, high] = [ShapeBox::new([0; 3], [16, 4, 16]), ShapeBox::new([0, 9, 0], [5, 16, 16])];
    assert_eq!(BlockShape::from_boxes([low, high]), BlockShape::from_boxes([high, low, high]));
    assert_eq!(BlockShape::from_boxes([]), Ok(BlockShape::Empty));
    assert_eq!(BlockShape::from_boxes([low, ShapeBox::BLOCK]), Ok(BlockShape::Cube));
}

#[test]
fn what_is_no_shape_is_refused_in_words() {
    let flat = ShapeBox::new([0, 4, 0], [16, 4, 16]);
    let error = BlockShape::from_boxes([ShapeBox::BLOCK, flat]).unwrap_err();
    let expected = "must have a volume within the block: 0 to 16 on each axis";
    assert_eq!(error.to_string(), format!("box 1 of a shape, from [0, 4, 0] to [16, 4, 16], {expected}"));
    let endless = std::iter::repeat(ShapeBox::new([0; 3], [1; 3]));
    let error = BlockShape::from_boxes(endless.clone()).unwrap_err();
    assert_eq!(error.to_string(), "a shape has more than 64 boxes");
    assert!(BlockShape::from_boxes(endless.clone().take(64)).is_ok());
    assert_eq!(BlockShape::joined(flat, endless), Err(ShapeError::InvalidBox { index: 0, found: flat }));
    for level in [0, 9, 255] {
        assert_eq!(BlockShape::liquid(level), Err(ShapeError::InvalidLevel { level }));
    }
    assert_eq!(BlockShape::liquid(0).unwrap_err().to_string(), "0 is not the level of a liquid, which is 1 to 8");
}
