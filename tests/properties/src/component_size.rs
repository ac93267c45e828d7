//! The size of an instantiated component: the computed size is compared with an expansion of every instance.

use std::fmt::Write as _;

use arbitrary::{Arbitrary, Unstructured};
use chandler_core::text::is_deceptive;
use chandler_engine::{
    LoadError,
    size::{INSTANCES, ITEMS, Size, measure},
};
use wasmparser::{Validator, WasmFeatures};

use crate::memory;

/// Definitions are measured at their end; each takes less than two hundred bytes.
const FIXED: usize = 1 << 20;
const PER_BYTE: usize = 200;
/// The maximum nesting depth of generated components.
const DEPTH: usize = 12;
/// The message of a refusal of components whose instances cannot be counted.
const UNCOUNTABLE: &str = "components or modules as values";

/// A part of a component, in textual order. Numbers are indexes of earlier parts.
#[derive(Debug, Arbitrary)]
enum Part {
    /// Opens a nested component.
    Open,
    /// Closes the current component.
    Close,
    Module {
        memories: u8,
        tables: u8,
    },
    CoreInstances {
        module: u8,
        times: u8,
    },
    Instances {
        component: u8,
        times: u8,
    },
    /// Instances that bundle exports and instantiate nothing.
    Bundles {
        is_core: bool,
        times: u8,
    },
    Alias {
        is_core: bool,
        outer: u8,
        index: u8,
    },
    Types(u8),
    /// An export or alias that others can instantiate.
    PassedOn(u8),
}

#[derive(Debug, Arbitrary)]
struct Input {
    parts: Vec<Part>,
    /// Bytes of the binary that are overwritten.
    edits: Vec<(u16, u8)>,
}

pub(crate) fn holds(input: &[u8]) {
    let _ = bytes(input);
    let Ok(Input { parts, edits }) = Arbitrary::arbitrary_take_rest(Unstructured::new(input)) else { return };
    let mut model = Model::of(&parts);
    let mut wasm = wat::parse_str(&model.text).expect("a component in text");
    let measured = bytes(&wasm);
    model.assert(&measured);
    for (place, edit) in edits {
        let place = usize::from(place) % wasm.len().max(1);
        if let Some(byte) = wasm.get_mut(place) {
            *byte ^= edit;
        }
    }
    let _ = bytes(&wasm);
}

/// Any bytes are measured within bounds, or rejected with a reason.
fn bytes(wasm: &[u8]) -> Result<Size, LoadError> {
    let measured = memory::bounded(wasm, FIXED, PER_BYTE, || measure(wasm));
    match &measured {
        Ok(size) => assert!(size.instances <= INSTANCES && size.items <= ITEMS, "{size:?}"),
        Err(LoadError::LimitExceeded(_)) => {}
        Err(LoadError::NotAComponent(text)) => {
            assert!(!text.trim().is_empty() && text.len() <= 512 && !text.contains(is_deceptive), "{text:?}");
            let is_valid = Validator::new_with_features(WasmFeatures::all()).validate_all(wasm).is_ok();
            assert!(!is_valid || text.contains(UNCOUNTABLE), "a valid component is rejected: {text}");
        }
        Err(other) => panic!("refused for something else: {other}"),
    }
    measured
}

/// What each instantiation of a definition creates. Definitions are numbered.
#[derive(Debug, Default)]
struct Definition {
    cores: Vec<(u64, u64)>,
    components: Vec<usize>,
    bundles: u64,
    items: u64,
}

/// A component that is still open.
#[derive(Debug, Default)]
struct Scope {
    definition: Definition,
    /// The memories and tables of each module in scope.
    modules: Vec<(u64, u64)>,
    components: Vec<usize>,
}

/// The component as text, and all its definitions.
#[derive(Debug, Default)]
struct Model {
    text: String,
    scopes: Vec<Scope>,
    definitions: Vec<Definition>,
    is_passed_on: bool,
}

impl Model {
    fn of(parts: &[Part]) -> Self {
        let mut model = Self { text: "(component ".to_owned(), scopes: vec![Scope::default()], ..Self::default() };
        for part in parts {
            model.add(part);
        }
        while model.scopes.len() > 1 {
            model.close();
        }
        model.text.push(')');
        model
    }

    fn add(&mut self, part: &Part) {
        let times = |times: u8| u64::from(times % 24);
        match *part {
            Part::Open if self.scopes.len() < DEPTH => {
                self.text.push_str("(component ");
                self.scopes.push(Scope::default());
            }
            Part::Close if self.scopes.len() > 1 => self.close(),
            Part::Open | Part::Close => {}
            Part::Module { memories, tables } => {
                let (memories, tables) = (usize::from(memories % 4), usize::from(tables % 4));
                let (memory, table) = ("(memory 1)".repeat(memories), "(table 1 funcref)".repeat(tables));
                let _ = write!(self.text, "(core module {memory} {table})");
                self.top().modules.push((memories as u64, tables as u64));
            }
            Part::CoreInstances { module, times: number } => {
                let Some((place, module)) = pick(&self.top().modules, module) else { return };
                for _ in 0..times(number) {
                    let _ = write!(self.text, "(core instance (instantiate {place}))");
                    self.top().definition.cores.push(module);
                }
            }
            Part::Instances { component, times: number } => {
                let Some((place, component)) = pick(&self.top().components, component) else { return };
                for _ in 0..times(number) {
                    let _ = write!(self.text, "(instance (instantiate {place}))");
                    self.top().definition.components.push(component);
                }
            }
            Part::Bundles { is_core, times: number } => {
                let text = if is_core { "(core instance)" } else { "(instance)" };
                for _ in 0..times(number) {
                    self.text.push_str(text);
                    self.top().definition.bundles += 1;
                }
            }
            Part::Alias { is_core, outer, index } => self.alias(is_core, outer, index),
            Part::Types(number) => {
                for _ in 0..times(number) {
                    self.text.push_str("(type (func))");
                    self.top().definition.items += 1;
                }
            }
            Part::PassedOn(how) => self.pass_on(how),
        }
    }

    /// An alias of a definition of an outer component.
    fn alias(&mut self, is_core: bool, outer: u8, index: u8) {
        let count = usize::from(outer) % self.scopes.len();
        let scope = &self.scopes[self.scopes.len() - 1 - count];
        if is_core {
            let Some((place, module)) = pick(&scope.modules, index) else { return };
            let _ = write!(self.text, "(alias outer {count} {place} (core module))");
            self.top().modules.push(module);
        } else {
            let Some((place, component)) = pick(&scope.components, index) else { return };
            let _ = write!(self.text, "(alias outer {count} {place} (component))");
            self.top().components.push(component);
        }
        self.top().definition.items += 1;
    }

    fn pass_on(&mut self, how: u8) {
        // Only a few of these: most inputs would be rejected otherwise.
        let (modules, components) = (self.top().modules.len(), self.top().components.len());
        match how {
            0 if components > 0 => self.text.push_str("(instance (export \"c\" (component 0)))"),
            1 if modules > 0 => self.text.push_str("(instance (export \"m\" (core module 0)))"),
            _ => return,
        }
        self.is_passed_on = true;
    }

    fn close(&mut self) {
        let Some(scope) = self.scopes.pop() else { return };
        self.text.push(')');
        self.definitions.push(scope.definition);
        let number = self.definitions.len() - 1;
        self.top().components.push(number);
    }

    fn top(&mut self) -> &mut Scope {
        self.scopes.last_mut().expect("the root, which stays")
    }

    /// Asserts that the measured size is the real one, or that the component is rejected as too large.
    fn assert(&mut self, measured: &Result<Size, LoadError>) {
        if self.is_passed_on {
            let text = measured.as_ref().expect_err("what cannot be counted is measured").to_string();
            return assert!(text.contains(UNCOUNTABLE), "{text}");
        }
        let root = std::mem::take(&mut self.top().definition);
        let mut size = Size::default();
        let is_small = self.expand(&root, &mut size);
        match measured {
            Ok(measured) => assert_eq!((measured, true), (&size, is_small), "{}", self.text),
            Err(LoadError::LimitExceeded(_)) => assert!(!is_small, "rejected at {size:?}: {}", self.text),
            Err(error) => panic!("{error}: {}", self.text),
        }
    }

    /// Expands every instance. Returns whether that ended within the bounds.
    fn expand(&self, definition: &Definition, size: &mut Size) -> bool {
        size.items += definition.items;
        size.instances += definition.bundles;
        for (memories, tables) in &definition.cores {
            size.instances += 1;
            size.core_instances += 1;
            size.memories += memories;
            size.tables += tables;
        }
        let is_small = |size: &Size| size.instances <= INSTANCES && size.items <= ITEMS;
        is_small(size)
            && definition.components.iter().all(|number| {
                size.instances += 1;
                is_small(size) && self.expand(&self.definitions[*number], size)
            })
    }
}

/// Picks one of these by any number, with its index.
fn pick<T: Copy>(from: &[T], number: u8) -> Option<(usize, T)> {
    let place = usize::from(number).checked_rem(from.len())?;
    Some((place, *from.get(place)?))
}
