//! Project tasks. `cargo xtask --help` lists them.
//!
//! Everything that a fresh machine needs besides `rustup` and a C compiler is installed or built here, so that `cargo
//! xtask demo` and `cargo xtask test` work on a clean clone.

mod bench;
mod command;
mod container_tests;
mod contract;
mod corpus;
mod demo;
mod dist;
mod documentation;
mod fuzz;
mod generate;
mod guests;
mod languages;
#[cfg(test)]
mod left_out;
mod packages;
mod remap;
mod soak;
mod test;
mod wasm_target;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Tasks of the project", disable_version_flag = true)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install a bundle on the embedded control plane and show its progress
    Demo(demo::Demo),
    /// Build the guests and run all tests
    Test(test::Test),
    /// Compile all that `test` runs, and the examples
    Compile,
    /// Build the Wasm components of the first-party provisioners and of the tests into target/plugins
    Plugins,
    /// Build the component that calls every function of the newest version of the contract into tests/guests/components (zstd), once
    /// for each version
    Contract,
    /// Build the test components in JavaScript and Python into tests/guests/components (npm, python3, zstd and the network)
    Languages,
    /// Measure the engine (instantiation, sandboxed against native, cold start), the control plane or the controller (release build)
    Bench(bench::Bench),
    /// Measure honest tenants among hostile ones (release build)
    Soak(soak::Soak),
    /// Render a tree of registry+v1 bundles and compare with the output of OLM v1 (release build)
    Corpus(corpus::Corpus),
    /// Install or upgrade published operators on the embedded control plane and compare with the kept list
    Packages(packages::Packages),
    /// Fuzz everything that parses untrusted input (release build, libFuzzer)
    Fuzz(fuzz::Fuzz),
    /// Build the image that runs in a cluster, with its bills of materials: `chandler` without the embedded control plane and registry
    /// (release build)
    Dist(dist::Dist),
    /// Build the documentation of all crates with what the tests have compiled; a warning is an error
    Documentation(documentation::Documentation),
    /// Write the generated files (CRDs, command-line reference), or check that they are up to date
    Generate(generate::Generate),
}

fn main() -> anyhow::Result<()> {
    if let Some(notes) = documentation::notes() {
        return documentation::note(&notes);
    }
    match Arguments::parse().task {
        Task::Demo(demo) => demo.run(),
        Task::Test(test) => test.run(),
        Task::Compile => test::compile(),
        Task::Plugins => guests::build_all(),
        Task::Contract => contract::build(),
        Task::Languages => languages::build_all(),
        Task::Bench(bench) => bench.run(),
        Task::Soak(soak) => soak.run(),
        Task::Corpus(corpus) => corpus.run(),
        Task::Packages(packages) => packages.run(),
        Task::Fuzz(fuzz) => fuzz.run(),
        Task::Dist(dist) => dist.run(),
        Task::Documentation(_) => documentation::Documentation::run(),
        Task::Generate(generate) => generate.run(),
    }
}
