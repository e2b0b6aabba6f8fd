//! The upgrade of this game: it stores the owner of a chunk under `chunk/x,y,z/game:owner`, as the bytes of a name. Its next
//! version also stores the day, under `chunk/x,y,z/game:claim`: a `u32`, little-endian, followed by the name.

/// Converts a value. The day of older claims is unknown.
pub fn claim_of(owner: &[u8]) -> Result<Vec<u8>, String> {
    match str::from_utf8(owner) {
        Ok(name) => Ok([&0_u32.to_le_bytes(), name.as_bytes()].concat()),
        Err(error) => Err(format!("the owner's name is not text: {error}")),
    }
}
