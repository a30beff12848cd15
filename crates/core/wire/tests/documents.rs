//! `docs/reference/wire.md` shows the headers as they are in the code.

mod tables;

#[test]
fn the_page_has_the_tables_of_the_code() {
    let page = include_str!("../../../../docs/reference/wire.md");
    for (name, _) in tables::all() {
        let mark = format!("<!-- table: {name} -->\n");
        assert_eq!(
            page.matches(&mark).count(),
            1,
            "docs/reference/wire.md has no place for {name}"
        );
    }
    assert!(
        tables::renewed(page) == page,
        "docs/reference/wire.md is old: cargo run -p raddle-wire --example wire_tables -- docs/reference/wire.md"
    );
}
