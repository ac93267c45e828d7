//! `chandler adopt`.

use std::path::PathBuf;

use chandler_api::{AdoptedObject, BundleDeployment};
use chandler_core::ObjectKey;
use chandler_rollout::{Adoptee, Options, Rollout};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde::Serialize;
use serde_json::json;

use super::status::StatusFormat;
use crate::{
    CommandError, consent, deployed, difference, live, output,
    rendering::Rendering,
    source::RegistryOptions,
    terminal::{Look, Terminal},
    text::{count, one_line},
};

/// Hand objects that are in the way of a BundleDeployment over to it
///
/// Renders the bundle as the controller does, lists the objects of it that exist and are somebody else's, whose they are and
/// what would change of them. After approval this names them, with their UIDs, in spec.adopt of the BundleDeployment; the
/// controller then takes them over and goes on by itself. What a controller holds, another BundleDeployment for instance, is
/// only taken from it with --force.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The objects on standard output, as JSON with every field; what was done on standard error.

Exit codes: 0 handed over or nothing in the way, 1 refused or not readable, 2 wrong usage

Examples:
  What is in the way, and whose it is:
    chandler adopt my-operator --dry-run
  Take it over, and follow the rollout:
    chandler adopt my-operator && chandler status my-operator --watch
  Move one definition from another BundleDeployment, and then take it out of the bundle of that one:
    chandler adopt my-operator --force CustomResourceDefinition/oxen.example.com")]
pub struct Adopt {
    /// The name of the BundleDeployment
    #[arg(value_name = "NAME")]
    pub name: String,

    /// Only these objects [default: all that are in the way]
    #[arg(value_name = "KIND[.GROUP]/[NAMESPACE/]NAME", value_parser = Wanted::parse)]
    pub objects: Vec<Wanted>,

    /// Also what another controller, BundleDeployment or ApplySet holds
    #[arg(long)]
    pub force: bool,

    /// Change nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,

    /// The form of the output
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = StatusFormat::Text)]
    pub output: StatusFormat,

    /// The files of the bundle, where its content is not an image
    #[arg(long, value_name = "BUNDLE")]
    pub bundle: Option<String>,

    /// How the registry of an image is spoken to.
    #[command(flatten, next_help_heading = "Images")]
    pub registry: RegistryOptions,

    /// Where unpacked bundles and compiled components are kept
    /// [default: $XDG_CACHE_HOME/chandler, else ~/.cache/chandler]
    #[arg(long, value_name = "DIR", env = "CHANDLER_CACHE_DIRECTORY", hide_env_values = true)]
    pub cache_directory: Option<PathBuf>,

    /// The kubeconfig to use [default: $KUBECONFIG, else ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
}

/// The field manager of what is written here.
const MANAGER: &str = "chandler-adopt";

/// An object as it is named on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    kind: String,
    group: Option<String>,
    namespace: Option<String>,
    name: String,
}

impl Wanted {
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

    fn is(&self, object: &ObjectKey) -> bool {
        self.kind.eq_ignore_ascii_case(&object.kind)
            && self.group.as_ref().is_none_or(|group| *group == object.group)
            && self.namespace.as_ref().is_none_or(|namespace| Some(namespace) == object.namespace.as_ref())
            && self.name == object.name
    }
}

/// What stands in the output.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    /// What is handed over, or would be.
    objects: &'a [Adoptee],
    /// What another one holds, which takes --force.
    held: &'a [Adoptee],
}

impl Adopt {
    /// Hands them over.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let name = &self.name;
        let client = live::client(self.kubeconfig.as_deref()).await?;
        let deployment = live::deployment(&client, name).await?;
        let mut opened = deployed::open(&self.rendering(), &deployment, self.bundle.as_deref()).await?;
        let release = deployed::release(&client, &mut opened).await?;
        let namespace = &deployment.spec.install_namespace;
        let owner = chandler_controller::owner_of(&deployment, namespace)
            .ok_or_else(|| CommandError::failed(format!("BundleDeployment {name} has no UID")))?;
        let rollout = Rollout::new(client.clone(), Options::default());
        let found = rollout.adoptees(&owner, &release).await.map_err(|error| {
            CommandError::failed(format!("failed to compare {name} with the cluster")).because(&error)
        })?;
        let (objects, held) = self.choose(found)?;
        self.print(&objects, &held)?;
        if !held.is_empty() {
            terminal.line(format!("{} held by others: --force takes them away", is_or_are(held.len())));
        }
        if objects.is_empty() {
            terminal.line(format!("nothing to hand over to {name}"));
            return Ok(());
        }
        let question = format!("hand {} over to BundleDeployment {name}?", count(objects.len(), "object"));
        if self.dry_run || !consent::given(terminal, &question, self.yes)? {
            terminal.line("nothing was changed");
            return Ok(());
        }
        self.hand_over(&client, &deployment, &objects).await?;
        terminal.line(format!(
            "handed {} over: `chandler status {name} --watch` follows what the controller does with it",
            count(objects.len(), "object")
        ));
        Ok(())
    }

    /// Names the objects, with their UIDs, in `spec.adopt`, beside those that stand there.
    async fn hand_over(
        &self,
        client: &Client,
        deployment: &BundleDeployment,
        objects: &[Adoptee],
    ) -> Result<(), CommandError> {
        let mut adopt = deployment.spec.adopt.clone();
        let named = objects.iter().map(named);
        adopt.retain(|known| !objects.iter().map(self::named).any(|new| same_object(known, &new)));
        adopt.extend(named);
        let patch = json!({
            // Somebody else may have named other objects since.
            "metadata": {"resourceVersion": deployment.metadata.resource_version},
            "spec": {"adopt": adopt},
        });
        let api: Api<BundleDeployment> = Api::all(client.clone());
        let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        api.patch(&self.name, &parameters, &Patch::Merge(patch)).await.map(drop).map_err(|error| {
            CommandError::failed(format!("failed to write spec.adopt of BundleDeployment {}", self.name))
                .because(&error)
                .hint("nothing was handed over: repeat the command")
        })
    }

    /// What is handed over, and what is not because another one holds it.
    fn choose(&self, found: Vec<Adoptee>) -> Result<(Vec<Adoptee>, Vec<Adoptee>), CommandError> {
        let unknown = self.objects.iter().find(|wanted| !found.iter().any(|adoptee| wanted.is(&adoptee.object)));
        if let Some(Wanted { kind, name, .. }) = unknown {
            return Err(CommandError::failed(format!(
                "{kind} {name} is not among the objects of the bundle that belong to others"
            ))
            .hint(format!("`chandler adopt {} --dry-run` lists them", self.name)));
        }
        let wanted =
            |adoptee: &Adoptee| self.objects.is_empty() || self.objects.iter().any(|wanted| wanted.is(&adoptee.object));
        let wanted = found.into_iter().filter(wanted);
        Ok(wanted.partition(|adoptee| self.force || adoptee.existing_owner.is_unclaimed()))
    }

    fn print(&self, objects: &[Adoptee], held: &[Adoptee]) -> Result<(), CommandError> {
        match self.output {
            StatusFormat::Json => output::print(&output::json(&Shown { objects, held })?),
            StatusFormat::Text => output::print(&text(objects, held, Terminal::output().look())),
        }
    }

    /// How the bundle is rendered.
    fn rendering(&self) -> Rendering {
        Rendering {
            bundle: String::new(),
            provisioner: None,
            namespace: None,
            name: None,
            config: None,
            kubernetes_version: None,
            registry: self.registry.clone(),
            cache_directory: self.cache_directory.clone(),
        }
    }
}

fn named(adoptee: &Adoptee) -> AdoptedObject {
    let ObjectKey { group, kind, namespace, name, .. } = adoptee.object.clone();
    AdoptedObject { group, kind, namespace, name, uid: adoptee.uid.clone() }
}

fn same_object(one: &AdoptedObject, other: &AdoptedObject) -> bool {
    (&one.group, &one.kind, &one.namespace, &one.name) == (&other.group, &other.kind, &other.namespace, &other.name)
}

fn is_or_are(number: usize) -> String {
    format!("{} {}", count(number, "object"), if number == 1 { "is" } else { "are" })
}

fn text(objects: &[Adoptee], held: &[Adoptee], look: Look) -> String {
    let mut text = String::new();
    for (sign, adoptees) in [("~ adopt", objects), ("! leave", held)] {
        for Adoptee { object, existing_owner, fields, note, .. } in adoptees {
            text.extend([
                sign,
                " ",
                &one_line(&object.to_string()),
                ", which ",
                &one_line(&existing_owner.to_string()),
                "\n",
            ]);
            if let Some(note) = note {
                text.extend(["    ! ", &one_line(note), "\n"]);
            }
            for field in fields {
                difference::push_field(&mut text, field, look);
            }
        }
    }
    text
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
    fn objects_are_named_by_kind_namespace_and_name() {
        let settings = key("ConfigMap", "", Some("shop"), "settings");
        let operator = key("Deployment", "apps", Some("shop"), "operator");
        for (text, object, named) in [
            ("ConfigMap/shop/settings", &settings, true),
            ("configmap/settings", &settings, true),
            ("ConfigMap/other/settings", &settings, false),
            ("Deployment.apps/shop/operator", &operator, true),
            ("Deployment.batch/shop/operator", &operator, false),
            ("Deployment/shop/other", &operator, false),
        ] {
            assert_eq!(Wanted::parse(text).unwrap().is(object), named, "{text}");
        }
        assert!(Wanted::parse("settings").is_err());
        assert!(Wanted::parse("/x").is_err());
    }
}
