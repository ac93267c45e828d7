//! The commands that show an object, one after the other, as on a terminal with 100 columns.

use chandler_api::BundleDeployment;
use chandler_catalog::upgrade::Newer;
use chandler_core::ObjectKey;
use k8s_openapi::jiff::Timestamp;

use super::super::{
    explanation::Explanation,
    listing::{self, Columns, Row},
    outdated,
    overview::Overview,
    path::{Found, Path},
    revisions,
    tree::{self, ObjectHealth, ObjectStatus, TreeNode},
};

/// The columns of the terminal.
pub(super) const WIDTH: Option<usize> = Some(100);

/// What the commands find in the cluster.
#[derive(Clone, Debug)]
pub(super) struct Situation {
    pub(super) deployment: BundleDeployment,
    /// The objects, as they are when the command reads them.
    pub(super) objects: Vec<ObjectStatus>,
    /// The kinds that the user may not read.
    pub(super) unreadable: Vec<String>,
    /// The newest version in the catalogs.
    pub(super) newer: Option<Newer>,
    /// What the command prints about the controller.
    pub(super) absence: Option<String>,
}

impl Situation {
    /// The objects of the release are in the cluster and healthy.
    pub(super) fn new(deployment: BundleDeployment) -> Self {
        let objects = vec![
            object("apiextensions.k8s.io", "CustomResourceDefinition", "berths.harbour.example.com"),
            object("", "Service", "metrics"),
            object("apps", "Deployment", "pilot"),
        ];
        Self { deployment, objects, unreadable: Vec::new(), newer: None, absence: None }
    }

    /// Nothing is in the cluster.
    pub(super) fn without_objects(mut self) -> Self {
        self.objects.clear();
        self
    }

    /// An object is missing.
    pub(super) fn without(mut self, kind: &str) -> Self {
        self.objects.retain(|object| object.key.kind != kind);
        self
    }

    /// An object is not healthy.
    pub(super) fn with(mut self, kind: &str, health: ObjectHealth, message: &str) -> Self {
        for object in self.objects.iter_mut().filter(|object| object.key.kind == kind) {
            (object.health, object.message) = (health, Some(message.to_owned()));
        }
        self
    }

    /// What each command prints.
    pub(super) fn text(&self) -> String {
        let absence = self.absence.as_ref().map(|line| format!("{line}\n")).unwrap_or_default();
        let parts = [
            ("list", self.list() + &absence),
            ("status harbour", self.status() + &absence),
            ("explain harbour", self.explain() + &absence),
            ("tree harbour", self.tree()),
            ("history harbour", revisions::table(&self.deployment, WIDTH)),
            ("outdated", self.outdated()),
        ];
        parts.map(|(command, text)| format!("$ chandler {command}\n{text}")).join("\n")
    }

    fn list(&self) -> String {
        let mut row = Row::new(&self.deployment, Timestamp::UNIX_EPOCH);
        row.newer_version = self.newer.as_ref().filter(|_| row.pinned_to.is_none()).map(|newer| newer.version.clone());
        let rows = [row];
        lines(&listing::table(&rows, Columns::Short, WIDTH), &listing::notes(&rows))
    }

    fn status(&self) -> String {
        Explanation::new(&self.deployment, self.objects.clone(), self.unreadable.clone()).text(WIDTH)
    }

    fn explain(&self) -> String {
        let found = Found {
            deployment: Some("harbour".to_owned()),
            deployments: [("harbour".to_owned(), self.deployment.clone())].into(),
            ..Found::default()
        };
        Path::new(&found).text(WIDTH)
    }

    fn tree(&self) -> String {
        let mut objects = self.objects.clone();
        if let Some(drift) = self.deployment.status.as_ref().and_then(|status| status.drift.as_ref()) {
            tree::mark_drift(&mut objects, drift);
        }
        let nodes: Vec<TreeNode> = objects.iter().map(TreeNode::from).collect();
        let title = tree::title(&Overview::of(&self.deployment));
        let unreadable = self.unreadable.iter().map(|problem| format!("failed to read {problem}"));
        let branches = tree::node_lines(&nodes, ObjectHealth::sign, WIDTH).into_iter();
        std::iter::once(title).chain(branches).chain(unreadable).map(|line| line + "\n").collect()
    }

    fn outdated(&self) -> String {
        let bundle = self.deployment.status.as_ref().and_then(|status| status.bundle.clone()).unwrap_or_default();
        let (Some(package), Some(version), Some(newer)) = (bundle.package, bundle.version, self.newer.clone()) else {
            return "no newer versions\n".to_owned();
        };
        match outdated::Found::new(&self.deployment, package, version, newer) {
            outdated::Found::LeftOut(line) => format!("{line}\nno newer versions\n"),
            outdated::Found::Newer(row) => lines(&outdated::table(&[(*row).clone()], WIDTH), &outdated::notes(&[*row])),
        }
    }
}

fn lines(table: &str, notes: &[String]) -> String {
    notes.iter().fold(table.to_owned(), |text, note| text + note + "\n")
}

fn object(group: &str, kind: &str, name: &str) -> ObjectStatus {
    let namespace = (kind != "CustomResourceDefinition").then(|| "harbour-system".to_owned());
    let key = ObjectKey { group: group.into(), version: "v1".into(), kind: kind.into(), namespace, name: name.into() };
    ObjectStatus { key, health: ObjectHealth::Healthy, message: None, created: None }
}
