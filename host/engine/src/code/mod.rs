//! Compiled code: native instructions that run outside the sandbox if they are not what the compiler made.
//!
//! [`Code`] can only be had from the compiler or from the cache, which vouches for its bytes with a MAC. Loading it is the
//! one use of `unsafe` in Chandler.

mod cache;
mod quarantine;

use wasmtime::{Engine, component::Component};

pub(crate) use cache::{CodeCache, Lookup};
pub(crate) use quarantine::Quarantine;

/// Code that this process may run.
pub(crate) struct Code(Vec<u8>);

impl Code {
    /// Code as it came from the compiler.
    pub(crate) fn compiled(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Makes a component of it. Code for another version or configuration of wasmtime is a clean error.
    #[expect(unsafe_code, reason = "wasmtime cannot verify native code; who may make a `Code` is the verification")]
    pub(crate) fn load(&self, engine: &Engine) -> wasmtime::Result<Component> {
        // SAFETY: `deserialize` asks that the bytes be what `precompile_component` returned, unaltered. A `Code` is made in
        // two places. `Code::compiled` takes what this engine's compiler returned, in this process or through a pipe from
        // a child that this process started from its own program. `CodeCache::load` takes bytes of a file whose
        // HMAC-SHA256, under a key that only this user can read, was checked over exactly these bytes in memory: this
        // program wrote them, for this component and this configuration. Nothing changes the bytes afterwards: they are
        // owned, and `deserialize` copies them instead of mapping a file.
        unsafe { Component::deserialize(engine, &self.0) }
    }
}
