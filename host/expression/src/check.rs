//! Checks of an expression before it runs: that it uses only names that exist, and often its type.
//!
//! This is not a type checker: an operator with operands of wrong types is found when it runs.

use std::fmt;

use cel::{
    IdedExpr,
    common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, operators as named},
};

use crate::evaluate::functions::{is_function, is_qualified, is_type};

/// The type of an expression, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `true` or `false`.
    Bool,
    /// A whole number.
    Int,
    /// A text.
    String,
    /// `null`.
    Null,
    /// Another type than those above.
    Other,
    /// A value whose type depends on the data.
    Dynamic,
    /// Not known here.
    Unknown,
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bool => "bool",
            Self::Int => "int",
            Self::String => "string",
            Self::Null => "null_type",
            Self::Dynamic => "dyn",
            Self::Other | Self::Unknown => "another type",
        })
    }
}

/// What an expression may use besides the language's own.
pub trait Declarations {
    /// The type of a variable.
    fn variable(&self, name: &str) -> Option<Type>;

    /// The type of a field of a variable of a known type; an error if there is no such field, `None` if the fields are not known.
    fn field(&self, variable: &str, field: &str) -> Option<Result<Type, UndefinedField>>;

    /// The type that a function returns.
    fn function(&self, name: &str) -> Option<Type>;
}

/// A variable has no such field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UndefinedField;

/// An expression uses what does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// There is no such variable or function.
    #[error("undeclared reference to '{0}' (in container '')")]
    Undeclared(String),
    /// A variable has no such field.
    #[error("undefined field '{0}'")]
    UndefinedField(String),
    /// An operator or function does not take a value of this type.
    #[error("found no matching overload for '{0}' applied to '({1})'")]
    NoOverload(String, Type),
    /// Messages cannot be made.
    #[error("undeclared reference to '{0}' (in container '')")]
    Message(String),
}

/// Checks the names of an expression, and infers its type.
///
/// # Errors
/// With the first name that does not exist.
pub fn check(expression: &IdedExpr, declarations: &dyn Declarations) -> Result<Type, CheckError> {
    Checker { declarations, bound: Vec::new() }.infer(expression)
}

struct Checker<'a> {
    declarations: &'a dyn Declarations,
    /// The variables of the loops around, the innermost last.
    bound: Vec<(&'a str, Type)>,
}

impl<'a> Checker<'a> {
    fn infer(&mut self, expression: &'a IdedExpr) -> Result<Type, CheckError> {
        match &expression.expr {
            Expr::Literal(literal) => Ok(match literal {
                LiteralValue::Boolean(_) => Type::Bool,
                LiteralValue::Int(_) => Type::Int,
                LiteralValue::String(_) => Type::String,
                LiteralValue::Null => Type::Null,
                _ => Type::Other,
            }),
            Expr::Ident(name) => self.variable(name),
            Expr::Select(select) => {
                if let Expr::Ident(name) = &select.operand.expr
                    && !self.is_bound(name)
                    && let Some(field) = self.declarations.field(name, &select.field)
                {
                    let field = field.map_err(|UndefinedField| CheckError::UndefinedField(select.field.clone()))?;
                    return Ok(if select.test { Type::Bool } else { field });
                }
                let operand = self.infer(&select.operand)?;
                Ok(match operand {
                    _ if select.test => Type::Bool,
                    Type::Dynamic => Type::Dynamic,
                    Type::Bool | Type::Int | Type::String => {
                        return Err(CheckError::UndefinedField(select.field.clone()));
                    }
                    _ => Type::Unknown,
                })
            }
            Expr::Call(call) => self.call(call),
            Expr::List(list) => {
                list.elements.iter().try_for_each(|element| self.infer(element).map(drop))?;
                Ok(Type::Other)
            }
            Expr::Map(map) => {
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        self.infer(&entry.key)?;
                        self.infer(&entry.value)?;
                    }
                }
                Ok(Type::Other)
            }
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::Struct(message) => Err(CheckError::Message(message.type_name.clone())),
            Expr::Unspecified => Ok(Type::Unknown),
        }
    }

    fn variable(&self, name: &str) -> Result<Type, CheckError> {
        if let Some((_, bound)) = self.bound.iter().rev().find(|(bound, _)| *bound == name) {
            return Ok(*bound);
        }
        let declared = self.declarations.variable(name).or_else(|| is_type(name).then_some(Type::Other));
        declared.ok_or_else(|| CheckError::Undeclared(name.to_owned()))
    }

    fn is_bound(&self, name: &str) -> bool {
        self.bound.iter().any(|(bound, _)| *bound == name)
    }

    fn call(&mut self, call: &'a CallExpr) -> Result<Type, CheckError> {
        let name = call.func_name.as_str();
        if let Some(target) = &call.target {
            if let Expr::Ident(prefix) = &target.expr
                && !self.is_bound(prefix)
                && is_qualified(prefix, name)
            {
                self.all(&call.args)?;
                return Ok(if prefix == "sets" { Type::Bool } else { Type::Unknown });
            }
            self.infer(target)?;
            self.all(&call.args)?;
            if let Some(declared) = self.declarations.function(name) {
                return Ok(declared);
            }
            return if is_function(name) { Ok(returned(name)) } else { Err(CheckError::Undeclared(name.to_owned())) };
        }
        let types = self.all(&call.args)?;
        let logical = |position: usize| match types.get(position) {
            Some(wrong @ (Type::Int | Type::String | Type::Null)) => {
                Err(CheckError::NoOverload(name.to_owned(), *wrong))
            }
            _ => Ok(()),
        };
        Ok(match (name, types.as_slice()) {
            (named::LOGICAL_AND | named::LOGICAL_OR, _) => {
                logical(0)?;
                logical(1)?;
                Type::Bool
            }
            (named::LOGICAL_NOT, _) => {
                logical(0)?;
                Type::Bool
            }
            (
                named::NOT_STRICTLY_FALSE
                | named::EQUALS
                | named::NOT_EQUALS
                | named::LESS
                | named::LESS_EQUALS
                | named::GREATER
                | named::GREATER_EQUALS
                | named::IN,
                _,
            ) => Type::Bool,
            (named::CONDITIONAL, [_, yes, no]) => joined(*yes, *no),
            (named::INDEX, [Type::Dynamic, _]) => Type::Dynamic,
            (named::ADD, [left, right]) => sum(*left, *right)?,
            (named::SUBSTRACT | named::MULTIPLY | named::DIVIDE | named::MODULO, [Type::Int, _] | [_, Type::Int]) => {
                Type::Int
            }
            (
                named::INDEX
                | named::OPT_INDEX
                | named::OPT_SELECT
                | named::NEGATE
                | named::SUBSTRACT
                | named::MULTIPLY
                | named::DIVIDE
                | named::MODULO,
                _,
            ) => Type::Unknown,
            ("dyn", _) => Type::Dynamic,
            _ if is_function(name) => returned(name),
            _ => return Err(CheckError::Undeclared(name.to_owned())),
        })
    }

    fn all(&mut self, expressions: &'a [IdedExpr]) -> Result<Vec<Type>, CheckError> {
        expressions.iter().map(|expression| self.infer(expression)).collect()
    }

    fn comprehension(&mut self, comprehension: &'a ComprehensionExpr) -> Result<Type, CheckError> {
        let range = self.infer(&comprehension.iter_range)?;
        if let Type::Bool | Type::Int | Type::String | Type::Null = range {
            return Err(CheckError::NoOverload("comprehension range".to_owned(), range));
        }
        let result = self.infer(&comprehension.accu_init)?;
        let height = self.bound.len();
        self.bound.push((&comprehension.accu_var, result));
        let item = if range == Type::Dynamic { Type::Dynamic } else { Type::Unknown };
        self.bound.push((&comprehension.iter_var, item));
        let inside = [&comprehension.loop_cond, &comprehension.loop_step, &comprehension.result];
        let mut last = Ok(Type::Unknown);
        for part in inside {
            last = self.infer(part);
            if last.is_err() {
                break;
            }
        }
        self.bound.truncate(height);
        last
    }
}

/// The type of one of two values.
fn joined(left: Type, right: Type) -> Type {
    match (left, right) {
        _ if left == right => left,
        (Type::Dynamic, _) | (_, Type::Dynamic) => Type::Dynamic,
        _ => Type::Unknown,
    }
}

fn sum(left: Type, right: Type) -> Result<Type, CheckError> {
    match (left, right) {
        (Type::Int | Type::Bool | Type::Null, Type::String) | (Type::Bool | Type::Null, _) => {
            Err(CheckError::NoOverload(named::ADD.to_owned(), left))
        }
        (Type::String, Type::Int | Type::Bool | Type::Null) | (_, Type::Bool | Type::Null) => {
            Err(CheckError::NoOverload(named::ADD.to_owned(), right))
        }
        (Type::String, _) | (_, Type::String) => Ok(Type::String),
        (Type::Int, _) | (_, Type::Int) => Ok(Type::Int),
        (Type::Dynamic, Type::Dynamic) => Ok(Type::Dynamic),
        _ => Ok(Type::Unknown),
    }
}

/// The type that a function of the language returns.
fn returned(name: &str) -> Type {
    match name {
        "bool"
        | "contains"
        | "containsCIDR"
        | "containsIP"
        | "endsWith"
        | "hasValue"
        | "isCIDR"
        | "isGlobalUnicast"
        | "isGreaterThan"
        | "isIP"
        | "isInteger"
        | "isLessThan"
        | "isLinkLocalMulticast"
        | "isLinkLocalUnicast"
        | "isLoopback"
        | "isQuantity"
        | "isSemver"
        | "isSorted"
        | "isURL"
        | "isUnspecified"
        | "matches"
        | "startsWith" => Type::Bool,
        "asInteger" | "compareTo" | "family" | "indexOf" | "int" | "lastIndexOf" | "major" | "minor" | "patch"
        | "prefixLength" | "size" => Type::Int,
        "charAt" | "find" | "format" | "getEscapedPath" | "getHost" | "getHostname" | "getPort" | "getScheme"
        | "join" | "lowerAscii" | "replace" | "string" | "substring" | "trim" | "upperAscii" => Type::String,
        _ => Type::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Program;

    struct Declared;

    impl Declarations for Declared {
        fn variable(&self, name: &str) -> Option<Type> {
            match name {
                "object" => Some(Type::Dynamic),
                "request" => Some(Type::Other),
                _ => None,
            }
        }

        fn field(&self, variable: &str, field: &str) -> Option<Result<Type, UndefinedField>> {
            (variable == "request").then(|| if field == "name" { Ok(Type::String) } else { Err(UndefinedField) })
        }

        fn function(&self, name: &str) -> Option<Type> {
            (name == "allowed").then_some(Type::Bool)
        }
    }

    fn checked(text: &str) -> Result<Type, String> {
        check(Program::parse(text).unwrap().expression(), &Declared).map_err(|error| error.to_string())
    }

    #[test]
    fn types_are_inferred() {
        for (text, expected) in [
            ("object.a", Type::Dynamic),
            ("object.a == 1 && has(object.b)", Type::Bool),
            ("object.list.all(x, x.a > 1)", Type::Bool),
            ("object.list.exists_one(x, x == 1)", Type::Bool),
            ("object.list.map(x, x)", Type::Other),
            ("'a' + object.b", Type::String),
            ("object.a + object.b", Type::Dynamic),
            ("size(object.a) + 1", Type::Int),
            ("object.a ? 'x' : 'y'", Type::String),
            ("object.a ? object.x : 'y'", Type::Dynamic),
            ("request.name", Type::String),
            ("object.check('x').allowed()", Type::Bool),
            ("sets.contains([1], [1])", Type::Bool),
            ("object.?a.orValue(1)", Type::Unknown),
            ("type(object.a) == string", Type::Bool),
            ("null", Type::Null),
        ] {
            let text = text.replace(".check('x')", "");
            assert_eq!(checked(&text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_does_not_exist_is_refused() {
        for (text, part) in [
            ("objet.a", "undeclared reference to 'objet'"),
            ("object.a.frobnicate()", "undeclared reference to 'frobnicate'"),
            ("frobnicate(1)", "undeclared reference to 'frobnicate'"),
            ("request.uname == 'a'", "undefined field 'uname'"),
            ("object.list.all(x, y)", "undeclared reference to 'y'"),
            ("object.list.all(x, x.a) && x", "undeclared reference to 'x'"),
            ("1 && true", "found no matching overload for '_&&_'"),
            ("'a' + 1 == 'a1'", "found no matching overload for '_+_'"),
            ("Thing{a: 1}.a == 1", "undeclared reference to 'Thing'"),
        ] {
            let refused = checked(text).unwrap_err();
            assert!(refused.starts_with(part), "{text}: {refused}");
        }
    }
}
