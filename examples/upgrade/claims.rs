//! What this game upgrades: it has kept with a chunk who claimed it, under `chunk/x,y,z/game:owner`, the bytes of a name. Its next
//! version wants to know on which day too, and calls that `chunk/x,y,z/game:claim`: a `u32`, little-endian, and the name.

/// Of older claims nobody knows the day.
pub fn claim_of(owner: &[u8]) -> Result<Vec<u8>, String> {
    match str::from_utf8(owner) {
        Ok(name) => Ok([&0_u32.to_le_bytes(), name.as_bytes()].concat()),
        Err(error) => Err(format!("the owner's name is no text: {error}")),
    }
}
