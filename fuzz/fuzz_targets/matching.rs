#![no_main]

#[path = "../matching.rs"]
mod matching;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| matching::parcels(bytes));
