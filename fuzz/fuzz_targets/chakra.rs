#![no_main]

#[path = "../recordings.rs"]
mod recordings;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| recordings::chakra_file(bytes));
