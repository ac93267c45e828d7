//! How often threads run where there is too little processor time.
//!
//! Only Linux has priorities of threads; elsewhere nothing happens. The kernel compares threads of one control group, so in a pod these
//! priorities say nothing about other pods. They do not help against a limit of the group (`cpu.max`) either: its threads share what is left.

use std::time::Duration;

/// How much lower [`yield_thread`] makes a thread: the others then get about three times its share.
#[cfg(target_os = "linux")]
const BEHIND: i32 = 5;

/// How much lower [`on_background_thread`] makes its threads: one of the work then gets about three times the share of one of these.
#[cfg(target_os = "linux")]
const BACKGROUND: i32 = 10;

/// Lets other threads of this process run before the current one, and the threads that it starts. Needs no privilege.
///
/// A raised priority (`nice` below zero, a real-time policy) needs `CAP_SYS_NICE`, which the controller must not have. So the thread whose work
/// cannot wait keeps its priority, and all others call this.
pub fn yield_thread() {
    #[cfg(target_os = "linux")]
    lower(BEHIND);
}

/// Runs a long computation on a thread of its own, behind those that yield. Returns also how much processor time it took: on a busy machine it
/// waits for most of the time. `None` if it panics.
///
/// It runs to its end even if the caller stopped waiting for it, so it must be bounded, and hold the permits that it was started with.
///
/// # Errors
/// If the thread cannot be started.
pub async fn on_background_thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<Option<(T, Duration)>> {
    let (done, result) = tokio::sync::oneshot::channel();
    std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        #[cfg(target_os = "linux")]
        lower(BACKGROUND);
        let result = work();
        let _ = done.send((result, processor_time()));
    })?;
    Ok(result.await.ok())
}

/// How much processor time the calling thread has taken.
pub fn processor_time() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// Lowers the priority of the calling thread, and never raises it.
#[cfg(target_os = "linux")]
fn lower(to: i32) {
    use rustix::process::{getpriority_process, setpriority_process};
    // No ID means the calling thread. Where the kernel refuses it, all threads stay equal.
    if getpriority_process(None).is_ok_and(|current| current < to) {
        let _ = setpriority_process(None, to);
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::getpriority_process;

    use super::*;

    #[test]
    fn a_thread_yields_alone() {
        let before = getpriority_process(None).unwrap();
        let other = std::thread::spawn(|| {
            yield_thread();
            getpriority_process(None).unwrap()
        });
        assert_eq!(other.join().unwrap(), BEHIND.max(before));
        assert_eq!(getpriority_process(None).unwrap(), before);
    }

    #[tokio::test]
    async fn a_computation_in_the_background_is_behind_what_yields() {
        let before = getpriority_process(None).unwrap();
        let work = || {
            while processor_time() < Duration::from_millis(3) {
                std::hint::spin_loop();
            }
            getpriority_process(None).unwrap()
        };
        let (priority, time) = on_background_thread("test", work).await.unwrap().unwrap();
        assert_eq!(priority, BACKGROUND.max(before));
        assert!(time >= Duration::from_millis(3), "{time:?}");
        let panicked = on_background_thread("test", || assert_eq!(1, 2, "on purpose")).await.unwrap();
        assert_eq!(panicked, None);
    }
}
