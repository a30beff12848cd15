//! Alone in its program, because it silences the panic messages of the Parquet library.

use raddle_workload::{FlowFormat, ReadOptions, read_flows, write_parquet};

/// Every truncation is an error; every byte changed is an error or another list: never a panic.
#[test]
fn damaged_parquet_never_panics() {
    let text = b"2\n0 1 3 100 1000 0\n2 3 3 100 65536 0.000001\n";
    let options = ReadOptions::new("f");
    let mut list = read_flows(text, FlowFormat::HpccNs3, &options).unwrap();
    let mut bytes = Vec::new();
    write_parquet(&mut list, &mut bytes).unwrap();
    // The reader catches them and gives an error; their messages would only fill the log.
    std::panic::set_hook(Box::new(|_| {}));
    let truncated = (0..bytes.len())
        .find(|&end| read_flows(&bytes[..end], FlowFormat::Parquet, &options).is_ok());
    for mask in [0xff, 0x01, 0x80] {
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= mask;
            let _ = read_flows(&damaged, FlowFormat::Parquet, &options);
        }
    }
    let _ = std::panic::take_hook();
    assert_eq!(truncated, None);
}
