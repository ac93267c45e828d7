//! A set of templates, and the state of its execution.

use std::{any::Any, collections::BTreeMap, fmt, rc::Rc};

use crate::{
    Call, Error, FunctionError, Functions, Limits, Meter, Str, Value,
    builtin::{Builtin, Callee},
    execute::execute,
    literal::quote,
    node::Template,
    parse::{Parsed, parse},
};

/// How many texts of [`Machine::evaluate`] are kept in parsed form.
const CACHED: usize = 1000;

/// A set of templates in one namespace, and the state of its execution.
pub struct Machine {
    name: String,
    meter: Meter,
    pub(crate) functions: Rc<dyn Functions>,
    extension: Rc<dyn Any>,
    templates: Rc<BTreeMap<Rc<str>, Template>>,
    cache: BTreeMap<(Rc<str>, Rc<str>), Rc<Parsed>>,
}

impl fmt::Debug for Machine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Machine").field("meter", &self.meter).finish_non_exhaustive()
    }
}

impl Machine {
    /// A machine without templates. `extension` is what functions get from [`Call::extension`].
    pub fn new(functions: Rc<dyn Functions>, extension: Rc<dyn Any>, limits: Limits) -> Self {
        Self {
            name: String::new(),
            meter: Meter::new(limits),
            functions,
            extension,
            templates: Rc::default(),
            cache: BTreeMap::new(),
        }
    }

    /// Names the set, for the error about a template that it does not have.
    #[must_use]
    pub fn with_name(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
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
    pub fn defines(&self, name: &str) -> bool {
        self.templates.contains_key(name)
    }

    pub(crate) fn template(&self, name: &str) -> Option<Template> {
        self.templates.get(name).cloned()
    }

    /// Parses a text as a template of that name, and adds it and the templates that it defines. A template replaces one of its name, unless it
    /// is empty.
    pub fn parse(&mut self, name: &str, text: &str) -> Result<(), Box<Error>> {
        let parsed = self.parse_text(name, text)?;
        self.add(&parsed);
        Ok(())
    }

    fn parse_text(&mut self, name: &str, text: &str) -> Result<Parsed, Box<Error>> {
        // The nodes take more than the text.
        self.meter.charge(text.len().saturating_mul(4))?;
        self.meter.step(text.len() / 16)?;
        let functions = Rc::clone(&self.functions);
        parse(name, text, &|name| {
            functions.find(name).map(Callee::Function).or_else(|| Builtin::find(name).map(Callee::Builtin))
        })
    }

    fn add(&mut self, parsed: &Parsed) {
        for template in &parsed.templates {
            if template.source.is_empty(template.root) && self.templates.contains_key(&template.name) {
                continue;
            }
            Rc::make_mut(&mut self.templates).insert(Rc::clone(&template.name), template.clone());
        }
    }

    /// Calls a function by its name, without checking its arguments. For tests of functions.
    pub fn call(&mut self, name: &str, arguments: &[Value]) -> Result<Value, FunctionError> {
        let function =
            self.functions.find(name).ok_or_else(|| FunctionError::new(format!("function {name:?} not defined")))?;
        (function.body)(&mut Call { machine: self }, arguments)
    }

    /// Executes a template, and gives its output.
    pub fn execute(&mut self, name: &str, dot: &Value) -> Result<Str, Box<Error>> {
        let Some(template) = self.template(name) else {
            let (name, set) = (quote(name.as_bytes()), quote(self.name.as_bytes()));
            return Err(Error::Plain(format!("template: no template {name} associated with template {set}")).into());
        };
        Ok(execute(self, template, dot)?.into())
    }

    /// Parses a text as a template in a copy of the set, executes it, and gives its output.
    pub fn evaluate(&mut self, name: &str, text: &str, dot: &Value) -> Result<Str, Box<Error>> {
        let key = (Rc::from(name), Rc::from(text));
        let parsed = if let Some(parsed) = self.cache.get(&key) {
            Rc::clone(parsed)
        } else {
            let parsed = Rc::new(self.parse_text(name, text)?);
            if self.cache.len() >= CACHED {
                self.cache.clear();
            }
            self.cache.insert(key, Rc::clone(&parsed));
            parsed
        };
        // A set is copied only if the text defines something.
        let outer = Rc::clone(&self.templates);
        if parsed.templates.len() > 1 {
            self.meter.charge(outer.len().saturating_mul(64))?;
            self.meter.step(outer.len())?;
        }
        let own = parsed.templates.iter().all(|template| Rc::ptr_eq(&template.name, &parsed.main.name));
        if !own {
            self.add(&parsed);
        }
        let result = execute(self, parsed.main.clone(), dot);
        self.templates = outer;
        Ok(result?.into())
    }
}
