#![no_main]

#[path = "../offload.rs"]
mod offload;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    offload::packets(bytes);
    offload::raw(bytes);
});
