//! Checks existing custom resources against the new schemas.
//!
//! Pure: [`ObjectCheck`] determines what to list and how much of it, takes page by page, and ends as a [`Report`].

mod defaults;
mod expression;
pub mod limit;
mod pattern;
mod schema;
mod steps;
mod translate;
mod value;

use std::sync::Arc;

use chandler_core::Budget;
use chandler_expression::re2::Patterns;
use serde_json::Value;

use self::{
    limit::{CheckError, Excess, STEPS},
    schema::{ObjectSchema, Violation, count},
};
use crate::{
    Enforcement, Policy, Rule,
    combinations::undocumented,
    crd::{Crd, Version, text},
    finding::{Effect, Finding, Report},
    policy,
};

/// The number of objects in one page. Objects have at most 1.5 MiB each, and only one page is in memory.
const PAGE: u32 = 200;
/// The number of objects that are named; the others are counted. All fit into one message.
const NAMED: usize = 5;
/// The number of violations of one object that are reported.
const VIOLATIONS: usize = 3;

/// Checks the custom resources of one CRD, or a sample if there are many.
///
/// They are listed in the storage version, so that no conversion webhook is needed. If versions differ only in their name (no
/// webhook converts), the objects are checked against every version whose schema is new or changed; otherwise against the
/// listed version. A violation of the old schema is not a finding.
#[derive(Debug)]
pub struct ObjectCheck {
    crd: String,
    resource: CustomResource,
    enforcement: Enforcement,
    versions: Vec<VersionCheck>,
    limit: u32,
    checked: u32,
    remaining: Option<u64>,
    /// The number of objects that violate a schema.
    violating: u32,
    findings: Vec<Finding>,
    notes: Vec<String>,
    budget: Budget,
}

/// The API resource of the custom resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomResource {
    /// The API group.
    pub group: String,
    /// The version to list them in.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// The name in paths.
    pub plural: String,
}

#[derive(Debug)]
struct VersionCheck {
    name: String,
    pointer: String,
    new: Lazy,
    /// The old schema of the same version, or of the listed version if it is new.
    old: Lazy,
}

/// A schema that is compiled when the first object needs it.
#[derive(Debug)]
struct Lazy {
    text: Value,
    /// The patterns of the schema's CRD.
    patterns: Arc<Patterns>,
    read: Option<Box<ObjectSchema>>,
}

impl Lazy {
    fn new(text: Value, patterns: &Arc<Patterns>) -> Self {
        Self { text, patterns: Arc::clone(patterns), read: None }
    }

    fn check(&mut self, object: &Value, budget: &Budget) -> Result<Vec<Violation>, Excess> {
        let schema = match self.read.take() {
            Some(schema) => schema,
            None => Box::new(ObjectSchema::read(&self.text, &self.patterns, budget)?),
        };
        self.read.insert(schema).check(object, budget)
    }
}

impl ObjectCheck {
    /// The check for replacing one CRD by another, or `None` if no object can become invalid.
    pub fn plan(old: &Value, new: &Value, policy: &Policy) -> Option<Self> {
        let (old, new) = (Crd::read(old), Crd::read(new));
        let limit = policy::sample_size(policy, new.name);
        let patterns = [Arc::default(), Arc::default()];
        let listed = old.versions.iter().filter(|version| version.served).max_by_key(|version| version.storage)?;
        let versions: Vec<VersionCheck> = new
            .versions
            .iter()
            .filter(|version| if new.converts_by_webhook() { version.name == listed.name } else { version.served })
            .filter_map(|version| VersionCheck::of(version, old.version(version.name).as_ref(), listed, &patterns))
            .collect();
        if limit == 0 || versions.is_empty() {
            return None;
        }
        let names = |pointer: &str| text(old.spec, pointer).to_owned();
        let rule = Rule::ExistingCustomResources;
        Some(Self {
            crd: new.name.to_owned(),
            resource: CustomResource {
                group: names("/group"),
                version: listed.name.to_owned(),
                kind: names("/names/kind"),
                plural: names("/names/plural"),
            },
            enforcement: policy::enforcement(policy, new.name, rule, Effect::Tightens, Enforcement::Strict),
            versions,
            limit,
            checked: 0,
            remaining: None,
            violating: 0,
            findings: Vec::new(),
            notes: Vec::new(),
            budget: Budget::new(STEPS),
        })
    }

    /// Sets another budget of steps.
    #[must_use]
    pub fn with_budget(self, budget: Budget) -> Self {
        Self { budget, ..self }
    }

    /// The budget of the check. It can be used to cancel the check.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The name of the CRD.
    pub fn crd(&self) -> &str {
        &self.crd
    }

    /// Whether compiling the schemas alone takes long. Patterns take the longest.
    pub fn is_large(&self) -> bool {
        /// The number of values in schemas that are compiled without a thread.
        const SMALL: usize = 2_000;
        self.versions.iter().map(|version| count(&version.new.text) + count(&version.old.text)).sum::<usize>() > SMALL
    }

    /// The API resource to list.
    pub fn resource(&self) -> &CustomResource {
        &self.resource
    }

    /// The number of objects in the next page, or `None` if enough were checked.
    pub fn next_page(&self) -> Option<u32> {
        let left = self.limit.saturating_sub(self.checked);
        (left > 0).then_some(left.min(PAGE))
    }

    /// Checks a page; `remaining` is the number of further objects, if the API server reports it.
    ///
    /// # Errors
    /// If the schemas or the objects exceed a limit. Then the result is unknown.
    pub fn page(&mut self, objects: &[Value], remaining: Option<u64>) -> Result<(), CheckError> {
        self.remaining = remaining;
        for object in objects {
            self.checked = self.checked.saturating_add(1);
            self.object(object)?;
        }
        Ok(())
    }

    /// Records that objects were not checked, because the list is not permitted or the conversion webhook of the installed release
    /// fails.
    pub fn unchecked(&mut self, problem: &str) {
        self.notes.push(format!("existing custom resources were not checked: {problem}"));
    }

    /// Records that objects could not be listed, so that their state is unknown.
    pub fn unreadable(&mut self, problem: &str) {
        let message = format!("existing custom resources could not be read: {problem}");
        self.findings.push(self.finding(None, String::new(), message));
    }

    /// Returns the findings.
    pub fn finish(mut self) -> Report {
        let coverage = self.coverage();
        let unnamed = usize::try_from(self.violating).unwrap_or(usize::MAX).saturating_sub(NAMED);
        if unnamed > 0 {
            let message = format!("{unnamed} more existing custom objects failed validation ({coverage})");
            self.findings.push(self.finding(None, String::new(), message));
        }
        if self.remaining.is_some_and(|remaining| remaining > 0) {
            self.notes.push(coverage);
        }
        for schema in self.versions.iter().filter_map(|version| version.new.read.as_ref()) {
            self.notes.extend(schema.notes().map(str::to_owned));
        }
        let notes = self.notes.into_iter().map(|note| format!("CRD {:?}: {note}", self.crd)).collect();
        let mut report = Report { notes, ..Report::default() };
        self.findings.into_iter().for_each(|finding| report.push(finding));
        report
    }

    /// `checked 1000 of about 12000 existing custom resources`
    fn coverage(&self) -> String {
        let checked = u64::from(self.checked);
        match self.remaining {
            Some(more) if more > 0 => {
                format!("checked {checked} of about {} existing custom resources", checked.saturating_add(more))
            }
            _ => format!("checked {checked} existing custom resources"),
        }
    }

    fn object(&mut self, object: &Value) -> Result<(), CheckError> {
        let mut messages = Vec::new();
        for version in &mut self.versions {
            let checked = version.check(object, &self.budget);
            let violations = checked.map_err(|excess| excess.of(&self.crd, &version.pointer, named(object)))?;
            if violations.is_empty() {
                continue;
            }
            let mut texts: Vec<String> = violations.iter().take(VIOLATIONS).map(ToString::to_string).collect();
            if violations.len() > VIOLATIONS {
                texts.push(format!("and {} more", violations.len() - VIOLATIONS));
            }
            let VersionCheck { name, pointer, .. } = version;
            let what = named(object);
            let message = format!(
                "existing custom object {what} failed validation for new schema version {name}: {}",
                texts.join("; ")
            );
            messages.push((name.clone(), pointer.clone(), message));
        }
        if messages.is_empty() {
            return Ok(());
        }
        self.violating = self.violating.saturating_add(1);
        if usize::try_from(self.violating).unwrap_or(usize::MAX) <= NAMED {
            for (version, pointer, message) in messages {
                self.findings.push(self.finding(Some(version), pointer, message));
            }
        }
        Ok(())
    }

    fn finding(&self, version: Option<String>, pointer: String, message: String) -> Finding {
        Finding {
            rule: Rule::ExistingCustomResources,
            enforcement: self.enforcement,
            crd: self.crd.clone(),
            version,
            property: None,
            pointer,
            old: None,
            new: None,
            effect: Effect::Tightens,
            message,
        }
    }
}

impl VersionCheck {
    /// A version whose schema objects may violate, or `None` if the schema is unchanged.
    fn of(
        new: &Version<'_>,
        old: Option<&Version<'_>>,
        listed: &Version<'_>,
        [old_patterns, new_patterns]: &[Arc<Patterns>; 2],
    ) -> Option<Self> {
        let schema = |version: &Version<'_>| Value::Object(version.schema.cloned().unwrap_or_default());
        let (before, after) = (schema(old.unwrap_or(listed)), schema(new));
        let same = old.is_some() && undocumented(&before) == undocumented(&after);
        (!same).then(|| Self {
            name: new.name.to_owned(),
            pointer: new.schema_pointer(),
            new: Lazy::new(after, new_patterns),
            old: Lazy::new(before, old_patterns),
        })
    }

    /// The violations of an object that are new.
    fn check(&mut self, object: &Value, budget: &Budget) -> Result<Vec<Violation>, Excess> {
        let mut violations = self.new.check(object, budget)?;
        if !violations.is_empty() {
            let known = match self.old.check(object, budget) {
                // The new CRD may repair that; then all violations count as new.
                Err(Excess::Patterns { .. }) => Vec::new(),
                known => known?,
            };
            violations.retain(|violation| !known.iter().any(|known| known.same_place(violation)));
        }
        Ok(violations)
    }
}

/// `namespace/name`, or the name alone.
fn named(object: &Value) -> String {
    match (text(object, "/metadata/namespace"), text(object, "/metadata/name")) {
        ("", name) => name.to_owned(),
        (namespace, name) => format!("{namespace}/{name}"),
    }
}
