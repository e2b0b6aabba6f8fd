//! Names of blocks with their properties, such as `game:furnace[facing=north]`, in their canonical form.

use std::borrow::Cow;
use std::fmt;
use thiserror::Error;

/// A block's name with its properties in canonical form: `namespace:path[property=value,..]`, the properties in
/// alphabetical order, without brackets if there are none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockName(Cow<'static, str>);

/// The error for a text that is not a valid block name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{what}")]
pub struct BlockNameError {
    /// The invalid part, and the form that it should have.
    pub what: String,
}

fn invalid(what: String) -> BlockNameError {
    BlockNameError { what }
}

impl BlockName {
    /// Parses a name. Its properties may be in any order.
    pub fn parse(text: impl Into<Cow<'static, str>>) -> Result<Self, BlockNameError> {
        let text = text.into();
        let (base, rest) = split(&text);
        check_base(base)?;
        let Some(rest) = rest else { return Ok(Self(text)) };
        let written = rest.strip_suffix(']').ok_or_else(|| invalid("the properties do not end with `]`".into()))?;
        let mut properties = Vec::new();
        for property in written.split(',').filter(|_| !written.is_empty()) {
            let parts = property.split_once('=').filter(|(name, value)| is_word(name) && is_word(value));
            let expected = "`name=value` of a-z, 0-9, `_`, `-` and `.`";
            properties.push(parts.ok_or_else(|| invalid(format!("the property {property:?} is not {expected}")))?);
        }
        Self::sorted(base, properties)
    }

    /// Joins a valid base and valid properties to a name.
    fn sorted(base: &str, mut properties: Vec<(&str, &str)>) -> Result<Self, BlockNameError> {
        properties.sort_unstable();
        if let Some(pair) = properties.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(invalid(format!("the property {:?} is given twice", pair[0].0)));
        }
        Ok(Self(joined(base, &properties).into()))
    }

    /// The whole name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name without the properties.
    pub fn base(&self) -> &str {
        base(&self.0)
    }

    /// The properties as pairs of name and value, sorted by name.
    pub fn properties(&self) -> impl Iterator<Item = (&str, &str)> {
        properties(&self.0)
    }

    /// The name with another value of one property; `None` if the name does not have that property.
    pub fn with_property(&self, name: &str, value: &str) -> Option<Self> {
        let mut properties: Vec<_> = self.properties().collect();
        properties.iter_mut().find(|(property, _)| *property == name)?.1 = value;
        is_word(value).then(|| Self::sorted(self.base(), properties).ok()).flatten()
    }

    pub(super) fn into_text(self) -> Cow<'static, str> {
        self.0
    }
}

impl fmt::Display for BlockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name with this base and these properties, as given.
pub fn joined(base: &str, properties: &[(&str, &str)]) -> String {
    let properties: Vec<String> = properties.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if properties.is_empty() { base.to_owned() } else { format!("{base}[{}]", properties.join(",")) }
}

/// The part of a written name before its properties.
pub(super) fn base(name: &str) -> &str {
    split(name).0
}

/// The properties of a written name, in written order.
pub(super) fn properties(name: &str) -> impl Iterator<Item = (&str, &str)> {
    let written = split(name).1.map_or("", |rest| rest.trim_end_matches(']'));
    written.split(',').filter_map(|property| property.split_once('='))
}

pub(super) fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.'))
}

/// Checks a name without properties. Tags and components have such names too.
pub(super) fn check_base(name: &str) -> Result<(), BlockNameError> {
    let is_part = |part: &str| !part.is_empty() && part.split('/').all(|word| word.is_empty() || is_word(word));
    match name.split_once(':') {
        Some((namespace, path)) if is_part(namespace) && is_part(path) => Ok(()),
        _ => Err(invalid(format!("{name:?} is not `namespace:path` of a-z, 0-9, `_`, `-`, `.` and `/`"))),
    }
}

fn split(name: &str) -> (&str, Option<&str>) {
    name.split_once('[').map_or((name, None), |(base, rest)| (base, Some(rest)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn parse(text: &str) -> Result<BlockName, BlockNameError> {
        BlockName::parse(text.to_owned())
    }

    #[test]
    fn properties_are_put_in_order() {
        let name = parse("minecraft:oak_stairs[half=top,facing=north]").unwrap();
        assert_eq!(name.as_str(), "minecraft:oak_stairs[facing=north,half=top]");
        assert_eq!(name.base(), "minecraft:oak_stairs");
        assert!(name.properties().eq([("facing", "north"), ("half", "top")]));
        assert_eq!(parse("game:stone[]").unwrap().as_str(), "game:stone");
    }

    #[test]
    fn what_is_wrong_with_a_name_is_said() {
        let refused = |what: String| Err(BlockNameError { what });
        let expected = "`name=value` of a-z, 0-9, `_`, `-` and `.`";
        let property = |property: &str| refused(format!("the property {property:?} is not {expected}"));
        let base = "\"stone\" is not `namespace:path` of a-z, 0-9, `_`, `-`, `.` and `/`";
        assert_eq!(parse("stone[a=b]"), refused(base.into()));
        assert_eq!(parse("a:b[c=d"), refused("the properties do not end with `]`".into()));
        assert_eq!(parse("a:b[c=d]e"), refused("the properties do not end with `]`".into()));
        assert_eq!(parse("a:b[c]"), property("c"));
        assert_eq!(parse("a:b[c=d,]"), property(""));
        assert_eq!(parse("a:b[c=d=e]"), property("c=d=e"));
        assert_eq!(parse("a:b[c=D]"), property("c=D"));
        assert_eq!(parse("a:b[[c=d]]"), property("[c=d]"));
        assert_eq!(parse("a:b[c=d,c=e]"), refused("the property \"c\" is given twice".into()));
    }

    proptest! {
        #[test]
        fn every_text_is_refused_or_has_one_canonical_form(text in "[a:\\[\\]=,/]{0,12}|\\PC{0,12}") {
            if let Ok(name) = parse(&text) {
                prop_assert_eq!(parse(name.as_str()), Ok(name.clone()));
                prop_assert!(name.properties().is_sorted());
            }
        }

        #[test]
        fn a_name_is_its_base_and_its_properties(
            properties in prop::collection::btree_map("[a-z]{1,3}", "[a-z0-9_]{1,3}", 0..5),
            seed in any::<prop::sample::Index>(), value in "[a-z]{1,3}",
        ) {
            let mut written: Vec<String> = properties.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let turn = seed.index(written.len().max(1));
            written.rotate_left(turn);
            let name = parse(&format!("game:block[{}]", written.join(","))).unwrap();
            let read: BTreeMap<_, _> = name.properties().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            prop_assert_eq!(&read, &properties);
            for property in properties.keys() {
                let changed = name.with_property(property, &value).unwrap();
                let mut expected = properties.clone();
                expected.insert(property.clone(), value.clone());
                prop_assert!(changed.properties().eq(expected.iter().map(|(name, value)| (&name[..], &value[..]))));
            }
            prop_assert_eq!(name.with_property("none", &value), None);
        }
    }
}
