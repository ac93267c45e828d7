//! Building for another architecture than the one of this machine, with the compiler for C that Debian packages for it.

use std::{
    env,
    ffi::OsString,
    io::Write as _,
    process::{Command, Stdio},
};

use anyhow::{Context as _, bail};

use super::binary::Target;
use crate::command;

/// The compiler for C of a target, which cargo uses as the linker. Crates with C sources find it by its name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Compiler {
    /// The variable by which cargo takes it as the linker.
    pub(super) variable: String,
    pub(super) program: OsString,
}

impl Compiler {
    /// The one that the environment names, or the one that Debian has for this target. `None` for a target that the toolchain of this machine
    /// links.
    pub(super) fn of(target: &Target, host: &str) -> Option<Self> {
        let variable = format!("CARGO_TARGET_{}_LINKER", target.triple.to_uppercase().replace('-', "_"));
        if let Some(program) = env::var_os(&variable) {
            return Some(Self { variable, program });
        }
        let is_foreign = target.triple != host;
        is_foreign.then(|| Self { variable, program: debian_name(&target.triple).into() })
    }

    /// Checks that it is on this machine, and that the compiler for Rust has the target.
    pub(super) fn check(&self, target: &Target) -> anyhow::Result<()> {
        let triple = &target.triple;
        let found = Command::new(&self.program).arg("--version").stdout(Stdio::null()).status();
        if !found.is_ok_and(|status| status.success()) {
            let architecture = triple.split('-').next().unwrap_or_default().replace('_', "-");
            bail!(
                "{} does not run, which links binaries for {triple}: install it (on Debian: apt-get install gcc-{architecture}-linux-gnu), or \
                 name another one in {}",
                self.program.to_string_lossy(),
                self.variable
            );
        }
        let libraries = command::rustc_output(&["--print", "target-libdir", "--target", triple])?;
        if !std::path::Path::new(&libraries).is_dir() {
            bail!("the compiler lacks the standard library for {triple}: run `rustup target add {triple}`");
        }
        Ok(())
    }

    /// The version of glibc that it links.
    pub(super) fn glibc(&self) -> anyhow::Result<String> {
        let mut command = Command::new(&self.program);
        command.args(["-E", "-dM", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("failed to start {command:?}"))?;
        child.stdin.take().context("a pipe")?.write_all(b"#include <features.h>\n")?;
        let output = child.wait_with_output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        version(&text).with_context(|| format!("{command:?} names no version of glibc"))
    }
}

/// The name of GCC for a target on Debian, whose names of targets have no vendor.
fn debian_name(triple: &str) -> String {
    format!("{}-gcc", triple.replacen("-unknown", "", 1))
}

/// The version in the macros of a compiler.
fn version(macros: &str) -> Option<String> {
    let value = |name: &str| {
        macros.lines().find_map(|line| line.strip_prefix("#define ")?.strip_prefix(name)?.strip_prefix(' '))
    };
    Some(format!("{}.{}", value("__GLIBC__")?, value("__GLIBC_MINOR__")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_architecture_is_linked_with_the_compiler_of_debian() {
        let target = |triple: &str| Target { triple: triple.to_owned() };
        let host = "x86_64-unknown-linux-gnu";
        assert_eq!(Compiler::of(&target(host), host), None);
        let compiler = Compiler::of(&target("aarch64-unknown-linux-gnu"), host).unwrap();
        assert_eq!(compiler.variable, "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER");
        assert_eq!(compiler.program, "aarch64-linux-gnu-gcc");
        let missing = Compiler { program: "no-such-compiler".into(), ..compiler };
        let error = missing.check(&target("aarch64-unknown-linux-gnu")).unwrap_err().to_string();
        assert!(error.contains("apt-get install gcc-aarch64-linux-gnu"), "{error}");
        assert!(error.ends_with("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER"), "{error}");
    }

    #[test]
    fn the_version_of_glibc_is_read_from_the_compiler() {
        assert_eq!(version("#define __GLIBC__ 2\n#define __GLIBC_MINOR__ 36\n").as_deref(), Some("2.36"));
        assert_eq!(version("#define __GLIBC__ 2\n"), None);
        let compiler = Compiler { variable: String::new(), program: "cc".into() };
        assert!(compiler.glibc().unwrap().starts_with("2."));
    }
}
