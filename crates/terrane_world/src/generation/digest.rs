//! FNV-1a: the digest of a generator's settings for its identity.

pub use crate::space::GeneratorIdentity;
use std::ops::Range;

/// FNV-1a over 64 bits. Not for untrusted keys; stable across versions, unlike the standard library's hasher.
#[derive(Clone, Copy)]
pub(super) struct Digest(u64);

impl Digest {
    pub(super) const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    pub(super) fn bytes(mut self, bytes: &[u8]) -> Self {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        self
    }

    pub(super) fn number(self, number: u64) -> Self {
        self.bytes(&number.to_le_bytes())
    }

    /// Includes the length first, so that moving letters between neighbouring texts changes the digest.
    pub(super) fn text(self, text: &str) -> Self {
        self.number(text.len() as u64).bytes(text.as_bytes())
    }

    /// Includes the number of texts first.
    pub(super) fn texts(self, texts: &[String]) -> Self {
        texts.iter().fold(self.number(texts.len() as u64), |digest, text| digest.text(text))
    }

    pub(super) fn heights(self, heights: &Range<i64>) -> Self {
        self.number(heights.start as u64).number(heights.end as u64)
    }

    /// Includes the identity of a part.
    pub(super) fn identity(self, identity: &GeneratorIdentity) -> Self {
        self.text(&identity.name).number(u64::from(identity.version)).number(identity.seed)
    }

    pub(super) const fn finish(self) -> u64 {
        self.0
    }
}

/// Spreads every bit of `value` over all 64 bits: a seeded hash when seeds and coordinates are chained through it.
pub(super) const fn scramble(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_fnv_1a() {
        // The published test vectors.
        assert_eq!(Digest::new().finish(), 0xcbf2_9ce4_8422_2325);
        assert_eq!(Digest::new().bytes(b"a").finish(), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(Digest::new().bytes(b"foobar").finish(), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn texts_do_not_run_together() {
        assert_ne!(Digest::new().text("ab").text("c").finish(), Digest::new().text("a").text("bc").finish());
    }
}
