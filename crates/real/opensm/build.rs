//! Compiles the C shim where OpenSM's headers are, unless RADDLE_WITHOUT names opensm. Elsewhere the crate still checks
//! and its tests run, but the shared object has no plugin in it: `make build` leaves it out and says so.

use std::{
    env,
    io::Write,
    process::{Command, Stdio},
};

fn main() {
    println!("cargo::rerun-if-changed=shim");
    println!("cargo::rerun-if-changed=/usr/include/infiniband/opensm/osm_version.h");
    println!("cargo::rerun-if-env-changed=RADDLE_WITHOUT");
    println!("cargo::rustc-check-cfg=cfg(opensm_headers)");
    if left_out() || !headers_are_there() {
        // The headers that a package brings are older than this build: only Debian's list of packages is new.
        println!("cargo::rerun-if-changed=/var/lib/dpkg/status");
        return;
    }
    println!("cargo::rustc-cfg=opensm_headers");
    cc::Build::new()
        .files(
            ["groups", "raddle", "requests", "subnet", "tables"]
                .map(|name| format!("shim/{name}.c")),
        )
        .include("/usr/include/infiniband")
        .flag("-std=gnu11")
        .warnings(true)
        .extra_warnings(true)
        .flag("-Wno-unused-parameter")
        .flag("-Wno-address-of-packed-member")
        .compile("raddle_shim");
}

/// Whether whoever builds wants the crate as it is where the headers are not installed.
fn left_out() -> bool {
    env::var("RADDLE_WITHOUT").is_ok_and(|names| names.split(',').any(|name| name == "opensm"))
}

fn headers_are_there() -> bool {
    let compiler = cc::Build::new().get_compiler();
    let child = Command::new(compiler.path())
        .args(["-I/usr/include/infiniband", "-E", "-x", "c", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else { return false };
    let written = child.stdin.take().is_some_and(|mut input| {
        input
            .write_all(b"#include <infiniband/opensm/osm_version.h>\n")
            .is_ok()
    });
    let status = child.wait();
    written && status.is_ok_and(|status| status.success())
}
