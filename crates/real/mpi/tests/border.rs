//! `shim/border.h` is the border between C and Rust, and `src/ffi/border.rs` is made from it. These tests hold both equal:
//! the text, wherever libclang is installed, and sizes and offsets of fields, wherever a C compiler is.

use std::{
    env, fs,
    panic::catch_unwind,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use bindgen::{
    EnumVariation, Formatter,
    callbacks::{DeriveInfo, ItemInfo, ParseCallbacks},
};

const HEADER: &str = "shim/border.h";
const GENERATED: &str = "src/ffi/border.rs";

/// Records that tests compare and that are filled by the other side.
const RECORDS: [&str; 2] = ["RaddleMessage", "RaddleMatched"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// `raddle_call` is `RaddleCall` in Rust.
#[derive(Debug)]
struct Names;

impl ParseCallbacks for Names {
    fn item_name(&self, item: ItemInfo<'_>) -> Option<String> {
        item.name.strip_prefix("raddle_")?;
        let words = item.name.split('_').map(|word| {
            let (first, rest) = word.split_at(1.min(word.len()));
            first.to_uppercase() + rest
        });
        Some(words.collect())
    }

    fn add_derives(&self, info: &DeriveInfo<'_>) -> Vec<String> {
        if !RECORDS.contains(&info.name) {
            return Vec::new();
        }
        ["Default", "PartialEq", "Eq"].map(str::to_owned).into()
    }
}

/// What bindgen makes of the header.
fn generate() -> String {
    let bindings = bindgen::Builder::default()
        .header(root().join(HEADER).display().to_string())
        .allowlist_item("(?i)raddle_.*")
        .default_enum_style(EnumVariation::Consts)
        .prepend_enum_name(false)
        .array_pointers_in_arguments(true)
        .generate_comments(false)
        .use_core()
        .disable_header_comment()
        .parse_callbacks(Box::new(Names))
        .formatter(Formatter::Prettyplease)
        .generate()
        .expect("the header is correct C");
    format!(
        "// Made from shim/border.h by `make generate`; tests/border.rs compares.\n\n{}",
        without_options(&bindings.to_string())
    )
}

/// bindgen takes every function pointer for one that may be NULL; here only those of type `raddle_function` may, and the
/// address of the entry function itself.
fn without_options(text: &str) -> String {
    const OPTION: &str = "::core::option::Option<";
    let mut result = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(OPTION) {
        let (before, after) = rest.split_at(at);
        let inside = &after[OPTION.len()..];
        let mut depth = 1;
        let end = inside
            .char_indices()
            .find(|&(index, character)| {
                let arrow = character == '>' && inside[..index].ends_with('-');
                depth += i32::from(character == '<') - i32::from(character == '>' && !arrow);
                depth == 0
            })
            .map(|(index, _)| index)
            .expect("brackets are closed");
        result.push_str(before);
        if before.trim_end().ends_with(':') {
            let function = inside[..end].trim().trim_end_matches(',');
            result.push_str(&without_options(function));
        } else {
            result.push_str(&after[..=OPTION.len() + end]);
        }
        rest = &inside[end + 1..];
    }
    result.push_str(rest);
    result
}

/// Whether libclang is there and whoever builds wants it to be used.
fn has_libclang() -> bool {
    let left_out = env::var("RADDLE_WITHOUT");
    if left_out.is_ok_and(|names| names.split(',').any(|name| name == "clang")) {
        return false;
    }
    catch_unwind(bindgen::clang_version).is_ok()
}

#[test]
fn the_rust_side_is_what_the_header_says() {
    if !has_libclang() {
        // Nothing can be compared.
        return;
    }
    let kept = fs::read_to_string(root().join(GENERATED)).expect("the file is kept");
    assert!(
        kept == generate(),
        "{GENERATED} is not what {HEADER} says: run `make generate`"
    );
}

#[test]
#[ignore = "generate: writes the file that the test above compares"]
fn generate_the_rust_side() {
    fs::write(root().join(GENERATED), generate()).expect("the file can be written");
}

/// The assertions that build.rs makes of `src/ffi/border.rs` for every shim, compiled against a header.
fn compile(folder: &Path, header: &str) -> Output {
    fs::create_dir_all(folder).expect("a folder of the target");
    fs::write(folder.join("border.h"), header).expect("it can be written");
    let assertions = Path::new(env!("OUT_DIR")).join("border_layout.c");
    Command::new("cc")
        .args(["-std=gnu11", "-fsyntax-only", "-I"])
        .arg(folder)
        .arg(assertions)
        .output()
        .expect("a C compiler is there")
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn header() -> String {
    fs::read_to_string(root().join(HEADER)).expect("the header is there")
}

#[test]
fn c_has_every_field_where_rust_has_it() {
    let output = compile(&folder("border-same"), &header());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let generated = fs::read_to_string(root().join(GENERATED)).expect("the file is kept");
    let assertions = fs::read_to_string(Path::new(env!("OUT_DIR")).join("border_layout.c"));
    let compared = assertions
        .expect("build.rs makes it")
        .matches("offsetof")
        .count();
    assert_eq!(compared, generated.matches("Offset of field").count());
    assert!(compared > 100, "{compared} fields");
}

/// Fields are named on both sides, so that a table with two pointers exchanged is still filled by name; and a shim that was
/// compiled against another order than Rust's does not build.
#[test]
fn two_function_pointers_of_one_type_cannot_be_exchanged() {
    let exchanged = header()
        .replace("(*flush)(void)", "(*other)(void)")
        .replace("(*close_rails)(void)", "(*flush)(void)")
        .replace("(*other)(void)", "(*close_rails)(void)");
    assert_ne!(exchanged, header());
    let output = compile(&folder("border-exchanged"), &exchanged);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    for field in ["flush", "close_rails"] {
        let expected = format!("raddle_messages.{field} is not where Rust has it");
        assert!(said.contains(&expected), "{said}");
    }
}

#[test]
fn a_field_of_another_size_is_found() {
    let wider = header().replace("uint8_t reason;", "uint64_t reason;");
    assert_ne!(wider, header());
    let output = compile(&folder("border-wider"), &wider);
    assert!(String::from_utf8_lossy(&output.stderr).contains("raddle_call has another size"));
}
