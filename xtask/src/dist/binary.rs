//! The binary that runs in a cluster: one file that needs no other.

use std::{
    ffi::OsString,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, bail};
use object::{
    Endianness, elf,
    read::elf::{Dyn as _, FileHeader as _, ProgramHeader as _},
};

use super::{CLUSTER, cross::Compiler, precompiled};
use crate::{
    command::{self, Rustc},
    guests,
    remap::Remap,
};

/// A target that images are built for.
pub(super) struct Target {
    /// How the compiler names it, such as `x86_64-unknown-linux-gnu`.
    pub(super) triple: String,
}

impl Target {
    /// This target, or the one of this machine.
    pub(super) fn new(triple: Option<String>, rustc: &Rustc) -> anyhow::Result<Self> {
        let triple = triple.unwrap_or_else(|| rustc.host.clone());
        if !triple.contains("-linux-") {
            bail!(
                "images are for Linux, and {triple} is another system: run `cargo xtask dist` on Linux, or name a target that rustup has \
                 installed (--target)"
            );
        }
        Ok(Self { triple })
    }
}

/// Builds the binary below this directory, and returns where it is.
pub(super) fn build(target: &Target, host: &str, directory: &Path) -> anyhow::Result<PathBuf> {
    let compiler = Compiler::of(target, host);
    if let Some(compiler) = &compiler {
        compiler.check(target)?;
    }
    guests::build_built_in()?;
    let precompiled = precompiled::build(target, host, directory)?;
    let remap = Remap::of_machine()?;
    let mut flags = remap.arguments();
    // The C library becomes part of the binary. glibc 2.34 and later contain name resolution with files and DNS, so nothing is loaded later.
    flags.push("-Ctarget-feature=+crt-static".to_owned());
    let mut build = command::cargo(["build", "--quiet", "--profile", "dist"]);
    // With a target, cargo applies the flags only to what runs in the cluster: macros and build scripts are loaded by the compiler or run
    // here. The variable replaces RUSTFLAGS, whose flags would make another binary on every machine.
    build.args(CLUSTER).args(["--target", &target.triple]).arg("--target-dir").arg(directory);
    build.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}")).env_remove("RUSTC_WORKSPACE_WRAPPER");
    build.env("CARGO_INCREMENTAL", "0").env(precompiled::DIRECTORY, precompiled);
    if let Some(Compiler { variable, program }) = &compiler {
        build.env(variable, program);
    }
    command::run(&mut build)?;
    let binary = directory.join(&target.triple).join("dist").join("chandler");
    let bytes = fs::read(&binary).with_context(|| format!("failed to read {}", binary.display()))?;
    if let Some(path) = remap.left_in(&bytes) {
        bail!(
            "{} contains the path {}, so that a build in another directory would differ: add it to xtask/src/remap.rs",
            binary.display(),
            path.display()
        );
    }
    Ok(binary)
}

/// The section that scanners of images read the crates from.
const CRATES: &str = ".dep-v0";

/// Copies a binary, and adds the list of its crates.
pub(super) fn add_crates(from: &Path, to: &Path, list: &[u8]) -> anyhow::Result<()> {
    // Part of every toolchain, and for binaries of every architecture.
    let sysroot = PathBuf::from(command::rustc_output(&["--print", "sysroot"])?);
    let host = command::rustc_version()?.host;
    let libraries = sysroot.join("lib");
    let program = libraries.join("rustlib").join(host).join("bin/rust-objcopy");
    let mut file = tempfile::NamedTempFile::new().context("failed to create a temporary file")?;
    file.write_all(list).context("failed to write a temporary file")?;
    let mut add_section = OsString::from(format!("{CRATES}="));
    add_section.push(file.path());
    let mut copy = Command::new(program);
    copy.env("LD_LIBRARY_PATH", libraries)
        .arg("--add-section")
        .arg(add_section)
        .args(["--set-section-flags", &format!("{CRATES}=readonly")]);
    command::run(copy.arg(from).arg(to))
}

/// The version of the C library that a build for a target links, unless it is another one than glibc.
pub(super) fn glibc(target: &Target, host: &str) -> anyhow::Result<Option<String>> {
    if !target.triple.ends_with("-gnu") {
        return Ok(None);
    }
    if let Some(compiler) = Compiler::of(target, host) {
        return compiler.glibc().map(Some);
    }
    let text = command::output(Command::new("getconf").arg("GNU_LIBC_VERSION"))?;
    Ok(text.strip_prefix("glibc ").map(str::to_owned))
}

/// Checks that a binary is for Linux and needs no other file, and returns its architecture as images name it.
pub(super) fn check(bytes: &[u8]) -> anyhow::Result<&'static str> {
    let architecture = architecture(bytes)?;
    let needs = needs(bytes)?;
    if let [first, ..] = needs.as_slice() {
        bail!(
            "it is linked dynamically: it needs {first}{}, which the image does not contain. Build it with `cargo xtask dist`, or with \
             `-C target-feature=+crt-static` and a target",
            if needs.len() > 1 { format!(" and {} more files", needs.len() - 1) } else { String::new() }
        );
    }
    Ok(architecture)
}

/// The architecture of a binary as images name it.
pub(super) fn architecture(bytes: &[u8]) -> anyhow::Result<&'static str> {
    let header = header(bytes)?;
    let machine = header.e_machine(header.endian()?);
    match machine {
        elf::EM_X86_64 => Ok("amd64"),
        elf::EM_AARCH64 => Ok("arm64"),
        elf::EM_PPC64 if header.is_little_endian() => Ok("ppc64le"),
        elf::EM_RISCV => Ok("riscv64"),
        elf::EM_S390 => Ok("s390x"),
        _ => bail!("it is for a machine that images are not built for (ELF machine {machine:?})"),
    }
}

/// The program interpreter and the libraries that a binary names.
fn needs(bytes: &[u8]) -> anyhow::Result<Vec<String>> {
    let header = header(bytes)?;
    let endian = header.endian()?;
    let mut needs = Vec::new();
    let mut libraries = 0_usize;
    for segment in header.program_headers(endian, bytes)? {
        if let Some(interpreter) = segment.interpreter(endian, bytes)? {
            needs.push(String::from_utf8_lossy(interpreter).into_owned());
        }
        for entry in segment.dynamic(endian, bytes)?.unwrap_or_default() {
            libraries += usize::from(entry.d_tag(endian) == elf::DT_NEEDED);
        }
    }
    needs.extend((0..libraries).map(|index| format!("library {}", index + 1)));
    Ok(needs)
}

fn header(bytes: &[u8]) -> anyhow::Result<&elf::FileHeader64<Endianness>> {
    elf::FileHeader64::<Endianness>::parse(bytes).context("it is not a 64-bit ELF file, as binaries for Linux are")
}

#[cfg(test)]
mod tests {
    use std::env;

    use super::*;

    #[test]
    fn a_binary_that_needs_other_files_is_refused() {
        // Test binaries are linked as the toolchain does it without flags.
        let bytes = fs::read(env::current_exe().unwrap()).unwrap();
        assert!(["amd64", "arm64"].contains(&architecture(&bytes).unwrap()));
        let error = check(&bytes).unwrap_err().to_string();
        assert!(error.contains("it needs /lib"), "{error}");
        assert!(
            error.contains("more files, which the image does not contain. Build it with `cargo xtask dist`"),
            "{error}"
        );
    }

    #[test]
    fn the_list_of_crates_is_added_and_the_binary_still_runs() {
        use object::{Object as _, ObjectSection as _};
        let directory = tempfile::tempdir().unwrap();
        let to = directory.path().join("copy");
        add_crates(&env::current_exe().unwrap(), &to, b"a list").unwrap();
        let bytes = fs::read(&to).unwrap();
        let file = object::File::parse(bytes.as_slice()).unwrap();
        assert_eq!(file.section_by_name(CRATES).unwrap().data().unwrap(), b"a list");
        assert!(command::output(Command::new(&to).arg("--list")).unwrap().contains("dist::"));
    }

    #[test]
    fn a_file_of_another_kind_is_refused() {
        let error = format!("{:#}", check(b"#!/bin/sh\n").unwrap_err());
        assert!(error.starts_with("it is not a 64-bit ELF file"), "{error}");
    }

    #[test]
    fn other_systems_are_refused() {
        let rustc = command::rustc_version().unwrap();
        let error = Target::new(Some("aarch64-apple-darwin".to_owned()), &rustc).err().unwrap().to_string();
        assert!(error.contains("run `cargo xtask dist` on Linux"), "{error}");
        assert_eq!(Target::new(None, &rustc).unwrap().triple, rustc.host);
    }
}
