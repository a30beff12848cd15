//! The layout of what crosses the border, as Rust has it, put to C as assertions: a shim whose compiler sees another one
//! does not build.

use std::fmt::Write;

/// `RaddleCall` is `raddle_call` in C.
fn c_name(rust: &str) -> String {
    let mut name = String::new();
    for character in rust.chars() {
        if character.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.extend(character.to_lowercase());
    }
    name
}

/// The text of the C file. `border` is `src/ffi/border.rs`, whose own assertions name each field, and have its offset
/// between `- ` and `usize`.
pub(crate) fn assertions(border: &str) -> String {
    let mut text = String::from(
        "/* Made from src/ffi/border.rs: what C has where Rust has it. */\n#include <stddef.h>\n#include \"border.h\"\n\n",
    );
    // Every second part is a claim in quotation marks; the next one begins with the number that it is about.
    let parts: Vec<&str> = border.split('"').collect();
    for pair in parts[1..].chunks_exact(2) {
        let (claim, code) = (pair[0], pair[1]);
        let number = code
            .split("usize")
            .next()
            .and_then(|code| code.rsplit("- ").next());
        let Some(number) = number.and_then(|number| number.trim().parse::<usize>().ok()) else {
            continue;
        };
        if let Some(name) = claim.strip_prefix("Size of ") {
            let name = c_name(name);
            let _ = writeln!(
                text,
                "_Static_assert(sizeof(struct {name}) == {number}, \"{name} has another size in Rust\");"
            );
        } else if let Some(name) = claim.strip_prefix("Alignment of ") {
            let name = c_name(name);
            let _ = writeln!(
                text,
                "_Static_assert(_Alignof(struct {name}) == {number}, \"{name} has another alignment in Rust\");"
            );
        } else if let Some((name, field)) = claim
            .strip_prefix("Offset of field: ")
            .and_then(|field| field.split_once("::"))
        {
            let name = c_name(name);
            let _ = writeln!(
                text,
                "_Static_assert(offsetof(struct {name}, {field}) == {number}, \"{name}.{field} is not where Rust has it\");"
            );
        }
    }
    text
}
