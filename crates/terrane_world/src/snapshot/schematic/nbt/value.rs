//! NBT values.

use std::fmt;

/// The kind of a value. The numbers are the tags of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "the names say it")]
pub enum NbtKind {
    End = 0,
    Byte = 1,
    Short = 2,
    Int = 3,
    Long = 4,
    Float = 5,
    Double = 6,
    ByteArray = 7,
    String = 8,
    List = 9,
    Compound = 10,
    IntArray = 11,
    LongArray = 12,
}

impl NbtKind {
    /// By tag, with their names for messages.
    const ALL: [(Self, &str); 13] = [
        (Self::End, "an end"),
        (Self::Byte, "a byte"),
        (Self::Short, "a short"),
        (Self::Int, "an int"),
        (Self::Long, "a long"),
        (Self::Float, "a float"),
        (Self::Double, "a double"),
        (Self::ByteArray, "a byte array"),
        (Self::String, "a string"),
        (Self::List, "a list"),
        (Self::Compound, "a compound"),
        (Self::IntArray, "an int array"),
        (Self::LongArray, "a long array"),
    ];

    /// The kind with this tag, 0 to 12.
    pub(in crate::snapshot::schematic) fn from_tag(tag: u8) -> Option<Self> {
        Self::ALL.get(usize::from(tag)).map(|(kind, _)| *kind)
    }

    pub(in crate::snapshot::schematic) fn tag(self) -> u8 {
        self as u8
    }

    /// The kind in words.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

impl fmt::Display for NbtKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A value. Floating-point numbers keep all bits; two NaNs are different.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Nbt {
    Byte(i8),
    Short(i16),
    Int(i32),
    Long(i64),
    Float(f32),
    Double(f64),
    ByteArray(Vec<u8>),
    String(String),
    /// A kind, and items that are all of this kind. An empty list may have any kind, usually [`NbtKind::End`].
    List(NbtKind, Vec<Nbt>),
    Compound(Compound),
    IntArray(Vec<i32>),
    LongArray(Vec<i64>),
}

impl Nbt {
    /// The kind of the value.
    pub fn kind(&self) -> NbtKind {
        match self {
            Self::Byte(_) => NbtKind::Byte,
            Self::Short(_) => NbtKind::Short,
            Self::Int(_) => NbtKind::Int,
            Self::Long(_) => NbtKind::Long,
            Self::Float(_) => NbtKind::Float,
            Self::Double(_) => NbtKind::Double,
            Self::ByteArray(_) => NbtKind::ByteArray,
            Self::String(_) => NbtKind::String,
            Self::List(..) => NbtKind::List,
            Self::Compound(_) => NbtKind::Compound,
            Self::IntArray(_) => NbtKind::IntArray,
            Self::LongArray(_) => NbtKind::LongArray,
        }
    }

    /// A byte, short, int or long as an integer.
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Byte(number) => Some((*number).into()),
            Self::Short(number) => Some((*number).into()),
            Self::Int(number) => Some((*number).into()),
            Self::Long(number) => Some(*number),
            _ => None,
        }
    }

    /// Any number as a double.
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Self::Float(number) => Some((*number).into()),
            Self::Double(number) => Some(*number),
            _ => self.as_integer().map(|number| number as f64),
        }
    }

    /// Three numbers of a list as doubles.
    pub(in crate::snapshot) fn as_numbers(&self) -> Option<[f64; 3]> {
        match self {
            Self::List(_, items) if items.len() == 3 => {
                items.iter().map(Self::as_number).collect::<Option<Vec<f64>>>()?.try_into().ok()
            }
            _ => None,
        }
    }

    /// A string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// A compound.
    pub fn as_compound(&self) -> Option<&Compound> {
        match self {
            Self::Compound(compound) => Some(compound),
            _ => None,
        }
    }

    /// An int array of three, or a list of three numbers, rounded down.
    pub fn as_position(&self) -> Option<[i32; 3]> {
        match self {
            Self::IntArray(numbers) => numbers.as_slice().try_into().ok(),
            Self::List(_, items) if items.len() == 3 => {
                let block =
                    |number: f64| (number.floor() == f64::from(number.floor() as i32)).then(|| number.floor() as i32);
                let numbers = items.iter().map(|item| match item.as_integer() {
                    Some(number) => i32::try_from(number).ok(),
                    None => block(item.as_number()?),
                });
                numbers.collect::<Option<Vec<i32>>>()?.try_into().ok()
            }
            _ => None,
        }
    }
}

/// Named values in the order of the file. A name may occur twice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compound(pub Vec<(String, Nbt)>);

impl Compound {
    /// An empty compound.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// The first value with this name.
    pub fn get(&self, name: &str) -> Option<&Nbt> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| value)
    }

    /// The first value with this name.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Nbt> {
        self.0.iter_mut().find(|(other, _)| other == name).map(|(_, value)| value)
    }

    /// Replaces the value with this name, or adds one.
    pub fn set(&mut self, name: &str, value: Nbt) {
        match self.get_mut(name) {
            Some(old) => *old = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// Removes all values with this name, and returns the first.
    pub fn take(&mut self, name: &str) -> Option<Nbt> {
        let first = self.0.iter().position(|(other, _)| other == name)?;
        let (_, value) = self.0.remove(first);
        self.0.retain(|(other, _)| other != name);
        Some(value)
    }

    /// Returns `true` if there are no values.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
