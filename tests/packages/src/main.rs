//! `cargo xtask packages`.

#![expect(clippy::print_stdout, reason = "it is a program whose result is its output")]

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use anyhow::bail;
use chandler::read::provisioner;
use chandler_packages::{
    entry::{Entry, Outcome},
    list, newest,
    packages::{self, Package},
    plane::{self, Plane, Settings},
    upgrades,
};
use clap::Parser;
use futures::future::try_join_all;

/// Install published operators on the embedded control plane as a user would, and compare with the kept list
#[derive(Parser)]
#[command(name = "packages")]
struct Arguments {
    /// The directory of the packages: PACKAGE/VERSION/manifests
    #[arg(long, value_name = "DIR")]
    bundles: PathBuf,
    /// Install the newest version of each package, or upgrade through all versions
    #[arg(long, value_enum, default_value_t = Versions::Newest)]
    versions: Versions,
    /// A package. Repeatable [default: those in the list; all if there is none]
    #[arg(long = "package", value_name = "NAME")]
    names: Vec<String>,
    /// Write the list, and do not compare
    #[arg(long)]
    record: bool,
    /// The list [default: newest.jsonl or upgrades.jsonl in tests/expected/packages]
    #[arg(long, value_name = "FILE")]
    list: Option<PathBuf>,
    /// The timeout of each command, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 90)]
    timeout: u64,
    /// How many control planes work at once
    #[arg(long, value_name = "NUMBER", default_value_t = 2)]
    jobs: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Versions {
    Newest,
    All,
}

fn main() -> anyhow::Result<ExitCode> {
    // This binary is also the command that it runs, and the compiler of the controller.
    let compiles = env::args_os().nth(1).is_some_and(|argument| argument == provisioner::COMPILE);
    if compiles || env::var_os(plane::IS_COMMAND).is_some() {
        return Ok(chandler::main());
    }
    tokio::runtime::Runtime::new()?.block_on(compare(Arguments::parse()))
}

/// Installs the packages, and compares with the list or writes it.
async fn compare(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let path = arguments.list.clone().unwrap_or_else(|| kept(arguments.versions));
    let known = if path.exists() { list::read(&path)? } else { Vec::new() };
    let packages = selected(&arguments, &known)?;
    let mut entries = run(&arguments, &packages).await?;
    // The versions of a package stay in their order.
    entries.sort_by(|one, other| one.package.cmp(&other.package));
    println!("\n{}", summary(&entries));
    if arguments.record {
        let mut all = known;
        all.retain(|entry| !packages.iter().any(|package| package.name == entry.package));
        all.extend(entries);
        all.sort_by(|one, other| one.package.cmp(&other.package));
        list::write(&path, &all)?;
        println!("wrote {}", path.display());
        return Ok(ExitCode::SUCCESS);
    }
    let names: BTreeSet<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    let all = arguments.names.is_empty();
    let expected: Vec<Entry> =
        known.into_iter().filter(|entry| all || names.contains(entry.package.as_str())).collect();
    let differences = list::differences(&expected, &entries);
    for line in &differences {
        println!("{line}");
    }
    println!("{} from {}", if differences.is_empty() { "no differences" } else { "differs" }, path.display());
    Ok(if differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn kept(versions: Versions) -> PathBuf {
    let file = match versions {
        Versions::Newest => "newest.jsonl",
        Versions::All => "upgrades.jsonl",
    };
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../expected/packages").join(file)
}

fn selected(arguments: &Arguments, known: &[Entry]) -> anyhow::Result<Vec<Package>> {
    let mut found = packages::find(&arguments.bundles)?;
    let listed = known.iter().map(|entry| entry.package.as_str());
    let names: BTreeSet<&str> = if arguments.names.is_empty() {
        listed.collect()
    } else {
        arguments.names.iter().map(String::as_str).collect()
    };
    if !names.is_empty() {
        found.retain(|package| names.contains(package.name.as_str()));
    }
    if found.is_empty() {
        bail!("{} has none of the packages", arguments.bundles.display());
    }
    if arguments.versions == Versions::Newest {
        found.iter_mut().for_each(Package::keep_newest);
    }
    Ok(found)
}

/// Installs the packages, several at once, each on a control plane of its own.
async fn run(arguments: &Arguments, packages: &[Package]) -> anyhow::Result<Vec<Entry>> {
    let cache = tempfile::tempdir()?;
    let next = AtomicUsize::new(0);
    let workers = (0..arguments.jobs.clamp(1, packages.len())).map(|_| async {
        let timeout = Duration::from_secs(arguments.timeout);
        let cache = cache.path().to_owned();
        let plane = Plane::start(Settings { cache, timeout }).await?;
        let mut entries = Vec::new();
        while let Some(package) = packages.get(next.fetch_add(1, Ordering::Relaxed)) {
            entries.extend(one(arguments.versions, &plane, package).await);
        }
        plane.stop().await;
        anyhow::Ok(entries)
    });
    Ok(try_join_all(workers).await?.concat())
}

/// One package; an error of this program is an entry, too.
async fn one(versions: Versions, plane: &Plane, package: &Package) -> Vec<Entry> {
    let report = |entry: &Entry| println!("{entry}");
    let found = match (versions, package.versions.as_slice()) {
        (Versions::Newest, [.., newest]) => newest::install(plane, &package.name, newest).await.map(|entry| {
            report(&entry);
            vec![entry]
        }),
        _ => upgrades::upgrade(plane, package, report).await,
    };
    found.unwrap_or_else(|error| {
        let mut entry = Entry::new(&package.name, String::new());
        entry.outcome = Outcome::Refused;
        entry.because("NotTried".to_owned(), &format!("{error:#}"));
        report(&entry);
        vec![entry]
    })
}

/// How many versions ended how, and why.
fn summary(entries: &[Entry]) -> String {
    let mut counts: BTreeMap<(Outcome, &str), usize> = BTreeMap::new();
    for entry in entries {
        let reason = entry.reasons.last().map_or("", String::as_str);
        *counts.entry((entry.outcome, reason)).or_default() += 1;
    }
    let mut text = format!("{:5} versions\n", entries.len());
    for ((outcome, reason), count) in counts {
        text.push_str(format!("{count:5} {outcome:<22}{reason}").trim_end());
        text.push('\n');
    }
    let left = entries.iter().filter(|entry| !entry.leftovers.is_empty()).count();
    text + &format!("{left:5} left something behind")
}
