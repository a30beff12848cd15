//! Which node this process runs on.

use std::fs;

use crate::settings::{self, Settings};

/// Which node this is: by name and by which start of the kernel, since names of containers may repeat.
pub(crate) fn id(settings: &Settings) -> u64 {
    if let Some(name) = &settings.node {
        return settings::fold(name.bytes());
    }
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    settings::fold(host_name().into_iter().chain(boot.trim().bytes()))
}

/// What this node is called: by `RADDLE_NODE`, or its host name.
pub(crate) fn name() -> String {
    let given = settings::get().node.clone();
    given.unwrap_or_else(|| String::from_utf8_lossy(&host_name()).into_owned())
}

/// The name of the host as the system has it; empty if it says none.
pub(crate) fn host_name() -> Vec<u8> {
    let mut name = vec![0_u8; 256];
    // SAFETY: the buffer is as long as said; one byte stays zero.
    if unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) } != 0 {
        return Vec::new();
    }
    let end = name
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(name.len());
    name.truncate(end);
    name
}
