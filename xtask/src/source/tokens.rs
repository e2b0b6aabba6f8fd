//! Rust source text as tokens, without comments, strings and characters.

/// A word, `::` or one other character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its line, from 1.
    pub line: usize,
    /// Its text.
    pub text: String,
}

/// Splits source text into tokens.
pub fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = skipped(rest);
        let taken = if length > 0 {
            length
        } else {
            let length = match first {
                _ if is_word(first) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
                ':' if rest.starts_with("::") => 2,
                _ => first.len_utf8(),
            };
            tokens.push(Token { line, text: rest[..length].to_owned() });
            length
        };
        line += rest[..taken].matches('\n').count();
        rest = &rest[taken..];
    }
    tokens
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The length of the whitespace, comment, string, character or lifetime at the start of `text`, or 0.
fn skipped(text: &str) -> usize {
    let until = |end: &str, from: usize| text[from..].find(end).map_or(text.len(), |at| from + at + end.len());
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return block_comment(text);
    }
    if let Some(quoted) = text.strip_prefix('\'') {
        let mut characters = quoted.char_indices();
        return match (characters.next(), characters.next()) {
            (Some((_, '\\')), Some((at, escaped))) => until("'", 1 + at + escaped.len_utf8()),
            (Some(_), Some((at, '\''))) => at + 2,
            _ => 1 + quoted.find(|c| !is_word(c)).unwrap_or(quoted.len()),
        };
    }
    let prefix = ["br", "cr", "r", "b", "c", ""]
        .into_iter()
        .find(|prefix| text.strip_prefix(prefix).is_some_and(|rest| rest.trim_start_matches('#').starts_with('"')));
    if let Some(prefix) = prefix {
        let after = &text[prefix.len()..];
        let hashes = after.len() - after.trim_start_matches('#').len();
        if prefix.ends_with('r') {
            return until(&format!("\"{}", "#".repeat(hashes)), prefix.len() + hashes + 1);
        }
        if hashes == 0 {
            return prefix.len() + string(after);
        }
    }
    text.find(|c: char| !c.is_whitespace()).unwrap_or(text.len())
}

/// The length of a block comment, which may be nested.
fn block_comment(text: &str) -> usize {
    let mut open = 0;
    let mut at = 0;
    while at < text.len() {
        let (change, length) = match &text.as_bytes()[at..] {
            [b'/', b'*', ..] => (1, 2),
            [b'*', b'/', ..] => (-1, 2),
            _ => (0, 1),
        };
        open += change;
        at += length;
        if open == 0 {
            break;
        }
    }
    at
}

/// The length of a string, from its opening quote to its closing one.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_strings_and_characters_are_no_tokens() {
        let text = r####"
            //! [`crate::plugin`]
            /* crate::plugin /* crate::plugin */ crate::plugin */
            const A: &str = "crate::plugin \" crate::plugin";
            const B: &[u8] = br##"crate::plugin "# crate::plugin"##;
            const C: [char; 4] = ['"', '\'', '\\', '\u{22}'];
            fn f<'a>(x: &'a str) -> &'a str { x }
            use crate::plugin;
        "####;
        let found = tokens(text);
        let lines: Vec<usize> = found.iter().filter(|token| token.text == "plugin").map(|token| token.line).collect();
        assert_eq!(lines, [8]);
        let last: Vec<&str> = found.iter().rev().take(5).map(|token| &*token.text).collect();
        assert_eq!(last, [";", "plugin", "::", "crate", "use"]);
    }
}
