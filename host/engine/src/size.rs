//! The size of a component: everything that it instantiates, counted through all nesting.
//!
//! A component may instantiate another component several times, which in turn instantiates a third: a few kilobytes can
//! expand to millions of instances, and wasmtime compiles each of them. They are therefore counted beforehand by
//! multiplication, without expanding them: each definition is measured once, at its end, and every instantiation adds
//! that measurement.

use wasmparser::{
    ComponentAlias, ComponentExternalKind, ComponentInstance, ComponentOuterAliasKind, ComponentTypeRef, Encoding,
    Instance, Parser, Payload,
};

use crate::{LimitExceeded, LimitKind, Limits, LoadError, text::sanitize};

/// The most instances after expansion, of core modules and components together: as many as wasmtime validates in one component
/// (`MAX_WASM_INSTANCES` of wasmparser), so that nesting allows no more than a flat component. Components from common toolchains have fewer than
/// fifty.
pub const INSTANCES: u64 = 1000;

/// The most items (aliases, functions, types, imports and exports) in all component sections after expansion.
pub const ITEMS: u64 = 200_000;

/// The size of one instantiation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Instances of modules and components, including those that only group exports.
    pub instances: u64,
    /// Instances of core modules.
    pub core_instances: u64,
    /// Memories, for each instance of a core module.
    pub memories: u64,
    /// Tables, for each instance of a core module.
    pub tables: u64,
    /// Items of component sections: aliases, functions, types, imports and exports.
    pub items: u64,
}

impl Size {
    fn add(&mut self, other: Self) {
        let sum = |to: &mut u64, more: u64| *to = to.saturating_add(more);
        sum(&mut self.instances, other.instances);
        sum(&mut self.core_instances, other.core_instances);
        sum(&mut self.memories, other.memories);
        sum(&mut self.tables, other.tables);
        sum(&mut self.items, other.items);
    }

    fn items(&mut self, count: u32) {
        self.items = self.items.saturating_add(u64::from(count));
    }

    /// The compile-time bound that is exceeded, if any.
    fn excess(&self) -> Option<LimitExceeded> {
        first_above([
            (LimitKind::ExpandedInstances, self.instances, INSTANCES),
            (LimitKind::ExpandedItems, self.items, ITEMS),
        ])
    }

    /// The count limit that a call would exceed, if any. wasmtime reports these only as text.
    pub(crate) fn excess_in_call(&self, limits: &Limits) -> Option<LimitExceeded> {
        first_above([
            (LimitKind::Instances, self.core_instances, u64::from(limits.instances)),
            (LimitKind::Memories, self.memories, u64::from(limits.memories)),
            (LimitKind::Tables, self.tables, u64::from(limits.memories)),
        ])
    }
}

fn first_above<const N: usize>(counts: [(LimitKind, u64, u64); N]) -> Option<LimitExceeded> {
    let (kind, _, limit) = counts.into_iter().find(|(_, count, limit)| count > limit)?;
    Some(LimitExceeded { kind, limit, object: None })
}

/// Counts what a component instantiates. Fails if it exceeds the bounds or cannot be counted.
///
/// # Errors
/// [`LoadError::LimitExceeded`] above [`INSTANCES`] or [`ITEMS`]; [`LoadError::NotAComponent`] if the bytes cannot be
/// read or counted.
pub fn measure(wasm: &[u8]) -> Result<Size, LoadError> {
    let mut walk = Walk::default();
    for payload in Parser::new(0).parse_all(wasm) {
        walk.payload(payload.map_err(|error| malformed(&error))?)?;
    }
    match walk.whole.excess() {
        Some(exceeded) => Err(LoadError::LimitExceeded(Box::new(exceeded))),
        None => Ok(walk.whole),
    }
}

fn malformed(error: &wasmparser::BinaryReaderError) -> LoadError {
    LoadError::NotAComponent(sanitize(error.to_string(), 512))
}

/// Components and modules that are passed as values can be instantiated by their receiver; how often cannot be computed
/// without expanding everything. Common toolchains do not produce them.
fn uncountable() -> LoadError {
    LoadError::NotAComponent("it passes components or modules as values, which is not supported".into())
}

/// A component or module whose end has not been reached yet.
struct Frame {
    encoding: Encoding,
    size: Size,
    /// The size of each module and component in the index spaces.
    modules: Vec<Size>,
    components: Vec<Size>,
}

#[derive(Default)]
struct Walk {
    frames: Vec<Frame>,
    whole: Size,
}

impl Walk {
    fn payload(&mut self, payload: Payload<'_>) -> Result<(), LoadError> {
        match payload {
            Payload::Version { encoding, .. } => {
                self.frames.push(Frame {
                    encoding,
                    size: Size::default(),
                    modules: Vec::new(),
                    components: Vec::new(),
                });
            }
            Payload::End(_) => self.end(),
            payload => match self.frames.last_mut() {
                Some(frame) if frame.encoding == Encoding::Module => frame.module_section(&payload),
                Some(_) => self.component_section(payload)?,
                None => {}
            },
        }
        Ok(())
    }

    fn end(&mut self) {
        let Some(frame) = self.frames.pop() else { return };
        match (self.frames.last_mut(), frame.encoding) {
            (None, _) => self.whole = frame.size,
            (Some(parent), Encoding::Module) => parent.modules.push(frame.size),
            (Some(parent), Encoding::Component) => parent.components.push(frame.size),
        }
    }

    fn component_section(&mut self, payload: Payload<'_>) -> Result<(), LoadError> {
        if let Payload::ComponentAliasSection(section) = payload {
            self.top()?.size.items(section.count());
            for alias in section {
                self.alias(&alias.map_err(|error| malformed(&error))?)?;
            }
            return Ok(());
        }
        let frame = self.top()?;
        match payload {
            Payload::InstanceSection(section) => {
                for instance in section {
                    frame.core_instance(&instance.map_err(|error| malformed(&error))?)?;
                }
            }
            Payload::ComponentInstanceSection(section) => {
                for instance in section {
                    frame.instance(&instance.map_err(|error| malformed(&error))?)?;
                }
            }
            Payload::ComponentImportSection(section) => {
                frame.size.items(section.count());
                for import in section {
                    let import = import.map_err(|error| malformed(&error))?;
                    if matches!(import.ty, ComponentTypeRef::Module(_) | ComponentTypeRef::Component(_)) {
                        return Err(uncountable());
                    }
                }
            }
            Payload::ComponentExportSection(section) => {
                frame.size.items(section.count());
                for export in section {
                    let export = export.map_err(|error| malformed(&error))?;
                    if is_definition(export.kind) {
                        return Err(uncountable());
                    }
                }
            }
            Payload::ComponentCanonicalSection(section) => frame.size.items(section.count()),
            Payload::ComponentTypeSection(section) => frame.size.items(section.count()),
            Payload::CoreTypeSection(section) => frame.size.items(section.count()),
            _ => {}
        }
        Ok(())
    }

    fn alias(&mut self, alias: &ComponentAlias<'_>) -> Result<(), LoadError> {
        match *alias {
            ComponentAlias::InstanceExport { kind, .. } if is_definition(kind) => Err(uncountable()),
            ComponentAlias::Outer { kind, count, index } => {
                let outer = self.frames.len().checked_sub(1).and_then(|last| last.checked_sub(count as usize));
                let outer = outer.and_then(|position| self.frames.get(position));
                let index = index as usize;
                match kind {
                    ComponentOuterAliasKind::CoreModule => {
                        let size = *outer.and_then(|outer| outer.modules.get(index)).ok_or_else(dangling)?;
                        self.top()?.modules.push(size);
                    }
                    ComponentOuterAliasKind::Component => {
                        let size = *outer.and_then(|outer| outer.components.get(index)).ok_or_else(dangling)?;
                        self.top()?.components.push(size);
                    }
                    ComponentOuterAliasKind::CoreType | ComponentOuterAliasKind::Type => {}
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn top(&mut self) -> Result<&mut Frame, LoadError> {
        self.frames.last_mut().ok_or_else(dangling)
    }
}

impl Frame {
    fn module_section(&mut self, payload: &Payload<'_>) {
        let sum = |to: &mut u64, more: u32| *to = to.saturating_add(u64::from(more));
        match payload {
            Payload::MemorySection(section) => sum(&mut self.size.memories, section.count()),
            Payload::TableSection(section) => sum(&mut self.size.tables, section.count()),
            _ => {}
        }
    }

    fn core_instance(&mut self, instance: &Instance<'_>) -> Result<(), LoadError> {
        self.size.instances = self.size.instances.saturating_add(1);
        match instance {
            Instance::Instantiate { module_index, args } => {
                let module = *self.modules.get(*module_index as usize).ok_or_else(dangling)?;
                self.size.add(module);
                self.size.core_instances = self.size.core_instances.saturating_add(1);
                self.size.items(u32::try_from(args.len()).unwrap_or(u32::MAX));
            }
            Instance::FromExports(exports) => self.size.items(u32::try_from(exports.len()).unwrap_or(u32::MAX)),
        }
        Ok(())
    }

    fn instance(&mut self, instance: &ComponentInstance<'_>) -> Result<(), LoadError> {
        self.size.instances = self.size.instances.saturating_add(1);
        match instance {
            ComponentInstance::Instantiate { component_index, args } => {
                if args.iter().any(|argument| is_definition(argument.kind)) {
                    return Err(uncountable());
                }
                let component = *self.components.get(*component_index as usize).ok_or_else(dangling)?;
                self.size.add(component);
                self.size.items(u32::try_from(args.len()).unwrap_or(u32::MAX));
            }
            ComponentInstance::FromExports(exports) => {
                if exports.iter().any(|export| is_definition(export.kind)) {
                    return Err(uncountable());
                }
                self.size.items(u32::try_from(exports.len()).unwrap_or(u32::MAX));
            }
        }
        Ok(())
    }
}

fn is_definition(kind: ComponentExternalKind) -> bool {
    matches!(kind, ComponentExternalKind::Module | ComponentExternalKind::Component)
}

fn dangling() -> LoadError {
    LoadError::NotAComponent("it refers to an undefined index".into())
}

#[cfg(test)]
mod tests {
    use chandler_test_components::nested;
    use proptest::prelude::*;

    use super::*;

    fn size(text: &str) -> Result<Size, String> {
        measure(&wat::parse_str(text).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn instances_multiply_through_nesting() {
        assert_eq!(size(&nested(3, 4, "")).unwrap().instances, 4 + 16 + 64);
        let text = size(&nested(15, 16, "")).unwrap_err();
        assert_eq!(text, "the provisioner exceeded the limit of 1000 instances after expansion");
        // Side by side instead of nested, and reached through aliases.
        let step = |number: u32| {
            let before = number - 1;
            format!("(component $c{number} {})", format!("(instance (instantiate $c{before}))").repeat(2))
        };
        let chain: String = (1..200).map(step).collect();
        assert!(size(&format!("(component $root (component $c0) {chain} (instance (instantiate $c199)))")).is_err());
    }

    #[test]
    fn memories_and_tables_are_counted_for_each_instance() {
        let text = "(component
            (core module $m (memory 1) (table 1 funcref) (table 1 funcref))
            (component $c (core instance (instantiate $m)) (core instance (instantiate $m)))
            (instance (instantiate $c)) (instance (instantiate $c)) (core instance (instantiate $m)))";
        let size = size(text).unwrap();
        assert_eq!((size.core_instances, size.memories, size.tables, size.instances), (5, 5, 10, 7));
        let limits = Limits { instances: 5, memories: 5, ..Limits::default() };
        assert_eq!(size.excess_in_call(&limits).unwrap().to_string(), "the provisioner exceeded the limit of 5 tables");
        let limits = Limits { instances: 4, ..limits };
        let text = size.excess_in_call(&limits).unwrap().to_string();
        assert_eq!(text, "the provisioner exceeded the limit of 4 core instances");
    }

    #[test]
    fn components_passed_as_values_are_rejected() {
        for text in [
            "(component (import \"c\" (component)))",
            "(component (component $c (import \"m\" (core module))))",
            "(component (component $c) (instance (export \"c\" (component $c))))",
            "(component (component $c) (export \"c\" (component $c)))",
        ] {
            assert!(size(text).unwrap_err().contains("components or modules as values"), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>, cut in 0_usize..400) {
            let _ = measure(&bytes);
            let mut wasm = wat::parse_str(nested(3, 2, "")).unwrap();
            wasm.truncate(cut);
            wasm.extend(bytes);
            let _ = measure(&wasm);
        }
    }
}
