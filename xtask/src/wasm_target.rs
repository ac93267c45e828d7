//! Ensures that rustc has a standard library for a Wasm target.
//!
//! `rustup target add` does it in seconds. If rustup cannot download, the library is built from the sources of exactly
//! the installed rustc: rustup's `rust-src` component if installed, else Debian's package of the same version, which is
//! unpacked and never installed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, bail};

use crate::command::{output, run};

/// Installs the target if it is missing.
pub(crate) fn ensure(target: &str) -> anyhow::Result<()> {
    let sysroot = PathBuf::from(output(Command::new("rustc").args(["--print", "sysroot"]))?);
    let libraries = sysroot.join("lib/rustlib").join(target).join("lib");
    if has_std(&libraries) {
        return Ok(());
    }
    eprintln!("adding the target {target}");
    let added = run(Command::new("rustup").args(["target", "add", target]));
    if has_std(&libraries) {
        return Ok(());
    }
    if let Err(error) = added {
        eprintln!("{error:#}; building its standard library from source instead");
    }
    build(target, &sysroot, &libraries).with_context(|| {
        format!("failed to make a standard library for {target}; install it by hand: rustup target add {target}")
    })
}

fn has_std(libraries: &Path) -> bool {
    let entries = fs::read_dir(libraries).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).any(|name| {
        let name = name.to_string_lossy();
        name.starts_with("libstd-") && name.ends_with(".rlib")
    })
}

fn build(target: &str, sysroot: &Path, libraries: &Path) -> anyhow::Result<()> {
    let work = tempfile::tempdir()?;
    let sources = match sysroot.join("lib/rustlib/src/rust/library") {
        component if component.is_dir() => component,
        _ => debian_sources(work.path())?,
    };
    let package = work.path().join("empty");
    fs::create_dir_all(package.join("src"))?;
    fs::write(package.join("src/lib.rs"), "")?;
    fs::write(
        package.join("Cargo.toml"),
        "[package]\nname = \"empty\"\nversion = \"0.0.0\"\nedition = \"2021\"\n[workspace]\n[profile.release]\ncodegen-units = 1\n",
    )?;
    let built = work.path().join("target");
    run(Command::new("cargo")
        .current_dir(&package)
        .args(["build", "--release", "--target", target, "-Zbuild-std=std,panic_abort,proc_macro"])
        // The stable compiler accepts the flags with this variable set, as its own bootstrap does.
        .env("RUSTC_BOOTSTRAP", "1")
        .env("__CARGO_TESTS_ONLY_SRC_ROOT", &sources)
        .env("CARGO_TARGET_DIR", &built)
        .env(
            "RUSTFLAGS",
            format!("-Cembed-bitcode=yes --remap-path-prefix={}=/rustc/std/library", sources.display()),
        ))?;
    fs::create_dir_all(libraries)?;
    for entry in fs::read_dir(built.join(target).join("release/deps"))? {
        let path = entry?.path();
        let library = path.extension().is_some_and(|extension| extension == "rlib" || extension == "rmeta");
        if let Some(name) = path.file_name().filter(|name| library && !name.to_string_lossy().starts_with("libempty-"))
        {
            fs::copy(&path, libraries.join(name))?;
        }
    }
    if has_std(libraries) { Ok(()) } else { bail!("the build produced no libstd in {}", libraries.display()) }
}

/// The sources of the standard library from Debian's package `rust-src` of rustc's own version, from the mirror
/// configured for apt, with a separate apt state below `work`.
fn debian_sources(work: &Path) -> anyhow::Result<PathBuf> {
    let version = output(Command::new("rustc").arg("-vV"))?
        .lines()
        .find_map(|line| line.strip_prefix("release: ").map(str::to_owned))
        .context("rustc -vV names no release")?;
    let mirror = debian_mirror()?;
    for directory in ["lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(work.join(directory))?;
    }
    let list = work.join("list.sources");
    fs::write(
        &list,
        format!(
            "Types: deb\nURIs: {mirror}\nSuites: trixie-backports sid\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
        ),
    )?;
    let apt = |program: &str| {
        let mut command = Command::new(program);
        command.current_dir(work);
        for option in [
            format!("Dir::Etc::sourcelist={}", list.display()),
            "Dir::Etc::sourceparts=/dev/null".to_owned(),
            format!("Dir::State::lists={}", work.join("lists").display()),
            format!("Dir::Cache={}", work.join("cache").display()),
            "Dir::State::status=/dev/null".to_owned(),
            "APT::Sandbox::User=root".to_owned(),
            "Acquire::Languages=none".to_owned(),
        ] {
            command.arg("-o").arg(option);
        }
        command
    };
    run(apt("apt-get").args(["update", "-qq"]))?;
    let versions = output(apt("apt-cache").args(["madison", "rust-src"]))?;
    let package = versions
        .lines()
        .filter_map(|line| line.split('|').nth(1).map(str::trim))
        .find(|candidate| candidate.starts_with(&format!("{version}+")))
        .with_context(|| format!("Debian has no rust-src {version}"))?;
    run(apt("apt-get").args(["download", &format!("rust-src={package}")]))?;
    let archive = fs::read_dir(work)?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .context("apt-get downloaded no package")?;
    let unpacked = work.join("rust-src");
    run(Command::new("dpkg-deb").arg("--extract").arg(&archive).arg(&unpacked))?;
    fs::read_dir(unpacked.join("usr/src"))?
        .flatten()
        .map(|entry| entry.path().join("library"))
        .find(|path| path.is_dir())
        .context("the package rust-src contains no library directory")
}

fn debian_mirror() -> anyhow::Result<String> {
    let list = || output(Command::new("apt-get").args(["indextargets", "--format", "$(SITE)", "Created-By: Packages"]));
    let find =
        |sites: &str| sites.lines().find(|site| site.trim_end_matches('/').ends_with("/debian")).map(str::to_owned);
    if let Some(site) = find(&list()?) {
        return Ok(site);
    }
    run(Command::new("apt-get").args(["update", "-qq"]))?;
    find(&list()?).context("apt is configured with no Debian mirror")
}
