//! Makes the trampolines from functions.toml and, where an MPI library's compiler wrapper is installed, its shim
//! (`libraddle_mpi_openmpi.so`, `libraddle_mpi_mpich.so`) beside `libraddle_mpi.so`; no shim where RADDLE_WITHOUT names
//! mpi.

use std::{
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

#[path = "build/fortran.rs"]
mod fortran;
#[path = "build/functions.rs"]
mod functions;
#[path = "build/layout.rs"]
mod layout;
#[path = "build/record.rs"]
mod record;
#[path = "build/settings.rs"]
mod settings;
#[path = "build/table.rs"]
mod table;

/// Name in the file of the shim, and the compiler wrappers to try.
const LIBRARIES: [(&str, &str, &[&str]); 2] = [
    ("openmpi", "OPEN_MPI", &["mpicc.openmpi", "mpicc"]),
    ("mpich", "MPICH_VERSION", &["mpicc.mpich", "mpicc"]),
];

/// The C files of a shim, in `shim/`.
const SOURCES: [&str; 23] = [
    "attach",
    "channel/channel",
    "channel/handles",
    "channel/pieces",
    "channel/receives",
    "collectives/calls",
    "communicators/communicators",
    "fortran/fortran",
    "library/core",
    "library/plain",
    "library/types",
    "messages/agree",
    "messages/persistent",
    "messages/probe",
    "messages/receive",
    "messages/requests",
    "messages/send",
    "messages/trial",
    "messages/wait",
    "process/process",
    "rails/offers",
    "record/neighbours",
    "record/record",
];

/// The Rust side of the border, made from `shim/border.h`.
const BORDER: &str = "src/ffi/border.rs";

/// The table of all `RADDLE_*` variables.
const ENVIRONMENT: &str = "../../base/text/environment.toml";

fn main() -> Result<(), Box<dyn Error>> {
    for input in ["functions.toml", ENVIRONMENT, BORDER, "shim", "build"] {
        println!("cargo::rerun-if-changed={input}");
    }
    for (_, _, wrappers) in LIBRARIES {
        for wrapper in wrappers {
            println!("cargo::rerun-if-changed=/usr/bin/{wrapper}");
        }
    }
    println!("cargo::rerun-if-env-changed=RADDLE_WITHOUT");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let functions = table::read(&fs::read_to_string("functions.toml")?)?;
    fs::write(
        out.join("trampolines.rs"),
        functions::trampolines(&functions),
    )?;
    fs::write(out.join("functions.h"), functions::header(&functions))?;
    fs::write(out.join("entries.c"), functions::entries(&functions))?;
    fs::write(out.join("matchings.c"), functions::matchings(&functions))?;
    fs::write(out.join("records.c"), functions::records(&functions))?;
    let border = fs::read_to_string(BORDER)?;
    fs::write(out.join("border_layout.c"), layout::assertions(&border))?;
    let table: settings::Table = toml::from_str(&fs::read_to_string(ENVIRONMENT)?)?;
    fs::write(out.join("settings.rs"), settings::rust(&table))?;

    if left_out() {
        return Ok(());
    }

    // target/PROFILE, where cargo leaves the library itself: OUT_DIR is target/PROFILE/build/NAME/out.
    let beside = out
        .ancestors()
        .nth(3)
        .ok_or("OUT_DIR is not below target")?;
    for (name, macro_name, wrappers) in LIBRARIES {
        if let Some(wrapper) = wrappers
            .iter()
            .find(|wrapper| is_for(wrapper, macro_name, &out))
        {
            build_shim(
                wrapper,
                &out,
                &beside.join(format!("libraddle_mpi_{name}.so")),
            )?;
        } else {
            // What a package brings, wrapper or headers, is older than this build: only Debian's list of packages is new.
            println!("cargo::rerun-if-changed=/var/lib/dpkg/status");
        }
    }
    Ok(())
}

/// Whether whoever builds wants the crate as it is where no MPI library is installed.
fn left_out() -> bool {
    env::var("RADDLE_WITHOUT").is_ok_and(|names| names.split(',').any(|name| name == "mpi"))
}

/// Whether this compiler wrapper exists and compiles for the MPI library whose mpi.h defines `macro_name`, with Fortran
/// integers that are C's.
fn is_for(wrapper: &str, macro_name: &str, out: &Path) -> bool {
    let probe = out.join("probe.c");
    let text = format!(
        "#include <mpi.h>\n#ifndef {macro_name}\n#error other\n#endif\n\
         _Static_assert(sizeof(MPI_Fint) == sizeof(int), \"\");\n"
    );
    fs::write(&probe, text).is_ok()
        && Command::new(wrapper)
            .arg("-fsyntax-only")
            .arg(&probe)
            .output()
            .is_ok_and(|output| output.status.success())
}

fn build_shim(wrapper: &str, out: &Path, library: &Path) -> Result<(), Box<dyn Error>> {
    // Written aside and renamed: a program that has the old one mapped keeps it.
    let new = library.with_extension("so.new");
    let output = Command::new(wrapper)
        .args([
            "-shared",
            "-fPIC",
            "-O2",
            "-std=gnu11",
            "-fvisibility=hidden",
        ])
        .args(["-Wall", "-Wextra", "-Wno-cast-function-type", "-pthread"])
        .args(["-Wl,-z,defs", "-Ishim", "-I"])
        .arg(out)
        .args(SOURCES.map(|source| format!("shim/{source}.c")))
        .args(
            ["entries.c", "matchings.c", "records.c", "border_layout.c"].map(|made| out.join(made)),
        )
        .arg("-o")
        .arg(&new)
        .output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("{wrapper} could not build {}:\n{errors}", library.display()).into());
    }
    for line in errors.lines().filter(|line| line.contains("warning")) {
        println!("cargo::warning={line}");
    }
    fs::rename(&new, library)?;
    Ok(())
}
