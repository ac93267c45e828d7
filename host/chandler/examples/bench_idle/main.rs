//! Measures the idle controller: `cargo xtask bench --idle`.
//!
//! The control plane and the registry run in this process, and the controller in a separate one, so that only the controller is measured.
//! The program installs generated bundles, or packages that Resolutions choose from a catalog. Most generated bundles are small, as
//! tenants' bundles are, and some have CRDs as large as an operator's. Then it measures the resource usage of the controller while all
//! BundleDeployments are ready, and the cost of a restart.

#![expect(clippy::print_stdout, reason = "a command line program")]

mod bundles;
mod controller;
mod figures;
mod packages;
mod plane;
mod resolutions;

use std::time::{Duration, Instant};

use self::{
    bundles::{Kind, Mix},
    controller::Controller,
    figures::{Figures, report},
    plane::Plane,
};

type Error = Box<dyn std::error::Error + Send + Sync>;

/// The controller is idle if it sends no request for this time.
const QUIET: Duration = Duration::from_secs(5);

/// How long Resolutions may take.
const PATIENCE: Duration = Duration::from_mins(10);

/// The arguments.
struct Scale {
    deployments: usize,
    /// Whether all bundles are operators with small CRDs, instead of the usual mix.
    operators: bool,
    /// The percentage of BundleDeployments with an image tag, which the controller resolves repeatedly.
    tags: usize,
    image_poll_interval: String,
    idle: Duration,
    /// How many Resolutions install the bundles as packages of a catalog; none: BundleDeployments without an owner.
    resolutions: usize,
    /// A directory of published packages, instead of generated bundles.
    packages: Option<std::path::PathBuf>,
    /// How long the API server waits before it answers a request of the controller.
    latency: Duration,
    controller: std::path::PathBuf,
    log_level: String,
}

impl Scale {
    fn read() -> Result<Self, Error> {
        let mut scale = Self {
            deployments: 1000,
            operators: false,
            tags: 20,
            image_poll_interval: "10m".to_owned(),
            idle: Duration::from_mins(2),
            resolutions: 0,
            packages: None,
            latency: Duration::ZERO,
            controller: controller::beside_this_program()?,
            log_level: "info".to_owned(),
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            if argument == "--operators" {
                scale.operators = true;
                continue;
            }
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            match argument.as_str() {
                "--deployments" => scale.deployments = value()?.parse()?,
                "--tags" => scale.tags = value()?.parse()?,
                "--image-poll-interval" => scale.image_poll_interval = value()?,
                "--idle-seconds" => scale.idle = Duration::from_secs(value()?.parse()?),
                "--resolutions" => scale.resolutions = value()?.parse()?,
                "--packages" => scale.packages = Some(value()?.into()),
                "--latency-milliseconds" => scale.latency = Duration::from_millis(value()?.parse()?),
                "--controller" => scale.controller = value()?.into(),
                "--log-level" => scale.log_level = value()?,
                other => return Err(format!("unknown argument {other}").into()),
            }
        }
        if scale.packages.is_some() && scale.resolutions == 0 {
            scale.resolutions = 1;
        }
        Ok(scale)
    }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let scale = Scale::read()?;
    let plane = Plane::start(scale.latency).await?;
    let cache = tempfile::tempdir()?;
    let arguments = [
        ("--kubeconfig", plane.kubeconfig().to_owned()),
        ("--cache-directory", cache.path().join("cache").display().to_string()),
        ("--plain-http-registry", plane.registry_host()),
        ("--image-poll-interval", scale.image_poll_interval.clone()),
        ("--log-level", scale.log_level.clone()),
        // A Lease is renewed as often as `settle` waits, so the API server would never come to rest.
        ("--leader-elect", "false".to_owned()),
    ];
    let start = || Controller::start(&scale.controller, &arguments);

    let mut controller = start()?;
    let mut last = Figures::take(&controller, &plane)?;
    settle(&plane).await?;
    report("started", &mut last, &controller, &plane)?;
    install(&plane, &scale, &mut controller).await?;
    settle(&plane).await?;
    report("everything installed and ready", &mut last, &controller, &plane)?;
    idle(scale.idle, &mut last, &controller, &plane).await?;

    // The first restart sees the kinds that have come with the bundles, so that everything is rendered for them; the second one
    // sees nothing new.
    for what in ["restarted, for a cluster that has changed", "restarted again"] {
        controller.stop().await?;
        controller = start()?;
        last = Figures::take(&controller, &plane)?;
        settle(&plane).await?;
        report(what, &mut last, &controller, &plane)?;
    }
    idle(scale.idle, &mut last, &controller, &plane).await?;
    controller.stop().await?;
    println!("cache directory: {:.1} MB", figures::megabytes(directory_bytes(cache.path())));
    Ok(())
}

/// Installs the bundles, and waits until all are ready.
async fn install(plane: &Plane, scale: &Scale, controller: &mut Controller) -> Result<(), Error> {
    let mix = if scale.operators { Mix::operators(scale.deployments) } else { Mix::of(scale.deployments) };
    if scale.resolutions == 0 {
        println!("{mix}, {} % by tag, resolved again every {}", scale.tags, scale.image_poll_interval);
        plane.install(&mix, scale.tags).await?;
        return plane.all_ready(scale.deployments, controller).await;
    }
    let packages = match &scale.packages {
        Some(directory) => packages::published(directory, scale.deployments)?,
        None => packages::generated(&mix),
    };
    println!("{} packages, for {} Resolutions", packages.len(), scale.resolutions);
    plane.publish(&packages).await?;
    plane.resolve(&packages, scale.resolutions, scale.packages.is_some()).await?;
    plane.all_resolved(controller, PATIENCE, scale.packages.is_some()).await?;
    plane.print_left_out().await
}

/// Waits until the API server has received no request for a while.
async fn settle(plane: &Plane) -> Result<(), Error> {
    let deadline = Instant::now() + Duration::from_mins(30);
    let (mut seen, mut since) = (plane.requests(), Instant::now());
    // A process that has just started needs a moment before its first request.
    while since.elapsed() < QUIET || seen.is_empty() {
        if Instant::now() > deadline {
            return Err("the controller does not come to rest".into());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        let now = plane.requests();
        if now.without_watches() != seen.without_watches() {
            (seen, since) = (now, Instant::now());
        }
    }
    Ok(())
}

async fn idle(duration: Duration, last: &mut Figures, controller: &Controller, plane: &Plane) -> Result<(), Error> {
    controller.forget_peak()?;
    *last = Figures::take(controller, plane)?;
    tokio::time::sleep(duration).await;
    report("idle", last, controller, plane)
}

fn directory_bytes(directory: &std::path::Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => directory_bytes(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}

/// Whether this one of a hundred is selected; the selected ones are spread evenly.
fn one_of_hundred(number: usize, percent: usize) -> bool {
    number * percent / 100 != (number + 1) * percent / 100
}

impl Kind {
    /// The provisioner class.
    fn class(self) -> &'static str {
        match self {
            Self::Tenant => "core-rukpak-io-plain",
            Self::Operator | Self::LargeOperator => "core-rukpak-io-registry",
        }
    }
}
