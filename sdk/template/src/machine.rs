//! The state of an execution.

use std::{any::Any, fmt, rc::Rc};

use crate::{Call, Error, FunctionError, Functions, Limits, Meter, Str, Value};

/// Executes the templates of a set.
pub struct Machine {
    meter: Meter,
    functions: Rc<dyn Functions>,
    extension: Rc<dyn Any>,
}

impl fmt::Debug for Machine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Machine").field("meter", &self.meter).finish_non_exhaustive()
    }
}

impl Machine {
    /// A machine without templates. `extension` is what functions get from [`crate::Call::extension`].
    pub fn new(functions: Rc<dyn Functions>, extension: Rc<dyn Any>, limits: Limits) -> Self {
        Self { meter: Meter::new(limits), functions, extension }
    }

    /// What work and memory are counted by.
    pub fn meter(&mut self) -> &mut Meter {
        &mut self.meter
    }

    /// The extension, if it is of this type.
    pub fn extension<T: Any>(&self) -> Option<&T> {
        self.extension.downcast_ref()
    }

    /// Whether there is a template.
    pub fn defines(&self, _name: &str) -> bool {
        false
    }

    /// Calls a function by its name. For tests of functions.
    pub fn call(&mut self, name: &str, arguments: &[Value]) -> Result<Value, FunctionError> {
        let function =
            self.functions.find(name).ok_or_else(|| FunctionError::new(format!("function {name:?} not defined")))?;
        (function.body)(&mut Call { machine: self }, arguments)
    }

    /// Executes a template, and gives its output.
    pub fn execute(&mut self, name: &str, _dot: &Value) -> Result<Str, Box<Error>> {
        Err(Error::Plain(name.to_owned()).into())
    }

    /// Parses a text as a template in a copy of the set, executes it, and gives its output.
    pub fn evaluate(&mut self, name: &str, text: &str, _dot: &Value) -> Result<Str, Box<Error>> {
        Err(Error::Plain(format!("{name}{text}{}", self.functions.find("").is_some())).into())
    }
}
