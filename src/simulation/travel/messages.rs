//! Bevy messages of a region that travel when regions merge and split.

use crate::region::RegionPart;
use crate::simulation::RegionResource;
use crate::space::BlockPos;
use bevy::ecs::message::Messages;
use bevy::prelude::*;

/// A message of the game's own that belongs to a place. After `register_region_resource::<Messages<M>>()`, what was
/// written in the last tick before a merge or a split goes where its place goes, and can be read there.
///
/// Nobody knows which systems had read it already: those that run later than its writer see it twice. What must arrive
/// exactly once is sent with [`Post`](crate::simulation::Post).
pub trait PlacedMessage: Message + Clone {
    /// Where it belongs; `None` if it goes nowhere.
    fn block(&self) -> Option<BlockPos>;
}

impl<M: PlacedMessage> RegionResource for Messages<M> {
    fn merge(&mut self, mut other: Self) {
        // The older ones could be read for a whole tick.
        let newest = other.iter_current_update_messages().len();
        let older = other.len() - newest;
        self.write_batch(other.drain().skip(older));
    }

    fn split(&mut self, part: &RegionPart) -> Self {
        let mut share = Self::default();
        let goes = |message: &&M| message.block().is_some_and(|block| part.contains_block(block));
        share.write_batch(self.iter_current_update_messages().filter(goes).cloned());
        share
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::RegionId;
    use crate::space::SectionPos;

    #[derive(Message, Clone, Debug, PartialEq)]
    struct Noise(i64);

    impl PlacedMessage for Noise {
        fn block(&self) -> Option<BlockPos> {
            Some(BlockPos::new(self.0, 0, 0))
        }
    }

    fn unread(messages: &Messages<Noise>) -> Vec<i64> {
        messages.get_cursor().read(messages).map(|noise| noise.0).collect()
    }

    #[test]
    fn what_was_written_last_goes_where_its_place_goes() {
        let mut messages = Messages::default();
        messages.write(Noise(1));
        messages.update();
        messages.write_batch([Noise(2), Noise(200)]);
        let part = RegionPart { id: RegionId::new(1), sections: vec![SectionPos::new(3, 0)], section_shift: 2 };
        let share = messages.split(&part);
        assert_eq!(unread(&share), [200]);

        let mut into = Messages::default();
        into.write(Noise(3));
        into.merge(messages);
        assert_eq!(unread(&into), [3, 2, 200], "the oldest had its time");
    }
}
