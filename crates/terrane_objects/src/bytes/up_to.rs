//! Lists with a maximum length, so that invalid bytes cannot cause large allocations.

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// A list of at most `MOST` elements.
#[derive(Debug, Default)]
pub struct UpTo<T, const MOST: usize>(pub Vec<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for UpTo<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(list: D) -> Result<Self, D::Error> {
        list.deserialize_seq(Self(Vec::new()))
    }
}

/// The same for a field, by `deserialize_with`.
pub fn up_to<'de, D: Deserializer<'de>, T: Deserialize<'de>, const MOST: usize>(list: D) -> Result<Vec<T>, D::Error> {
    UpTo::<T, MOST>::deserialize(list).map(|list| list.0)
}

impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for UpTo<T, MOST> {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {MOST}")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Self, A::Error> {
        while let Some(next) = list.next_element()? {
            if self.0.len() == MOST {
                return Err(A::Error::custom("a list is too long"));
            }
            self.0.push(next);
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::{put_value, value};

    #[test]
    fn a_longer_list_is_refused() {
        let read = |length: u8| value::<UpTo<u8, 3>>(&put_value(Vec::new(), &vec![7_u8; length.into()]));
        assert!((0..=3).all(|length| read(length).is_ok_and(|list| list.0.len() == usize::from(length))));
        assert!(read(4).is_err());
    }
}
