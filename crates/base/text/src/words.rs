//! Words in messages: what was meant, what is possible, and nothing that only a programmer knows.

/// Longest word that is compared with others or repeated in full.
const LONGEST_WORD: usize = 100;
/// Words that are listed.
const MOST_LISTED: usize = 24;

/// The known word closest to `word`, if one is close enough to be meant: one slip apart, or much alike.
pub fn closest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST_WORD {
        return None;
    }
    let likeness = |candidate| {
        let alike = strsim::jaro_winkler(word, candidate);
        let slips = strsim::osa_distance(word, candidate);
        if slips == 1 { alike.max(0.9) } else { alike }
    };
    known
        .into_iter()
        .map(|candidate| (likeness(candidate), candidate))
        .filter(|&(likeness, _)| likeness > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// A word of a file as a message repeats it: a broken file may have one of a million letters.
pub fn shorten(word: &str) -> String {
    match word.char_indices().nth(LONGEST_WORD) {
        None => word.to_owned(),
        Some((end, _)) => format!("{}...", &word[..end]),
    }
}

/// `did you mean ...?`, and what is possible.
pub fn suggest(word: &str, known: &[&str]) -> String {
    let possible = || {
        let more = known.len().saturating_sub(MOST_LISTED);
        let listed = known[..known.len() - more].join(", ");
        match more {
            0 => format!("possible: {listed}"),
            more => format!("possible: {listed} and {more} more"),
        }
    };
    match closest(word, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`? {}", possible()),
        None if known.is_empty() => "remove it".to_owned(),
        None => possible(),
    }
}

/// What serde says of a value in the words of those who write files: `invalid type: map, expected f64` becomes
/// `expected a number, found a table`. Other messages stay as they are.
pub fn plain(message: &str) -> String {
    let told = ["invalid type: ", "invalid value: "]
        .iter()
        .find_map(|start| message.strip_prefix(start))
        .and_then(|rest| rest.split_once(", expected "));
    match told {
        Some((found, expected)) => {
            // Readers of JSON add the place, which whoever shows the error knows better.
            let expected = expected.split(" at line ").next().unwrap_or(expected);
            format!("expected {}, found {}", kind(expected), found_word(found))
        }
        None if message.starts_with("data did not match any variant") => {
            "this kind of value means nothing here".to_owned()
        }
        None => message.to_owned(),
    }
}

/// The kind of value that serde's `expected` names.
pub fn kind(expected: &str) -> &str {
    match expected {
        "f32" | "f64" => "a number",
        "i8" | "i16" | "i32" | "i64" | "i128" => "a whole number",
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => "a whole number from 0",
        "a string" | "a borrowed string" | "a character" => "text in quotes",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "a table",
        "variant identifier" | "string or map" => "a word in quotes",
        other if other.starts_with("struct ") => "a table",
        other if other.starts_with("enum ") => "a word in quotes",
        other if other.starts_with("an array") || other.starts_with("a tuple") => "a list",
        other if other.starts_with("map with") => "a table with one key",
        other => other,
    }
}

fn found_word(found: &str) -> String {
    let plain = match found {
        "map" => "a table",
        "sequence" => "a list",
        "null" | "unit value" => "nothing",
        other => other,
    };
    let mut told = plain;
    for kind in ["integer ", "floating point ", "boolean ", "string "] {
        told = told.strip_prefix(kind).unwrap_or(told);
    }
    told.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_programmers_words_become_a_users() {
        for (said, told) in [
            (
                "invalid type: map, expected f64",
                "expected a number, found a table",
            ),
            (
                "invalid value: integer `-1`, expected u32",
                "expected a whole number from 0, found `-1`",
            ),
            (
                "invalid type: string \"abc\", expected struct Settings",
                "expected a table, found \"abc\"",
            ),
            ("`sources`: too many", "`sources`: too many"),
        ] {
            assert_eq!(plain(said), told);
        }
    }

    #[test]
    fn one_slip_is_enough_to_be_meant() {
        assert_eq!(closest("kk", ["k", "pods"]), Some("k"));
        assert_eq!(closest("dumbell", ["dumbbell", "graph"]), Some("dumbbell"));
        assert_eq!(closest("zebra", ["dumbbell", "graph"]), None);
        assert_eq!(suggest("zebra", &[]), "remove it");
    }
}
