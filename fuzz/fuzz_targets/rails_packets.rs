#![no_main]

#[path = "../rails.rs"]
mod rails;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    rails::packets(bytes);
    rails::raw(bytes);
});
