//! Values that are `Send` and not `Sync`, in worlds that want both.

use bevy::platform::cell::SyncCell;

/// A value that only `&mut` reaches, so that what is `Send` and not `Sync` (a region world, a closure) can be kept in
/// a resource.
pub struct Exclusive<T>(SyncCell<T>);

impl<T> Exclusive<T> {
    /// Wraps `value`.
    pub fn new(value: T) -> Self {
        Self(SyncCell::new(value))
    }

    /// The value, which is not kept any longer.
    pub fn into_inner(self) -> T {
        SyncCell::to_inner(self.0)
    }

    /// The value.
    pub fn get(&mut self) -> &mut T {
        self.0.get()
    }
}

impl<T: Default> Default for Exclusive<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}
