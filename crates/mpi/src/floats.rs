//! Programs may have floating-point exceptions end them (OpenFOAM does). What this library computes for itself, and the
//! questions that it puts to MPI's arithmetic, with infinities among them, must not.

use std::ffi::c_int;

/// Room for a `fenv_t` of any architecture: 32 bytes on x86-64, 8 on AArch64.
#[repr(C, align(16))]
struct Environment([u8; 64]);

unsafe extern "C" {
    fn feholdexcept(environment: *mut Environment) -> c_int;
    fn fesetenv(environment: *const Environment) -> c_int;
    #[cfg(not(target_arch = "x86_64"))]
    fn fegetexcept() -> c_int;
}

/// Whether an exception of this thread would be a signal.
#[cfg(target_arch = "x86_64")]
fn traps() -> bool {
    const MASKED: u32 = 0x1f80;
    let mut control = 0_u32;
    // SAFETY: stores the control word of SSE to a variable.
    unsafe {
        std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut control, options(nostack, preserves_flags))
    }
    control & MASKED != MASKED
}

#[cfg(not(target_arch = "x86_64"))]
fn traps() -> bool {
    // SAFETY: reads this thread's control word.
    unsafe { fegetexcept() != 0 }
}

/// The environment that a thread had.
struct Held(Environment);

impl Held {
    fn new() -> Self {
        let mut environment = Environment([0; 64]);
        // SAFETY: there is room for what is stored. Rounding and what becomes of subnormal numbers stay as they are.
        unsafe { feholdexcept(&raw mut environment) };
        Self(environment)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: it is what was stored.
        unsafe { fesetenv(&raw const self.0) };
    }
}

/// Does `body` without signals of floating-point exceptions, and leaves the thread as it was.
pub(crate) fn quietly<T>(body: impl FnOnce() -> T) -> T {
    let _held = traps().then(Held::new);
    // The compiler knows nothing of traps: without this it may put an operation behind the end of `_held`.
    std::hint::black_box(body())
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" {
        fn feenableexcept(exceptions: c_int) -> c_int;
        fn fedisableexcept(exceptions: c_int) -> c_int;
    }

    const INVALID: c_int = 1;

    #[test]
    fn invalid_operations_are_quiet_inside_and_traps_stay() {
        // SAFETY: changes this thread only.
        unsafe { feenableexcept(INVALID) };
        let nan = quietly(|| {
            assert!(!traps());
            std::hint::black_box(0.0_f64) / std::hint::black_box(0.0)
        });
        let stay = traps();
        // SAFETY: as above.
        unsafe { fedisableexcept(INVALID) };
        assert!(nan.is_nan() && stay && !traps());
    }
}
