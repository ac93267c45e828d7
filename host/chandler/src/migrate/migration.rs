//! The result of a translation.

use std::{collections::BTreeMap, fmt};

use chandler_api::{
    BundleDeployment, BundleDeploymentSpec, BundleSource, ImageSource, OlmCatalogs, Resolution, ResolutionSpec,
    ServiceAccountReference,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::view::invocation::quoted;

/// The longest name of a BundleDeployment, in characters.
const LONGEST: usize = 52;

/// An object of another installer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ForeignObject {
    /// `apiVersion`.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The namespace; none for a cluster-scoped object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
    /// The UID.
    pub uid: String,
}

impl ForeignObject {
    /// The identity of an object.
    pub fn of(object: &Value) -> Self {
        let own = |pointer: &str| text(object, pointer).unwrap_or_default().to_owned();
        Self {
            api_version: own("/apiVersion"),
            kind: own("/kind"),
            namespace: text(object, "/metadata/namespace").map(str::to_owned),
            name: own("/metadata/name"),
            uid: own("/metadata/uid"),
        }
    }

    /// Whether a user means this object by `NAME` or `NAMESPACE/NAME`.
    pub fn is_named(&self, by: &str) -> bool {
        match by.split_once('/') {
            Some((namespace, name)) => self.namespace.as_deref() == Some(namespace) && self.name == name,
            None => self.name == by,
        }
    }
}

impl fmt::Display for ForeignObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

/// Where a catalog has the image of the installed bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogImage {
    /// The catalogs.
    pub kind: OlmCatalogs,
    /// The one catalog to read; none for all.
    pub catalog: Option<String>,
    /// The package.
    pub package: String,
    /// The name of the bundle.
    pub bundle: String,
}

/// The translation of one installation.
#[derive(Clone, Debug, PartialEq)]
pub struct Migration {
    /// The object that asked for the installation.
    pub from: ForeignObject,
    /// The name of the BundleDeployment or Resolution.
    pub name: String,
    /// The BundleDeployment that installs the same version, or `None` if nothing is installed or it cannot be translated, and a note
    /// has the reason. Its source is empty while the image is unknown.
    pub spec: Option<BundleDeploymentSpec>,
    /// Where a catalog has the image: it is looked up there, and one that is known is compared.
    pub image: Option<CatalogImage>,
    /// Why nothing but the objects of the installation says that the image is the one of its catalog.
    pub unconfirmed: Option<String>,
    /// The Resolution that asks for the same package, or `None` if the object names no package.
    pub resolution: Option<ResolutionSpec>,
    /// Fields without an equivalent, and other notes for users.
    pub notes: Vec<String>,
    /// The objects that manage the installation now, in the order in which they are deleted.
    pub managers: Vec<ForeignObject>,
}

impl Migration {
    /// A migration without a result yet.
    pub fn new(from: ForeignObject) -> Self {
        let name = name(&from.name);
        let managers = vec![from.clone()];
        Self { from, name, spec: None, image: None, unconfirmed: None, resolution: None, notes: Vec::new(), managers }
    }

    /// Adds a note.
    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Whether the image of the bundle is not known.
    pub fn lacks_image(&self) -> bool {
        self.spec.as_ref().is_some_and(|spec| spec.source.kind.is_empty())
    }

    /// The image, if it is known.
    pub fn known_image(&self) -> Option<&str> {
        Some(&self.spec.as_ref()?.source.image.as_ref()?.reference)
    }

    /// Sets the image.
    pub fn set_image(&mut self, reference: &str) {
        if let Some(spec) = &mut self.spec {
            spec.source =
                BundleSource::image(ImageSource { reference: reference.to_owned(), ..ImageSource::default() });
        }
    }

    /// Sets the ServiceAccount of the BundleDeployment and of the Resolution.
    pub fn set_service_account(&mut self, account: Option<ServiceAccountReference>) {
        if let Some(output) = self.resolution.as_mut().and_then(|resolution| resolution.output.as_mut())
            && let Some(set) = &mut output.resolve_set
        {
            set.service_account.clone_from(&account);
        }
        if let Some(spec) = &mut self.spec {
            spec.service_account = account;
        }
    }

    /// The command that prints what the ServiceAccount needs, before the BundleDeployment exists. None without an account.
    pub fn rbac_command(&self) -> Option<String> {
        let spec = self.spec.as_ref()?;
        let account = spec.service_account.as_ref()?;
        let namespace = &spec.install_namespace;
        let image = self.known_image().map_or_else(|| "IMAGE".to_owned(), quoted);
        let account = format!("{}/{}", account.namespace.as_ref().unwrap_or(namespace), account.name);
        Some(format!(
            "chandler rbac {image} --name {} --namespace {} --service-account {}",
            quoted(&self.name),
            quoted(namespace),
            quoted(&account)
        ))
    }

    /// The BundleDeployment, if its source is known.
    pub fn deployment(&self) -> Option<BundleDeployment> {
        let spec = self.spec.clone().filter(|_| !self.lacks_image())?;
        Some(BundleDeployment::new(&self.name, spec))
    }

    /// The Resolution, if there is one.
    pub fn resolution(&self) -> Option<Resolution> {
        Some(Resolution::new(&self.name, self.resolution.clone()?))
    }
}

/// A name of a BundleDeployment like this one.
fn name(text: &str) -> String {
    let text = text.replace('.', "-");
    let cut: String = text.chars().take(LONGEST).collect();
    cut.trim_end_matches('-').to_owned()
}

/// Makes the names unique: duplicate names get their namespace as a suffix. A note reports each name that differs from the object's.
pub fn name_apart(migrations: &mut [Migration]) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for migration in migrations.iter() {
        *counts.entry(migration.name.clone()).or_default() += 1;
    }
    for migration in migrations {
        if counts.get(&migration.name).is_some_and(|count| *count > 1)
            && let Some(namespace) = &migration.from.namespace
        {
            let head: String = migration.name.chars().take(LONGEST.saturating_sub(namespace.len() + 1)).collect();
            migration.name = name(&format!("{}-{namespace}", head.trim_end_matches('-')));
        }
        if migration.name != migration.from.name {
            migration.note(format!("its name as a BundleDeployment is {}", migration.name));
        }
    }
}

/// The text at a JSON pointer, unless it is empty.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// The texts of a list at a JSON pointer.
pub(super) fn texts(object: &Value, pointer: &str) -> Vec<String> {
    let list = object.pointer(pointer).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The notes, and the BundleDeployment and Resolution as YAML, for snapshots.
    pub(crate) fn shown(migrations: &[Migration]) -> String {
        use std::fmt::Write as _;

        let mut text = String::new();
        for migration in migrations {
            let managers: Vec<String> = migration.managers.iter().map(ToString::to_string).collect();
            let _ = writeln!(text, "# {}; deletes {}", migration.from, managers.join(", "));
            if let Some(image) = &migration.image {
                let _ = writeln!(text, "# image: {image:?}");
            }
            for note in &migration.notes {
                let _ = writeln!(text, "# note: {note}");
            }
            for value in [serde_json::to_value(&migration.spec), serde_json::to_value(&migration.resolution)] {
                text += &crate::view::output::yaml(&[value.unwrap()]).unwrap();
            }
        }
        text
    }

    fn migration(namespace: Option<&str>, name: &str) -> Migration {
        Migration::new(ForeignObject {
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
            kind: "Subscription".to_owned(),
            ..ForeignObject::default()
        })
    }

    #[test]
    fn names_are_unique_and_short_enough() {
        let long = "x".repeat(60);
        let mut migrations =
            [migration(Some("a"), "db"), migration(Some("b"), "db"), migration(None, "web.v1"), migration(None, &long)];
        name_apart(&mut migrations);
        let names: Vec<&str> = migrations.iter().map(|migration| migration.name.as_str()).collect();
        assert_eq!(names, ["db-a", "db-b", "web-v1", &long[..52]]);
        assert_eq!(migrations[0].notes, ["its name as a BundleDeployment is db-a"]);
    }

    #[test]
    fn an_object_is_named_with_or_without_its_namespace() {
        let object = migration(Some("a"), "db").from;
        for (by, named) in [("db", true), ("a/db", true), ("b/db", false), ("a", false)] {
            assert_eq!(object.is_named(by), named, "{by}");
        }
        assert_eq!(object.to_string(), "Subscription a/db");
    }
}
