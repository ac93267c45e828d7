//! Small catalogs, written in code.

use std::collections::{BTreeMap, BTreeSet};

use chandler_resolver::MemoryCatalogs;
use serde_json::{Value, json};

/// A bundle of an example.
#[derive(Clone, Debug)]
pub(crate) struct Bundle {
    pub(crate) package: String,
    pub(crate) version: String,
    pub(crate) channels: BTreeSet<String>,
    pub(crate) entry: Value,
    pub(crate) properties: Vec<Value>,
    pub(crate) deprecated: bool,
}

impl Bundle {
    pub(crate) fn new(package: &str, version: &str) -> Self {
        let value = json!({"packageName": package, "version": version});
        Self {
            package: package.to_owned(),
            version: version.to_owned(),
            channels: BTreeSet::new(),
            entry: json!({"name": format!("{package}.v{version}")}),
            properties: vec![json!({"type": "olm.package", "value": value})],
            deprecated: false,
        }
    }

    pub(crate) fn name(&self) -> String {
        format!("{}.v{}", self.package, self.version)
    }

    pub(crate) fn property(mut self, kind: &str, value: Value) -> Self {
        self.properties.push(json!({"type": kind, "value": value}));
        self
    }

    pub(crate) fn channel(mut self, channel: &str) -> Self {
        self.channels.insert(channel.to_owned());
        self
    }

    pub(crate) fn deprecated(mut self) -> Self {
        self.deprecated = true;
        self
    }

    pub(crate) fn replaces(mut self, version: &str) -> Self {
        self.entry["replaces"] = json!(format!("{}.v{version}", self.package));
        self
    }

    pub(crate) fn skips(mut self, version: &str) -> Self {
        let skipped = json!(format!("{}.v{version}", self.package));
        match self.entry.get_mut("skips").and_then(Value::as_array_mut) {
            Some(skips) => skips.push(skipped),
            None => self.entry["skips"] = json!([skipped]),
        }
        self
    }

    pub(crate) fn skip_range(mut self, range: &str) -> Self {
        self.entry["skipRange"] = json!(range);
        self
    }

    pub(crate) fn provides(self, kind: &str) -> Self {
        self.property("olm.gvk", json!({"group": "example.com", "version": "v1", "kind": kind}))
    }

    pub(crate) fn requires_kind(self, kind: &str) -> Self {
        self.property("olm.gvk.required", json!({"group": "example.com", "version": "v1", "kind": kind}))
    }

    pub(crate) fn requires_package(self, package: &str, range: &str) -> Self {
        self.property("olm.package.required", json!({"packageName": package, "versionRange": range}))
    }

    pub(crate) fn min_kubernetes(self, version: &str) -> Self {
        self.property("olm.csv.metadata", json!({"minKubeVersion": version}))
    }

    pub(crate) fn max_openshift(self, version: &str) -> Self {
        self.property("olm.maxOpenShiftVersion", json!(version))
    }
}

/// The metas of a catalog. The default channel is `stable`, which holds the bundles that name no channel.
pub(crate) fn metas(bundles: &[Bundle]) -> Vec<Value> {
    let packages: BTreeSet<&str> = bundles.iter().map(|bundle| bundle.package.as_str()).collect();
    let mut metas = Vec::new();
    for package in packages {
        metas.push(json!({"schema": "olm.package", "name": package, "defaultChannel": "stable"}));
        let mut channels: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        let mut deprecated = Vec::new();
        for bundle in bundles.iter().filter(|bundle| bundle.package == package) {
            if bundle.channels.is_empty() {
                channels.entry("stable").or_default().push(&bundle.entry);
            }
            for channel in &bundle.channels {
                channels.entry(channel).or_default().push(&bundle.entry);
            }
            if bundle.deprecated {
                let reference = json!({"schema": "olm.bundle", "name": bundle.name()});
                deprecated.push(json!({"reference": reference, "message": format!("{} is old", bundle.name())}));
            }
            metas.push(json!({"schema": "olm.bundle", "package": package, "name": bundle.name(),
                "image": format!("example.com/{}", bundle.name()), "properties": bundle.properties}));
        }
        for (name, entries) in channels {
            metas.push(json!({"schema": "olm.channel", "package": package, "name": name, "entries": entries}));
        }
        if !deprecated.is_empty() {
            metas.push(json!({"schema": "olm.deprecations", "package": package, "entries": deprecated}));
        }
    }
    metas
}

/// Catalogs by name.
pub(crate) fn catalog(catalogs: &[(&str, Vec<Bundle>)]) -> MemoryCatalogs {
    catalogs.iter().fold(MemoryCatalogs::new(), |all, (name, bundles)| all.with(name, metas(bundles)))
}
