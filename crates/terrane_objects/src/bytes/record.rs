//! Records: small structured values with one byte for the format, then postcard.

use super as bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The default format number.
pub const FORMAT: u8 = 1;

/// Encodes `value`, which must not contain paths.
pub fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    encode_as(FORMAT, value)
}

/// Encodes `value` with a format number of its own.
pub fn encode_as<T: Serialize>(format: u8, value: &T) -> Vec<u8> {
    bytes::put_value(vec![format], value)
}

/// Encodes a `value` that may contain paths. The error is the reason why it cannot be encoded.
pub fn try_encode<T: Serialize>(value: &T) -> Result<Vec<u8>, String> {
    bytes::try_put_value(vec![FORMAT], value)
}

/// Decodes a value. The error is the reason why the bytes are invalid.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    decode_as(FORMAT, bytes)
}

/// Decodes a value with a format number of its own.
pub fn decode_as<T: DeserializeOwned>(known: u8, bytes: &[u8]) -> Result<T, String> {
    match bytes.split_first() {
        None => Err("it is empty".into()),
        Some((format, rest)) if *format == known => bytes::value(rest),
        Some((format, _)) => Err(format!("it has format {format}, but only format {known} is known")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Promise, exports: A record in an export begins with its format, and trailing bytes are an error.
    /// Promise, world format: Varints with leading zeros are read, and records with trailing bytes are refused.
    #[test]
    fn errors_name_the_kind_of_bad_bytes() {
        let bytes = encode(&(7_u64, String::from("seven")));
        assert_eq!(decode(&bytes), Ok((7_u64, String::from("seven"))));
        let reason = |bytes: &[u8]| decode::<(u64, String)>(bytes).unwrap_err();
        assert!(reason(&[]).contains("empty"));
        assert!(reason(&[9, 0]).contains("format 9"));
        assert!(reason(&[&bytes[..], &[0, 0]].concat()).contains("2 bytes follow"));
        (1..bytes.len()).for_each(|end| assert!(!reason(&bytes[..end]).is_empty()));
    }

    #[test]
    fn a_length_that_lies_allocates_nothing() {
        // A list of u64::MAX texts, and a text of that length.
        let length = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert!(decode::<Vec<String>>(&[&[FORMAT][..], &length].concat()).is_err());
        assert!(decode::<String>(&[&[FORMAT][..], &length].concat()).is_err());
        assert!(decode::<Vec<u64>>(&[&[FORMAT][..], &length].concat()).is_err());
    }
}
