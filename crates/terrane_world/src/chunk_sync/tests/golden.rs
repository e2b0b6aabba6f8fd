//! The bytes of messages and of the cache, as documented in `docs/chunk-sync.md`. They never change.

use super::*;
use crate::block::BlockComponentRecord;
use std::io::Read;
use terrane_objects::{ObjectStore, ObjectStoreOptions};

fn chunk(x: i64, y: i64, z: i64) -> ChunkPos {
    ChunkPos::new(x, y, z)
}

/// A server's message after the first two bytes, decompressed.
fn plain(message: &ServerMessage) -> Vec<u8> {
    let encoded = message.encode();
    assert_eq!(encoded[..2], [4, 0]);
    let mut plain = Vec::new();
    flate2::read::ZlibDecoder::new(&encoded[2..]).read_to_end(&mut plain).unwrap();
    plain
}

/// Promise, chunk sync: Chunk sync messages are in postcard's format with the documented fields, a server's compressed by zlib.
#[test]
fn a_clients_message_has_the_bytes_of_the_table() {
    let area = SyncArea { center: chunk(1, -2, 3), radius: 4, vertical: 5 };
    let known = Some(ChunkHash(7 << 56 | 128));
    let questions = vec![(chunk(0, 0, -1), None), (chunk(300, 0, 0), known)];
    let area_bytes = [2, 3, 6, 4, 5];
    let question_bytes = [2, 0, 0, 1, 0, 0xd8, 4, 0, 0, 1, 128, 0, 0, 0, 0, 0, 0, 7];
    let expected = [&[4, 0][..], &area_bytes, &question_bytes].concat();
    assert_eq!(ChunkQuestions { area, questions }.encode(), expected);
}

/// Promise, chunk sync: Chunk sync messages are in postcard's format with the documented fields, a server's compressed by zlib.
#[test]
fn a_servers_first_message_has_the_bytes_of_the_table() {
    let chest = BlockRecord { name: "a:chest".into(), components: vec![0, 1 << 63 | 1] };
    let lock = BlockComponentRecord { name: "a:lock".into(), version: 3, size: Some(4) };
    let items = BlockComponentRecord { name: "a:items".into(), version: 1, size: None };
    let welcome = SyncWelcome {
        dimension: "cave".into(),
        chunk_heights: -2..3,
        radius: 32,
        vertical: 200,
        blocks: vec![chest],
        components: vec![lock, items],
    };
    let dimension = [&[0, 4][..], b"cave", &[3, 6, 32, 0xc8, 1]].concat();
    let variable = [0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1];
    let blocks = [&[1, 7][..], b"a:chest", &[2, 0], &variable].concat();
    let components = [&[2, 6][..], b"a:lock", &[3, 1, 4, 7], b"a:items", &[1, 0]].concat();
    assert_eq!(plain(&ServerMessage::Welcome(welcome)), [dimension, blocks, components].concat());
}

/// Promise, chunk sync: Chunk sync messages are in postcard's format with the documented fields, a server's compressed by zlib.
#[test]
fn a_servers_answers_have_the_bytes_of_the_table() {
    let news = [
        ChunkNews::Current(ChunkHash(7 << 56 | 128)),
        ChunkNews::Chunk(vec![1, 2, 3]),
        ChunkNews::Gone,
        ChunkNews::Unreadable,
    ];
    let answers = (0..).zip(news).map(|(y, news)| (chunk(-1, y, 0), news));
    let current = [1, 0, 0, 0, 128, 0, 0, 0, 0, 0, 0, 7];
    let here = [1, 2, 0, 1, 3, 1, 2, 3];
    let gone_and_unreadable = [1, 4, 0, 2, 1, 6, 0, 3];
    let expected = [&[1, 4][..], &current, &here, &gone_and_unreadable].concat();
    assert_eq!(plain(&ServerMessage::Answers(answers.collect())), expected);
}

/// Promise, chunk sync: Chunk sync messages are in postcard's format with the documented fields, a server's compressed by zlib.
#[test]
fn messages_about_edits_have_the_bytes_of_the_tables() {
    let base = Some(ChunkHash(7 << 56 | 128));
    let edits = vec![
        SyncEdit { id: 300, position: crate::space::BlockPos::new(1, -2, 3), block: 5, base },
        SyncEdit { id: 1, position: crate::space::BlockPos::new(0, 0, 0), block: 0, base: None },
    ];
    let first = [0xac, 2, 2, 3, 6, 5, 1, 128, 0, 0, 0, 0, 0, 0, 7];
    let second = [1, 0, 0, 0, 0, 0];
    assert_eq!(EditRequests { edits }.encode(), [&[4, 1, 2][..], &first, &second].concat());
    let answers = [(300, true), (1, false)].map(|(id, is_accepted)| EditAnswer { id, is_accepted });
    for (message, expected) in
        [(EditMessage::Taken, &[0][..]), (EditMessage::Answers(answers.into()), &[1, 2, 0xac, 2, 1, 1, 0])]
    {
        let encoded = message.encode();
        assert_eq!(encoded[..2], [4, 1]);
        let mut plain = Vec::new();
        flate2::read::ZlibDecoder::new(&encoded[2..]).read_to_end(&mut plain).unwrap();
        assert_eq!(plain, expected);
        assert_eq!(EditMessage::decode(&encoded), Some(Ok(message)));
    }
}

/// Promise, chunk sync: A chunk cache is an object store with the documented signature, keys and stacks.
#[test]
fn a_cache_is_an_object_store_of_a_first_message_and_of_stacks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache");
    let mut cache = ChunkCache::open(&path, CACHE_BYTES).unwrap();
    cache.set_about(b"welcome").unwrap();
    cache.put(chunk(3, 17, -2), CachedChunk { version: 7, bytes: vec![9, 8] }).unwrap();
    cache.put(chunk(3, 16, -2), CachedChunk { version: 4, bytes: vec![6] }).unwrap();
    cache.flush(chunk(0, 0, 0)).unwrap();
    drop(cache);
    let store =
        ObjectStore::open_to_read(&path, "bevy_terrane chunk cache 1").expect("the signature is that of a cache");
    let keys: Vec<_> = store.with_prefix("").map(|(key, _)| key.to_owned()).collect();
    assert_eq!(keys.iter().collect::<std::collections::BTreeSet<_>>().len(), 2);
    assert_eq!(store.read("about").unwrap().unwrap().data, b"welcome");
    let stack = store.read("stack/3,1,-2").unwrap().unwrap();
    assert_eq!((stack.version, stack.data), (7, vec![1, 2, 32, 4, 1, 6, 34, 7, 2, 9, 8]));
    // Any options of a reader work.
    drop(store);
    ObjectStore::open(&path, "bevy_terrane chunk cache 1", ObjectStoreOptions::default()).unwrap();
}
