//! `chandler adopt`.

use chandler_core::ObjectKey;
use chandler_rollout::Adoptee;

use crate::{
    CommandError,
    arguments::{
        bundle::FetchArguments, connection::Connection, format::DataFormat, system_namespace::SystemNamespaceArguments,
        target::DEPLOYMENTS,
    },
    confirmation,
    read::{cluster, deployed, preview},
    view::{adoption::Adoption, output, terminal::Terminal, text::count},
    write::adoption,
};

/// Adopt existing objects
///
/// Renders the bundle as the controller does, and lists its objects that exist in the cluster but do not belong to the
/// BundleDeployment, with their owners and the fields that would change. After confirmation it adds these objects, with their UIDs, to
/// spec.adopt of the BundleDeployment. The controller then adopts them and continues the rollout. Objects of another controller, for
/// example another BundleDeployment, are adopted only with --force.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The objects on standard output; with -o json, every field. The result on standard error.

Exit codes: 0 adopted, or no object to adopt; 1 failed; 2 wrong usage; 7 not found; 8 refused

Examples:
  List the objects and their owners:
    chandler adopt my-operator --dry-run
  Adopt them, and follow the rollout:
    chandler adopt my-operator && chandler status my-operator --watch
  Move a CRD from another BundleDeployment (remove it from the bundle of that one afterwards):
    chandler adopt my-operator --force CustomResourceDefinition/oxen.example.com")]
pub struct Adopt {
    /// Name of the BundleDeployment
    #[arg(value_name = "NAME", value_parser = DEPLOYMENTS.name())]
    pub name: String,

    /// Objects to adopt [default: all]
    #[arg(value_name = "KIND[.GROUP]/[NAMESPACE/]NAME", value_parser = ObjectSelector::parse)]
    pub objects: Vec<ObjectSelector>,

    /// Also adopt objects of another controller, BundleDeployment or ApplySet
    #[arg(long)]
    pub force: bool,

    /// List the objects, and change nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Do not ask for confirmation
    #[arg(short, long)]
    pub yes: bool,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = DataFormat::Text)]
    pub output: DataFormat,

    /// The bundle's files [default: those that spec.source names]
    #[arg(long, value_name = "BUNDLE")]
    pub bundle: Option<String>,

    /// Where the bundle is fetched from and unpacked.
    #[command(flatten)]
    pub fetch: FetchArguments,

    /// Where files in ConfigMaps are.
    #[command(flatten)]
    pub system: SystemNamespaceArguments,

    /// How the command connects to the cluster.
    #[command(flatten)]
    pub connection: Connection,
}

/// An object on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectSelector {
    kind: String,
    group: Option<String>,
    namespace: Option<String>,
    name: String,
}

impl ObjectSelector {
    fn parse(text: &str) -> Result<Self, String> {
        let own = str::to_owned;
        let mut parts = text.splitn(3, '/').filter(|part| !part.is_empty());
        let (Some(kind), Some(second)) = (parts.next(), parts.next()) else {
            return Err("write an object as `ConfigMap/NAMESPACE/NAME` or `ClusterRole/NAME`".to_owned());
        };
        let (kind, group) = kind.split_once('.').map_or((kind, None), |(kind, group)| (kind, Some(own(group))));
        let (namespace, name) = parts.next().map_or((None, second), |name| (Some(own(second)), name));
        Ok(Self { kind: own(kind), group, namespace, name: own(name) })
    }

    fn matches(&self, object: &ObjectKey) -> bool {
        self.kind.eq_ignore_ascii_case(&object.kind)
            && self.group.as_ref().is_none_or(|group| *group == object.group)
            && self.namespace.as_ref().is_none_or(|namespace| Some(namespace) == object.namespace.as_ref())
            && self.name == object.name
    }
}

impl Adopt {
    /// Lists the objects, asks, and adopts them.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let name = &self.name;
        let client = cluster::client(&self.connection.options()).await?;
        let deployment = cluster::deployment(&client, name).await?;
        let mut opened = deployed::open(
            &client,
            &self.system.system_namespace,
            &self.fetch.of_deployment(),
            &deployment,
            self.bundle.as_deref(),
        )
        .await?;
        let release = deployed::release(&client, &mut opened).await?;
        let found = preview::adoptees(client.clone(), &deployment, &release).await?;
        let (objects, held) = self.choose(found)?;
        let adoption = Adoption { objects: &objects, held: &held };
        output::print(&output::data(&adoption, self.output, || adoption.text(Terminal::output().look()))?)?;
        if !held.is_empty() {
            let belong = if held.len() == 1 { "belongs" } else { "belong" };
            terminal.line(format!("{} {belong} to another owner: --force adopts them", count(held.len(), "object")));
        }
        if objects.is_empty() {
            terminal.line(format!("no object to adopt for {name}"));
            return Ok(());
        }
        let question = format!("adopt {} for BundleDeployment {name}?", count(objects.len(), "object"));
        if self.dry_run || !confirmation::confirmed(terminal, &question, self.yes)? {
            terminal.line("nothing was changed");
            return Ok(());
        }
        adoption::adopt(client, &deployment, &objects).await?;
        terminal.line(format!(
            "added {} to spec.adopt: `chandler status {name} --watch` follows the rollout",
            count(objects.len(), "object")
        ));
        Ok(())
    }

    /// The objects to adopt, and the objects that belong to another owner and need `--force`.
    fn choose(&self, found: Vec<Adoptee>) -> Result<(Vec<Adoptee>, Vec<Adoptee>), CommandError> {
        let missing =
            self.objects.iter().find(|selector| !found.iter().any(|adoptee| selector.matches(&adoptee.object)));
        if let Some(ObjectSelector { kind, name, .. }) = missing {
            return Err(CommandError::not_found(format!("{kind} {name} is not among the objects to adopt"))
                .hint(format!("`chandler adopt {} --dry-run` lists them", self.name)));
        }
        let selected = found.into_iter().filter(|adoptee| {
            self.objects.is_empty() || self.objects.iter().any(|selector| selector.matches(&adoptee.object))
        });
        Ok(selected.partition(|adoptee| self.force || adoptee.existing_owner.is_unclaimed()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(kind: &str, group: &str, namespace: Option<&str>, name: &str) -> ObjectKey {
        ObjectKey {
            group: group.into(),
            version: "v1".into(),
            kind: kind.into(),
            namespace: namespace.map(str::to_owned),
            name: name.into(),
        }
    }

    #[test]
    fn a_selector_matches_by_kind_group_namespace_and_name() {
        let settings = key("ConfigMap", "", Some("shop"), "settings");
        let operator = key("Deployment", "apps", Some("shop"), "operator");
        for (text, object, matches) in [
            ("ConfigMap/shop/settings", &settings, true),
            ("configmap/settings", &settings, true),
            ("ConfigMap/other/settings", &settings, false),
            ("Deployment.apps/shop/operator", &operator, true),
            ("Deployment.batch/shop/operator", &operator, false),
            ("Deployment/shop/other", &operator, false),
        ] {
            assert_eq!(ObjectSelector::parse(text).unwrap().matches(object), matches, "{text}");
        }
        assert!(ObjectSelector::parse("settings").is_err());
        assert!(ObjectSelector::parse("/x").is_err());
    }
}
