//! Components of core modules.

use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wasmparser::{Encoding, Parser, Payload};
use wit_component::ComponentEncoder;

/// A module cannot be made a component.
#[derive(Debug, thiserror::Error)]
pub enum ComponentError {
    /// The bytes are a component.
    #[error("it is a component already")]
    IsAComponent,
    /// The bytes are not a core module with the types of an interface.
    #[error("{0:#}")]
    Refused(anyhow::Error),
}

/// The component of a core module that was compiled with bindings of the contract, such as the SDK's. A module for WASI preview 1
/// (`wasm32-wasip1`) gets the adapter to WASI 0.2.
///
/// # Errors
/// The bytes are not such a module.
pub fn component(module: &[u8]) -> Result<Vec<u8>, ComponentError> {
    let refused = |error: anyhow::Error| ComponentError::Refused(error);
    let mut encoder = ComponentEncoder::default()
        .module(module)
        .map_err(|error| if is_component(module) { ComponentError::IsAComponent } else { refused(error) })?;
    if imports_preview1(module) {
        let (name, adapter) = (WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER);
        encoder = encoder.adapter(name, adapter).map_err(refused)?;
    }
    encoder.validate(true).encode().map_err(refused)
}

fn is_component(bytes: &[u8]) -> bool {
    let first = Parser::new(0).parse_all(bytes).next();
    matches!(first, Some(Ok(Payload::Version { encoding: Encoding::Component, .. })))
}

/// Whether a core module imports functions of WASI preview 1.
fn imports_preview1(module: &[u8]) -> bool {
    let imports = Parser::new(0).parse_all(module).map_while(Result::ok).filter_map(|payload| match payload {
        Payload::ImportSection(section) => Some(section),
        _ => None,
    });
    imports
        .flat_map(wasmparser::SectionLimited::into_imports)
        .map_while(Result::ok)
        .any(|import| import.module == WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_module_is_refused() {
        let wasm = wat::parse_str("(component)").unwrap();
        assert!(matches!(component(&wasm), Err(ComponentError::IsAComponent)));
        assert!(matches!(component(b"#!/bin/sh"), Err(ComponentError::Refused(_))));
        assert!(matches!(component(b""), Err(ComponentError::Refused(_))));
    }

    #[test]
    fn a_module_for_preview_1_gets_the_adapter() {
        let module =
            r#"(module (import "wasi_snapshot_preview1" "proc_exit" (func (param i32))) (memory (export "memory") 1))"#;
        assert!(imports_preview1(&wat::parse_str(module).unwrap()));
        assert!(!imports_preview1(&wat::parse_str("(module (memory 1))").unwrap()));
        let made = component(&wat::parse_str(module).unwrap()).unwrap();
        assert!(is_component(&made));
    }
}
