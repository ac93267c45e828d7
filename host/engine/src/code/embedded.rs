//! Compiled code that this program contains, for components that come with it: their first use compiles nothing.
//!
//! `cargo xtask dist` compiles the built-in components for every processor of an architecture, and builds the command with the result. A build
//! without `CHANDLER_PRECOMPILED` contains no code. The digest of the component selects the code, so that code of another version of a
//! component is never used for it. Code that does not run on this machine, or with this version of wasmtime, is compiled as if there were none.

use std::io::{self, Read as _};

use chandler_core::Digest;
use flate2::read::GzDecoder;

use super::Code;

/// The largest code, in bytes.
const CODE_BYTES: u64 = 64 << 20;

/// The code of one component.
#[derive(Debug)]
pub(crate) struct Embedded {
    /// The SHA-256 of the component, in hexadecimal digits.
    component: &'static str,
    /// The code, compressed with gzip.
    compressed: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

impl Embedded {
    /// The code of a component.
    pub(crate) fn find(all: &'static [Self], component: &Digest) -> Option<&'static Self> {
        all.iter().find(|one| one.component == component.hex())
    }

    /// Unpacks the code.
    pub(crate) fn code(&self) -> io::Result<Code> {
        let mut code = Vec::new();
        GzDecoder::new(self.compressed).take(CODE_BYTES).read_to_end(&mut code)?;
        Ok(Code(code))
    }
}

#[cfg(test)]
mod tests {
    use std::{env::consts::ARCH, io::Write as _};

    use chandler_core::MemoryContent;
    use chandler_test_components::idle;
    use flate2::{Compression, write::GzEncoder};

    use super::*;
    use crate::{Compiler, Engine, EngineOptions, EngineStatistics, Limits, LoadError, compile::precompile};

    /// What a program contains that was built with this code of a component.
    fn embedded(component: &[u8], code: &[u8]) -> &'static [Embedded] {
        let mut compressed = GzEncoder::new(Vec::new(), Compression::fast());
        compressed.write_all(code).unwrap();
        let compressed = compressed.finish().unwrap().leak();
        let component = Digest::of(component).hex().to_owned().leak();
        Box::leak(Box::new([Embedded { component, compressed }]))
    }

    /// The code for all processors of the architecture of this machine.
    fn portable(component: &[u8]) -> Vec<u8> {
        precompile(component, &format!("{ARCH}-unknown-linux-gnu")).unwrap()
    }

    fn without_compiler(embedded: &'static [Embedded]) -> Engine {
        let compiler = Compiler::Child { program: "/nonexistent/compiler".into(), arguments: Vec::new() };
        Engine::with_embedded(EngineOptions { compiler, ..EngineOptions::default() }, embedded).unwrap()
    }

    #[tokio::test]
    async fn code_in_the_program_runs_without_a_compiler() {
        let wasm = idle();
        let engine = without_compiler(embedded(&wasm, &portable(&wasm)));
        let provisioner = engine.load(&wasm).await.unwrap();
        let content = std::sync::Arc::new(MemoryContent::new([("a", "b")]));
        assert_eq!(provisioner.detect(content, &Limits::default()).await.unwrap(), None);
        assert_eq!(engine.statistics(), EngineStatistics::default());
    }

    #[tokio::test]
    async fn code_of_another_component_is_not_used() {
        let (wasm, code) = (idle(), portable(&idle()));
        let other = [idle().as_slice(), &[0, 3, 1, b'x', 0]].concat();
        let error = without_compiler(embedded(&other, &code)).load(&wasm).await.err().unwrap();
        assert!(matches!(error, LoadError::Compile(_)), "{error}");
    }

    #[tokio::test]
    async fn code_that_does_not_run_here_is_compiled() {
        let wasm = idle();
        let code = portable(&wasm);
        let mut config = wasmtime::Config::new();
        config.epoch_interruption(false).concurrency_support(false);
        let otherwise = wasmtime::Engine::new(&config).unwrap().precompile_component(&wasm).unwrap();
        for unusable in [otherwise.as_slice(), &code[..code.len() / 2], b"", b"not code"] {
            let engine = Engine::with_embedded(EngineOptions::default(), embedded(&wasm, unusable)).unwrap();
            engine.load(&wasm).await.unwrap();
            assert_eq!(engine.statistics().compiled, 1);
        }
        let truncated = Box::leak(Box::new([Embedded {
            component: Digest::of(&wasm).hex().to_owned().leak(),
            compressed: b"\x1f\x8b",
        }]));
        let engine = Engine::with_embedded(EngineOptions::default(), truncated).unwrap();
        engine.load(&wasm).await.unwrap();
        assert_eq!(engine.statistics().compiled, 1);
    }
}
