#![no_main]

#[path = "../packets.rs"]
mod packets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| packets::edit(bytes));
