#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let input = bytes::Bytes::copy_from_slice(bytes);
    if let Err(error) = raddle_tables::trace::read(input, "fuzz.trace.parquet") {
        let text = error.to_string();
        assert!(text.starts_with("fuzz.trace.parquet: "), "{text}");
    }
});
