#![no_main]

#[path = "../parcels.rs"]
mod parcels;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| parcels::parcel(bytes));
