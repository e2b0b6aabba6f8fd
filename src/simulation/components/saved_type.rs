//! Saved components by their stored names.

use crate::block::Schema;
use crate::simulation::components::mapping::BoxedComponent;
use crate::simulation::template_error::RegionTemplateError;
use bevy::prelude::*;
use serde::{Serialize, de::DeserializeOwned};
use std::any::type_name;

/// A component that can be written to the store and read again, under its `TypePath`.
///
/// By default that path contains the path of the type's module. `#[type_path = "my_game"]` sets a path that survives renaming the
/// module. If the path has changed anyway, declare the old one with [`Schema::formerly`].
///
/// ```
/// use bevy::prelude::*;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Component, Serialize, Deserialize, TypePath)]
/// #[type_path = "my_game"]
/// struct Sheep {
///     hunger: u32,
/// }
/// assert_eq!(Sheep::type_path(), "my_game::Sheep");
/// ```
pub trait SavedComponent: Component + Serialize + DeserializeOwned + TypePath {}
impl<T: Component + Serialize + DeserializeOwned + TypePath> SavedComponent for T {}

/// A component type that the game saves.
pub struct SavedType {
    /// The type's path in Bevy.
    pub path: &'static str,
    /// The compiler's name of the type, which was the stored name in early worlds.
    compiler_name: &'static str,
    pub schema: Schema,
    /// The name under which new values are stored.
    pub name: String,
    pub encode: fn(EntityRef) -> Option<Result<Vec<u8>, postcard::Error>>,
    pub decode: fn(&[u8]) -> Result<BoxedComponent, postcard::Error>,
}

impl SavedType {
    pub fn of<T: SavedComponent>(schema: Schema) -> Self {
        // Version 0 has the plain name from before there were versions.
        let (path, compiler_name) = (T::type_path(), type_name::<T>());
        let name = match schema.version() {
            0 => path.to_owned(),
            version => format!("{path}@{version}"),
        };
        Self {
            path,
            compiler_name,
            schema,
            name,
            encode: |entity| entity.get::<T>().map(postcard::to_allocvec),
            decode: |bytes| Ok(Box::new(postcard::from_bytes::<T>(bytes)?)),
        }
    }

    /// Returns `true` if values of the type are or were stored under this path.
    pub fn is_called(&self, path: &str) -> bool {
        [self.path, self.compiler_name].into_iter().chain(self.schema.former_names()).any(|name| name == path)
    }

    /// Checks that all values under this stored name can be read, if they are of this type at all.
    pub fn check(&self, stored_name: &str) -> Result<(), RegionTemplateError> {
        let (path, stored) = split(stored_name);
        if !self.is_called(path) || self.schema.can_read(stored) {
            return Ok(());
        }
        Err(RegionTemplateError::SavedVersion { path: path.into(), stored, declared: self.schema.version() })
    }
}

/// The path and the version in the name of a stored component.
pub fn split(stored_name: &str) -> (&str, u32) {
    let parts = stored_name.rsplit_once('@');
    parts.and_then(|(path, version)| Some((path, version.parse().ok()?))).unwrap_or((stored_name, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Component, Serialize, Deserialize, TypePath)]
    #[type_path = "game"]
    struct Mob;

    const COMPILER_NAME: &str = "bevy_terrane::simulation::components::saved_type::tests::Mob";

    #[test]
    fn a_version_is_part_of_the_name_unless_it_is_zero() {
        let name = |version| SavedType::of::<Mob>(Schema::new(version)).name;
        assert_eq!((split(&name(0)), split(&name(12))), (("game::Mob", 0), ("game::Mob", 12)));
        assert_eq!(name(0), "game::Mob");
        for odd in ["game::Mob<'@'>", "game::Mob@", "game::Mob@-1", "game::Mob@99999999999", ""] {
            assert_eq!(split(odd), (odd, 0));
        }
    }

    #[test]
    fn a_stored_type_of_an_unknown_version_is_named() {
        let schema = Schema::new(2).with_migration(1, |old| Ok(old.to_vec())).formerly("game::Beast");
        let mob = SavedType::of::<Mob>(schema);
        for fine in ["game::Mob@2", "game::Mob@1", "game::Beast@1", &format!("{COMPILER_NAME}@1"), "game::Other@7"] {
            assert_eq!(mob.check(fine), Ok(()));
        }
        for old in ["game::Beast", COMPILER_NAME] {
            let refusal = RegionTemplateError::SavedVersion { path: old.into(), stored: 0, declared: 2 };
            assert_eq!(mob.check(old), Err(refusal));
        }
    }
}
