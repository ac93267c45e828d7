//! From text to a checked expression or an error with its position.

use cel::{
    common::ast::{EntryExpr, Expr},
    parser::Parser,
};
use chandler_expression::{Program, brackets, on_large_stack};

/// The longest expression, in bytes.
const BYTES: usize = 2048;
/// The most operators, brackets and separators in an expression. It bounds the depth of the tree.
const OPERATORS: usize = 256;
/// The deepest nesting of brackets.
const DEPTH: usize = 24;
/// The deepest recursion of the parser; each bracket takes several levels.
const RECURSION: u16 = 250;
/// The deepest tree of an expression; evaluation recurses over it on a normal stack.
const TREE_DEPTH: usize = 40;

/// The functions that an expression may call, in addition to operators and macros. Functions are left out whose result can be
/// much larger than their input (`replace`, `join`, `format`, `lists.range`) or that compare all elements with each other.
const FUNCTIONS: &[&str] = &[
    "abs",
    "asApproximateFloat",
    "asInteger",
    "base64.decode",
    "base64.encode",
    "bool",
    "bytes",
    "charAt",
    "compareTo",
    "contains",
    "double",
    "duration",
    "dyn",
    "endsWith",
    "find",
    "first",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getFullYear",
    "getHours",
    "getMilliseconds",
    "getMinutes",
    "getMonth",
    "getSeconds",
    "hasValue",
    "indexOf",
    "int",
    "isGreaterThan",
    "isInteger",
    "isLessThan",
    "isQuantity",
    "isSemver",
    "isSorted",
    "last",
    "lastIndexOf",
    "lowerAscii",
    "major",
    "matches",
    "math.abs",
    "math.ceil",
    "math.floor",
    "math.greatest",
    "math.least",
    "math.round",
    "math.sign",
    "math.trunc",
    "max",
    "min",
    "minor",
    "optional.none",
    "optional.of",
    "optional.ofNonZeroValue",
    "or",
    "orValue",
    "patch",
    "quantity",
    "semver",
    "sign",
    "size",
    "split",
    "startsWith",
    "string",
    "sub",
    "substring",
    "sum",
    "timestamp",
    "trim",
    "type",
    "uint",
    "upperAscii",
    "value",
];

/// A checked expression.
#[derive(Debug)]
pub(super) struct Expression(pub(super) Program);

/// Why a text is not a valid expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Error {
    /// The line and the column, counted from 1.
    pub(super) position: Option<(usize, usize)>,
    pub(super) message: String,
}

impl Error {
    fn whole(message: impl Into<String>) -> Self {
        Self { position: None, message: message.into() }
    }
}

impl Expression {
    pub(super) fn compile(text: &str) -> Result<Self, Error> {
        check_size(text)?;
        // Each expression is compiled once, so a large stack is affordable.
        on_large_stack(|| parse(text)).map_err(|error| Error::whole(error.to_string()))?
    }
}

fn parse(text: &str) -> Result<Expression, Error> {
    let tree = Parser::new().max_recursion_depth(RECURSION).parse(text).map_err(|errors| {
        let first = errors.errors.into_iter().next();
        let (position, message) = first.map_or((None, String::new()), |error| {
            let place = |number: isize| usize::try_from(number).ok().filter(|number| *number > 0);
            (place(error.pos.0).zip(place(error.pos.1)), error.msg)
        });
        Error { position, message: message.replace('\n', " ") }
    })?;
    check(&tree.expr, &mut Scope { names: vec!["self".to_owned()], depth: 0, text })?;
    Ok(Expression(Program::of(text, tree)))
}

/// The names and the depth at one place of an expression.
struct Scope<'a> {
    names: Vec<String>,
    depth: usize,
    text: &'a str,
}

fn check_size(text: &str) -> Result<(), Error> {
    if text.len() > BYTES {
        return Err(Error::whole(format!("is longer than {BYTES} bytes")));
    }
    if text.chars().filter(char::is_ascii_punctuation).count() > OPERATORS {
        return Err(Error::whole(format!("has more than {OPERATORS} operators")));
    }
    // The interpreter drops an even number of these operators, and then misreads the rest of the expression.
    if let Some(twice) = ["!!", "--"].into_iter().find(|twice| text.contains(twice)) {
        return Err(Error {
            position: position_of(text, twice),
            message: format!("contains {twice}, which has no effect"),
        });
    }
    if brackets(text) > DEPTH {
        return Err(Error::whole(format!("nests deeper than {DEPTH} brackets")));
    }
    Ok(())
}

/// Checks that every name is known. Otherwise a typo would only show as a rule that is never met.
fn check(expression: &Expr, scope: &mut Scope<'_>) -> Result<(), Error> {
    scope.depth += 1;
    if scope.depth > TREE_DEPTH {
        return Err(Error::whole(format!("nests deeper than {TREE_DEPTH} operators")));
    }
    check_one(expression, scope)?;
    scope.depth -= 1;
    Ok(())
}

fn check_one(expression: &Expr, scope: &mut Scope<'_>) -> Result<(), Error> {
    match expression {
        Expr::Ident(name) if !name.starts_with('@') && !scope.names.contains(name) => Err(Error {
            position: position_of(scope.text, name),
            message: format!("unknown name {name}; the object is self"),
        }),
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => Ok(()),
        Expr::Select(select) => check(&select.operand.expr, scope),
        Expr::Call(call) => {
            let dotted = match call.target.as_deref().map(|target| &target.expr) {
                // `math.abs(x)` calls a library function and not a method of a variable.
                Some(Expr::Ident(library)) if !scope.names.contains(library) => {
                    Some(format!("{library}.{}", call.func_name))
                }
                _ => None,
            };
            let name = dotted.as_deref().unwrap_or(&call.func_name);
            if name.starts_with(|first: char| first.is_ascii_alphabetic()) && !FUNCTIONS.contains(&name) {
                let message = format!("function {name} does not exist or is not allowed here");
                return Err(Error { position: position_of(scope.text, &call.func_name), message });
            }
            if let (Some(target), None) = (&call.target, &dotted) {
                check(&target.expr, scope)?;
            }
            call.args.iter().try_for_each(|argument| check(&argument.expr, scope))
        }
        Expr::Comprehension(comprehension) => {
            check(&comprehension.iter_range.expr, scope)?;
            let known = scope.names.len();
            scope.names.push(comprehension.iter_var.clone());
            scope.names.extend(comprehension.iter_var2.clone());
            scope.names.push(comprehension.accu_var.clone());
            for part in
                [&comprehension.accu_init, &comprehension.loop_cond, &comprehension.loop_step, &comprehension.result]
            {
                check(&part.expr, scope)?;
            }
            scope.names.truncate(known);
            Ok(())
        }
        Expr::List(list) => list.elements.iter().try_for_each(|element| check(&element.expr, scope)),
        Expr::Map(map) => map.entries.iter().try_for_each(|entry| match &entry.expr {
            EntryExpr::MapEntry(entry) => {
                check(&entry.key.expr, scope)?;
                check(&entry.value.expr, scope)
            }
            EntryExpr::StructField(field) => check(&field.value.expr, scope),
        }),
        Expr::Struct(_) => Err(Error::whole("messages cannot be constructed here")),
    }
}

/// The position of a name in the text. The tree does not hold it, so this is the first occurrence as a word.
fn position_of(text: &str, name: &str) -> Option<(usize, usize)> {
    let is_part = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let (start, _) = text.match_indices(name).find(|(start, _)| {
        let before = text.get(..*start).and_then(|before| before.chars().next_back());
        let after = text.get(start + name.len()..).and_then(|after| after.chars().next());
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })?;
    let before = text.get(..start)?;
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    Some((line, column))
}

#[cfg(test)]
mod tests {
    use super::position_of;

    #[test]
    fn a_position_is_that_of_the_whole_word() {
        for (text, name, position) in [
            ("object.a", "object", Some((1, 1))),
            ("my_object.a + object.b", "object", Some((1, 15))),
            ("objects.all(object, object.a)", "object", Some((1, 13))),
            ("self.a == 1 &&\n object.a", "object", Some((2, 2))),
            ("self.é == ob", "ob", Some((1, 11))),
            ("objects + myobject", "object", None),
        ] {
            assert_eq!(position_of(text, name), position, "{text:?}");
        }
    }
}
