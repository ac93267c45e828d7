//! How often threads run where there is too little processor time.
//!
//! Only Linux has priorities of threads; elsewhere nothing happens. The kernel compares threads of one control group, so in a pod these
//! priorities say nothing about other pods. They do not help against a limit of the group (`cpu.max`) either: its threads share what is left.

/// How much lower [`yield_thread`] makes a thread: the others then get about three times its share.
#[cfg(target_os = "linux")]
const BEHIND: i32 = 5;

/// Lets other threads of this process run before the current one, and the threads that it starts. Needs no privilege.
///
/// A raised priority (`nice` below zero, a real-time policy) needs `CAP_SYS_NICE`, which the controller must not have. So the thread whose work
/// cannot wait keeps its priority, and all others call this.
pub fn yield_thread() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{getpriority_process, setpriority_process};
        // No ID means the calling thread. Where the kernel refuses it, all threads stay equal.
        if getpriority_process(None).is_ok_and(|current| current < BEHIND) {
            let _ = setpriority_process(None, BEHIND);
        }
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
}
