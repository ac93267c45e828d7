//! The types that travel from source to status: content, release, diagnostics. Pure: no cluster, no Wasm, no network.
