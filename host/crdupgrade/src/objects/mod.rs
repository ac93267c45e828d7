//! Custom resources that are in the cluster, against the new schemas.
//!
//! Pure: [`ObjectCheck`] tells what to list and how much of it, takes page by page, and ends as a [`Report`].

mod expression;
pub mod limit;
mod pattern;
mod schema;
mod steps;
mod translate;

use std::sync::Arc;

use chandler_core::Budget;
use chandler_re2::Patterns;
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

/// How many objects one page holds. Objects are at most 1.5 MiB each, and a page is all that is held of them.
const PAGE: u32 = 200;
/// How many objects are named; the others are counted. With the count they fit into one message.
const NAMED: usize = 5;
/// How many violations of one object are told.
const VIOLATIONS: usize = 3;

/// Checks the custom resources of one CRD, a sample of them where there are many.
///
/// They are listed in one version, that in which they are stored, so that no conversion webhook has to be up for it. Where
/// versions differ in their name only (no webhook converts), they are held against every version whose schema is another one
/// or new; else against the version in which they are listed. What an object already is by the old schema is not held
/// against the new one.
#[derive(Debug)]
pub struct ObjectCheck {
    crd: String,
    resource: CustomResource,
    enforcement: Enforcement,
    versions: Vec<VersionCheck>,
    limit: u32,
    checked: u32,
    remaining: Option<u64>,
    /// How many objects violate a schema.
    violating: u32,
    findings: Vec<Finding>,
    notes: Vec<String>,
    budget: Budget,
}

/// How custom resources are listed.
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
    /// What the same version said, or that in which the objects are listed where there was none.
    old: Lazy,
}

/// A schema that is read when the first object needs it.
#[derive(Debug)]
struct Lazy {
    text: Value,
    /// The patterns of the CRD that the schema is a part of.
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
    /// What there is to check when this CRD replaces that one; none where no object can be found to be wrong.
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

    /// The same with another budget of steps.
    #[must_use]
    pub fn with_budget(self, budget: Budget) -> Self {
        Self { budget, ..self }
    }

    /// The steps that the check may take. Whoever holds them can cancel it.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The name of the CRD.
    pub fn crd(&self) -> &str {
        &self.crd
    }

    /// Whether reading the schemas alone takes long. Patterns take the most.
    pub fn is_large(&self) -> bool {
        /// How many values the schemas hold that are read at once.
        const SMALL: usize = 2_000;
        self.versions.iter().map(|version| count(&version.new.text) + count(&version.old.text)).sum::<usize>() > SMALL
    }

    /// What to list.
    pub fn resource(&self) -> &CustomResource {
        &self.resource
    }

    /// How many objects to ask for next; none where enough were checked.
    pub fn next_page(&self) -> Option<u32> {
        let left = self.limit.saturating_sub(self.checked);
        (left > 0).then_some(left.min(PAGE))
    }

    /// Checks a page; `remaining` is how many objects the API server says come after it, where it does.
    ///
    /// # Errors
    /// Where the schemas or the objects take more than they may. Then nothing is known of the upgrade.
    pub fn page(&mut self, objects: &[Value], remaining: Option<u64>) -> Result<(), CheckError> {
        self.remaining = remaining;
        for object in objects {
            self.checked = self.checked.saturating_add(1);
            self.object(object)?;
        }
        Ok(())
    }

    /// Notes that objects may not be listed, and so were not checked.
    pub fn unchecked(&mut self, problem: &str) {
        self.notes.push(format!("existing custom resources were not checked: {problem}"));
    }

    /// Notes that objects could not be listed, so that nobody knows what they hold.
    pub fn unreadable(&mut self, problem: &str) {
        let message = format!("existing custom resources could not be read: {problem}");
        self.findings.push(self.finding(None, String::new(), message));
    }

    /// What was found.
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
    /// A version that objects may fail; none where it says what it said before.
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

    /// What is wrong with an object that was not wrong before.
    fn check(&mut self, object: &Value, budget: &Budget) -> Result<Vec<Violation>, Excess> {
        let mut violations = self.new.check(object, budget)?;
        if !violations.is_empty() {
            let known = match self.old.check(object, budget) {
                // The new CRD may be what repairs that; then nothing counts as known.
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
