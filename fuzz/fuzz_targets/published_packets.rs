#![no_main]

#[path = "../published.rs"]
mod published;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| published::packets(bytes));
