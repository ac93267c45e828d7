//! Functions that templates call.

use std::{any::Any, fmt};

use crate::{Error, Limit, Machine, Meter, Str, Value};

/// A function with its signature. Arguments are checked and converted before it is called, as Go does by reflection: a wrong type is reported at
/// the argument's position, a constant becomes what the parameter says, and the number of arguments is right.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// The types of the parameters.
    pub parameters: &'static [Type],
    /// The type of all further parameters (`...T`).
    pub rest: Option<Type>,
    /// The function itself.
    pub body: Body,
}

/// The code of a function.
pub type Body = fn(&mut Call<'_>, &[Value]) -> Result<Value, FunctionError>;

impl Function {
    /// A function with as many arguments as parameters.
    pub const fn new(parameters: &'static [Type], body: Body) -> Self {
        Self { parameters, rest: None, body }
    }

    /// A function with any number of further arguments.
    pub const fn variadic(parameters: &'static [Type], rest: Type, body: Body) -> Self {
        Self { parameters, rest: Some(rest), body }
    }
}

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `interface {}`: any value; nil is [`Value::Nil`].
    Any,
    /// `bool`: always a [`Value::Bool`].
    Bool,
    /// `int`: always a [`Value::Int`] of kind `Int`.
    Int,
    /// `int64`: always a [`Value::Int`] of kind `Int64`.
    Int64,
    /// `float64`: always a [`Value::Float`].
    Float,
    /// `string`: always a [`Value::String`].
    String,
    /// `[]interface {}`: always a [`Value::List`] of that type, or `Nil`.
    List,
    /// `[]string`: always a [`Value::List`] of that type, or `Nil`.
    Strings,
    /// `map[string]interface {}`: always a [`Value::Map`] of that type, or `Nil`.
    Map,
    /// A type of objects, by its name: always an object with that `type_name`.
    Object(&'static str),
}

impl Type {
    /// The name of the type in Go.
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "interface {}",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Int64 => "int64",
            Self::Float => "float64",
            Self::String => "string",
            Self::List => "[]interface {}",
            Self::Strings => "[]string",
            Self::Map => "map[string]interface {}",
            Self::Object(name) => name,
        }
    }
}

/// The functions of a set of templates. The built-in ones of text/template need not be among them; a function that is wins over a built-in one.
pub trait Functions {
    /// A function by its name. A template that calls one that does not exist cannot be parsed, as in Go.
    fn find(&self, name: &str) -> Option<Function>;

    /// A method of a named type of maps ([`Map::named`](crate::Map::named)). Its first parameter is the map. Methods are looked up before keys.
    fn method(&self, _type_name: &str, _name: &str) -> Option<Function> {
        None
    }

    /// Whether [`Functions::returned`] must see calls at this time.
    fn is_watching(&self, _call: &Call<'_>) -> bool {
        false
    }

    /// Looks at a call that succeeded, of a function or a built-in one, and gives the result that the template gets: the function's own or
    /// another one. `and` and `or` are seen only if they evaluate all of their arguments.
    ///
    /// # Errors
    /// The call fails with this error.
    fn returned(&self, _call: &mut Call<'_>, returned: Returned<'_>) -> Result<Value, FunctionError> {
        Ok(returned.result)
    }
}

/// A call that succeeded.
pub struct Returned<'a> {
    /// The name of the function.
    pub name: &'a str,
    /// The arguments, as the function got them.
    pub arguments: &'a [Value],
    /// The result.
    pub result: Value,
    /// Where the call is, as `TEMPLATE:LINE:COLUMN`. Finding out takes as long as the template is.
    pub place: &'a dyn Fn() -> String,
}

impl fmt::Debug for Returned<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Returned").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What a function reaches besides its arguments.
pub struct Call<'a> {
    pub(crate) machine: &'a mut Machine,
}

impl fmt::Debug for Call<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Call").finish_non_exhaustive()
    }
}

impl Call<'_> {
    /// Counts bytes that the function is about to allocate, or work of as many steps. Call it before allocating.
    pub fn charge(&mut self, bytes: usize) -> Result<(), FunctionError> {
        Ok(self.meter().charge(bytes)?)
    }

    /// What work and memory are counted by.
    pub fn meter(&mut self) -> &mut Meter {
        self.machine.meter()
    }

    /// What [`Machine::new`] got as the extension, if it is of this type: the state of the program around the templates.
    pub fn extension<T: Any>(&self) -> Option<&T> {
        self.machine.extension()
    }

    /// Calls a function by its name with these arguments, which are checked as in a template's call. For tests of functions.
    pub fn call(&mut self, name: &str, arguments: &[Value]) -> Result<Value, FunctionError> {
        self.machine.call(name, arguments)
    }

    /// Executes a template of the set, and gives its output.
    pub fn execute(&mut self, name: &str, dot: &Value) -> Result<Str, FunctionError> {
        Ok(self.machine.execute(name, dot)?)
    }

    /// Parses a text as a template of that name in a copy of the set (so that what it defines is visible in it only), executes it, and gives its
    /// output.
    pub fn evaluate(&mut self, name: &str, text: &str, dot: &Value) -> Result<Str, FunctionError> {
        Ok(self.machine.evaluate(name, text, dot)?)
    }

    /// Whether the set has a template.
    pub fn defines(&self, name: &str) -> bool {
        self.machine.defines(name)
    }
}

/// Why a function failed.
#[derive(Debug, thiserror::Error)]
pub enum FunctionError {
    /// The function returned an error.
    #[error("{0}")]
    Message(String),
    /// A template that the function executed failed.
    #[error(transparent)]
    Template(Box<Error>),
    /// The function does something that this renderer does not: `function` is its name, `reason` says why.
    #[error("{function} is not available: {reason}")]
    Refused {
        /// The name of the function.
        function: String,
        /// Why it is not available, and what to do instead.
        reason: String,
    },
    /// A limit is exceeded. It ends the execution, and has no position.
    #[error(transparent)]
    Limit(#[from] Limit),
}

impl FunctionError {
    /// An error with a text.
    pub fn new(message: impl Into<String>) -> Self {
        Self::Message(message.into())
    }
}

impl From<Box<Error>> for FunctionError {
    fn from(error: Box<Error>) -> Self {
        match *error {
            Error::Limit(limit) => Self::Limit(limit),
            _ => Self::Template(error),
        }
    }
}
