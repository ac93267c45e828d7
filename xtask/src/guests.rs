//! Builds the guests: core modules for wasm32-unknown-unknown, converted to components.

use crate::{command, wasm_target};

const TARGET: &str = "wasm32-unknown-unknown";

/// A guest: its package and the path of its component below `target/plugins`.
#[derive(Clone, Copy)]
struct Guest {
    package: &'static str,
    component: &'static str,
}

/// The provisioners that the command contains.
const BUILT_IN: &[Guest] = &[
    Guest { package: "chandler-plain", component: "plain.wasm" },
    Guest { package: "chandler-resolveset", component: "resolveset.wasm" },
    Guest { package: "chandler-registry", component: "registry.wasm" },
];

/// What only tests run.
const TESTED: &[Guest] = &[
    Guest { package: "chandler-guest-hostile", component: "test/hostile.wasm" },
    Guest { package: "lamps", component: "test/lamps.wasm" },
];

/// Builds every guest into `target/plugins`.
pub(crate) fn build_all() -> anyhow::Result<()> {
    build(&[BUILT_IN, TESTED].concat())
}

/// Builds the provisioners that the command contains into `target/plugins`.
pub(crate) fn build_built_in() -> anyhow::Result<()> {
    build(BUILT_IN)
}

fn build(guests: &[Guest]) -> anyhow::Result<()> {
    wasm_target::ensure(TARGET)?;
    let mut build = command::cargo(["build", "--quiet", "--locked", "--profile", "guest", "--target", TARGET]);
    for guest in guests {
        build.args(["--package", guest.package]);
    }
    // The gate compiles with clippy, which optimises less: tests run the guests that users run.
    command::run(build.env_remove("RUSTC_WORKSPACE_WRAPPER"))?;
    let target = command::target_directory();
    let mut componentize = command::program("chandler-componentize")?;
    for guest in guests {
        let module = format!("{}.wasm", guest.package.replace('-', "_"));
        componentize.arg(target.join(TARGET).join("guest").join(module));
        componentize.arg(target.join("plugins").join(guest.component));
    }
    command::run(&mut componentize)
}
