//! Compiles the built-in components for all processors of an architecture. The binary contains the result, so that the first start of a
//! controller compiles nothing.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, bail};
use flate2::{Compression, GzBuilder};

use super::{binary::Target, digest};
use crate::{
    command::{self, SHARED, cargo},
    guests,
};

/// The variable that names the directory, as host/engine/build.rs reads it.
pub(super) const DIRECTORY: &str = "CHANDLER_PRECOMPILED";

/// The feature of the compiler for other architectures than the one of this machine.
const CROSS: &str = "chandler-engine/cross";

/// Compiles the built-in components into a directory below this one, and returns it.
pub(super) fn build(target: &Target, host: &str, directory: &Path) -> anyhow::Result<PathBuf> {
    let program = compiler(architecture(&target.triple) != architecture(host))?;
    let output = directory.join("precompiled").join(&target.triple);
    if output.exists() {
        // Of components that were built earlier.
        fs::remove_dir_all(&output).with_context(|| format!("failed to remove {}", output.display()))?;
    }
    fs::create_dir_all(&output).with_context(|| format!("failed to create {}", output.display()))?;
    for component in guests::built_in_components()? {
        let wasm = fs::read(&component).with_context(|| format!("failed to read {}", component.display()))?;
        let code = compiled(&program, &target.triple, &wasm)
            .with_context(|| format!("failed to compile {} for {}", component.display(), target.triple))?;
        let file = output.join(format!("{}.cwasm.gz", digest::hexadecimal(&wasm)));
        let packed = packed(&code)?;
        fs::write(&file, &packed).with_context(|| format!("failed to write {}", file.display()))?;
        eprintln!(
            "{} for {}: {} KiB of code, {} KiB in the binary",
            component.file_name().unwrap_or_default().to_string_lossy(),
            target.triple,
            code.len() / 1024,
            packed.len() / 1024
        );
    }
    Ok(output)
}

/// The program that compiles components. Cargo builds it like the tests, so that the result is the same on every machine: the flags of a
/// target do not matter to what it writes.
fn compiler(is_foreign: bool) -> anyhow::Result<PathBuf> {
    if is_foreign {
        let mut build = cargo(["build", "--quiet"]);
        build.args(SHARED).args(["--features", CROSS, "--bin", "chandler-compile", "--test", "documentation"]);
        command::run(&mut build)?;
        return Ok(command::target_directory().join("debug/chandler-compile"));
    }
    Ok(command::program("chandler-compile")?.get_program().into())
}

/// The code of a component.
fn compiled(program: &Path, target: &str, wasm: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut command = Command::new(program);
    command.arg(target).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("failed to start {command:?}"))?;
    // It reads all of its input before it writes.
    child.stdin.take().context("a pipe")?.write_all(wasm).context("failed to write to the compiler")?;
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!("{command:?} ended with {}", output.status);
    }
    Ok(output.stdout)
}

/// Compresses code. The result has no time and no name, so that it is the same in every build.
fn packed(code: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().write(Vec::new(), Compression::best());
    encoder.write_all(code)?;
    Ok(encoder.finish()?)
}

/// The architecture in the name of a target.
fn architecture(triple: &str) -> &str {
    triple.split('-').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn a_component_is_compiled_to_the_same_code_each_time() {
        let host = command::rustc_version().unwrap().host;
        let program = command::tested("chandler-compile");
        let component = command::target_directory().join("plugins/resolveset.wasm");
        let wasm = fs::read(component).unwrap();
        let once = || packed(&compiled(&program, &host, &wasm).unwrap()).unwrap();
        let code = once();
        assert_eq!(code, once());
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(code.as_slice()).read_to_end(&mut unpacked).unwrap();
        assert!(unpacked.starts_with(b"\x7fELF"));
        let error = compiled(&program, "no-such-target", &wasm).unwrap_err().to_string();
        assert!(error.contains("ended with exit status: 1"), "{error}");
    }

    #[test]
    fn only_another_architecture_takes_the_compiler_for_all() {
        assert_eq!(architecture("x86_64-unknown-linux-gnu"), architecture("x86_64-unknown-linux-musl"));
        assert_ne!(architecture("aarch64-unknown-linux-gnu"), architecture("x86_64-unknown-linux-gnu"));
    }
}
