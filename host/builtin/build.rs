//! Passes the paths of the components that `cargo xtask plugins` builds to the crate.

use std::{env, path::PathBuf, process::exit};

fn main() {
    println!("cargo::rerun-if-env-changed=CHANDLER_PLUGINS");
    println!("cargo::rerun-if-env-changed=CARGO_TARGET_DIR");
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../..");
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |directory| root.join(directory));
    let plugins =
        env::var_os("CHANDLER_PLUGINS").map_or_else(|| target.join("plugins"), |directory| root.join(directory));
    for name in ["plain", "registry", "resolveset"] {
        let path = plugins.join(format!("{name}.wasm"));
        println!("cargo::rerun-if-changed={}", path.display());
        if !path.is_file() {
            println!("cargo::error={} does not exist: build it with `cargo xtask plugins`", path.display());
            exit(1);
        }
        println!("cargo::rustc-env=CHANDLER_PLUGIN_{}={}", name.to_uppercase(), path.display());
    }
}
