//! The memory that one run took, and how much it may.
//!
//! libFuzzer bounds what a process has in memory at all. That notices a run that takes gigabytes; this notices one that
//! takes far more than its input can be the reason for.

use std::sync::{Mutex, PoisonError};

use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// One run at a time is measured: the tests of one process run side by side.
static RUNNING: Mutex<()> = Mutex::new(());

/// Runs something and returns what it returned and the most bytes of the heap that it held at a time, beyond those that
/// were held before.
pub fn measured<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let _one = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    ALLOCATOR.reset_peak_usage();
    let before = ALLOCATOR.current_usage();
    let value = run();
    (value, ALLOCATOR.peak_usage().saturating_sub(before))
}

/// Runs something and returns what it returned and the bytes of the heap that are held when it is done, beyond those that
/// were held before. To be called within [`measured`], or else other threads are measured as well.
pub fn held<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let before = ALLOCATOR.current_usage();
    let value = run();
    (value, ALLOCATOR.current_usage().saturating_sub(before))
}

/// Runs something that may take `fixed` bytes and `per_byte` more for each byte of the input.
///
/// # Panics
/// Where it took more.
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
    fn what_is_held_at_a_time_is_measured() {
        let (sum, taken) = measured(|| {
            let sizes = [16 << 20, 48 << 20, 32 << 20];
            sizes.map(|size| std::hint::black_box(vec![1_u8; size]).len()).iter().sum::<usize>()
        });
        assert_eq!(sum, 96 << 20);
        // Tests that run beside it hold something, too; all of it at a time would be 96 MiB.
        assert!((48 << 20..96 << 20).contains(&taken), "{taken}");
    }

    #[test]
    #[should_panic(expected = "for an input of 1;")]
    fn more_than_is_allowed_is_told() {
        bounded(b"x", 1 << 20, 10, || std::hint::black_box(vec![1_u8; 2 << 20]).len());
    }
}
