//! A component in, a release out: wasmtime, limits, code cache.
