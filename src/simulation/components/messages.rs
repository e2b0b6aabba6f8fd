//! Bevy messages of a region that travel when regions merge and split.

use crate::region::RegionPart;
use crate::simulation::components::resources::RegionResource;
use crate::space::BlockPos;
use bevy::ecs::message::Messages;
use bevy::prelude::*;

/// A message type of the game whose messages belong to places. After `register_region_resource::<Messages<M>>()`, messages
/// from the last tick before a merge or a split travel with their place and can be read there.
///
/// It is unknown which systems have already read a message: systems that run after its writer see it twice. Use
/// [`Post`](crate::simulation::Post) for messages that must arrive exactly once.
pub trait PlacedMessage: Message + Clone {
    /// The place of the message; `None` if it does not travel.
    fn block(&self) -> Option<BlockPos>;
}

impl<M: PlacedMessage> RegionResource for Messages<M> {
    fn merge(&mut self, mut other: Self) {
        // Older messages could be read during a whole tick.
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
    fn unread_messages_go_with_their_place() {
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
