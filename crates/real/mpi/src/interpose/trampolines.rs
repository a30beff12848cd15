//! The symbols that a program calls. Each jumps to where its entry of `TABLE` points and leaves all arguments as they
//! are, so that one library serves every MPI library, every language and functions it knows nothing of.
//!
//! At first an entry points to a piece of code that asks [`super::route`] once where to go.

use std::{
    arch::naked_asm,
    ffi::CStr,
    sync::atomic::{AtomicPtr, Ordering},
};

use super::route;

macro_rules! trampolines {
    ($($index:literal $symbol:literal $enter:ident $resolve:ident,)*) => {
        const COUNT: usize = [$($index),*].len();

        static SYMBOLS: [&CStr; COUNT] = [$(c_name(concat!($symbol, "\0"))),*];

        static TABLE: [AtomicPtr<()>; COUNT] = [$(AtomicPtr::new($resolve as *const () as *mut ())),*];

        $(
            // SAFETY: the symbol is that of an MPI function, which this library is there to stand in front of.
            #[unsafe(naked)]
            #[unsafe(export_name = $symbol)]
            unsafe extern "C" fn $enter() {
                #[cfg(target_arch = "x86_64")]
                naked_asm!(
                    "jmp qword ptr [rip + {table} + 8 * {index}]",
                    table = sym TABLE,
                    index = const $index,
                );
                #[cfg(target_arch = "aarch64")]
                naked_asm!(
                    "adrp x16, {table}",
                    "add x16, x16, :lo12:{table}",
                    "ldr x16, [x16, 8 * {index}]",
                    "br x16",
                    table = sym TABLE,
                    index = const $index,
                );
            }

            #[unsafe(naked)]
            unsafe extern "C" fn $resolve() {
                #[cfg(target_arch = "x86_64")]
                naked_asm!("mov r11d, {index}", "jmp {first}", index = const $index, first = sym first_call);
                #[cfg(target_arch = "aarch64")]
                naked_asm!("mov x16, {index}", "b {first}", index = const $index, first = sym first_call);
            }
        )*
    };
}

include!(concat!(env!("OUT_DIR"), "/trampolines.rs"));

const fn c_name(name: &str) -> &CStr {
    match CStr::from_bytes_with_nul(name.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("a symbol with a zero byte in it"),
    }
}

/// Calls `find` with the entry's number and goes on to what it gives, with the arguments of the call. No MPI function
/// takes floating-point arguments, so integer registers are all there is to keep.
#[unsafe(naked)]
unsafe extern "C" fn first_call() {
    #[cfg(target_arch = "x86_64")]
    naked_asm!(
        "push rbp",
        "mov rbp, rsp",
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "mov edi, r11d",
        "call {find}",
        "mov r11, rax",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "pop rbp",
        "jmp r11",
        find = sym find,
    );
    #[cfg(target_arch = "aarch64")]
    naked_asm!(
        "stp x29, x30, [sp, -80]!",
        "mov x29, sp",
        "stp x0, x1, [sp, 16]",
        "stp x2, x3, [sp, 32]",
        "stp x4, x5, [sp, 48]",
        "stp x6, x7, [sp, 64]",
        "mov x0, x16",
        "bl {find}",
        "mov x16, x0",
        "ldp x0, x1, [sp, 16]",
        "ldp x2, x3, [sp, 32]",
        "ldp x4, x5, [sp, 48]",
        "ldp x6, x7, [sp, 64]",
        "ldp x29, x30, [sp], 80",
        "br x16",
        find = sym find,
    );
}

/// Where the calls of an entry go from now on.
extern "C" fn find(index: usize) -> *const () {
    let target = route::target(SYMBOLS[index]);
    TABLE[index].store(target.cast_mut(), Ordering::Release);
    target
}
