//! What is made from functions.toml: trampolines for the library; for the shims the tables of symbols and functions with
//! large counts, and what `record.rs` and `fortran.rs` make.

use std::fmt::Write;

use crate::{
    fortran, record,
    table::{Fortran, Function, Kind, Matching},
};

/// The trampolines, in Rust.
pub(crate) fn trampolines(functions: &[Function]) -> String {
    let mut symbols = Vec::new();
    for function in functions {
        symbols.push(format!("MPI_{}", function.name));
        if function.large {
            symbols.push(format!("MPI_{}_c", function.name));
        }
        symbols.extend(function.fortran_symbols());
    }
    let mut text = String::from("trampolines! {\n");
    for (index, symbol) in symbols.iter().enumerate() {
        let _ = writeln!(
            text,
            "    {index} {symbol:?} enter_{index} resolve_{index},"
        );
    }
    text.push_str("}\n");
    text
}

/// functions.h: what the layers define for each function.
pub(crate) fn header(functions: &[Function]) -> String {
    let mut text = String::from(
        "/* Made from functions.toml: what the layers define for each function. */\n#ifndef RADDLE_FUNCTIONS_H\n\
         #define RADDLE_FUNCTIONS_H\n#include \"library/library.h\"\n",
    );
    let mut large = String::new();
    for function in functions {
        let (name, declaration) = (&function.name, function.declaration(false));
        let _ = writeln!(text, "int record_{name}({declaration});");
        if function.offload {
            let _ = writeln!(text, "int raddle_{name}({declaration});");
        }
        if function.matching.is_some() {
            let _ = writeln!(text, "int matching_{name}({declaration});");
        }
        if function.large {
            let declaration = function.declaration(true);
            let _ = writeln!(large, "int record_{name}_c({declaration});");
            if function.offload {
                let _ = writeln!(large, "int raddle_{name}_c({declaration});");
            }
        }
    }
    let _ = write!(
        text,
        "#ifdef RADDLE_LARGE\n{large}#endif\n\
         extern const struct raddle_entry raddle_entries[];\nextern const size_t raddle_entry_count;\n#endif\n",
    );
    text
}

/// entries.c: offloaded functions with large counts, Fortran's entry points, and the symbols of all.
pub(crate) fn entries(functions: &[Function]) -> String {
    let (mut large, mut with_buffers, mut without) = (String::new(), String::new(), String::new());
    let mut rows = Rows::default();
    for function in functions {
        if function.large && function.offload {
            large_entry(function, &mut large);
        }
        rows.add(function);
        let text = if function.has_buffers() {
            &mut with_buffers
        } else {
            &mut without
        };
        match function.fortran {
            Fortran::Convert => fortran::converting(function, text),
            Fortran::Own => fortran::own(function, text),
            Fortran::None => {}
        }
    }
    let Rows {
        c,
        large: large_rows,
        fortran: fortran_rows,
        direct,
    } = rows;
    format!(
        "/* Made from functions.toml. */\n\
         #include <limits.h>\n#include \"functions.h\"\n#include \"fortran/fortran.h\"\n#include \"messages/messages.h\"\n#include \"record/record.h\"\n\n\
         /* Counts of type MPI_Count: those that fit into an int are as good as the others. */\n\
         #ifdef RADDLE_LARGE\n{large}#endif\n\n\
         /* Functions without buffers: those of MPICH's mpi_f08 call PMPI. */\n{without}\
         /* MPICH's other Fortran functions call the C ones by name, Open MPI's call PMPI. */\n\
         #if defined(OPEN_MPI)\n{with_buffers}#endif\n\n\
         const struct raddle_entry raddle_entries[] = {{\n{c}\
         #ifdef RADDLE_LARGE\n{large_rows}#endif\n#if defined(OPEN_MPI)\n{fortran_rows}#else\n{direct}#endif\n}};\n\
         const size_t raddle_entry_count = sizeof raddle_entries / sizeof raddle_entries[0];\n",
    )
}

/// Rows of the table of symbols.
#[derive(Default)]
struct Rows {
    c: String,
    large: String,
    /// Open MPI's.
    fortran: String,
    /// MPICH's mpi_f08.
    direct: String,
}

impl Rows {
    fn add(&mut self, function: &Function) {
        let name = &function.name;
        // Offload, message scheduling, recording.
        let row = |text: &mut String, symbol: &str, layers: [Option<&str>; 3]| {
            let layers = layers.map(|layer| {
                layer.map_or_else(
                    || "NULL".to_owned(),
                    |layer| format!("(raddle_function *){layer}"),
                )
            });
            let _ = writeln!(text, "    {{\"{symbol}\", {}}},", layers.join(", "));
        };
        let (offload, matching) = (function.offload, function.matching.is_some());
        let layers = ["raddle", "matching", "record"].map(|layer| format!("{layer}_{name}"));
        let [lowest, middle, highest] = layers.each_ref().map(String::as_str);
        let small = [
            offload.then_some(lowest),
            matching.then_some(middle),
            Some(highest),
        ];
        row(&mut self.c, &format!("MPI_{name}"), small);
        if function.large {
            let layers = layers.each_ref().map(|layer| format!("{layer}_c"));
            let large = [
                offload.then_some(layers[0].as_str()),
                None,
                Some(layers[2].as_str()),
            ];
            row(&mut self.large, &format!("MPI_{name}_c"), large);
        }
        let entry = format!("fortran_{name}");
        let entry = entry.as_str();
        let fortran = [
            offload.then_some(entry),
            matching.then_some(entry),
            Some(entry),
        ];
        for symbol in function.fortran_symbols() {
            row(&mut self.fortran, &symbol, fortran);
        }
        if function.fortran != Fortran::None && !function.has_buffers() {
            row(&mut self.direct, &function.mpi_f08_symbol(), fortran);
        }
    }
}

fn large_entry(function: &Function, text: &mut String) {
    let name = &function.name;
    let small: Vec<_> = function
        .arguments
        .iter()
        .map(|(kind, name)| match kind {
            Kind::Count => format!("(int){name}"),
            _ => name.clone(),
        })
        .collect();
    let _ = write!(
        text,
        "int raddle_{name}_c({})\n{{\n    if (count < 0 || count > INT_MAX)\n        \
         return PMPI_{name}_c({});\n    return raddle_{name}({});\n}}\n",
        function.declaration(true),
        function.names(),
        small.join(", "),
    );
}

/// matchings.c: what the layer of message scheduling does alike for many functions.
pub(crate) fn matchings(functions: &[Function]) -> String {
    let mut text = "/* Made from functions.toml. */\n#include \"functions.h\"\n#include \"messages/messages.h\"\n\n".to_owned();
    for function in functions {
        let (name, names) = (&function.name, function.names());
        let call = format!("{}({names})", function.lowest());
        let body = match function.matching {
            Some(Matching::Flush | Matching::Collective) => format!("return {call};"),
            Some(Matching::Agree) => format!(
                "int error = {call};\n    if (error == MPI_SUCCESS)\n        raddle_agree(*newcomm);\n    return error;"
            ),
            Some(Matching::Own) | None => continue,
        };
        let first = match function.matching {
            Some(Matching::Collective) => "raddle_collective(comm)",
            _ => "raddle_flush()",
        };
        let declaration = function.declaration(false);
        let _ = writeln!(
            text,
            "int matching_{name}({declaration})\n{{\n    {first};\n    {body}\n}}\n"
        );
    }
    text
}

/// records.c: the recorder's layer.
pub(crate) fn records(functions: &[Function]) -> String {
    let (mut small, mut large) = (String::new(), String::new());
    for function in functions {
        if let Some(note) = &function.record {
            record::wrapper(function, note, false, &mut small);
            if function.large {
                record::wrapper(function, note, true, &mut large);
            }
        }
    }
    format!(
        "/* Made from functions.toml. */\n#include \"functions.h\"\n#include \"record/record.h\"\n\n{small}\
         #ifdef RADDLE_LARGE\n{large}#endif\n"
    )
}
