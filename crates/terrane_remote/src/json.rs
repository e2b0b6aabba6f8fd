//! JSON of bounded size and depth, and the values of components as JSON.

use crate::error::{RpcError, code};
use bevy::prelude::*;
use bevy::reflect::TypeRegistry;
use bevy::reflect::serde::{TypedReflectDeserializer, TypedReflectSerializer};
use serde::Serialize;
use serde::de::DeserializeSeed;
use serde_json::ser::{Formatter, Serializer};
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How deep the JSON of an answer may be nested.
const DEEPEST: usize = 64;

/// The JSON of a value, up to `most` bytes.
pub fn text(value: &impl Serialize, most: usize) -> Result<String, RpcError> {
    let mut serializer = Serializer::with_formatter(Bounded { text: Vec::new(), most }, Shallow::default());
    match value.serialize(&mut serializer) {
        Ok(()) => {
            let text = serializer.into_inner().text;
            String::from_utf8(text).map_err(|error| RpcError::new(code::INTERNAL, error.to_string()))
        }
        Err(error) if error.is_io() => Err(RpcError::new(code::TOO_LARGE, error.to_string())),
        Err(error) => Err(RpcError::new(code::INTERNAL, error.to_string())),
    }
}

/// The JSON of a component's value.
pub fn component_text(value: &dyn PartialReflect, types: &TypeRegistry, most: usize) -> Result<String, String> {
    let write = || text(&TypedReflectSerializer::new(value, types), most);
    match catch_unwind(AssertUnwindSafe(write)) {
        Ok(text) => text.map_err(|error| error.message),
        Err(_) => Err("its serialization panicked".to_owned()),
    }
}

/// A component's value from JSON: one of its type, or a dynamic one.
pub fn component(
    types: &TypeRegistry,
    path: &str,
    value: &serde_json::Value,
) -> Result<Box<dyn PartialReflect>, RpcError> {
    let Some(registration) = types.get_with_type_path(path) else {
        return Err(RpcError::new(code::COMPONENT, format!("no type {path} is registered")));
    };
    let read = TypedReflectDeserializer::new(registration, types).deserialize(value);
    read.map_err(|error| RpcError::new(code::COMPONENT, format!("this is not a value of {path}: {error}")))
}

/// Text of bounded length.
struct Bounded {
    text: Vec<u8>,
    most: usize,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.most - self.text.len() {
            return Err(io::Error::other("it is larger than the rest of the answer may be"));
        }
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Ends the serialization of values that are nested too deep, before the stack ends.
#[derive(Default)]
struct Shallow {
    depth: usize,
}

impl Shallow {
    fn begin(&mut self, writer: &mut (impl Write + ?Sized), bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(io::Error::other("it is nested too deep"));
        }
        writer.write_all(bracket)
    }
}

impl Formatter for Shallow {
    fn begin_array<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin(writer, b"[")
    }

    fn end_array<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        writer.write_all(b"]")
    }

    fn begin_object<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin(writer, b"{")
    }

    fn end_object<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        writer.write_all(b"}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(depth: usize) -> serde_json::Value {
        (0..depth).fold(serde_json::Value::Null, |value, _| serde_json::Value::Array(vec![value]))
    }

    #[test]
    fn text_is_bounded_in_size_and_depth() {
        assert_eq!(text(&"abc", 5).unwrap(), "\"abc\"");
        assert_eq!(text(&"abc", 4).unwrap_err().code, code::TOO_LARGE);
        assert_eq!(text(&nested(DEEPEST), 1_000).unwrap().len(), 2 * DEEPEST + 4);
        assert_eq!(text(&nested(DEEPEST + 1), 1_000).unwrap_err().code, code::TOO_LARGE);
        // Values side by side are not nested.
        assert_eq!(text(&vec![nested(3); 100], 10_000).unwrap().len(), 100 * 11 + 1);
    }
}
