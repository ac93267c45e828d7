//! Memory, processor time and open files of this process, as Linux reports them.

use std::{fs, time::Duration};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::Unit,
};

/// Reads `/proc/self` at each scrape. A value that cannot be read is left out.
#[derive(Debug)]
pub(crate) struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let mut gauge = |name: &str, help: &str, unit: Option<&Unit>, value: Option<i64>| {
            let Some(value) = value else { return Ok(()) };
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?)
        };
        gauge("process_resident_memory", "Memory of the process that is in RAM", Some(&Unit::Bytes), resident_bytes())?;
        gauge("process_open_fds", "Open file descriptors", None, open_files())?;
        gauge("process_threads", "Threads of the process", None, threads())?;
        if let Some(time) = processor_time() {
            let counter = ConstCounter::new(time.as_secs_f64());
            let help = "Processor time of the process, in user and kernel mode";
            counter.encode(encoder.encode_descriptor(
                "process_cpu",
                help,
                Some(&Unit::Seconds),
                MetricType::Counter,
            )?)?;
        }
        Ok(())
    }
}

fn resident_bytes() -> Option<i64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let kib: i64 = field(&status, "VmRSS:")?.parse().ok()?;
    kib.checked_mul(1024)
}

fn threads() -> Option<i64> {
    field(&fs::read_to_string("/proc/self/status").ok()?, "Threads:")?.parse().ok()
}

/// The first word after the name of a field.
fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()
}

fn open_files() -> Option<i64> {
    // The directory itself is open while it is read.
    i64::try_from(fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1)).ok()
}

fn processor_time() -> Option<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Some(Duration::new(time.tv_sec.try_into().ok()?, time.tv_nsec.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_a_status_is_its_first_word() {
        let status = "Name:\tchandler\nVmRSS:\t   61424 kB\nThreads:\t9\n";
        assert_eq!(field(status, "VmRSS:"), Some("61424"));
        assert_eq!(field(status, "Threads:"), Some("9"));
        assert_eq!(field(status, "VmSwap:"), None);
    }

    #[test]
    fn this_process_uses_memory_time_and_files() {
        assert!(resident_bytes().unwrap() > 100_000);
        assert!(open_files().unwrap() > 0);
        assert!(threads().unwrap() > 0);
        assert!(processor_time().unwrap() > Duration::ZERO);
    }
}
