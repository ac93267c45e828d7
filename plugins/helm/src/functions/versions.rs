//! Semantic versions in templates.

use std::{any::Any, cmp::Ordering, rc::Rc};

use chandler_go_template::{Function, FunctionError, Object, Type, Value};
use chandler_versions::{Constraint, Version};

use super::{Result, text};

pub(super) fn find(name: &str) -> Option<Function> {
    use Type::String;
    Some(match name {
        "semver" => Function::new(&[String], |_, a| {
            Version::parse(&text(a, 0)).map(|version| Value::Object(Rc::new(Semver(version)))).map_err(failed)
        }),
        "semverCompare" => Function::new(&[String, String], |call, a| -> Result {
            call.charge(text(a, 0).len() + text(a, 1).len())?;
            let constraint = Constraint::parse(&text(a, 0)).map_err(failed)?;
            let version = Version::parse(&text(a, 1)).map_err(failed)?;
            Ok(Value::Bool(constraint.check(&version)))
        }),
        _ => return None,
    })
}

/// Values in templates have Go's `int64`; a larger `uint64` keeps its bits.
fn number(value: u64) -> Value {
    Value::Int(value.cast_signed(), chandler_go_template::IntKind::Uint64)
}

fn failed(error: chandler_versions::VersionError) -> FunctionError {
    FunctionError::new(error.to_string())
}

/// A version as a value of a template.
#[derive(Debug)]
struct Semver(Version);

impl Object for Semver {
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
        let this = &self.0;
        let other = arguments.first().and_then(Value::as_object::<Self>).map(|other| &other.0);
        let raised = |major, minor, patch| {
            let version = Version {
                major,
                minor,
                patch,
                prerelease: String::new(),
                metadata: String::new(),
                original: String::new(),
            };
            // In Go this is a value, not a pointer; it prints alike.
            let original = if this.original.starts_with('v') { format!("v{version}") } else { version.to_string() };
            Value::Object(Rc::new(Self(Version { original, ..version })))
        };
        Some(Ok(match (name, other) {
            ("Major", None) => number(this.major),
            ("Minor", None) => number(this.minor),
            ("Patch", None) => number(this.patch),
            ("Prerelease", None) => Value::from(this.prerelease.as_str()),
            ("Metadata", None) => Value::from(this.metadata.as_str()),
            ("Original", None) => Value::from(this.original.as_str()),
            ("String", None) => Value::from(this.to_string()),
            ("IncMajor", None) => raised(this.major.saturating_add(1), 0, 0),
            ("IncMinor", None) => raised(this.major, this.minor.saturating_add(1), 0),
            ("IncPatch", None) if !this.prerelease.is_empty() => raised(this.major, this.minor, this.patch),
            ("IncPatch", None) => raised(this.major, this.minor, this.patch.saturating_add(1)),
            ("Compare", Some(other)) => Value::int(match this.compare(other) {
                Ordering::Less => -1,
                Ordering::Equal => 0,
                Ordering::Greater => 1,
            }),
            ("Equal", Some(other)) => Value::Bool(this.compare(other) == Ordering::Equal),
            ("GreaterThan", Some(other)) => Value::Bool(this.compare(other) == Ordering::Greater),
            ("LessThan", Some(other)) => Value::Bool(this.compare(other) == Ordering::Less),
            ("GreaterThanEqual", Some(other)) => Value::Bool(this.compare(other) != Ordering::Less),
            ("LessThanEqual", Some(other)) => Value::Bool(this.compare(other) != Ordering::Greater),
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
        Some(self.0.to_string())
    }

    fn data(&self) -> Value {
        Value::from(self.0.to_string())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
