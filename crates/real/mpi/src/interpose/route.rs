//! Which MPI library this process has, and where each intercepted symbol goes: to the shim made for that library, or to
//! the library's own function.

use std::{
    ffi::{CStr, CString, c_char},
    io::{self, Write},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    process, ptr, slice,
    sync::OnceLock,
};

use crate::{
    collectives::table::COLLECTIVES,
    ffi::{self, RADDLE_ABI, RaddleAttach, RaddleCore, RaddleShim},
    job::PROCESS,
    library::loaded::{self, file_name},
    log, messages,
    record::table::RECORDER,
    settings,
};

/// A library that this process has loaded, by what its file's name begins with, and the file of its shim.
const KNOWN: [(&str, &str); 2] = [
    ("libmpi.so.40", "libraddle_mpi_openmpi.so"),
    ("libmpich.so.12", "libraddle_mpi_mpich.so"),
];

/// Where calls go.
struct Route {
    shim: Option<&'static RaddleShim>,
    layers: Layers,
}

/// The layers above the MPI library that are wanted, beside that of collectives.
#[derive(Debug, Clone, Copy)]
struct Layers {
    recording: bool,
    messages: bool,
}

static ROUTE: OnceLock<Route> = OnceLock::new();

/// Where calls of `symbol` go. Ends the process as the dynamic linker does if the symbol is nowhere.
pub(crate) fn target(symbol: &CStr) -> *const () {
    let route = ROUTE.get_or_init(Route::find);
    if let Some(shim) = route.shim
        && let Some(function) = function(shim, symbol, route.layers)
    {
        return function;
    }
    loaded::own(symbol).unwrap_or_else(|| {
        let _ = writeln!(
            io::stderr(),
            "libraddle_mpi.so: undefined symbol: {}: no MPI library is loaded",
            symbol.to_string_lossy()
        );
        #[expect(
            clippy::exit,
            reason = "as the dynamic linker does; there is nothing to return to"
        )]
        process::exit(127)
    })
}

impl Route {
    fn find() -> Self {
        let settings = settings::get();
        let layers = Layers {
            recording: settings.record.is_some(),
            messages: settings.takes_messages(),
        };
        let shim = if settings.disabled {
            None
        } else {
            attach(loaded::objects(), layers)
        };
        Self { shim, layers }
    }
}

/// Loads the shim of the only MPI library that is there. None: nothing is wrapped.
fn attach(objects: &[PathBuf], layers: Layers) -> Option<&'static RaddleShim> {
    let mut known = KNOWN.iter().filter(|(library, _)| {
        objects
            .iter()
            .any(|object| file_name(object).starts_with(library))
    });
    let Some((_, shim)) = known.next() else {
        log::info(format_args!(
            "no MPI library that is known: nothing is wrapped"
        ));
        return None;
    };
    if known.next().is_some() {
        log::info(format_args!(
            "two MPI libraries in one process: nothing is wrapped"
        ));
        return None;
    }
    let path = loaded::own_folder()?.join(shim);
    match load(&path, layers) {
        Ok(shim) => Some(shim),
        Err(why) => {
            log::info(format_args!("nothing is wrapped: {why}"));
            None
        }
    }
}

fn load(path: &Path, layers: Layers) -> Result<&'static RaddleShim, String> {
    let missing = || format!("{} is not there or does not load", path.display());
    let file = CString::new(path.as_os_str().as_bytes()).map_err(|_| missing())?;
    // SAFETY: a shim has no constructors; what it needs, the MPI library, is loaded already.
    let attach = unsafe {
        let handle = libc::dlopen(file.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        if handle.is_null() {
            return Err(missing());
        }
        libc::dlsym(handle, c"raddle_shim_attach".as_ptr())
    };
    // SAFETY: the function of this name has this type; `RADDLE_ABI` guards what it means.
    let attach: RaddleAttach = unsafe { std::mem::transmute(attach) };
    let attach = attach.ok_or_else(missing)?;
    let mut why: [c_char; 200] = [0; 200];
    let core = RaddleCore {
        process: &raw const PROCESS,
        collectives: &raw const COLLECTIVES,
        recorder: if layers.recording {
            &raw const RECORDER
        } else {
            ptr::null()
        },
        messages: if layers.messages {
            &raw const messages::table::MESSAGES
        } else {
            ptr::null()
        },
    };
    // SAFETY: the tables are static, the shim copies what points to them, and `why` has the length that is passed.
    let shim = unsafe { attach(&raw const core, RADDLE_ABI, why.as_mut_ptr(), why.len()).as_ref() };
    let Some(shim) = shim else {
        why[why.len() - 1] = 0;
        // SAFETY: the last byte is zero.
        return Err(unsafe { CStr::from_ptr(why.as_ptr()) }
            .to_string_lossy()
            .into_owned());
    };
    ffi::attach(shim)?;
    Ok(shim)
}

/// What stands behind a symbol in the highest layer that is wanted, `None`: the MPI library's own function.
fn function(shim: &RaddleShim, symbol: &CStr, layers: Layers) -> Option<*const ()> {
    // SAFETY: the shim gives the address and length of a static array of names that end with a zero byte.
    let entries = unsafe { slice::from_raw_parts(shim.entries, shim.entry_count) };
    let entry = entries
        .iter()
        // SAFETY: as above.
        .find(|entry| unsafe { CStr::from_ptr(entry.symbol) } == symbol)?;
    let wanted = [
        entry.record.filter(|_| layers.recording),
        entry.matching.filter(|_| layers.messages),
        entry.offload,
    ];
    let highest = wanted.into_iter().flatten().next()?;
    Some(highest as *const ())
}
