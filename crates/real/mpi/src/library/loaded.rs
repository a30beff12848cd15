//! The parts of an MPI library that this process has loaded, and their functions.

use std::{
    ffi::{CStr, CString, OsStr, c_int, c_void},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    ptr,
    sync::OnceLock,
};

/// Files of the MPI library.
static OBJECTS: OnceLock<Vec<PathBuf>> = OnceLock::new();

/// The files that are loaded and look like a part of an MPI library.
pub(crate) fn objects() -> &'static [PathBuf] {
    OBJECTS.get_or_init(loaded_objects)
}

/// The MPI library's own function of this name, never one of this library.
pub(crate) fn own(symbol: &CStr) -> Option<*const ()> {
    // SAFETY: the name ends with a zero byte; RTLD_NEXT means the objects after this one.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, symbol.as_ptr()) };
    if !next.is_null() {
        return Some(next.cast_const().cast());
    }
    // Loaded privately, as Python loads an extension: only a look-up in the library itself finds it.
    objects().iter().find_map(|object| {
        let found = look_up(object, symbol)?;
        (!is_ours(found)).then_some(found)
    })
}

/// Where this library was loaded to, and from which file.
fn this_library() -> Option<libc::Dl_info> {
    describe(this_library as *const c_void)
}

/// What the dynamic linker knows of the object that has this address.
fn describe(address: *const c_void) -> Option<libc::Dl_info> {
    let mut info = libc::Dl_info {
        dli_fname: ptr::null(),
        dli_fbase: ptr::null_mut(),
        dli_sname: ptr::null(),
        dli_saddr: ptr::null_mut(),
    };
    // SAFETY: any address may be asked for; the record is filled if the result is not 0.
    (unsafe { libc::dladdr(address, &raw mut info) } != 0).then_some(info)
}

/// Whether a function is of this library: what a look-up by name gave is then not the MPI library's.
fn is_ours(function: *const ()) -> bool {
    let theirs = describe(function.cast());
    let ours = this_library();
    matches!((theirs, ours), (Some(theirs), Some(ours)) if theirs.dli_fbase == ours.dli_fbase)
}

/// The folder that this library was loaded from.
pub(crate) fn own_folder() -> Option<PathBuf> {
    let name = this_library()?.dli_fname;
    if name.is_null() {
        return None;
    }
    // SAFETY: names of loaded objects end with a zero byte, and stay.
    let name = unsafe { CStr::from_ptr(name) };
    Path::new(OsStr::from_bytes(name.to_bytes()))
        .parent()
        .map(Path::to_owned)
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

/// The name of a file without its folder.
pub(crate) fn file_name(path: &Path) -> &str {
    path.file_name().and_then(OsStr::to_str).unwrap_or("")
}
