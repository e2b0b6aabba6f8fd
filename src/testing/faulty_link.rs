//! [`FaultyLink`]: one direction of a bad connection.

use crate::simulation::SplitMix64;
use crate::view::ForTransport;
use std::collections::VecDeque;

/// One direction of a connection between a server and a client, with delays, losses and cuts. It counts time in steps, such as the
/// updates of a test.
///
/// ```
/// use bevy_terrane::testing::FaultyLink;
/// use bevy_terrane::view::ForTransport;
///
/// let mut link = FaultyLink::new(7);
/// link.delay = 2;
/// link.send(ForTransport { messages: vec![b"hello".to_vec()], packets: Vec::new() });
/// assert_eq!([link.step(), link.step(), link.step()].map(|arrived| arrived.messages.len()), [0, 0, 1]);
/// ```
#[derive(Clone, Debug)]
pub struct FaultyLink {
    /// The steps that everything takes at least.
    pub delay: u32,
    /// The most steps that it takes longer. Packets overtake each other, and messages do not.
    pub jitter: u32,
    /// The share of packets that are lost, from 0 to 1. Messages are repeated until they arrive: they are only late.
    pub loss: f32,
    /// The share of packets that come twice.
    pub repeats: f32,
    random: SplitMix64,
    now: u64,
    messages: VecDeque<(u64, Vec<u8>)>,
    packets: Vec<(u64, Vec<u8>)>,
}

impl FaultyLink {
    /// A perfect link, in which all is there in the next step. The seed is that of its faults.
    pub fn new(seed: u64) -> Self {
        let (messages, packets) = Default::default();
        Self { delay: 0, jitter: 0, loss: 0.0, repeats: 0.0, random: SplitMix64::new(seed), now: 0, messages, packets }
    }

    fn due(&mut self) -> u64 {
        self.now + 1 + u64::from(self.delay) + u64::from(self.random.below(self.jitter.saturating_add(1)))
    }

    /// Sends messages and packets.
    pub fn send(&mut self, sent: ForTransport) {
        for message in sent.messages {
            let mut due = self.due();
            while self.random.unit() < self.loss.min(0.9) {
                due += 1 + 2 * u64::from(self.delay);
            }
            let last = self.messages.back().map_or(0, |(due, _)| *due);
            self.messages.push_back((due.max(last), message));
        }
        for packet in sent.packets {
            let copies = 1 + u32::from(self.random.unit() < self.repeats);
            for _ in 0..copies {
                if self.random.unit() >= self.loss {
                    let due = self.due();
                    self.packets.push((due, packet.clone()));
                }
            }
        }
    }

    /// The next step: returns what has arrived.
    pub fn step(&mut self) -> ForTransport {
        self.now += 1;
        let now = self.now;
        let mut arrived = ForTransport::default();
        while let Some((_, message)) = self.messages.pop_front_if(|(due, _)| *due <= now) {
            arrived.messages.push(message);
        }
        let mut packets: Vec<_> = self.packets.extract_if(.., |(due, _)| *due <= now).collect();
        packets.sort_by_key(|(due, _)| *due);
        arrived.packets.extend(packets.into_iter().map(|(_, packet)| packet));
        arrived
    }

    /// Loses all that is on the way.
    pub fn cut(&mut self) {
        self.messages.clear();
        self.packets.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_in_order_and_packets_as_they_like() {
        let mut link = FaultyLink { delay: 3, jitter: 5, loss: 0.3, repeats: 0.2, ..FaultyLink::new(4) };
        let mut arrived = ForTransport::default();
        for number in 0..200_u8 {
            link.send(ForTransport { messages: vec![vec![number]], packets: vec![vec![number]] });
            let ForTransport { messages, packets } = link.step();
            arrived.messages.extend(messages);
            arrived.packets.extend(packets);
        }
        for _ in 0..2_000 {
            arrived.messages.extend(link.step().messages);
        }
        assert_eq!(arrived.messages, (0..200).map(|number| vec![number]).collect::<Vec<_>>());
        assert!(!arrived.packets.is_sorted());
        assert!((120..200).contains(&arrived.packets.len()), "{}", arrived.packets.len());
    }

    #[test]
    fn after_a_cut_nothing_arrives() {
        let mut link = FaultyLink { delay: 1, ..FaultyLink::new(4) };
        link.send(ForTransport { messages: vec![vec![1]], packets: vec![vec![2]] });
        link.cut();
        assert!((0..10).all(|_| link.step() == ForTransport::default()));
    }
}
