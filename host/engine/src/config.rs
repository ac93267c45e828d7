//! The configuration of wasmtime, shared by the process that compiles and the one that runs guests.

use std::hash::{Hash, Hasher};

use sha2::{Digest as _, Sha256};
use wasmtime::{Config, Engine, InstanceAllocationStrategy, OptLevel, Strategy, WasmBacktraceDetails};

/// Increment to invalidate cached code that wasmtime itself would still accept.
const REVISION: &str = "1";

/// Stack bytes that a host call may use in addition to the guest's.
const HOST_STACK_BYTES: usize = 1 << 20;

/// The engine of this machine.
pub(crate) fn engine(stack_bytes: usize) -> wasmtime::Result<Engine> {
    Engine::new(&config(stack_bytes))
}

/// An engine that compiles for a target and runs nothing. A named target has only the features that all its processors have.
pub(crate) fn engine_for(stack_bytes: usize, target: &str) -> wasmtime::Result<Engine> {
    Engine::new(config(stack_bytes).target(target)?)
}

fn config(stack_bytes: usize) -> Config {
    let mut config = Config::new();
    config
        .strategy(Strategy::Cranelift)
        .cranelift_opt_level(OptLevel::Speed)
        // Makes floating-point results the same on every CPU.
        .cranelift_nan_canonicalization(true)
        .wasm_relaxed_simd(false)
        .wasm_memory64(false)
        // Adapters between composed components copy from one memory to another. The memory limit covers all memories of
        // a call.
        .wasm_multi_memory(true)
        .wasm_tail_call(false)
        .wasm_component_model(true)
        .concurrency_support(false)
        .epoch_interruption(true)
        .consume_fuel(false)
        .max_wasm_stack(stack_bytes)
        .async_stack_size(stack_bytes.saturating_add(HOST_STACK_BYTES))
        // The pooling allocator saves microseconds, reserves a hundred gigabytes of address space and once leaked data
        // between instances.
        .allocation_strategy(InstanceAllocationStrategy::OnDemand)
        .memory_init_cow(true)
        .wasm_backtrace_details(WasmBacktraceDetails::Disable)
        .generate_address_map(true);
    config
}

/// Identifies compatible code: the version of wasmtime, its configuration, the target and [`REVISION`].
pub(crate) fn fingerprint(engine: &Engine) -> [u8; 32] {
    let mut hasher = Sha256Hasher(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    REVISION.hash(&mut hasher);
    std::env::consts::ARCH.hash(&mut hasher);
    std::env::consts::OS.hash(&mut hasher);
    hasher.0.finalize().into()
}

/// A `Hasher` whose full result is the SHA-256 of its input.
struct Sha256Hasher(Sha256);

impl Hasher for Sha256Hasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let hash = self.0.clone().finalize();
        hash.iter().take(8).fold(0, |word, byte| word << 8 | u64::from(*byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fingerprint_depends_on_the_configuration() {
        let same = || fingerprint(&engine(1 << 20).unwrap());
        assert_eq!(same(), same());
        let mut config = Config::new();
        config.concurrency_support(false).epoch_interruption(false);
        assert_ne!(same(), fingerprint(&Engine::new(&config).unwrap()));
    }
}
