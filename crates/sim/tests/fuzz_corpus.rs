//! Replays the corpus of the fuzz targets: what once was found, or is likely to be, is tried in every test run.

use std::{fs, path::Path};

#[path = "../../../fuzz/parsers.rs"]
mod parsers;

/// Feeds every file of a target's corpus to its parser; a panic names the file.
fn replay(target: &str, parser: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target);
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(
        files.len() >= 8,
        "{}: only {} files",
        folder.display(),
        files.len()
    );
    for file in files {
        let bytes = fs::read(&file).unwrap();
        let tried = std::panic::catch_unwind(|| {
            parser(&bytes);
            // Files that were cut short are the most usual damage.
            for tenth in 0..10 {
                parser(&bytes[..bytes.len() * tenth / 10]);
            }
            let mut random = Random(bytes.len() as u64);
            for _ in 0..mutations() {
                parser(&random.damage(&bytes));
            }
        });
        assert!(
            tried.is_ok(),
            "a parser fails on {} or a damaged copy of it",
            file.display()
        );
    }
}

/// Damaged copies of each file that are tried; `RADDLE_MUTATIONS` asks for more.
fn mutations() -> u32 {
    let asked = std::env::var("RADDLE_MUTATIONS")
        .ok()
        .and_then(|text| text.parse().ok());
    asked.unwrap_or(50)
}

/// SplitMix64, for damage that is the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ (word >> 31)) % limit.max(1) as u64) as usize
    }

    /// One to four pieces replaced by what parsers trip over.
    fn damage(&mut self, bytes: &[u8]) -> Vec<u8> {
        const PIECES: [&[u8]; 18] = [
            b"",
            b"0",
            b"-1",
            b"nan",
            b"1e999",
            b"18446744073709551616",
            b"\"",
            b"'",
            b"[",
            b"]",
            b"{ a = 1 }",
            b"=",
            b"\n",
            b"\0",
            b"\xff",
            b"\xc3\xa9",
            b"  ",
            b"0.1",
        ];
        let mut damaged = bytes.to_vec();
        for _ in 0..=self.below(4) {
            let from = self.below(damaged.len() + 1);
            let to = (from + self.below(8)).min(damaged.len());
            damaged.splice(from..to, PIECES[self.below(PIECES.len())].iter().copied());
        }
        damaged
    }
}

#[test]
fn experiments() {
    replay("experiment", parsers::experiment);
}

#[test]
fn fabric_descriptions() {
    replay("fabric_toml", parsers::fabric_toml);
}

#[test]
fn topology_files() {
    replay("topology_hpcc_ns3", parsers::topology_hpcc_ns3);
}

#[test]
fn files_of_infiniband_tools() {
    replay("topology_infiniband", parsers::topology_infiniband);
}

#[test]
fn reference_flow_files() {
    replay("flows_hpcc_ns3", parsers::flows_hpcc_ns3);
}

#[test]
fn csv_flow_files() {
    replay("flows_csv", parsers::flows_csv);
}

#[test]
fn group_files() {
    replay("groups_toml", parsers::groups_toml);
    replay("groups_csv", parsers::groups_csv);
}
