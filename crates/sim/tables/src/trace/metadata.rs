//! What concerns all calls of a trace, as key-value metadata of its file.

use parquet::file::metadata::KeyValue;
use raddle_trace::Trace;

const VERSION: &str = "1";
const PROCESSORS: &str = "raddle.processors";
/// Members of all communicators together: a limit for damaged files, whose runs may say anything.
const MOST_MEMBERS: u64 = 1 << 28;

/// Of a trace.
pub(super) fn of(trace: &Trace) -> Vec<KeyValue> {
    let runs: Vec<Vec<[u32; 2]>> = trace.communicators.iter().map(|list| runs(list)).collect();
    [
        ("raddle.trace", VERSION.to_owned()),
        ("raddle.placement", json(&trace.placement)),
        ("raddle.hosts", json(&trace.hosts)),
        ("raddle.communicators", json(&runs)),
        ("raddle.fabric", trace.fabric.clone()),
        ("raddle.program", trace.program.clone()),
        ("raddle.mpi", trace.mpi.clone()),
    ]
    .into_iter()
    .chain(
        trace
            .processors
            .map(|count| (PROCESSORS, count.to_string())),
    )
    .map(|(key, value)| KeyValue::new(key.to_owned(), value))
    .collect()
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("numbers and texts are JSON")
}

fn runs(members: &[u32]) -> Vec<[u32; 2]> {
    let mut runs: Vec<[u32; 2]> = Vec::new();
    for &member in members {
        match runs.last_mut() {
            Some([_, end]) if *end == member => *end += 1,
            _ => runs.push([member, member + 1]),
        }
    }
    runs
}

/// A trace without calls, with a rank for each place.
pub(super) fn read(pairs: &[KeyValue]) -> Result<Trace, String> {
    let get = |key: &str| {
        let pair = pairs.iter().find(|pair| pair.key == key);
        pair.and_then(|pair| pair.value.clone())
    };
    let Some(version) = get("raddle.trace") else {
        return Err("it is not a trace: `raddle.trace` is not in its metadata".to_owned());
    };
    if version != VERSION {
        let version: String = version.chars().take(20).collect();
        return Err(format!(
            "its version is {version}, this program reads {VERSION}: use a newer one"
        ));
    }
    let text = |key| get(key).ok_or_else(|| format!("`{key}` is missing in its metadata"));
    let placement: Vec<u32> = parse("raddle.placement", &text("raddle.placement")?)?;
    let runs: Vec<Vec<[u32; 2]>> = parse("raddle.communicators", &text("raddle.communicators")?)?;
    let members = |[start, end]: &[u32; 2]| u64::from(end.saturating_sub(*start));
    let total = runs.iter().flatten().map(members).sum::<u64>();
    if total > MOST_MEMBERS {
        return Err(format!(
            "its communicators have {total} members, at most {MOST_MEMBERS} can be read"
        ));
    }
    let list = |runs: &Vec<[u32; 2]>| runs.iter().flat_map(|&[start, end]| start..end).collect();
    Ok(Trace {
        ranks: vec![Vec::new(); placement.len()],
        placement,
        hosts: parse("raddle.hosts", &text("raddle.hosts")?)?,
        communicators: runs.iter().map(list).collect(),
        fabric: text("raddle.fabric")?,
        program: text("raddle.program")?,
        mpi: text("raddle.mpi")?,
        processors: get(PROCESSORS)
            .map(|text| parse(PROCESSORS, &text))
            .transpose()?,
    })
}

fn parse<T: serde::de::DeserializeOwned>(key: &str, text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| format!("`{key}` in its metadata: {error}"))
}
