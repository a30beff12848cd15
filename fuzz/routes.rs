//! What the reader of route files promises about any input, used by the fuzz target and by a test: no panic, errors that
//! fit on a screen and name their source, and groups that every engine routes or refuses.

use raddle_routes::Resolved;
use raddle_text::MemoryFiles;

#[path = "texts.rs"]
mod texts;
use texts::{judge, longest_number};

/// Hosts, groups and colours beyond which engines take too long here.
const MOST: (usize, usize, u32) = (256, 64, 64);

/// A route file; `base.toml`, `loop.toml`, `groups.toml` and `groups.csv` can be named in it.
pub(crate) fn route(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    // A number of two digits is a fabric of seconds at most, or one that is refused.
    if longest_number(text) > 2 {
        return;
    }
    let files = MemoryFiles::default()
        .with("base.toml", "[multicast]\ncolours = 4\n")
        .with("loop.toml", "include = [\"fuzz.toml\"]\n")
        .with(
            "groups.toml",
            "schema = 1\n[[group]]\nname = \"a\"\nmembers = [0, \"h1\"]\n",
        )
        .with("groups.csv", "group,member\na,h0\na,h1\nb,h2\n")
        .with("fuzz.toml", bytes);
    let resolved = match Resolved::new(text, "fuzz.toml", &files) {
        Ok(resolved) => resolved,
        Err(error) => {
            let sources = [
                "fuzz.toml",
                "loop.toml",
                "base.toml",
                "groups.toml",
                "groups.csv",
            ];
            return judge(&error.to_string(), &sources);
        }
    };
    let hosts = resolved.fabric.hosts().len();
    if hosts > MOST.0 || resolved.groups.len() > MOST.1 || resolved.colours > MOST.2 {
        return;
    }
    let setup = resolved.setup();
    for kind in &resolved.engines {
        let mut engine = (kind.make)(&setup).expect("a resolved file has engines that can be made");
        match engine.route(&resolved.groups) {
            Err(error) => judge(&error.to_string(), &[]),
            Ok(_) => {
                let all = resolved.groups.len();
                assert_eq!(engine.groups().len(), all, "every group is in place");
                let shared = engine.trees().into_iter().filter(|tree| tree.copy == 0);
                assert!(shared.map(|tree| tree.groups.len()).sum::<usize>() <= all);
            }
        }
    }
}
