//! A ZIP archive.

use crate::{LEVEL, Store};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// One entry per object. A rewrite creates a new archive and copies all other entries unchanged.
pub struct Archive {
    path: PathBuf,
    reader: Option<ZipArchive<BufReader<File>>>,
    packs: bool,
}

impl Archive {
    fn reader(&mut self) -> &mut ZipArchive<BufReader<File>> {
        self.reader.get_or_insert_with(|| {
            let file = BufReader::new(File::open(&self.path).expect("a file"));
            ZipArchive::new(file).expect("an archive")
        })
    }
}

impl Store for Archive {
    const NAME: &'static str = "ZIP";

    fn create(path: &Path, packs: bool) -> Self {
        Self { path: path.to_owned(), reader: None, packs }
    }

    fn open(path: &Path, packs: bool) -> Self {
        let mut archive = Self::create(path, packs);
        archive.reader();
        archive
    }

    fn write(&mut self, objects: &[(&str, &[u8])]) {
        let other = self.path.with_extension("new");
        let mut writer = ZipWriter::new(BufWriter::new(File::create(&other).expect("a new file")));
        if self.path.exists() {
            let changed: BTreeSet<&str> = objects.iter().map(|(key, _)| *key).collect();
            let reader = self.reader();
            for place in 0..reader.len() {
                let entry = reader.by_index_raw(place).expect("an entry");
                if !entry.name().is_ok_and(|name| changed.contains(&*name)) {
                    writer.raw_copy_file(entry).expect("the disk has room");
                }
            }
        }
        let options = match self.packs {
            true => SimpleFileOptions::default()
                .compression_method(CompressionMethod::Deflated)
                .compression_level(Some(LEVEL.into())),
            false => SimpleFileOptions::default().compression_method(CompressionMethod::Stored),
        };
        for (key, data) in objects {
            writer.start_file(*key, options).expect("the disk has room");
            writer.write_all(data).expect("the disk has room");
        }
        let file = writer.finish().expect("the disk has room").into_inner().expect("the disk has room");
        file.sync_all().expect("the disk works");
        fs::rename(&other, &self.path).expect("the disk works");
        self.reader = None;
    }

    fn read(&mut self, key: &str) -> Vec<u8> {
        let mut entry = self.reader().by_name(key).expect("it is there");
        let mut data = Vec::with_capacity(entry.size() as usize);
        entry.read_to_end(&mut data).expect("it is whole");
        data
    }

    fn close(self) {}
}
