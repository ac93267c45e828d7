//! The resource usage of a process.

use std::time::Instant;

use crate::{
    Error,
    controller::Controller,
    plane::{Plane, Requests},
};

/// The usage since the start of the process.
pub(crate) struct Figures {
    at: Instant,
    cpu_seconds: f64,
    rendered: u64,
    requests: Requests,
    pulls: usize,
}

impl Figures {
    pub(crate) fn take(controller: &Controller, plane: &Plane) -> Result<Self, Error> {
        Ok(Self {
            at: Instant::now(),
            cpu_seconds: cpu_seconds(controller)?,
            rendered: controller.rendered(),
            requests: plane.requests(),
            pulls: plane.pulls(),
        })
    }
}

/// Prints the usage since the previous call.
pub(crate) fn report(what: &str, last: &mut Figures, controller: &Controller, plane: &Plane) -> Result<(), Error> {
    let now = Figures::take(controller, plane)?;
    let took = now.at.duration_since(last.at).as_secs_f64();
    let cpu = now.cpu_seconds - last.cpu_seconds;
    let memory = |name| memory(controller, name);
    println!("{what}, {took:.0} s:");
    println!("  CPU {cpu:.2} s, {:.2} % of a core; {} threads", cpu / took * 100.0, threads(controller)?);
    println!(
        "  memory {:.1} MB resident ({:.1} MB anonymous, {:.1} MB of files), {:.1} MB at most",
        memory("VmRSS:")?,
        memory("RssAnon:")?,
        memory("RssFile:")?,
        memory("VmHWM:")?
    );
    println!("  requests: {}", now.requests.since(&last.requests));
    println!("  plugin calls: {}; requests to the registry: {}", now.rendered - last.rendered, now.pulls - last.pulls);
    *last = now;
    Ok(())
}

/// User and system time of the process, without its children.
fn cpu_seconds(controller: &Controller) -> Result<f64, Error> {
    let stat = controller.file("stat")?;
    // The name of the program may hold blanks; it ends with the last parenthesis.
    let (_, fields) = stat.rsplit_once(')').ok_or("/proc has no times for the process")?;
    let ticks: u32 = fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u32>().ok()).sum();
    // USER_HZ is 100 on every platform that Linux has today.
    Ok(f64::from(ticks) / 100.0)
}

/// A field of the status, in MB.
fn memory(controller: &Controller, name: &str) -> Result<f64, Error> {
    let status = controller.file("status")?;
    let line =
        status.lines().find_map(|line| line.strip_prefix(name)).ok_or("/proc has no memory usage for the process")?;
    Ok(megabytes(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024))
}

fn threads(controller: &Controller) -> Result<String, Error> {
    let status = controller.file("status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("Threads:"));
    Ok(line.unwrap_or("?").trim().to_owned())
}

#[expect(clippy::cast_precision_loss, reason = "it is rounded anyway")]
pub(crate) fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
