//! Modified UTF-8: NUL takes two bytes, and characters above U+FFFF are pairs of surrogates of three bytes each.

/// Decodes text. Plain UTF-8 is accepted too; half a surrogate pair becomes U+FFFD. `None` if the bytes are neither.
pub(super) fn decode(bytes: &[u8]) -> Option<String> {
    if let Ok(text) = str::from_utf8(bytes) {
        return Some(text.to_owned());
    }
    let mut units = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while !rest.is_empty() {
        let (code, length) = code(rest)?;
        rest = &rest[length..];
        match char::from_u32(code) {
            Some(character) => units.extend_from_slice(character.encode_utf16(&mut [0; 2])),
            // Half a pair, or beyond the last character.
            None => units.push(u16::try_from(code).unwrap_or(0xFFFD)),
        }
    }
    Some(String::from_utf16_lossy(&units))
}

/// The code unit or code point at the start of the bytes, and its length in bytes.
fn code(bytes: &[u8]) -> Option<(u32, usize)> {
    let (first, length) = match bytes[0] {
        first @ 0..0x80 => return Some((first.into(), 1)),
        first @ 0xC0..0xE0 => (first & 0x1F, 2),
        first @ 0xE0..0xF0 => (first & 0x0F, 3),
        first @ 0xF0..0xF8 => (first & 0x07, 4),
        _ => return None,
    };
    let mut code = u32::from(first);
    for byte in bytes.get(1..length)? {
        if byte & 0xC0 != 0x80 {
            return None;
        }
        code = code << 6 | u32::from(byte & 0x3F);
    }
    Some((code, length))
}

/// Appends text in modified UTF-8.
pub(super) fn encode(text: &str, into: &mut Vec<u8>) {
    if text.bytes().all(|byte| (1..0xF0).contains(&byte)) {
        into.extend_from_slice(text.as_bytes());
        return;
    }
    for character in text.chars() {
        match character {
            '\0' => into.extend([0xC0, 0x80]),
            '\u{10000}'.. => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    into.extend([
                        0xE0 | (*unit >> 12) as u8,
                        0x80 | (*unit >> 6 & 0x3F) as u8,
                        0x80 | (*unit & 0x3F) as u8,
                    ]);
                }
            }
            _ => into.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_back() {
        for text in ["", "stone", "käse", "a\0b", "𝄞 and 🪨", "\u{FFFF}\u{10000}\u{10FFFF}"] {
            let mut bytes = Vec::new();
            encode(text, &mut bytes);
            assert!(bytes.iter().all(|byte| *byte != 0 && *byte < 0xF0), "{text:?}");
            assert_eq!(decode(&bytes).as_deref(), Some(text));
            assert_eq!(decode(text.as_bytes()).as_deref(), Some(text), "plain UTF-8");
        }
    }

    #[test]
    fn half_a_pair_is_a_replacement_and_other_bytes_are_refused() {
        assert_eq!(decode(&[b'a', 0xED, 0xA0, 0x80, b'b']).as_deref(), Some("a\u{FFFD}b"));
        assert_eq!(decode(&[0xED, 0xB0, 0x80]).as_deref(), Some("\u{FFFD}"));
        assert_eq!(decode(&[0xED, 0xA0, 0x80]).as_deref(), Some("\u{FFFD}"));
        for bytes in [&[0xFF][..], &[0x80], &[0xC3], &[0xC3, b'a'], &[0xE0, 0x80]] {
            assert_eq!(decode(bytes), None, "{bytes:x?}");
        }
    }
}
