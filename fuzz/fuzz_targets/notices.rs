#![no_main]

#[path = "../notices.rs"]
mod notices;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| notices::notices(bytes));
