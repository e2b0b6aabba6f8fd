//! Block types that share a name and differ in their properties.

use super::{BlockName, BlockNameError, BlockRegistryError, BlockType};
use super::{block_name, block_name::is_word, state_shapes::StateShapes};
use std::borrow::Cow;
use std::fmt;

/// The maximum number of states of a block type.
const MAX_STATES: usize = 1 << 16;

/// A block type with all values that its properties can have. Each combination of values is a [`BlockType`] with an id
/// of its own. The default has the first value of each property.
///
/// ```
/// # use terrane_world::block::{BlockRegistry, BlockShape, BlockStates, BlockType};
/// let slab = BlockStates::new(BlockType::new("game:slab").with_shape(BlockShape::slab()))
///     .with_property("half", ["bottom", "top", "both"])
///     .with_property("wet", ["false", "true"])
///     .varied_by(|state| match state.property("half") {
///         Some("both") => state.with_shape(BlockShape::Cube),
///         _ => state,
///     });
/// let mut blocks = BlockRegistry::new();
/// assert_eq!(blocks.register_states(slab)?.len(), 6);
///
/// let top = blocks.state("game:slab", &[("half", "top")]).unwrap();
/// assert_eq!(blocks.block(top).name(), "game:slab[half=top,wet=false]");
/// assert_eq!(blocks.block(top).shape(), &BlockShape::slab().upside_down());
/// assert_eq!(blocks.with_property(top, "half", "bottom"), blocks.id("game:slab"));
/// # Ok::<(), terrane_world::block::BlockRegistryError>(())
/// ```
pub struct BlockStates {
    block: BlockType,
    properties: Vec<(Cow<'static, str>, Vec<Cow<'static, str>>)>,
    vary: Box<dyn Fn(BlockType) -> BlockType>,
}

impl BlockStates {
    /// States that are all like this type, which must not have properties yet. Its former names apply to the default
    /// state and, with properties appended, to the other states.
    ///
    /// The type's shape is that of the default state. A state that is the default turned or flipped, by the rules of
    /// [`turned_state`](super::turned_state), has the shape turned like it; if several turns lead to it, by the one
    /// without a flip. With `half` or `type` at `top` instead of `bottom`, the shape is upside down.
    pub fn new(block: BlockType) -> Self {
        Self { block, properties: Vec::new(), vary: Box::new(|state| state) }
    }

    /// The name of the type, without properties.
    pub fn name(&self) -> &str {
        self.block.name()
    }

    /// The same type with one more property and all its possible values. The first value is the default.
    pub fn with_property<V: Into<Cow<'static, str>>>(
        mut self,
        name: impl Into<Cow<'static, str>>,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        self.properties.push((name.into(), values.into_iter().map(Into::into).collect()));
        self
    }

    /// Lets states differ: `vary` gets each state with its [properties](BlockType::property) and returns it changed.
    /// It cannot change names, and its shape replaces the turned one.
    pub fn varied_by(mut self, vary: impl Fn(BlockType) -> BlockType + 'static) -> Self {
        self.vary = Box::new(vary);
        self
    }

    /// All states, the default first. The last property changes fastest.
    pub(super) fn types(mut self) -> Result<Vec<BlockType>, BlockRegistryError> {
        self.check()?;
        self.properties.sort();
        let mut suffixes = vec![Vec::new()];
        for (name, values) in &self.properties {
            let with_value = |suffix: &Vec<String>| {
                let suffix = suffix.clone();
                values.iter().map(move |value| [&suffix[..], &[format!("{name}={value}")]].concat())
            };
            suffixes = suffixes.iter().flat_map(with_value).collect();
        }
        let states = suffixes.into_iter().enumerate();
        let states = states.map(|(index, properties)| self.state(properties, index == 0));
        let states = states.collect::<Result<Vec<_>, _>>()?;
        let Some((default, _)) = states.first() else { return Ok(Vec::new()) };
        let shapes = StateShapes::new(default, &self.block.shape);
        let vary = |(name, state): (BlockName, BlockType)| {
            let shape = shapes.of(&state);
            BlockType { name: name.into_text(), ..(self.vary)(BlockType { shape, ..state }) }
        };
        Ok(states.into_iter().map(vary).collect())
    }

    /// A state before it is varied, and its name.
    fn state(&self, properties: Vec<String>, is_default: bool) -> Result<(BlockName, BlockType), BlockRegistryError> {
        let named = |name: &str| match properties.is_empty() {
            true => name.to_owned(),
            false => format!("{name}[{}]", properties.join(",")),
        };
        let parse = |name: String| {
            let invalid = |error: BlockNameError| self.invalid(format!("{name:?}: {}", error.what));
            BlockName::parse(name.clone()).map_err(invalid)
        };
        let mut former_names = Vec::new();
        for name in &self.block.former_names {
            former_names.push(parse(named(name))?.into_text());
        }
        let name = parse(named(self.block.name()))?;
        if is_default && !properties.is_empty() {
            // Blocks from before the type had properties become the default state.
            former_names.extend(self.block.former_names.iter().cloned());
            former_names.push(self.block.name.clone());
        }
        let state = BlockType { name: name.clone().into_text(), former_names, ..self.block.clone() };
        Ok((name, state))
    }

    fn check(&self) -> Result<(), BlockRegistryError> {
        block_name::check_base(self.block.name()).map_err(|error| self.invalid(error.what))?;
        let mut states = 1_usize;
        for (name, values) in &self.properties {
            if let Some(word) = values.iter().chain([name]).find(|word| !is_word(word)) {
                let expected = "is not of a-z, 0-9, `_`, `-` and `.`";
                return Err(self.invalid(format!("{word:?} of the property {name:?} {expected}")));
            }
            let is_repeated = (1..values.len()).any(|index| values[..index].contains(&values[index]));
            if values.is_empty() || is_repeated {
                return Err(self.invalid(format!("the property {name:?} needs one or more values, and none twice")));
            }
            states = states.saturating_mul(values.len());
            if states > MAX_STATES {
                return Err(self.invalid(format!("there are more than {MAX_STATES} states")));
            }
        }
        Ok(())
    }

    fn invalid(&self, what: String) -> BlockRegistryError {
        BlockRegistryError::States { block: self.block.name().to_owned(), what }
    }
}

impl fmt::Debug for BlockStates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockStates").field("block", &self.block).field("properties", &self.properties).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn names(states: BlockStates) -> Result<Vec<String>, BlockRegistryError> {
        Ok(states.types()?.iter().map(|state| state.name().to_owned()).collect())
    }

    #[test]
    fn the_default_comes_first_and_the_last_property_changes_fastest() {
        let states = BlockStates::new(BlockType::new("game:door"))
            .with_property("open", ["false", "true"])
            .with_property("facing", ["north", "south"]);
        let expected = ["north,open=false", "north,open=true", "south,open=false", "south,open=true"];
        assert_eq!(names(states).unwrap(), expected.map(|state| format!("game:door[facing={state}]")));
        assert_eq!(names(BlockStates::new(BlockType::new("game:stone"))).unwrap(), ["game:stone"]);
    }

    #[test]
    fn states_may_differ_but_for_their_names() {
        let slab = BlockStates::new(BlockType::new("game:slab").transparent())
            .with_property("both", ["false", "true"])
            .varied_by(|state| match state.property("both") {
                Some("true") => BlockType::new("game:other").with_color([1; 3]),
                _ => state,
            });
        let types = slab.types().unwrap();
        assert_eq!([types[0].is_opaque(), types[1].is_opaque()], [false, true]);
        assert_eq!((types[1].name(), types[1].color()), ("game:slab[both=true]", [1; 3]));
    }

    #[test]
    fn what_cannot_be_listed_is_refused() {
        let states = || BlockStates::new(BlockType::new("game:a"));
        let error = |what: &str| Err(BlockRegistryError::States { block: "game:a".into(), what: what.into() });
        let none: [&str; 0] = [];
        let values = "the property \"b\" needs one or more values, and none twice";
        assert_eq!(names(states().with_property("b", none)), error(values));
        assert_eq!(names(states().with_property("b", ["c", "c"])), error(values));
        let word = "\"C\" of the property \"b\" is not of a-z, 0-9, `_`, `-` and `.`";
        assert_eq!(names(states().with_property("b", ["C"])), error(word));
        let twice = names(states().with_property("b", ["c"]).with_property("b", ["d"])).unwrap_err();
        assert_eq!(twice.to_string(), "game:a: \"game:a[b=c,b=d]\": the property \"b\" is given twice");
        let former = BlockStates::new(BlockType::new("game:a").formerly("game:old[x=1"));
        assert_eq!(names(former), error("\"game:old[x=1\": the properties do not end with `]`"));
        let many = (0..65).fold(states(), |it, index| it.with_property(format!("p{index}"), ["0", "1"]));
        assert_eq!(names(many), error("there are more than 65536 states"));
        assert!(names(BlockStates::new(BlockType::new("game:a[b=c]")).with_property("d", ["e"])).is_err());
    }

    proptest! {
        #[test]
        fn there_is_one_state_for_each_combination(sizes in prop::collection::vec(1_usize..5, 0..4)) {
            let states = sizes.iter().enumerate().fold(BlockStates::new(BlockType::new("a:b")), |states, (index, size)| {
                states.with_property(format!("p{index}"), (0..*size).map(|value| value.to_string()))
            });
            let names = names(states).unwrap();
            prop_assert_eq!(names.len(), sizes.iter().product::<usize>());
            prop_assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        }
    }
}
