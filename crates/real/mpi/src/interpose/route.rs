//! Which MPI library this process has, and where each intercepted symbol goes: to the shim made for that library, or to
//! the library's own function.

use std::{
    ffi::{CStr, CString, OsStr, c_char, c_int, c_void},
    io::{self, Write},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    process, ptr,
    sync::OnceLock,
};

use crate::{
    ffi::{self as abi, Layers},
    interpose::trampolines,
    log, messages, record, settings,
};

/// A library that this process has loaded, by what its file's name begins with, and the file of its shim.
const KNOWN: [(&str, &str); 2] = [
    ("libmpi.so.40", "libraddle_mpi_openmpi.so"),
    ("libmpich.so.12", "libraddle_mpi_mpich.so"),
];

/// Where calls go.
struct Route {
    /// The MPI library's files that are loaded, for symbols that a look-up over the whole process does not find.
    objects: Vec<PathBuf>,
    shim: Option<&'static abi::Shim>,
    layers: Layers,
}

static ROUTE: OnceLock<Route> = OnceLock::new();

/// Where calls of `symbol` go. Ends the process as the dynamic linker does if the symbol is nowhere.
pub(crate) fn target(symbol: &CStr) -> *const () {
    let route = ROUTE.get_or_init(Route::find);
    if let Some(shim) = route.shim
        && let Some(function) = shim.function(symbol, route.layers)
    {
        return function;
    }
    route.own(symbol).unwrap_or_else(|| {
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

/// The MPI library's own function of this name.
pub(crate) fn own(symbol: &CStr) -> Option<*const ()> {
    ROUTE.get_or_init(Route::find).own(symbol)
}

impl Route {
    fn find() -> Self {
        let objects = loaded_objects();
        let settings = settings::get();
        let layers = Layers {
            recording: settings.record.is_some(),
            scheduling: settings.takes_messages(),
        };
        let shim = if settings.disabled {
            None
        } else {
            attach(&objects, layers)
        };
        Self {
            objects,
            shim,
            layers,
        }
    }

    /// The MPI library's own function.
    fn own(&self, symbol: &CStr) -> Option<*const ()> {
        // SAFETY: the name ends with a zero byte; RTLD_NEXT means the objects after this one.
        let next = unsafe { libc::dlsym(libc::RTLD_NEXT, symbol.as_ptr()) };
        if !next.is_null() {
            return Some(next.cast());
        }
        // Loaded privately, as Python loads an extension: only a look-up in the library itself finds it.
        self.objects.iter().find_map(|object| {
            let found = look_up(object, symbol)?;
            (!trampolines::is_ours(found)).then_some(found)
        })
    }
}

fn look_up(object: &Path, symbol: &CStr) -> Option<*const ()> {
    let path = CString::new(object.as_os_str().as_bytes()).ok()?;
    // SAFETY: RTLD_NOLOAD loads nothing. The handle stays open, so what it gives stays valid.
    let found = unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if handle.is_null() {
            return None;
        }
        libc::dlsym(handle, symbol.as_ptr())
    };
    (!found.is_null()).then_some(found.cast_const().cast())
}

/// The paths of what is loaded and looks like a part of an MPI library.
fn loaded_objects() -> Vec<PathBuf> {
    unsafe extern "C" fn collect(
        info: *mut libc::dl_phdr_info,
        _: usize,
        to: *mut c_void,
    ) -> c_int {
        // SAFETY: the linker passes a valid record, and `to` is the vector below.
        let (name, to) = unsafe { ((*info).dlpi_name, &mut *to.cast::<Vec<PathBuf>>()) };
        if !name.is_null() {
            // SAFETY: names of loaded objects end with a zero byte.
            let name = unsafe { CStr::from_ptr(name) };
            let path = Path::new(OsStr::from_bytes(name.to_bytes()));
            if file_name(path).starts_with("libmpi") {
                to.push(path.to_owned());
            }
        }
        0
    }
    let mut found: Vec<PathBuf> = Vec::new();
    // SAFETY: `collect` has the type asked for and gets the vector's address.
    unsafe { libc::dl_iterate_phdr(Some(collect), ptr::from_mut(&mut found).cast()) };
    found
}

fn file_name(path: &Path) -> &str {
    path.file_name().and_then(OsStr::to_str).unwrap_or("")
}

/// Loads the shim of the only MPI library that is there. None: nothing is wrapped.
fn attach(objects: &[PathBuf], layers: Layers) -> Option<&'static abi::Shim> {
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
    let path = own_folder()?.join(shim);
    match load(&path, layers) {
        Ok(shim) => Some(shim),
        Err(why) => {
            log::info(format_args!("nothing is wrapped: {why}"));
            None
        }
    }
}

/// The folder that this library was loaded from.
fn own_folder() -> Option<PathBuf> {
    let mut info = libc::Dl_info {
        dli_fname: ptr::null(),
        dli_fbase: ptr::null_mut(),
        dli_sname: ptr::null(),
        dli_saddr: ptr::null_mut(),
    };
    // SAFETY: the address is inside this library; the record is filled if the result is not 0.
    let name = unsafe {
        if libc::dladdr(own_folder as *const c_void, &raw mut info) == 0 || info.dli_fname.is_null()
        {
            return None;
        }
        CStr::from_ptr(info.dli_fname)
    };
    Path::new(OsStr::from_bytes(name.to_bytes()))
        .parent()
        .map(Path::to_owned)
}

fn load(path: &Path, layers: Layers) -> Result<&'static abi::Shim, String> {
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
    if attach.is_null() {
        return Err(missing());
    }
    // SAFETY: the function of this name has this type; `abi::VERSION` guards what it means.
    let attach: abi::Attach = unsafe { std::mem::transmute(attach) };
    let mut why: [c_char; 200] = [0; 200];
    let recorder = if layers.recording {
        &raw const record::table::RECORDER
    } else {
        ptr::null()
    };
    let messages = if layers.scheduling {
        &raw const messages::table::MESSAGES
    } else {
        ptr::null()
    };
    // SAFETY: the tables of the core are static, and `why` has the length that is passed.
    let shim = unsafe {
        let (why, room) = (why.as_mut_ptr(), why.len());
        attach(&abi::CORE, abi::VERSION, why, room, recorder, messages).as_ref()
    };
    let Some(shim) = shim else {
        why[why.len() - 1] = 0;
        // SAFETY: the last byte is zero.
        return Err(unsafe { CStr::from_ptr(why.as_ptr()) }
            .to_string_lossy()
            .into_owned());
    };
    abi::attached(shim);
    Ok(shim)
}
