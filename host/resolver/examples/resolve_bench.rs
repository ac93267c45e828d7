//! How long answers take, and how much memory: `cargo run --release -p chandler-resolver --example resolve_bench`.

#![expect(clippy::print_stdout, reason = "its purpose")]

use std::{error::Error, time::Instant};

use chandler_resolver::{MemoryCatalogs, Problem, resolve};
use peak_alloc::PeakAlloc;
use serde_json::{Value, json};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// A package of `versions` bundles in a chain, each with these properties.
fn package(name: &str, versions: u32, properties: impl Fn(u32) -> Vec<Value>) -> Vec<Value> {
    let bundle = |minor: u32| format!("{name}.v1.{minor}.0");
    let mut metas = vec![json!({"schema": "olm.package", "name": name, "defaultChannel": "stable"})];
    let entries: Vec<Value> = (0..versions)
        .map(|minor| match minor.checked_sub(1) {
            Some(before) => json!({"name": bundle(minor), "replaces": bundle(before)}),
            None => json!({"name": bundle(minor)}),
        })
        .collect();
    metas.push(json!({"schema": "olm.channel", "package": name, "name": "stable", "entries": entries}));
    for minor in 0..versions {
        let mut all = vec![json!({"type": "olm.package",
            "value": {"packageName": name, "version": format!("1.{minor}.0")}})];
        all.extend(properties(minor));
        metas.push(
            json!({"schema": "olm.bundle", "package": name, "name": bundle(minor), "image": "", "properties": all}),
        );
    }
    metas
}

fn provides(kind: &str) -> Value {
    json!({"type": "olm.gvk", "value": {"group": "example.com", "version": "v1", "kind": kind}})
}

fn needs_kind(kind: &str) -> Value {
    json!({"type": "olm.gvk.required", "value": {"group": "example.com", "version": "v1", "kind": kind}})
}

fn needs_package(name: &str, range: &str) -> Value {
    json!({"type": "olm.package.required", "value": {"packageName": name, "versionRange": range}})
}

fn measure(name: &str, catalogs: &MemoryCatalogs, problem: &Value, runs: usize) -> Result<(), Box<dyn Error>> {
    let problem: Problem = serde_json::from_value(problem.clone())?;
    let before = MEMORY.current_usage_as_mb();
    MEMORY.reset_peak_usage();
    let mut times = Vec::new();
    let mut outcome = String::new();
    for _ in 0..runs.max(1) {
        let start = Instant::now();
        let answer = resolve(&problem, catalogs);
        times.push(start.elapsed());
        outcome = match answer {
            Ok(answer) => match answer.decision() {
                Some(decision) => format!("{} members", decision.members.len()),
                None => "explained".to_owned(),
            },
            Err(error) => error.to_string(),
        };
    }
    let first = times.first().copied().unwrap_or_default();
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    let memory = MEMORY.peak_usage_as_mb() - before;
    println!("{name}: median {median:.2?}, first {first:.2?}, {memory:.1} MiB: {outcome}");
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let one = json!([{"name": "c"}]);
    let large = (0..333).flat_map(|index| {
        let needs = move |_| vec![provides(&format!("K{index}")), needs_kind(&format!("K{}", (index * 7 + 1) % 333))];
        package(&format!("p{index}"), 21, move |minor| {
            if index % 3 == 0 { needs(minor) } else { vec![provides(&format!("K{index}"))] }
        })
    });
    let catalogs = MemoryCatalogs::new().with("c", large);
    measure(
        "one package of 6,993 bundles",
        &catalogs,
        &json!({"required": [{"package": "p100"}], "catalogs": one}),
        51,
    )?;
    let failing = json!({"required": [{"package": "p100", "range": ">=2"}], "catalogs": one});
    measure("the same, refused", &catalogs, &failing, 51)?;
    let installed = json!([{"package": "p100", "name": "p100.v1.0.0", "version": "1.0.0"}]);
    let upgrade = json!({"required": [{"package": "p100"}], "catalogs": one, "installed": installed});
    measure("the same, upgraded by 20 steps", &catalogs, &upgrade, 51)?;

    let fifty = (0..50).flat_map(|index| {
        package(&format!("p{index}"), 20, move |minor| {
            let mut properties = vec![provides(&format!("K{index}"))];
            if index > 1 {
                properties.push(needs_kind(&format!("K{}", index / 2)));
                properties
                    .push(needs_package(&format!("p{}", index - 1), &format!("<=1.{}.0", 10 + (minor + index) % 10)));
            }
            properties
        })
    });
    let catalogs = MemoryCatalogs::new().with("c", fifty);
    let required: Vec<Value> = (0..50).map(|index| json!({"package": format!("p{index}")})).collect();
    measure(
        "50 packages with dependencies, all asked for",
        &catalogs,
        &json!({"required": required, "catalogs": one}),
        51,
    )?;
    measure(
        "one of them, with 49 dependencies",
        &catalogs,
        &json!({"required": [{"package": "p49"}], "catalogs": one}),
        51,
    )?;

    let crowd = package("crowd", 10_000, |minor| {
        vec![provides(&format!("K{}", minor % 7)), needs_kind("K3"), needs_package("crowd", ">=1.5000.0")]
    });
    let catalogs = MemoryCatalogs::new().with("c", crowd);
    measure(
        "hostile: 10,000 bundles in a package",
        &catalogs,
        &json!({"required": [{"package": "crowd"}], "catalogs": one}),
        5,
    )?;

    let pigeons =
        (0..13).flat_map(|index| package(&format!("p{index}"), 12, |minor| vec![provides(&format!("K{minor}"))]));
    let catalogs = MemoryCatalogs::new().with("c", pigeons);
    let required: Vec<Value> = (0..13).map(|index| json!({"package": format!("p{index}")})).collect();
    measure("hostile: 13 packages for 12 kinds", &catalogs, &json!({"required": required, "catalogs": one}), 1)?;
    Ok(())
}
