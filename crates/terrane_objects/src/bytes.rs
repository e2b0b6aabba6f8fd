//! Numbers, values and lists of bounded length as bytes: the building blocks of all binary formats.
//!
//! Fixed integers are little-endian. A *number* is LEB128: seven bits per byte, the lowest first, with the highest bit
//! set in all bytes but the last. A *signed* number is zigzag-encoded first: 0, -1, 1, -2 .. become 0, 1, 2, 3 ..
//!
//! Each format converts a [`ReadError`] to an error of its own. The cells and the NBT of schematics and the bits of
//! chunks have their own code, because they must be faster or are read as streams.

pub mod record;

use serde::de::{DeserializeOwned, Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// Reads numbers from the front of a byte slice, and tracks its offset.
pub struct Reader<'a> {
    bytes: &'a [u8],
    offset: usize,
}

/// The error of a [`Reader`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The bytes end at `offset`, where more were expected.
    Truncated { offset: usize },
    /// The number that begins at `offset` has more than 64 bits.
    TooLong { offset: usize },
}

impl<'a> Reader<'a> {
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0 }
    }

    /// The current offset in bytes.
    #[inline]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The number of remaining bytes.
    #[inline]
    pub fn left(&self) -> usize {
        self.bytes.len() - self.offset
    }

    /// Reads the next byte.
    #[inline]
    pub fn byte(&mut self) -> Result<u8, ReadError> {
        let byte = self.bytes.get(self.offset).ok_or(ReadError::Truncated { offset: self.offset })?;
        self.offset += 1;
        Ok(*byte)
    }

    /// Reads the next `length` bytes.
    #[inline]
    pub fn slice(&mut self, length: usize) -> Result<&'a [u8], ReadError> {
        let truncated = ReadError::Truncated { offset: self.bytes.len() };
        let (slice, _) = self.bytes[self.offset..].split_at_checked(length).ok_or(truncated)?;
        self.offset += length;
        Ok(slice)
    }

    /// Reads a number. Redundant zeros at the top are accepted, although no writer produces them.
    #[inline]
    pub fn number(&mut self) -> Result<u64, ReadError> {
        let begin = self.offset;
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(ReadError::TooLong { offset: begin })
    }

    /// Reads a signed number.
    #[inline]
    pub fn signed(&mut self) -> Result<i64, ReadError> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }
}

/// Appends a number.
#[inline]
pub fn put_number(into: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        into.push(number as u8 | 0x80);
        number >>= 7;
    }
    into.push(number as u8);
}

/// Appends a signed number.
#[inline]
pub fn put_signed(into: &mut Vec<u8>, number: i64) {
    put_number(into, ((number << 1) ^ (number >> 63)) as u64);
}

/// The `u32` at an offset, if it is there.
#[inline]
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

/// The `u64` at an offset, if it is there.
#[inline]
pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

/// Appends a value in postcard. Every value has such a form, except paths that are not valid text. For types with
/// paths, use [`try_put_value`].
pub fn put_value<T: Serialize + ?Sized>(into: Vec<u8>, value: &T) -> Vec<u8> {
    // A panic is better than storing other bytes: callers that write to a store catch it.
    try_put_value(into, value).expect("values without paths have a binary form")
}

/// Appends a value in postcard. The error is the reason why it has no such form.
pub fn try_put_value<T: Serialize + ?Sized>(into: Vec<u8>, value: &T) -> Result<Vec<u8>, String> {
    postcard::to_extend(value, into).map_err(|error| error.to_string())
}

/// Decodes a value from exactly these bytes, in postcard. The error is the reason why they are invalid.
pub fn value<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok((_, rest)) => Err(format!("{} bytes follow its end", rest.len())),
        Err(error) => Err(error.to_string()),
    }
}

/// A list of at most `MOST` elements, so that invalid bytes cannot cause large allocations.
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
    use proptest::prelude::*;

    fn number(bytes: &[u8]) -> Result<u64, ReadError> {
        Reader::new(bytes).number()
    }

    #[test]
    fn numbers_take_a_byte_for_seven_bits() {
        let bytes = |number| {
            let mut bytes = Vec::new();
            put_number(&mut bytes, number);
            bytes
        };
        assert_eq!(bytes(0), [0]);
        assert_eq!(bytes(127), [127]);
        assert_eq!(bytes(300), [0xAC, 0x02]);
        assert_eq!(bytes(u64::MAX), [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01]);
    }

    #[test]
    fn signed_numbers_near_zero_are_short() {
        for (number, byte) in [(0, 0), (-1, 1), (1, 2), (-2, 3), (63, 126), (-64, 127)] {
            let mut bytes = Vec::new();
            put_signed(&mut bytes, number);
            assert_eq!(bytes, [byte]);
        }
    }

    /// Promise, world format: Varints with leading zeros are read, and records with trailing bytes are refused.
    #[test]
    fn zeros_in_front_of_a_number_are_taken() {
        assert_eq!(number(&[0x80, 0x80, 0x00]), Ok(0));
        assert_eq!(number(&[0xAC, 0x82, 0x80, 0x00]), Ok(300));
    }

    #[test]
    fn numbers_of_more_than_64_bits_are_refused_where_they_begin() {
        let too_long = Err(ReadError::TooLong { offset: 0 });
        assert_eq!(number(&[0xFF; 20]), too_long);
        // The last of ten bytes has room for one bit.
        assert_eq!(number(&[[0x80; 9].as_slice(), &[0x02]].concat()), too_long);
        assert_eq!(number(&[[0x80; 9].as_slice(), &[0x01]].concat()), Ok(1 << 63));
        assert_eq!(number(&[[0x80; 9].as_slice(), &[0x81, 0x00]].concat()), too_long);
        let mut reader = Reader::new(&[7, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]);
        assert_eq!(reader.number(), Ok(7));
        assert_eq!(reader.number(), Err(ReadError::TooLong { offset: 1 }));
    }

    #[test]
    fn truncated_bytes_are_an_error_with_their_offset() {
        let truncated = |offset| ReadError::Truncated { offset };
        assert_eq!(number(&[]), Err(truncated(0)));
        assert_eq!(number(&[0x80, 0xFF]), Err(truncated(2)));
        let mut reader = Reader::new(&[1, 2, 3]);
        assert_eq!((reader.byte(), reader.slice(3), reader.left()), (Ok(1), Err(truncated(3)), 2));
        assert_eq!(reader.slice(usize::MAX), Err(truncated(3)));
        assert_eq!((reader.slice(2), reader.offset(), reader.left()), (Ok(&[2, 3][..]), 3, 0));
        assert_eq!((reader.slice(0), reader.byte()), (Ok(&[][..]), Err(truncated(3))));
    }

    #[test]
    fn fixed_numbers_are_read_where_they_are() {
        let bytes = [0, 4, 3, 2, 1, 0, 0, 0, 0];
        assert_eq!(u32_at(&bytes, 1), Some(0x0102_0304));
        assert_eq!(u64_at(&bytes, 1), Some(0x0102_0304));
        assert_eq!((u32_at(&bytes, 6), u64_at(&bytes, 2), u64_at(&bytes, usize::MAX)), (None, None, None));
    }

    #[test]
    fn nothing_may_follow_a_value() {
        let bytes = put_value(vec![9], &(7_u64, "seven"));
        assert_eq!(bytes[0], 9);
        assert_eq!(value(&bytes[1..]), Ok((7_u64, String::from("seven"))));
        let longer = [&bytes[1..], &[0, 0]].concat();
        assert!(value::<(u64, String)>(&longer).unwrap_err().contains("2 bytes follow"));
        (1..bytes.len()).for_each(|end| assert!(value::<(u64, String)>(&bytes[1..end]).is_err()));
    }

    #[test]
    #[cfg(unix)]
    fn a_path_that_is_no_text_has_no_form() {
        use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::Path};
        assert!(try_put_value(Vec::new(), Path::new("world")).is_ok());
        assert!(try_put_value(Vec::new(), Path::new(OsStr::from_bytes(&[0xFF]))).is_err());
    }

    proptest! {
        #[test]
        fn numbers_come_back(numbers in proptest::collection::vec((any::<u64>(), 0..64_u32, any::<i64>()), 0..20)) {
            let mut bytes = Vec::new();
            for (number, shift, signed) in &numbers {
                put_number(&mut bytes, number >> shift);
                put_signed(&mut bytes, signed >> shift);
            }
            let mut reader = Reader::new(&bytes);
            for (number, shift, signed) in numbers {
                prop_assert_eq!(reader.number(), Ok(number >> shift));
                prop_assert_eq!(reader.signed(), Ok(signed >> shift));
            }
            prop_assert_eq!(reader.left(), 0);
        }

        #[test]
        fn any_bytes_are_a_number_or_refused(bytes: Vec<u8>) {
            let mut reader = Reader::new(&bytes);
            match reader.number() {
                Ok(_) => prop_assert!((1..=10).contains(&reader.offset())),
                Err(ReadError::Truncated { offset }) => prop_assert!(offset == bytes.len() && offset < 10),
                Err(ReadError::TooLong { offset }) => prop_assert!(offset == 0 && bytes.len() >= 10),
            }
        }
    }

    #[test]
    fn a_longer_list_is_refused() {
        let read = |length: u8| value::<UpTo<u8, 3>>(&put_value(Vec::new(), &vec![7_u8; length.into()]));
        assert!((0..=3).all(|length| read(length).is_ok_and(|list| list.0.len() == usize::from(length))));
        assert!(read(4).is_err());
    }
}
