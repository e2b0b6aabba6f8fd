//! The path of names to the value that is being read, short enough for a message.

use crate::snapshot::schematic::error::{REST, push_shortened};
use std::fmt::Write;

/// A path that has this many bytes is not continued.
const LONGEST: usize = 512;
/// A path has about this many bytes of each name.
const LONGEST_NAME: usize = 128;

/// Names and indices. Characters that cannot be printed are escaped.
#[derive(Default)]
pub(super) struct Path(String);

impl Path {
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Adds a name. Returns the argument for [`close`](Self::close).
    pub fn open_name(&mut self, name: &str) -> usize {
        self.open(|path| {
            if !path.is_empty() {
                path.push('.');
            }
            push_shortened(path, name, LONGEST_NAME);
        })
    }

    /// Adds the index of an item. Returns the argument for [`close`](Self::close).
    pub fn open_item(&mut self, index: u64) -> usize {
        self.open(|path| _ = write!(path, "[{index}]"))
    }

    /// Removes everything that was added since the path had this length.
    pub fn close(&mut self, length: usize) {
        self.0.truncate(length);
    }

    fn open(&mut self, add: impl FnOnce(&mut String)) -> usize {
        let length = self.0.len();
        if length <= LONGEST {
            add(&mut self.0);
            if self.0.len() > LONGEST {
                self.0.push_str(REST);
            }
        }
        length
    }
}
