//! Reading any file ends with a schematic or an error; a schematic is written and read again unchanged.

#![no_main]

use libfuzzer_sys::fuzz_target;
use terrane_world::snapshot::schematic::{ReadOptions, Schematic, WriteOptions};

/// So that an input takes milliseconds.
const OPTIONS: ReadOptions = ReadOptions { inflated_bytes: 1 << 24, memory: 1 << 26, volume: 1 << 22, salvage: false };

fuzz_target!(|file: &[u8]| {
    for salvage in [false, true] {
        let options = ReadOptions { salvage, ..OPTIONS };
        let Ok((schematic, _)) = Schematic::read(file, &options) else { continue };
        let mut written = Vec::new();
        if schematic.write(&mut written, &WriteOptions { level: 1, ..WriteOptions::default() }).is_ok() {
            let again = Schematic::read(&written[..], &ReadOptions::default()).map(|(again, _)| again.blocks);
            assert_eq!(again, Ok(schematic.blocks));
        }
    }
});
