//! Passes the directory of the components that `cargo xtask plugins` builds to the crate.

use std::{env, path::PathBuf, process::exit};

fn main() {
    println!("cargo::rerun-if-env-changed=CHANDLER_PLUGINS");
    println!("cargo::rerun-if-env-changed=CARGO_TARGET_DIR");
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../..");
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |directory| root.join(directory));
    let plugins =
        env::var_os("CHANDLER_PLUGINS").map_or_else(|| target.join("plugins"), |directory| root.join(directory));
    // Cargo follows the files themselves, since the crate includes them.
    if !plugins.is_dir() {
        println!(
            "cargo::error={} does not exist: build the provisioners with `cargo xtask plugins`",
            plugins.display()
        );
        exit(1);
    }
    println!("cargo::rustc-env=CHANDLER_PLUGINS_DIRECTORY={}", plugins.display());
}
