//! Measures and bounds the memory of one run.
//!
//! libFuzzer bounds the memory of the whole process, which detects runs that take gigabytes. This detects runs that take far more than
//! their input justifies.

use std::sync::{Mutex, PoisonError};

use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Only one run is measured at a time, since the tests of a process run in parallel.
static RUNNING: Mutex<()> = Mutex::new(());

/// Runs a function. Returns its result and its peak heap use in bytes, beyond the heap use before.
pub fn measured<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let _one = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_measured() {
        let (sum, taken) = measured(|| {
            let sizes = [16 << 20, 48 << 20, 32 << 20];
            sizes.map(|size| std::hint::black_box(vec![1_u8; size]).len()).iter().sum::<usize>()
        });
        assert_eq!(sum, 96 << 20);
        // Tests in parallel allocate, too; all allocations together would be 96 MiB.
        assert!((48 << 20..96 << 20).contains(&taken), "{taken}");
    }

    #[test]
    #[should_panic(expected = "for an input of 1;")]
    fn more_than_the_bound_panics() {
        bounded(b"x", 1 << 20, 10, || std::hint::black_box(vec![1_u8; 2 << 20]).len());
    }
}
