//! Query parameters.

use chandler_devcluster_apimachinery::schema::{FieldError, GroupVersionKind};

use crate::status::Status;

/// The decoded query of a request.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Decodes the part of a URL after `?`.
    pub fn parse(query: &str) -> Self {
        Self(form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }

    /// The first value of a parameter; an empty value counts as absent.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, value)| key == name && !value.is_empty()).map(|(_, value)| value.as_str())
    }

    /// Every value of a parameter.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A truth value: as in Go's `strconv.ParseBool`, and whatever else is not false is true.
    pub fn flag(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| !matches!(value, "0" | "f" | "F" | "false" | "FALSE" | "False"))
    }

    /// A whole number.
    ///
    /// # Errors
    /// When the value is not one.
    pub fn number(&self, name: &str) -> Result<Option<u64>, Status> {
        let number = self.get(name).map(str::parse).transpose();
        number
            .map_err(|_| Status::bad_request(format!("invalid value for query parameter {name:?}: not a whole number")))
    }
}

/// The value of `fieldValidation`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// Unknown and duplicate fields are dropped silently.
    Ignore,
    /// They are dropped with a warning.
    #[default]
    Warn,
    /// They fail the request.
    Strict,
}

/// The parameters of writes.
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    /// `dryRun=All`: everything happens except the write.
    pub dry_run: bool,
    /// The field manager.
    pub field_manager: String,
    /// Whether server-side apply takes fields from other managers.
    pub force: bool,
    /// How unknown fields are handled.
    pub field_validation: FieldValidation,
}

impl WriteOptions {
    /// Reads the parameters; without `fieldManager` the manager is the first part of the user agent. `kind` names the options in
    /// messages: `CreateOptions`, `UpdateOptions`, `PatchOptions` or `DeleteOptions`.
    ///
    /// # Errors
    /// When a value is none of those allowed.
    pub fn parse(query: &Query, user_agent: &str, kind: &str) -> Result<Self, Status> {
        const LONGEST_MANAGER: usize = 128;
        let mut errors = Vec::new();
        let dry_run: Vec<&str> = query.all("dryRun").collect();
        if dry_run.iter().any(|value| *value != "All") {
            errors.push(FieldError::not_supported(&"dryRun", dry_run.clone(), ["All"]));
        }
        let field_validation = match query.get("fieldValidation") {
            None | Some("Warn") => FieldValidation::Warn,
            Some("Strict") => FieldValidation::Strict,
            Some("Ignore") => FieldValidation::Ignore,
            Some(other) => {
                errors.push(FieldError::not_supported(&"fieldValidation", other, ["Ignore", "Strict", "Warn"]));
                FieldValidation::Ignore
            }
        };
        let manager = query.get("fieldManager").map_or_else(|| manager_of(user_agent), str::to_owned);
        if manager.len() > LONGEST_MANAGER {
            errors.push(FieldError::too_long(&"fieldManager", LONGEST_MANAGER as u64));
        }
        if !errors.is_empty() {
            return Err(invalid_options(kind, &errors));
        }
        Ok(Self { dry_run: !dry_run.is_empty(), field_manager: manager, force: query.flag("force"), field_validation })
    }
}

/// The failure of a request whose options break rules.
pub fn invalid_options(kind: &str, errors: &[FieldError]) -> Status {
    Status::invalid(&GroupVersionKind::new("meta.k8s.io", "v1", kind), "", errors)
}

fn manager_of(user_agent: &str) -> String {
    let name = user_agent.split('/').next().unwrap_or_default();
    let name: String = name.chars().filter(|character| !character.is_control()).take(128).collect();
    if name.is_empty() { "unknown".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded() {
        let query = Query::parse("labelSelector=a%3Db%2Cc&watch=true&limit=500&resourceVersion=&dryRun=All");
        assert_eq!(query.get("labelSelector"), Some("a=b,c"));
        assert!(query.flag("watch") && !query.flag("other"));
        assert_eq!(query.number("limit").unwrap(), Some(500));
        assert_eq!(query.get("resourceVersion"), None);
        assert!(Query::parse("limit=x").number("limit").is_err());
        let options = WriteOptions::parse(&query, "kubectl/v1.32.4 (linux/amd64)", "PatchOptions").unwrap();
        assert!(options.dry_run);
        assert_eq!(options.field_manager, "kubectl");
        assert!(WriteOptions::parse(&Query::parse("dryRun=Some"), "", "PatchOptions").is_err());
        assert!(WriteOptions::parse(&Query::parse("fieldValidation=strict"), "", "PatchOptions").is_err());
    }
}
