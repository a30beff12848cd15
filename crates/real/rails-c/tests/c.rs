//! A program in C, compiled with the header and linked with the library, sends messages to itself over two rails.

use std::{path::Path, process::Command};

/// Both ends of two rails, which no other process has.
fn addresses() -> Vec<String> {
    let [_, _, high, low] = std::process::id().to_be_bytes();
    (1..=4)
        .map(|end| format!("127.{high}.{low}.{end}:4791"))
        .collect()
}

#[test]
fn a_program_in_c_sends_and_receives() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let library = std::env::current_exe().unwrap();
    // Tests lie in `deps`, where the library lies too.
    let library = library.parent().unwrap().join("libraddle_rails.so");
    assert!(library.exists(), "{} is missing", library.display());
    let program = target.join("raddle_rails_ring");
    let compiled = Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-o"])
        .arg(&program)
        .arg(here.join("tests/ring.c"))
        .arg("-I")
        .arg(here.join("include"))
        .arg(&library)
        .status()
        .unwrap();
    assert!(
        compiled.success(),
        "the header or the program does not compile"
    );
    let ran = Command::new(&program)
        .args(addresses())
        .env("LD_LIBRARY_PATH", library.parent().unwrap())
        .output()
        .unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}
