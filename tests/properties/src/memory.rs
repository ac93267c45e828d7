//! Measures and bounds the memory of one run.
//!
//! libFuzzer bounds the memory of the whole process, which detects runs that take gigabytes. This detects runs that take far more than
//! their input justifies.
//!
//! The allocator counts what all threads of the process take, since what is measured may start threads. So a
//! program that measures runs one case at a time: a fuzz target, or `tests/measured.rs`.

use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Runs a function. Returns its result and its peak heap use in bytes, beyond the heap use before.
///
/// # Panics
/// In a unit test of this crate, whose neighbours allocate at the same time.
#[allow(clippy::assertions_on_constants, reason = "it is constant for each of the two ways to compile this crate")]
pub fn measured<T>(run: impl FnOnce() -> T) -> (T, usize) {
    assert!(!cfg!(test), "unit tests run in parallel: a test that measures memory belongs in tests/measured.rs");
    ALLOCATOR.reset_peak_usage();
    let before = ALLOCATOR.current_usage();
    let value = run();
    (value, ALLOCATOR.peak_usage().saturating_sub(before))
}

/// Runs a function. Returns its result and the heap use in bytes at its end, beyond the heap use before. Call this within [`measured`],
/// or other threads are measured as well.
pub fn held<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let before = ALLOCATOR.current_usage();
    let value = run();
    (value, ALLOCATOR.current_usage().saturating_sub(before))
}

/// Runs a function that may take `fixed` bytes plus `per_byte` bytes for each byte of the input.
///
/// # Panics
/// If it took more.
pub fn bounded<T>(input: &[u8], fixed: usize, per_byte: usize, run: impl FnOnce() -> T) -> T {
    let allowed = fixed + input.len() * per_byte;
    let (value, taken) = measured(run);
    assert!(taken <= allowed, "{taken} bytes of memory for an input of {}; {allowed} are allowed", input.len());
    value
}
