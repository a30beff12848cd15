//! Programs may have floating-point exceptions end them (OpenFOAM does). What this library computes for itself, and the
//! questions that it puts to MPI's arithmetic, with infinities among them, must not.

/// On x86-64 all of it is SSE's, in one register; the C library's functions would save and load the old x87 unit as well.
#[cfg(target_arch = "x86_64")]
mod unit {
    use std::arch::asm;

    /// Exceptions that are no signals, and those that have been.
    const MASKED: u32 = 0x1f80;
    const RAISED: u32 = 0x3f;

    fn control() -> u32 {
        let mut control = 0_u32;
        // SAFETY: stores the control word to a variable.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut control, options(nostack, preserves_flags)) }
        control
    }

    fn set_control(control: u32) {
        // SAFETY: the word is one that was stored, but for masks and flags.
        unsafe {
            asm!("ldmxcsr [{}]", in(reg) &raw const control, options(nostack, preserves_flags));
        }
    }

    /// Whether an exception of this thread would be a signal.
    pub(super) fn traps() -> bool {
        control() & MASKED != MASKED
    }

    /// The environment that a thread had. Rounding and what becomes of subnormal numbers stay as they are.
    pub(super) struct Held(u32);

    impl Held {
        pub(super) fn new() -> Self {
            let control = control();
            set_control(control & !RAISED | MASKED);
            Self(control)
        }
    }

    impl Drop for Held {
        fn drop(&mut self) {
            set_control(self.0);
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod unit {
    use std::ffi::c_int;

    /// Room for a `fenv_t` of any architecture; 8 bytes on AArch64.
    #[repr(C, align(16))]
    struct Environment([u8; 64]);

    unsafe extern "C" {
        fn feholdexcept(environment: *mut Environment) -> c_int;
        fn fesetenv(environment: *const Environment) -> c_int;
        fn fegetexcept() -> c_int;
    }

    /// Whether an exception of this thread would be a signal.
    pub(super) fn traps() -> bool {
        // SAFETY: reads this thread's control word.
        unsafe { fegetexcept() != 0 }
    }

    /// The environment that a thread had. Rounding and what becomes of subnormal numbers stay as they are.
    pub(super) struct Held(Environment);

    impl Held {
        pub(super) fn new() -> Self {
            let mut environment = Environment([0; 64]);
            // SAFETY: there is room for what is stored.
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
}

/// Does `body` without signals of floating-point exceptions, and leaves the thread as it was.
pub(crate) fn quietly<T>(body: impl FnOnce() -> T) -> T {
    let _held = unit::traps().then(unit::Held::new);
    // The compiler knows nothing of traps: without this it may put an operation behind the end of `_held`.
    std::hint::black_box(body())
}

#[cfg(test)]
mod tests {
    use std::ffi::c_int;

    use super::{quietly, unit::traps};

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
