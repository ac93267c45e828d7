//! Semantic versions in templates.

use std::{any::Any, cmp::Ordering, rc::Rc};

use chandler_go_template::{Function, FunctionError, Object, Type, Value};

use super::{
    Result, text,
    version::{Constraint, Version},
};

pub(super) fn find(name: &str) -> Option<Function> {
    use Type::String;
    Some(match name {
        "semver" => Function::new(&[String], |_, a| {
            Version::parse(&text(a, 0)).map(|version| Value::Object(Rc::new(version))).map_err(FunctionError::new)
        }),
        "semverCompare" => Function::new(&[String, String], |call, a| -> Result {
            call.charge(text(a, 0).len() + text(a, 1).len())?;
            let constraint = Constraint::parse(&text(a, 0)).map_err(FunctionError::new)?;
            let version = Version::parse(&text(a, 1)).map_err(FunctionError::new)?;
            Ok(Value::Bool(constraint.check(&version)))
        }),
        _ => return None,
    })
}

/// Values in templates have Go's `int64`; a larger `uint64` keeps its bits.
fn number(value: u64) -> Value {
    Value::Int(value.cast_signed(), chandler_go_template::IntKind::Uint64)
}

impl Object for Version {
    fn type_name(&self) -> &'static str {
        "*semver.Version"
    }

    fn kind(&self) -> &'static str {
        "ptr"
    }

    fn field(&self, _name: &str) -> Option<Value> {
        None
    }

    fn method(&self, name: &str, arguments: &[Value]) -> Option<std::result::Result<Value, FunctionError>> {
        let other = arguments.first().and_then(Value::as_object::<Self>);
        let raised = |major, minor, patch| {
            let version = Self {
                major,
                minor,
                patch,
                prerelease: String::new(),
                metadata: String::new(),
                original: String::new(),
            };
            // In Go this is a value, not a pointer; it prints alike.
            let original = if self.original.starts_with('v') { format!("v{version}") } else { version.to_string() };
            Value::Object(Rc::new(Self { original, ..version }))
        };
        Some(Ok(match (name, other) {
            ("Major", None) => number(self.major),
            ("Minor", None) => number(self.minor),
            ("Patch", None) => number(self.patch),
            ("Prerelease", None) => Value::from(self.prerelease.as_str()),
            ("Metadata", None) => Value::from(self.metadata.as_str()),
            ("Original", None) => Value::from(self.original.as_str()),
            ("String", None) => Value::from(self.to_string()),
            ("IncMajor", None) => raised(self.major.saturating_add(1), 0, 0),
            ("IncMinor", None) => raised(self.major, self.minor.saturating_add(1), 0),
            ("IncPatch", None) if !self.prerelease.is_empty() => raised(self.major, self.minor, self.patch),
            ("IncPatch", None) => raised(self.major, self.minor, self.patch.saturating_add(1)),
            ("Compare", Some(other)) => Value::int(match self.compare(other) {
                Ordering::Less => -1,
                Ordering::Equal => 0,
                Ordering::Greater => 1,
            }),
            ("Equal", Some(other)) => Value::Bool(self.compare(other) == Ordering::Equal),
            ("GreaterThan", Some(other)) => Value::Bool(self.compare(other) == Ordering::Greater),
            ("LessThan", Some(other)) => Value::Bool(self.compare(other) == Ordering::Less),
            ("GreaterThanEqual", Some(other)) => Value::Bool(self.compare(other) != Ordering::Less),
            ("LessThanEqual", Some(other)) => Value::Bool(self.compare(other) != Ordering::Greater),
            _ => return None,
        }))
    }

    fn parameters(&self, name: &str) -> &'static [Type] {
        match name {
            "Compare" | "Equal" | "GreaterThan" | "LessThan" | "GreaterThanEqual" | "LessThanEqual" => {
                &[Type::Object("*semver.Version")]
            }
            _ => &[],
        }
    }

    fn has_method(&self, name: &str) -> bool {
        matches!(
            name,
            "Major"
                | "Minor"
                | "Patch"
                | "Prerelease"
                | "Metadata"
                | "Original"
                | "String"
                | "IncMajor"
                | "IncMinor"
                | "IncPatch"
                | "Compare"
                | "Equal"
                | "GreaterThan"
                | "LessThan"
                | "GreaterThanEqual"
                | "LessThanEqual"
        )
    }

    fn string(&self) -> Option<String> {
        Some(self.to_string())
    }

    fn data(&self) -> Value {
        Value::from(self.to_string())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
