//! Copies of components, of bounded size.

use bevy::prelude::*;
use bevy::reflect::{ReflectRef, TypeRegistry};
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The value of a component.
#[derive(Debug)]
pub enum Value {
    /// A copy: of the component's type if it can be cloned by reflection, otherwise a dynamic value.
    Copy(Box<dyn PartialReflect>),
    /// The type has no reflection with `#[reflect(Component)]`, is not registered, or has a field that cannot be copied.
    Unknown,
    /// It does not fit into what is left of the answer's 2,000 parts and megabyte of text, or is nested deeper than 32. Code of the
    /// game can read it.
    TooLarge,
    /// The time for this answer was over.
    NotRead,
}

/// The parts and the bytes of text that a copy may have, and how deep they may be nested.
const MOST_PARTS: usize = 2_000;
const MOST_TEXT: usize = 1 << 20;
const DEEPEST: usize = 32;
/// The parts of a value that is changed.
const MOST_CHANGED: usize = 1 << 16;

/// The parts, and the bytes of text, that are copied whatever the time. It takes some microseconds, unless the thread is interrupted.
const FEW_PARTS: usize = 256;

/// The parts and the bytes of text that still fit into one answer.
pub struct Left {
    parts: usize,
    text: usize,
    /// `true` once a value was too large: it was counted, which takes time, and not copied.
    has_counted_much: bool,
}

impl Default for Left {
    fn default() -> Self {
        Self { parts: MOST_PARTS, text: MOST_TEXT, has_counted_much: false }
    }
}

/// Why a value is not copied.
enum Reason {
    Unknown,
    TooLarge,
}

impl Left {
    /// Returns `true` if the clock decides about further values: the few parts that are copied whatever the time are used up.
    pub fn needs_time(&self) -> bool {
        self.has_counted_much || self.parts + FEW_PARTS < MOST_PARTS || self.text + FEW_PARTS < MOST_TEXT
    }

    /// Copies a value if it fits into what is left.
    pub fn copy(&mut self, value: &dyn PartialReflect) -> Value {
        let (parts, text) = (self.parts, self.text);
        match self.count(value, 0, Self::count_opaque) {
            // Some maps and sets cannot be copied, and panic.
            Ok(()) => catch_unwind(AssertUnwindSafe(|| copied(value))).map_or(Value::Unknown, Value::Copy),
            Err(reason) => {
                (self.parts, self.text) = (parts, text);
                self.has_counted_much |= matches!(reason, Reason::TooLarge);
                match reason {
                    Reason::Unknown => Value::Unknown,
                    Reason::TooLarge => Value::TooLarge,
                }
            }
        }
    }

    /// Counts the parts of a value, and checks those that reflection cannot look into.
    fn count(
        &mut self,
        value: &dyn PartialReflect,
        depth: usize,
        check: fn(&mut Self, &dyn PartialReflect) -> Result<(), Reason>,
    ) -> Result<(), Reason> {
        self.parts = self.parts.checked_sub(1).filter(|_| depth < DEEPEST).ok_or(Reason::TooLarge)?;
        let mut all = |parts: &mut dyn Iterator<Item = &dyn PartialReflect>| {
            for part in parts {
                self.count(part, depth + 1, check)?;
            }
            Ok(())
        };
        match value.reflect_ref() {
            ReflectRef::Struct(parts) => all(&mut parts.iter_fields().map(|(_, field)| field)),
            ReflectRef::TupleStruct(parts) => all(&mut parts.iter_fields()),
            ReflectRef::Tuple(parts) => all(&mut parts.iter_fields()),
            ReflectRef::List(parts) => all(&mut parts.iter()),
            ReflectRef::Array(parts) => all(&mut parts.iter()),
            ReflectRef::Map(parts) => all(&mut parts.iter().flat_map(|(key, value)| [key, value])),
            ReflectRef::Set(parts) => all(&mut parts.iter()),
            ReflectRef::Enum(parts) => all(&mut parts.iter_fields().map(|field| field.value())),
            ReflectRef::Opaque(value) => check(self, value),
            // Functions, if the game has them reflected.
            #[allow(unreachable_patterns)]
            _ => Err(Reason::Unknown),
        }
    }

    /// Counts text, and checks that a copy is possible.
    fn count_opaque(&mut self, value: &dyn PartialReflect) -> Result<(), Reason> {
        let text = value.try_downcast_ref::<String>().map(String::as_str);
        let text =
            text.or_else(|| value.try_downcast_ref::<Cow<'static, str>>().map(|text| &**text)).map_or(0, str::len);
        self.text = self.text.checked_sub(text).ok_or(Reason::TooLarge)?;
        // Otherwise a copy of the whole panics.
        if text == 0 && value.reflect_clone().is_err() { Err(Reason::Unknown) } else { Ok(()) }
    }
}

/// Returns `true` for a value with so many parts, or nested so deep, that a copy might never end: it may contain itself.
pub fn is_endless(value: &dyn PartialReflect) -> bool {
    let mut left = Left { parts: MOST_CHANGED, text: 0, has_counted_much: false };
    matches!(left.count(value, 0, |_, _| Ok(())), Err(Reason::TooLarge))
}

/// A copy of the type if it can be cloned by reflection, otherwise a dynamic value.
fn copied(value: &dyn PartialReflect) -> Box<dyn PartialReflect> {
    value.reflect_clone().map_or_else(|_| value.to_dynamic(), PartialReflect::into_partial_reflect)
}

/// The component's reflection, by its type path.
pub fn reflection(types: &TypeRegistry, path: &str) -> Option<ReflectComponent> {
    types.get_with_type_path(path)?.data::<ReflectComponent>().cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[derive(Reflect)]
    struct Chest {
        label: String,
        items: Vec<u32>,
        by_name: HashMap<String, u8>,
    }

    /// It has a part that reflection does not copy.
    #[derive(Reflect)]
    struct Locked {
        lock: Lock,
    }

    #[derive(Clone, Reflect)]
    #[reflect(opaque)]
    struct Lock;

    #[test]
    fn a_value_with_a_part_that_cannot_be_copied_is_unknown() {
        assert!(matches!(Left::default().copy(&Locked { lock: Lock }), Value::Unknown));
    }

    fn chest(items: usize, label: usize) -> Chest {
        Chest { label: "x".repeat(label), items: vec![7; items], by_name: [("a".to_owned(), 1)].into() }
    }

    #[test]
    fn a_map_that_reflection_cannot_copy_is_unknown() {
        #[derive(Reflect, PartialEq, Eq, Hash)]
        struct Key(u8);
        /// Its ignored field keeps it from being cloned as a whole, and a dynamic key has no hash.
        #[derive(Reflect)]
        struct Keyed {
            by_key: HashMap<Key, u8>,
            #[reflect(ignore)]
            _ignored: u8,
        }
        let keyed = Keyed { by_key: [(Key(1), 2)].into(), _ignored: 3 };
        assert!(matches!(Left::default().copy(&keyed), Value::Unknown));
    }

    #[test]
    fn values_are_copied_up_to_their_limits() {
        let copy = |chest: &Chest| Left::default().copy(chest.as_partial_reflect());
        let Value::Copy(copied) = copy(&chest(1_900, 5)) else { panic!("it is not copied") };
        assert!(copied.reflect_partial_eq(&chest(1_900, 5)).unwrap());
        assert!(matches!(copy(&chest(2_000, 5)), Value::TooLarge));
        assert!(matches!(copy(&chest(1, MOST_TEXT + 1)), Value::TooLarge));
    }

    #[test]
    fn the_limits_are_those_of_all_values_together_and_what_does_not_fit_takes_nothing() {
        let mut left = Left::default();
        assert!(matches!(left.copy(&chest(1_500, 0)), Value::Copy(_)));
        assert!(matches!(left.copy(&chest(1_500, 0)), Value::TooLarge));
        assert!(matches!(left.copy(&chest(400, 0)), Value::Copy(_)));
    }
}
