//! The faces of a block, and sets of them.

use super::Turn;

/// One of the six faces of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Face {
    /// Towards -x.
    West,
    /// Towards -y.
    Bottom,
    /// Towards -z.
    North,
    /// Towards +x.
    East,
    /// Towards +y.
    Top,
    /// Towards +z.
    South,
}

impl Face {
    /// All faces: -x, -y, -z, +x, +y, +z.
    pub const ALL: [Self; 6] = [Self::West, Self::Bottom, Self::North, Self::East, Self::Top, Self::South];
    /// The four sides, clockwise from north as seen from above.
    pub const SIDES: [Self; 4] = [Self::North, Self::East, Self::South, Self::West];

    /// The axis on which the face looks: 0 for x, 1 for y, 2 for z.
    #[inline]
    pub const fn axis(self) -> usize {
        self as usize % 3
    }

    /// Returns `true` if the face looks towards higher coordinates.
    #[inline]
    pub const fn is_positive(self) -> bool {
        self as usize >= 3
    }

    /// The outward normal.
    #[inline]
    pub const fn normal(self) -> [i64; 3] {
        let mut normal = [0; 3];
        normal[self.axis()] = if self.is_positive() { 1 } else { -1 };
        normal
    }

    /// The face on the other side of the block, which is also the face of the neighbor that touches this one.
    #[inline]
    pub const fn opposite(self) -> Self {
        Self::ALL[(self as usize + 3) % 6]
    }

    /// The face where this one is after the turn.
    pub fn turned(self, turn: Turn) -> Self {
        let side = Self::SIDES.iter().position(|side| *side == self);
        side.map_or(self, |side| Self::SIDES[turn.side(side)])
    }
}

/// A set of faces of a block, in one byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FaceSet(u8);

impl FaceSet {
    /// No face.
    pub const NONE: Self = Self(0);
    /// All six faces.
    pub const ALL: Self = Self(0b11_1111);

    /// Returns `true` if the set contains the face.
    #[inline]
    pub const fn contains(self, face: Face) -> bool {
        self.0 >> face as u8 & 1 != 0
    }

    /// Adds a face.
    #[inline]
    pub const fn insert(&mut self, face: Face) {
        self.0 |= 1 << face as u8;
    }

    /// The faces of both sets.
    #[inline]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The faces, in the order of [`Face::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Face> {
        Face::ALL.into_iter().filter(move |face| self.contains(*face))
    }

    /// The faces where these are after the turn.
    pub fn turned(self, turn: Turn) -> Self {
        self.iter().map(|face| face.turned(turn)).collect()
    }
}

impl FromIterator<Face> for FaceSet {
    fn from_iter<I: IntoIterator<Item = Face>>(faces: I) -> Self {
        let mut set = Self::NONE;
        faces.into_iter().for_each(|face| set.insert(face));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faces_look_along_their_axes_and_have_opposites() {
        let normals = [[-1, 0, 0], [0, -1, 0], [0, 0, -1], [1, 0, 0], [0, 1, 0], [0, 0, 1]];
        assert_eq!(Face::ALL.map(Face::normal), normals);
        for face in Face::ALL {
            assert_eq!(face.opposite().normal(), face.normal().map(|along| -along));
            assert_eq!(face.opposite().opposite(), face);
        }
    }

    #[test]
    fn a_face_turns_as_its_normal_does() {
        for (turn, face) in Turn::all().flat_map(|turn| Face::ALL.map(|face| (turn, face))) {
            let [x, y, z] = face.normal();
            let [turned_x, turned_z] = turn.vector(x.into(), z.into());
            assert_eq!(face.turned(turn).normal().map(i128::from), [turned_x, y.into(), turned_z]);
        }
    }

    #[test]
    fn every_set_has_the_faces_that_were_put_into_it() {
        for bits in 0..64_u8 {
            let faces: Vec<Face> = Face::ALL.into_iter().filter(|face| bits >> *face as u8 & 1 != 0).collect();
            let set: FaceSet = faces.iter().rev().copied().collect();
            assert!(set.iter().eq(faces.iter().copied()));
            assert!(Face::ALL.iter().all(|face| set.contains(*face) == faces.contains(face)));
            for turn in Turn::all() {
                assert_eq!(set.turned(turn).iter().count(), faces.len());
                assert_eq!(set.turned(turn).turned(turn.inverse()), set);
            }
            let others = Face::ALL.into_iter().filter(|face| !set.contains(*face)).collect();
            assert_eq!((set.union(others), set.union(FaceSet::NONE)), (FaceSet::ALL, set));
        }
        assert_eq!(Face::ALL.into_iter().collect::<FaceSet>(), FaceSet::ALL);
        assert_eq!(FaceSet::NONE.iter().count(), 0);
    }
}
