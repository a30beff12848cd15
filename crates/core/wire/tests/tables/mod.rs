//! The tables of `docs/reference/wire.md`, made from the declarations of the headers and codes.

use raddle_wire::{
    Aeth, Bth, DataType, Deth, Ethernet, Field, Ipv4, Operation, Order, Udp, Vlan,
    compat::{Control, Head, UcpTagBytes},
    native::{ChildEntry, Header, PathEntry, ProgramHead, Reason, StepEntry, Terms, type_bit},
    rails,
};

/// Name and text of every table.
pub(crate) fn all() -> Vec<(String, String)> {
    let mut tables = Vec::new();
    macro_rules! of {
        ($($header:ty),+) => {$(
            tables.push((<$header>::LAYER.name().to_owned(), table(<$header>::FIELDS)));
        )+};
    }
    of!(
        Ethernet,
        Vlan,
        Ipv4,
        Udp,
        Bth,
        Deth,
        Aeth,
        UcpTagBytes,
        Head,
        Control,
        Header,
        Terms,
        PathEntry,
        ProgramHead,
        ChildEntry,
        StepEntry,
        rails::Head,
        rails::Hello,
        rails::Segment,
        rails::AckHead,
        rails::AckRange,
        rails::Grant
    );
    let mut reasons = "| code | reason |\n|---:|---|\n".to_owned();
    for reason in Reason::ALL {
        reasons += &format!("| {} | {} |\n", reason.code(), reason.name());
    }
    tables.push(("reasons".to_owned(), reasons));
    let mut types = "| code | type | bytes | bit in `types` |\n|---:|---|---:|---:|\n".to_owned();
    for data_type in DataType::ALL {
        let bit = type_bit(data_type).trailing_zeros();
        let (code, name, size) = (data_type.code(), data_type.name(), data_type.size());
        types += &format!("| {code} | {name} | {size} | {bit} |\n");
    }
    tables.push(("types".to_owned(), types));
    let mut operations = "| code | operation | on |\n|---:|---|---|\n".to_owned();
    for operation in Operation::ALL {
        let on = if operation.accepts(DataType::DoubleIndex) {
            "value with index (32..=36)"
        } else if operation.accepts(DataType::Double) {
            "numbers (1..=10)"
        } else {
            "whole numbers (1..=8)"
        };
        operations += &format!("| {} | {} | {on} |\n", operation.code(), operation.name());
    }
    tables.push(("operations".to_owned(), operations));
    tables
}

fn table(fields: &[Field]) -> String {
    let mut text = "| byte | bits | field | order | meaning |\n|---:|---|---|---|---|\n".to_owned();
    for field in fields {
        let bits = match (field.bit, field.bits) {
            (0, bits) if bits % 8 == 0 => format!("{bits}"),
            (bit, 1) => format!("1 (bit {bit})"),
            (bit, bits) => format!("{bits} (from bit {bit})"),
        };
        let order = match (field.bits, field.order) {
            (..=8, _) => "",
            (_, Order::Big) => "big",
            (_, Order::Little) => "little",
        };
        let (byte, name, meaning) = (field.byte, field.name, field.meaning.trim());
        text += &format!("| {byte} | {bits} | `{name}` | {order} | {meaning} |\n");
    }
    text
}

/// The page with every table made anew: the lines with `|` behind its mark.
pub(crate) fn renewed(page: &str) -> String {
    let mut text = String::new();
    let mut old = false;
    for line in page.lines() {
        old &= line.starts_with('|');
        if !old {
            text += line;
            text.push('\n');
        }
        let name = line
            .strip_prefix("<!-- table: ")
            .and_then(|rest| rest.strip_suffix(" -->"));
        if let Some((_, table)) = all()
            .into_iter()
            .find(|(known, _)| Some(known.as_str()) == name)
        {
            text += &table;
            old = true;
        }
    }
    text
}
