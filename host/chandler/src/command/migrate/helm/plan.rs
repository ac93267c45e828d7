//! The migration of one release: the BundleDeployment, what must exist before it, and what it would do.

use std::sync::Arc;

use chandler_api::{
    BundleDeployment, BundleDeploymentSpec, BundleSource, ImageSource, ServiceAccountReference, ValuesKind,
    ValuesReference,
};
use chandler_content::ImageReference;
use chandler_core::{Content, ObjectKey};
use chandler_rollout::{Adoptee, ChangeKind, ExistingOwner, Preview};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Client, ResourceExt as _};
use serde_json::{Map, Value};

use super::Helm;
use crate::{
    CommandError,
    migrate::{
        ForeignObject,
        helm::{self, HelmRelease, ReleaseError, is_same},
        pending,
    },
    read::{
        cache, deployed, helm_releases,
        helm_releases::FoundRelease,
        packaging::{self, User},
        preview,
        rendering::BundleOptions,
        source,
    },
    view::{
        adoption::Adoption,
        terminal::Terminal,
        text::{count, one_line},
    },
    write::{
        adoption::entry,
        content,
        deployment::{self, Effect},
        helm_values,
    },
};

/// A BundleDeployment to create, and what it would do.
pub(super) struct Plan {
    /// The release, `NAMESPACE/NAME`.
    pub(super) release: String,
    /// The chart and the revision, for messages.
    chart: String,
    /// The BundleDeployment.
    pub(super) deployment: BundleDeployment,
    /// ConfigMaps with the files of the chart.
    config_maps: Vec<ConfigMap>,
    /// The Secret with the values.
    values: Option<Secret>,
    /// The Secrets of the release.
    managers: Vec<ForeignObject>,
    /// How the rendered chart compares with the cluster.
    pub(super) compared: Compared,
}

/// What the rollout of a rendered chart would do.
pub(super) struct Compared {
    /// The objects to adopt.
    pub(super) adoptees: Vec<Adoptee>,
    /// What the rollout would do.
    pub(super) preview: Preview,
    /// Objects that belong to another owner.
    pub(super) strangers: Vec<String>,
    /// Objects that no owner claims, and that do not say that they belong to the release.
    pub(super) unmarked: Vec<String>,
    /// Objects that would be created.
    pub(super) new: Vec<String>,
    /// Objects that Helm installed and the chart does not render here.
    pub(super) left: Vec<String>,
    /// Why the permissions of the ServiceAccount are not checked.
    unchecked_account: Option<String>,
}

/// What a release becomes, before it is compared with the cluster.
struct Design {
    helm: HelmRelease,
    /// The files of the chart, unless they are in a registry.
    content: Option<Arc<dyn Content>>,
    /// The BundleDeployment without the values and the objects to adopt.
    deployment: BundleDeployment,
    config_maps: Vec<ConfigMap>,
}

/// Reads and renders a release, and compares it with the cluster. The inner error is about the release.
pub(super) async fn plan(
    arguments: &Helm,
    client: &Client,
    found: &FoundRelease,
) -> Result<Result<Plan, CommandError>, CommandError> {
    let (namespace, name) = (found.namespace.as_str(), found.name());
    let given = arguments.names.iter().find(|(by, _)| found.is_named(by)).map(|(_, name)| name.as_str());
    let Design { helm, content, mut deployment, config_maps } = match design(arguments, client, found, given).await? {
        Ok(design) => design,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let compared = Box::pin(compare(arguments, client, &deployment, &helm, content)).await;
    let compared = compared.map_err(|error| {
        error.hint(format!("this is about the release {namespace}/{name}, chart {}; nothing was changed", helm.chart()))
    })?;
    deployment.spec.adopt = compared.adoptees.iter().map(entry).collect();
    let values = configure(&mut deployment, &helm.values(), arguments.values_in_spec);
    Ok(Ok(Plan {
        release: format!("{namespace}/{name}"),
        chart: format!("revision {}, chart {}", found.newest.revision, helm.chart()),
        deployment,
        config_maps,
        values,
        managers: found.secrets.clone(),
        compared,
    }))
}

/// The fields in which the spec of a BundleDeployment differs from what the command would create for the release now, except for the objects to adopt
/// and for what only delays the rollout. The inner error is about the release.
pub(super) async fn differences(
    arguments: &Helm,
    client: &Client,
    found: &FoundRelease,
    deployment: &BundleDeployment,
) -> Result<Result<Vec<String>, CommandError>, CommandError> {
    let name = deployment.name_any();
    Ok(design(arguments, client, found, Some(&name)).await?.map(|Design { helm, deployment: mut intended, .. }| {
        configure(&mut intended, &helm.values(), arguments.values_in_spec);
        different(&deployment.spec, &intended.spec)
    }))
}

/// The names of the fields with different values. [`differences`] says which of them do not count.
fn different(spec: &BundleDeploymentSpec, intended: &BundleDeploymentSpec) -> Vec<String> {
    let fields = |spec: &BundleDeploymentSpec| {
        let compared = BundleDeploymentSpec { adopt: Vec::new(), suspend: false, approval: None, ..spec.clone() };
        match serde_json::to_value(compared) {
            Ok(Value::Object(fields)) => fields,
            // A spec has a JSON form.
            _ => Map::new(),
        }
    };
    let (mut spec, intended) = (fields(spec), fields(intended));
    let mut different: Vec<String> = Vec::new();
    for (field, value) in &intended {
        if spec.remove(field).as_ref() != Some(value) {
            different.push(format!("spec.{field}"));
        }
    }
    different.extend(spec.keys().map(|field| format!("spec.{field}")));
    different.sort_unstable();
    different
}

/// Reads a release, and makes the BundleDeployment of this name for it; by default it has the name of the release. The inner error is about the release.
async fn design(
    arguments: &Helm,
    client: &Client,
    found: &FoundRelease,
    given: Option<&str>,
) -> Result<Result<Design, CommandError>, CommandError> {
    let (namespace, name) = (found.namespace.as_str(), found.name());
    let refused = |error: &ReleaseError| {
        CommandError::refused(format!("the release {namespace}/{name} cannot be migrated; nothing was changed"))
            .cause(one_line(&error.to_string()))
            .hint(error.hint(namespace, name))
    };
    let helm = match helm_releases::read(client, found).await? {
        Ok(read) => read,
        Err(error) => return Ok(Err(refused(&error))),
    };
    let deployment_name = given.unwrap_or(name);
    if let Err(problem) = crate::arguments::values::deployment_name(deployment_name) {
        return Ok(Err(CommandError::refused(format!(
            "the release {namespace}/{name} cannot be migrated; nothing was changed"
        ))
        .cause(problem)
        .hint(format!("give the BundleDeployment another name: `--name {namespace}/{name}=NAME`"))));
    }
    let image = arguments.images.iter().find(|(by, _)| found.is_named(by)).map(|(_, image)| image);
    let content: Option<Arc<dyn Content>> = if image.is_some() {
        None
    } else {
        let cache = cache::directory(arguments.fetching.cache_directory.as_deref())?;
        match helm_releases::chart(&helm, &source::store(&cache).await?).await? {
            Ok(tree) => Some(Arc::new(tree)),
            Err(error) => return Ok(Err(refused(&error))),
        }
    };
    let (source, config_maps) = source_of(arguments, (name, deployment_name), image, content.as_deref())?;
    let mut deployment = BundleDeployment::new(
        deployment_name,
        BundleDeploymentSpec {
            install_namespace: namespace.to_owned(),
            provisioner_class_name: arguments.class.clone(),
            source,
            service_account: account(arguments),
            config: (deployment_name != name)
                .then(|| Map::from_iter([(helm::RELEASE_NAME.to_owned(), Value::from(name))])),
            ..BundleDeploymentSpec::default()
        },
    );
    deployment.labels_mut().extend(arguments.labels.iter().cloned());
    Ok(Ok(Design { helm, content, deployment, config_maps }))
}

/// The source of the chart, and ConfigMaps with its files, if it is not in a registry.
fn source_of(
    arguments: &Helm,
    (name, deployment_name): (&str, &str),
    image: Option<&String>,
    content: Option<&dyn Content>,
) -> Result<(BundleSource, Vec<ConfigMap>), CommandError> {
    if let Some(image) = image {
        let parsed = image.parse::<ImageReference>();
        parsed.map_err(|error| CommandError::usage(format!("--image {name}: not an image")).because(&error))?;
        let pull_secret = arguments.pull_secret.clone();
        return Ok((
            BundleSource::image(ImageSource { reference: image.clone(), pull_secret, ..ImageSource::default() }),
            Vec::new(),
        ));
    }
    let content = content.ok_or_else(|| CommandError::failed(format!("the release {name} has no chart")))?;
    let packed = packaging::pack(User::BundleDeployment(deployment_name), &arguments.system.system_namespace, content);
    let packed = packed.map_err(|error| {
        CommandError::failed(format!("the chart of {name} does not fit into ConfigMaps"))
            .because(&error)
            .hint(format!("push it as an image, and name it: `--image {name}=REGISTRY/PATH:VERSION`"))
    })?;
    Ok((BundleSource::config_maps(packed.sources), packed.config_maps))
}

fn account(arguments: &Helm) -> Option<ServiceAccountReference> {
    let account = arguments.service_account.clone()?;
    Some(ServiceAccountReference { name: account.name, namespace: account.namespace })
}

/// Sets the values of the release: in the spec, or in a Secret, which is returned.
fn configure(deployment: &mut BundleDeployment, values: &Map<String, Value>, in_spec: bool) -> Option<Secret> {
    if values.is_empty() {
        return None;
    }
    if in_spec {
        add_values(deployment, values);
        return None;
    }
    let secret = helm_values::secret(&deployment.name_any(), &deployment.spec.install_namespace, values);
    deployment.spec.values_from =
        vec![ValuesReference { kind: ValuesKind::Secret, name: secret.name_any(), ..ValuesReference::default() }];
    Some(secret)
}

/// Adds the values to the configuration in the spec.
fn add_values(deployment: &mut BundleDeployment, values: &Map<String, Value>) {
    let config = deployment.spec.config.get_or_insert_default();
    config.insert("values".to_owned(), Value::Object(values.clone()));
}

/// Renders the chart with the values of the release, and compares the result with the cluster.
async fn compare(
    arguments: &Helm,
    client: &Client,
    deployment: &BundleDeployment,
    helm: &HelmRelease,
    content: Option<Arc<dyn Content>>,
) -> Result<Compared, CommandError> {
    // A name that is taken is reported before the chart is fetched.
    deployment::create(client, deployment, Effect::Check).await?;
    // The Secret with the values does not exist yet.
    let mut planned = deployment.clone();
    add_values(&mut planned, &helm.values());
    let fetching = arguments.fetching.options();
    let options = BundleOptions::of_deployment(fetching.registry, fetching.cache_directory);
    let mut opened = match content {
        Some(content) => deployed::open_content(client, &options, &planned, content).await,
        None => deployed::open(client, &arguments.system.system_namespace, &options, &planned, None).await,
    }
    .map_err(|error| {
        error.hint(format!(
            "the class {} renders charts: docs/helm.md says how to install it; --class names another one",
            arguments.class
        ))
    })?;
    let release = deployed::release(client, &mut opened).await?;
    let mut adoptees = preview::adoptees(client.clone(), &preview::unstored(&planned), &release).await?;
    planned.spec.adopt = adoptees.iter().map(entry).collect();
    // Generated values, and texts with them, are compared as they will be: Secrets that are adopted keep their values.
    let unstored = preview::unstored(&planned);
    let completed = Box::pin(preview::completed(client.clone(), &unstored, &release)).await;
    if let Some(completed) = completed.filter(|completed| completed.digest() != release.digest()) {
        adoptees = preview::adoptees(client.clone(), &unstored, &completed).await?;
    }
    let (preview, unchecked_account) =
        preview::rollout_as_account(client.clone(), &preview::unstored(&planned), &release).await?;
    let install_namespace = &deployment.spec.install_namespace;
    let rendered: Vec<&ObjectKey> = release.objects().iter().map(|object| &object.key).collect();
    let listed = helm.objects().map_err(|error| CommandError::failed("failed to read the release").because(&error))?;
    let is_left = |listed: &&ObjectKey| !rendered.iter().any(|key| is_same(listed, key, install_namespace));
    let mut compared = Compared {
        strangers: Vec::new(),
        unmarked: Vec::new(),
        new: preview
            .changes
            .iter()
            .filter(|change| change.kind == ChangeKind::Create)
            .map(|change| one_line(&change.object.to_string()))
            .collect(),
        left: listed.iter().filter(is_left).map(|key| one_line(&key.to_string())).collect(),
        adoptees,
        preview,
        unchecked_account,
    };
    for Adoptee { object, existing_owner, .. } in &compared.adoptees {
        let line = one_line(&format!("{object}, which {existing_owner}"));
        match ownership(existing_owner, install_namespace, &helm::release_name(deployment)) {
            Ownership::Own => {}
            Ownership::Unmarked => compared.unmarked.push(line),
            Ownership::Other => compared.strangers.push(line),
        }
    }
    Ok(compared)
}

/// Whether an object belongs to a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ownership {
    /// Its annotations name the release: only users who may write the object may write them.
    Own,
    /// No owner claims it.
    Unmarked,
    /// It belongs to another owner.
    Other,
}

fn ownership(owner: &ExistingOwner, namespace: &str, name: &str) -> Ownership {
    match owner {
        ExistingOwner::HelmRelease { namespace: of, name: release } if of == namespace && release == name => {
            Ownership::Own
        }
        ExistingOwner::Manager { .. } | ExistingOwner::Unknown | ExistingOwner::LeftBehind { .. } => {
            Ownership::Unmarked
        }
        ExistingOwner::HelmRelease { .. }
        | ExistingOwner::Controller { .. }
        | ExistingOwner::StaleOwner { .. }
        | ExistingOwner::Unrecorded { .. }
        | ExistingOwner::Member { .. }
        | ExistingOwner::ApplySet { .. } => Ownership::Other,
    }
}

impl Plan {
    /// Says what is created, adopted and deleted.
    pub(super) fn report(&self, arguments: &Helm, terminal: &Terminal) {
        terminal.line(format!("release {}, {}", self.release, self.chart));
        terminal.line(format!("+ create BundleDeployment {}", self.deployment.name_any()));
        if !self.config_maps.is_empty() {
            terminal.line(format!(
                "+ create {} in {}, with the files of the chart",
                count(self.config_maps.len(), "ConfigMap"),
                arguments.system.system_namespace
            ));
        }
        if let Some(secret) = &self.values {
            let namespace = secret.metadata.namespace.as_deref().unwrap_or_default();
            terminal.line(format!("+ create Secret {namespace}/{}, with the values of the release", secret.name_any()));
            if self.deployment.spec.service_account.is_none() {
                terminal.line(format!(
                    "warning: users who may write Secrets in namespace {namespace} decide what {} renders, and the controller installs it with its \
                     own permissions; --service-account limits them, and --values-in-spec stores the values in the spec",
                    self.deployment.name_any()
                ));
            }
        }
        terminal.write(Adoption { objects: &self.compared.adoptees, held: &[] }.text(terminal.look()));
        for object in &self.compared.new {
            terminal.line(format!("+ create {object}, which does not exist"));
        }
        for manager in self.managers.iter().filter(|_| !arguments.keep_release) {
            terminal.line(format!("- delete {}, in the end", one_line(&manager.to_string())));
        }
        if let Some(why) = &self.compared.unchecked_account {
            terminal.line(format!(
                "note: the controller checks the permissions of the ServiceAccount, before it adopts anything: {}",
                one_line(why)
            ));
        }
    }

    /// Creates the BundleDeployment, and before it what it refers to. From here on the controller checks, and adopts the objects.
    pub(super) async fn create(&self, client: &Client, terminal: &Terminal) -> Result<BundleDeployment, CommandError> {
        let mut deployment = self.deployment.clone();
        pending::begin(&mut deployment, &self.managers);
        let values = match &self.values {
            Some(secret) => helm_values::create(client, secret).await?,
            None => None,
        };
        let written = match content::create(client, &self.config_maps).await {
            Ok(written) => written,
            Err(error) => return Err(helm_values::discard(client, values.as_ref(), error).await),
        };
        let created = match deployment::create(client, &deployment, Effect::Store).await {
            Ok(created) => created,
            Err(error) => {
                let error = content::discard(client, &written, error).await;
                return Err(helm_values::discard(client, values.as_ref(), error).await);
            }
        };
        content::own(client, &created, &self.config_maps).await?;
        if let Some(secret) = &self.values {
            helm_values::own(client, &created, secret).await?;
        }
        terminal.line(format!("created BundleDeployment {}", created.name_any()));
        Ok(created)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_belongs_to_the_release_that_it_names() {
        let text = |text: &str| text.to_owned();
        let helm =
            |namespace: &str, name: &str| ExistingOwner::HelmRelease { namespace: text(namespace), name: text(name) };
        for (owner, expected) in [
            (helm("shop", "web"), Ownership::Own),
            (helm("vendor", "web"), Ownership::Other),
            (helm("shop", "db"), Ownership::Other),
            (helm("", "web"), Ownership::Other),
            (ExistingOwner::Controller { kind: text("BundleDeployment"), name: text("web") }, Ownership::Other),
            (ExistingOwner::ApplySet { id: text("x") }, Ownership::Other),
            (ExistingOwner::Manager { name: text("helm") }, Ownership::Unmarked),
            (ExistingOwner::Unknown, Ownership::Unmarked),
        ] {
            assert_eq!(ownership(&owner, "shop", "web"), expected, "{owner}");
        }
    }

    #[test]
    fn another_account_content_or_configuration_is_a_difference() {
        let intended: BundleDeploymentSpec = serde_json::from_value(serde_json::json!({
            "installNamespace": "shop", "provisionerClassName": "helm", "serviceAccount": {"name": "deployer"},
            "source": {"type": "image", "image": {"ref": "registry.example.com/web:1"}}}))
        .unwrap();
        let with = |field: &str, value: Value| {
            let mut spec = serde_json::to_value(&intended).unwrap();
            spec[field] = value;
            different(&serde_json::from_value(spec).unwrap(), &intended)
        };
        for (field, value) in [
            ("suspend", Value::from(true)),
            ("approval", Value::from("Manual")),
            ("adopt", serde_json::json!([{"kind": "ConfigMap", "name": "a", "uid": "1"}])),
        ] {
            assert_eq!(with(field, value), [""; 0], "{field}");
        }
        for (field, value) in [
            ("serviceAccount", Value::Null),
            ("serviceAccount", serde_json::json!({"name": "deployer", "namespace": "ci"})),
            ("source", serde_json::json!({"type": "image", "image": {"ref": "registry.example.com/web:2"}})),
            ("config", serde_json::json!({"values": {"a": 1}})),
            ("valuesFrom", serde_json::json!([{"kind": "Secret", "name": "others"}])),
            ("provisionerClassName", Value::from("mine")),
            ("kubeConfig", serde_json::json!({"secretRef": {"name": "elsewhere"}})),
            ("collisionProtection", Value::from("None")),
        ] {
            assert_eq!(with(field, value), [format!("spec.{field}")]);
        }
    }

    #[test]
    fn values_are_in_a_secret_unless_the_user_wants_them_in_the_spec() {
        let values = Map::from_iter([("password".to_owned(), Value::from("s3cret"))]);
        let spec = BundleDeploymentSpec { install_namespace: "shop".to_owned(), ..BundleDeploymentSpec::default() };
        let mut deployment = BundleDeployment::new("web", spec);
        assert_eq!(configure(&mut deployment.clone(), &Map::new(), false), None);
        let mut open = deployment.clone();
        assert_eq!(configure(&mut open, &values, true), None);
        assert_eq!(
            serde_json::to_value(open.spec.config).unwrap(),
            serde_json::json!({"values": {"password": "s3cret"}})
        );
        let secret = configure(&mut deployment, &values, false).unwrap();
        assert!(!serde_json::to_string(&deployment).unwrap().contains("s3cret"));
        assert_eq!(deployment.spec.values_from[0].name, secret.name_any());
        let text = &secret.data.unwrap()[chandler_api::DEFAULT_VALUES_KEY];
        assert_eq!(text.0, br#"{"values":{"password":"s3cret"}}"#);
    }
}
