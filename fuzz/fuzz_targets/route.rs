#![no_main]

#[path = "../routes.rs"]
mod routes;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| routes::route(bytes));
