//! What is refused, where, and in which words.

use raddle_text::{
    Finding, at_least, at_most, between, check, check_value, describe, each, one_line,
};
use raddle_units::{BitRate, Bytes, Span};
use schemars::{JsonSchema, schema_for};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A file.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct File {
    /// Size of a packet.
    #[schemars(transform = between("64B", "9000B"))]
    mtu: Option<Bytes>,
    /// How long to wait.
    #[schemars(transform = at_most("1s"))]
    wait: Span,
    /// Rate of each rail.
    #[schemars(length(min = 1, max = 3), transform = each(at_least("1bps")))]
    rates: Option<Vec<BitRate>>,
    /// How many.
    #[schemars(range(min = 1))]
    count: Option<u32>,
    seed: Option<u64>,
    /// A share.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    share: Option<f64>,
    whole: Option<bool>,
    kind: Option<Kind>,
    nodes: Option<Nodes>,
    source: Option<Source>,
    pair: Option<[u32; 2]>,
    list: Vec<Inner>,
    #[schemars(transform = one_line(8))]
    name: Option<String>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Grid,
    Random,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Nodes {
    One(u32),
    Many(Vec<u32>),
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Source {
    Made(Made),
    File(Named),
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Made {
    Star(Inner),
    Ring(Ring),
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Ring {
    #[schemars(range(min = 3))]
    length: u32,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Named {
    file: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Inner {
    #[schemars(transform = at_least("1B"))]
    size: Bytes,
}

fn refused(value: &Value) -> Finding {
    check::<File>(value).expect_err(&value.to_string())
}

#[test]
fn what_fits_is_taken() {
    for value in [
        json!({}),
        json!({ "mtu": "64B", "wait": 0, "rates": ["1bps", "1000Tbps"], "count": 1, "share": 1 }),
        json!({ "mtu": "9000B", "wait": "1s", "share": 1e-9, "whole": true, "kind": "grid" }),
        json!({ "nodes": 3, "source": { "kind": "ring", "length": 3 }, "pair": [0, 4_294_967_295_u32] }),
        json!({ "nodes": [3, 4], "source": { "file": "x" }, "list": [{ "size": "1B" }] }),
        json!({ "name": "a name" }),
        json!({ "seed": u64::MAX, "source": { "kind": "star", "size": "8 B" } }),
    ] {
        check::<File>(&value).unwrap_or_else(|finding| panic!("{value}: {finding}"));
        serde_json::from_value::<File>(value).unwrap();
    }
}

#[test]
fn what_does_not_fit_is_named_with_what_may_be() {
    let cases = [
        (
            json!({ "mtu": "0B" }),
            "mtu",
            "0B is out of range: it must be from 64B to 9000B",
        ),
        (
            json!({ "mtu": 0 }),
            "mtu",
            "0 is out of range: it must be from 64B to 9000B",
        ),
        (json!({ "mtu": 1500 }), "mtu", "`1500` has no unit"),
        (
            json!({ "mtu": "64us" }),
            "mtu",
            "`us` is not a unit of a size",
        ),
        (
            json!({ "mtu": [] }),
            "mtu",
            "expected a size with its unit, like \"64KiB\", found a list",
        ),
        (
            json!({ "wait": "1000s" }),
            "wait",
            "1000s is out of range: it must be at most 1s",
        ),
        (
            json!({ "rates": [] }),
            "rates",
            "the list is empty: it must have 1 to 3 items",
        ),
        (
            json!({ "rates": ["1bps", "0bps"] }),
            "rates",
            "0bps is out of range: it must be at least 1bps",
        ),
        (
            json!({ "rates": "1bps" }),
            "rates",
            "expected a list, found \"1bps\"",
        ),
        (
            json!({ "count": 0 }),
            "count",
            "0 is out of range: it must be at least 1",
        ),
        (
            json!({ "count": -5 }),
            "count",
            "-5 is out of range: it must be at least 1",
        ),
        (
            json!({ "count": 4_294_967_296_u64 }),
            "count",
            "it must be at most 4294967295",
        ),
        (
            json!({ "count": 2.0 }),
            "count",
            "expected a whole number, found `2.0`",
        ),
        (
            json!({ "seed": -1 }),
            "seed",
            "-1 is out of range: it must be 0 or more",
        ),
        (
            json!({ "share": 0 }),
            "share",
            "0 is out of range: it must be above 0 and at most 1",
        ),
        (json!({ "share": 1e300 }), "share", "1e+300 is out of range"),
        (
            json!({ "share": "half" }),
            "share",
            "expected a number, found \"half\"",
        ),
        (
            json!({ "whole": 0 }),
            "whole",
            "expected true or false, found `0`",
        ),
        (
            json!({ "kind": "gird" }),
            "kind",
            "did you mean `grid`? possible: grid, random",
        ),
        (
            json!({ "kind": 5 }),
            "kind",
            "expected one of \"grid\", \"random\", found `5`",
        ),
        (
            json!({ "nodes": "h0" }),
            "nodes",
            "expected a whole number or a list, found \"h0\"",
        ),
        (json!({ "nodes": [-1] }), "nodes", "-1 is out of range"),
        (
            json!({ "source": { "kind": "rign" } }),
            "kind",
            "unknown `kind` `rign`",
        ),
        (
            json!({ "source": { "kind": "ring" } }),
            "source",
            "`length` is missing",
        ),
        (
            json!({ "source": { "kind": "ring", "length": 2 } }),
            "length",
            "it must be at least 3",
        ),
        (
            json!({ "source": { "kind": "ring", "lenght": 3 } }),
            "lenght",
            "did you mean `length`?",
        ),
        (
            json!({ "source": 5 }),
            "source",
            "expected a table, found `5`",
        ),
        (
            json!({ "pair": [1] }),
            "pair",
            "it has 1 item: it must have 2 items",
        ),
        (
            json!({ "list": [{ "size": "1B" }, { "size": "0B" }] }),
            "size",
            "at least 1B",
        ),
        (json!({ "list": [{}] }), "list", "`size` is missing"),
        (
            json!({ "name": "" }),
            "name",
            "the text is empty: it must have 1 to 8 characters",
        ),
        (
            json!({ "name": "nine more" }),
            "name",
            "it has 9 characters",
        ),
        (json!({ "name": "a\tb" }), "name", "one line of words"),
        (json!({ "name": "  " }), "name", "one line of words"),
        (json!({ "mut": "64B" }), "mut", "did you mean `mtu`?"),
    ];
    for (value, key, words) in cases {
        let finding = refused(&value);
        let told = finding.to_string();
        assert_eq!(finding.key(), Some(key), "{value}: {told}");
        assert!(told.contains(words), "{value}: {told}");
    }
}

#[test]
fn a_value_out_of_range_is_told_what_it_is_for() {
    let finding = refused(&json!({ "mtu": "0B" }));
    assert_eq!(finding.hint().as_deref(), Some("Size of a packet."));
}

#[test]
fn values_made_in_memory_have_the_same_limits() {
    check_value(&File::default()).unwrap();
    let file = File {
        mtu: Some(Bytes(0)),
        ..File::default()
    };
    let finding = check_value(&file).unwrap_err();
    assert_eq!(finding.key(), Some("mtu"));
}

#[test]
fn readers_of_the_schema_are_told_the_limits() {
    let mut schema = schema_for!(File).to_value();
    describe(&mut schema);
    let about = |key: &str| schema["properties"][key]["description"].clone();
    assert_eq!(
        about("mtu"),
        "Size of a packet. Allowed: from 64B to 9000B."
    );
    assert_eq!(about("share"), "A share. Allowed: above 0 and at most 1.");
    assert_eq!(about("rates"), "Rate of each rail. Allowed: 1 to 3 items.");
}
