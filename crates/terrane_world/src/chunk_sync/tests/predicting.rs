//! A client that shows its edits at once, on a slow connection, with refusals and edits from others.

use super::*;
use crate::block::{BlockId, BlockType};
use crate::chunk::{BlockChange, Chunk, Column, Predictions, format};
use crate::space::{BlockPos, ColumnPos, DimensionId};
use proptest::prelude::*;

const DIMENSION: DimensionId = DimensionId(9);
const FRAME: Duration = Duration::from_millis(16);
/// A region ticks every third frame.
const TICK: u64 = 3;
const NAMES: [&str; 3] = ["game:stone", "game:dirt", "game:ore"];
/// The frames in which edits are made.
const BUSY: u64 = 400;

/// Random numbers below a bound.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    fn one_in(&mut self, many: u64) -> bool {
        self.roll(many) == 0
    }

    /// A few blocks of two columns, two of them in one chunk.
    fn place(&mut self) -> BlockPos {
        BlockPos::new(self.roll(2) as i64 * 16, self.roll(4) as i64 * 5 - 8, 3)
    }
}

/// Messages that arrive late, and in order.
struct Line<T> {
    on_the_way: VecDeque<(u64, T)>,
    most_frames: u64,
}

impl<T> Line<T> {
    fn new(most_frames: u64) -> Self {
        Self { on_the_way: VecDeque::new(), most_frames }
    }

    fn send(&mut self, now: u64, dice: &mut Dice, message: T) {
        let earliest = self.on_the_way.back().map_or(now, |(due, _)| *due);
        self.on_the_way.push_back((earliest.max(now + dice.roll(self.most_frames + 1)), message));
    }

    fn arrived(&mut self, now: u64) -> Vec<T> {
        let count = self.on_the_way.iter().take_while(|(due, _)| *due <= now).count();
        self.on_the_way.drain(..count).map(|(_, message)| message).collect()
    }
}

/// An edit of the client, as the test remembers it.
struct Made {
    position: BlockPos,
    block: BlockId,
    frame: u64,
    /// The frame in which the region made it.
    accepted: Option<u64>,
}

/// A server with its region, a client with its predictions, and the delays between all of them.
struct Game {
    now: u64,
    dice: Dice,
    registry: BlockRegistry,
    /// The truth.
    region: FxHashMap<ColumnPos, Column>,
    inbox: Vec<(Option<u64>, BlockPos, BlockId)>,
    /// The changed chunks and the decisions of ticks.
    published: Line<(BTreeMap<ChunkPos, Arc<Chunk>>, Vec<(u64, ChunkPos, bool)>)>,
    seen_by_server: BTreeMap<ChunkPos, Arc<Chunk>>,
    server: SyncServer,
    limits: SyncLimits,
    looked_up: Line<(ChunkPos, Arc<[u8]>)>,
    up: Line<Vec<u8>>,
    down: Line<Vec<u8>>,
    client: SyncClient,
    confirmed: FxHashMap<ColumnPos, Column>,
    predictions: Predictions,
    made: Vec<Made>,
    /// The edits that the game or the region refused.
    refused: FxHashSet<u64>,
    /// The writes of others: the place and the frame.
    others: Vec<(BlockPos, u64)>,
    /// What the client showed in each frame.
    shown: Vec<FxHashMap<BlockPos, BlockId>>,
}

fn columns() -> [ColumnPos; 2] {
    [ColumnPos::new(0, 0), ColumnPos::new(1, 0)]
}

impl Game {
    fn new(seed: u64, delay: u64, slowness: u64) -> Self {
        let mut registry = BlockRegistry::new();
        NAMES.iter().for_each(|name| _ = registry.register(BlockType::new(*name)).unwrap());
        let limits = SyncLimits { edits_per_second: 1_000, bytes_per_second: 1 << 20, ..SyncLimits::default() };
        let chunks = columns().into_iter().flat_map(|column| [-1, 0].map(|y| (column.chunk(y), Arc::default())));
        let mut client = SyncClient::new(None);
        client.look(area(0, 0, 3));
        Self {
            now: 0,
            dice: Dice(seed),
            server: Self::server(&registry, limits),
            registry,
            region: columns().into_iter().map(|column| (column, Column::new(column))).collect(),
            inbox: Vec::new(),
            published: Line::new(slowness),
            seen_by_server: chunks.collect(),
            limits,
            looked_up: Line::new(slowness * 2),
            up: Line::new(delay),
            down: Line::new(delay),
            client,
            confirmed: FxHashMap::default(),
            predictions: Predictions::default(),
            made: Vec::new(),
            refused: FxHashSet::default(),
            others: Vec::new(),
            shown: Vec::new(),
        }
    }

    fn server(registry: &BlockRegistry, limits: SyncLimits) -> SyncServer {
        SyncServer::new("overworld", -1..1, (registry.block_records().collect(), Vec::new()), limits)
    }

    /// The region makes its edits.
    fn tick(&mut self) {
        if !self.now.is_multiple_of(TICK) {
            return;
        }
        let (mut changed, mut decided) = (BTreeMap::new(), Vec::new());
        for (id, position, block) in std::mem::take(&mut self.inbox) {
            let is_accepted = id.is_none() || !self.dice.one_in(6);
            let chunk = position.chunk();
            if is_accepted {
                let column = self.region.get_mut(&position.column()).unwrap();
                column.set_block(position, block);
                column.chunk(chunk.y).into_iter().for_each(|now| _ = changed.insert(chunk, now.clone()));
            }
            match id {
                Some(id) if is_accepted => self.made[id as usize].accepted = Some(self.now),
                Some(id) => _ = self.refused.insert(id),
                None => self.others.push((position, self.now)),
            }
            decided.extend(id.map(|id| (id, chunk, is_accepted)));
        }
        self.published.send(self.now, &mut self.dice, (changed, decided));
    }

    /// The server's main world.
    fn serve(&mut self) {
        for (chunk, bytes) in self.looked_up.arrived(self.now) {
            self.server.found(chunk, Ok(Some(FoundChunk::new(chunk, bytes))));
        }
        for (changed, decided) in self.published.arrived(self.now) {
            for (chunk, blocks) in changed {
                let before = self.seen_by_server.insert(chunk, blocks.clone()).unwrap_or_default();
                match ChunkChange::between(chunk, &before, &blocks, &self.registry) {
                    Some(change) if !self.dice.one_in(8) => self.server.take_change(&change),
                    _ => self.server.changed(chunk),
                }
            }
            decided.into_iter().for_each(|(id, chunk, is_accepted)| self.server.edit_decided(id, chunk, is_accepted));
        }
        self.up.arrived(self.now).iter().for_each(|message| self.server.receive(message).unwrap());
        for wish in self.server.take_wishes() {
            let SyncWish::Edit(edit) = wish else { panic!("{wish:?}") };
            match self.dice.one_in(6) {
                true => {
                    self.refused.insert(edit.id);
                    self.server.edit_decided(edit.id, edit.position.chunk(), false);
                }
                false => self.inbox.push((Some(edit.id), edit.position, BlockId::new(edit.block))),
            }
        }
        // The chunks are as the server sees them now, whenever the answer comes.
        for chunk in self.server.wanted(64) {
            let blocks = self.seen_by_server.get(&chunk).cloned().unwrap_or_default();
            let mut bytes = Vec::new();
            format::encode(&(), &blocks, &[], &mut bytes).unwrap();
            self.looked_up.send(self.now, &mut self.dice, (chunk, bytes.into()));
        }
        if self.dice.one_in(20) {
            // The viewer of the client sees farther now, or less far.
            self.limits.radius = 3 + self.dice.roll(3) as u32;
            let records = (self.registry.block_records().collect(), Vec::new());
            self.server.greet("overworld", -1..1, records, self.limits);
        }
        for message in self.server.messages(FRAME * self.now as u32) {
            self.down.send(self.now, &mut self.dice, message);
        }
    }

    /// The client's main world.
    fn play(&mut self) {
        self.down.arrived(self.now).iter().for_each(|message| self.client.receive(message).unwrap());
        let (mut changed, mut decided) = (Vec::new(), Vec::new());
        // The client's thread may hand over a part of the news in one frame, and the rest in the next. In the end it hands over all.
        while (self.now >= BUSY || !self.dice.one_in(4))
            && let Some(news) = self.client.next_news()
        {
            match news {
                SyncNews::Chunk { chunk, bytes, .. } => {
                    let blocks = Arc::new(format::decode(&self.registry, &bytes).unwrap().0);
                    let column = self.confirmed.entry(chunk.column()).or_insert_with(|| Column::new(chunk.column()));
                    column.set_chunk(chunk.y, blocks);
                    changed.push((DIMENSION, chunk.column()));
                }
                SyncNews::Edit(answer) => {
                    assert_eq!(answer.is_accepted, !self.refused.contains(&answer.id), "edit {}", answer.id);
                    decided.push(answer.id);
                }
                SyncNews::Left(_) | SyncNews::AnotherWorld | SyncNews::Unreadable(_) | SyncNews::Actor(_) => {
                    panic!("{news:?}")
                }
                SyncNews::Welcome(_) | SyncNews::Current(_) | SyncNews::Gone(_) => {}
            }
        }
        self.predictions.follow(changed, decided, |(_, column)| self.confirmed.get(&column), &());
        if self.now < BUSY && self.client.takes_edits() && self.dice.one_in(4) {
            self.edit();
        }
        self.client.expire(FRAME * self.now as u32);
        while let Some(message) = self.client.next_message() {
            self.up.send(self.now, &mut self.dice, message);
        }
    }

    fn edit(&mut self) {
        let (position, block) = (self.dice.place(), BlockId::new(self.dice.roll(4) as u32));
        if !self.confirmed.contains_key(&position.column()) {
            return;
        }
        let (id, confirmed) = (self.made.len() as u64, |(_, column)| self.confirmed.get(&column));
        assert!(self.predictions.predict(id, DIMENSION, &[(position, BlockChange::Block(block))], confirmed, &()));
        self.client.edit(FRAME * self.now as u32, id, position, block);
        self.made.push(Made { position, block, frame: self.now, accepted: None });
    }

    fn step(&mut self) {
        if self.now < BUSY && self.dice.one_in(8) {
            let edit = (None, self.dice.place(), BlockId::new(self.dice.roll(4) as u32));
            self.inbox.push(edit);
        }
        self.tick();
        self.serve();
        self.play();
        let places = self.made.iter().map(|made| made.position);
        let shown = places.filter_map(|place| Some((place, self.shown_column(place.column())?.block(place)))).collect();
        self.shown.push(shown);
        self.now += 1;
    }

    fn shown_column(&self, column: ColumnPos) -> Option<&Column> {
        self.predictions.column((DIMENSION, column)).or_else(|| self.confirmed.get(&column))
    }

    /// Checks that no block on which both sides agreed reverted before someone wrote it again.
    fn assert_steady(&self) {
        for (number, made) in self.made.iter().enumerate() {
            let Some(accepted) = made.accepted else { continue };
            let later = self.made[number + 1..].iter().find(|later| later.position == made.position);
            let others = self.others.iter().filter(|(place, _)| *place == made.position).map(|(_, frame)| *frame);
            let other = others.filter(|frame| *frame >= accepted).min();
            let end = [later.map(|later| later.frame), other, Some(self.now)].into_iter().flatten().min().unwrap();
            for frame in made.frame..end {
                let shown = self.shown[frame as usize].get(&made.position);
                assert_eq!(shown, Some(&made.block), "edit {number} at {} in frame {frame}", made.position);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Promise, predicted edits: In the end a client shows what the world has, whatever was refused or written by others.
    /// Promise, predicted edits: No block on which a client and its server agree ever reverts in between, at any delay.
    #[test]
    fn a_client_shows_its_edits_at_once_and_the_world_in_the_end(
        seed in any::<u64>(), delay in 0..40_u64, slowness in 0..12_u64,
    ) {
        let mut game = Game::new(seed, delay, slowness);
        for _ in 0..BUSY + 400 {
            game.step();
        }
        game.assert_steady();
        prop_assert!(game.made.len() > 20 && game.predictions.is_empty(), "{} are open", game.predictions.len());
        for column in columns() {
            let shown = game.shown_column(column).unwrap();
            for y in -16..16 {
                for (x, z) in (0..16).flat_map(|x| (0..16).map(move |z| (x, z))) {
                    let place = BlockPos::new(column.x * 16 + x, y, z);
                    prop_assert_eq!(shown.block(place), game.region[&column].block(place));
                }
            }
        }
        let accepted = game.made.iter().filter(|made| made.accepted.is_some()).count();
        prop_assert!(accepted > 10 && accepted < game.made.len());
    }
}
