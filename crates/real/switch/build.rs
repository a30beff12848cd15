//! Compiles the packet program of the fast path, for XDP and for traffic control, where clang and libbpf's headers are installed.
//!
//! Where they are not, or RADDLE_WITHOUT names clang, the switch is built without that back-end (`cfg(raddle_xdp)` is
//! off); scripts/build-extras says so. A program that clang refuses is an error.

use std::{env, path::Path, process::Command};

fn main() {
    println!("cargo::rustc-check-cfg=cfg(raddle_xdp)");
    println!("cargo::rerun-if-changed=xdp");
    println!("cargo::rerun-if-env-changed=PATH");
    println!("cargo::rerun-if-env-changed=RADDLE_WITHOUT");
    let linux = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux");
    let little = env::var("CARGO_CFG_TARGET_ENDIAN").is_ok_and(|order| order == "little");
    if !linux || !little || left_out() || !installed() {
        // Debian's list of what is installed: the missing packages may come.
        println!("cargo::rerun-if-changed=/var/lib/dpkg/status");
        return;
    }
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR for build scripts");
    for (object, definition) in [("xdp", "-DXDP"), ("tc", "-DTC")] {
        let status = clang()
            .args(["-O2", "-g", "-Wall", "-Wextra", "-Werror", definition])
            .args(["-c", "xdp/raddle.bpf.c", "-o"])
            .arg(Path::new(&out).join(object).with_extension("bpf.o"))
            .status()
            .expect("clang was started before");
        assert!(
            status.success(),
            "clang cannot compile crates/real/switch/xdp/raddle.bpf.c for {object}"
        );
    }
    println!("cargo::rustc-cfg=raddle_xdp");
}

/// Whether whoever builds wants the switch as it is where clang is not installed.
fn left_out() -> bool {
    env::var("RADDLE_WITHOUT").is_ok_and(|names| names.split(',').any(|name| name == "clang"))
}

/// clang for the kernel's virtual machine, of the instruction set of Linux 5.12 (atomics, 32-bit jumps).
fn clang() -> Command {
    let machine = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let mut command = Command::new("clang");
    command.args(["-target", "bpf", "-mcpu=v3"]);
    // Where Debian keeps <asm/types.h>, which clang looks for only when it compiles for that machine: that of this
    // machine, and that of others (linux-libc-dev-arm64-cross).
    command.arg(format!("-I/usr/include/{machine}-linux-gnu"));
    command.arg(format!("-I/usr/{machine}-linux-gnu/include"));
    command
}

/// Whether clang is there, can compile for the virtual machine, and finds libbpf's headers.
fn installed() -> bool {
    let out = env::var("OUT_DIR").unwrap_or_default();
    let probe = Path::new(&out).join("probe.c");
    std::fs::write(
        &probe,
        "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\n",
    )
    .is_ok()
        && clang()
            .arg("-fsyntax-only")
            .arg(&probe)
            .output()
            .is_ok_and(|output| output.status.success())
}
