//! Compiled code: native instructions, which run outside the sandbox if the compiler did not produce them.
//!
//! A [`Code`] comes only from the compiler, from the cache, which authenticates its bytes with a MAC, or from this program, which contains
//! it. Loading it is the only use of `unsafe` in Chandler.

mod cache;
mod embedded;
mod quarantine;

use wasmtime::{Engine, component::Component};

pub(crate) use cache::{CodeCache, Lookup};
pub(crate) use embedded::{EMBEDDED, Embedded};
pub(crate) use quarantine::Quarantine;

/// Compiled code that this process may run.
pub(crate) struct Code(Vec<u8>);

impl Code {
    /// Wraps the output of the compiler.
    pub(crate) fn compiled(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Loads the component. Code for another version or configuration of wasmtime returns an error.
    #[expect(unsafe_code, reason = "wasmtime cannot verify native code; only trusted code can construct a `Code`")]
    pub(crate) fn load(&self, engine: &Engine) -> wasmtime::Result<Component> {
        // SAFETY: `deserialize` requires the unaltered bytes that `precompile_component` returned. A `Code` is
        // constructed in three places. `Code::compiled` takes what this engine's compiler returned, in this process or
        // through a pipe from a child that this process started from its own program. `CodeCache::load` takes the bytes
        // of a file and checks their HMAC-SHA256 in memory, under a key that only this user can read: this program
        // wrote them, for this component and this configuration. `Embedded::code` takes bytes that are a part of this
        // program, as its own instructions are: the build compiled them with this module's configuration, no file or
        // variable names them at run time, and wasmtime refuses another version of itself, other settings and
        // instructions that this processor lacks. The bytes cannot change afterwards: they are owned, and
        // `deserialize` copies them instead of mapping a file.
        unsafe { Component::deserialize(engine, &self.0) }
    }
}
