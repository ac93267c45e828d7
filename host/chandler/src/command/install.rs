//! `chandler install`.

use chandler_api::{BundleDeployment, BundleDeploymentSpec};
use chandler_core::Release;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Map, Value};

use crate::{
    CommandError,
    arguments::{catalogs::PackageArguments, installation::InstallationArguments, values},
    read::{
        cluster, configuration,
        delivery::{Delivered, Delivery},
        missing_kinds,
        named::NamedBundle,
        naming, origin, package, settled,
    },
    view::{
        manifest,
        output::{self, Format},
        secrets,
        terminal::Terminal,
        text::{count, one_line},
    },
    write::{
        content,
        deployment::{self, Effect},
        namespace,
        upload::Upload,
    },
};

/// Install a bundle, or a package of a catalog
///
/// Creates a BundleDeployment for an image or a URL, or for a directory or an archive of this machine, and follows its rollout. Files of this
/// machine reach the cluster in ConfigMaps in the controller's namespace, or with --upload through its content service; a registry is not needed. The files that the .helmignore of a chart names
/// stay on this machine. Files are rendered before anything
/// is written, so that an invalid bundle or configuration is reported with its lines. Without NAME, the name is derived from BUNDLE.
///
/// A BUNDLE without `/`, `:` and `.` before any `@` that is not a path is a package, with the versions that are asked for: `prometheus`,
/// `prometheus@'>=0.50'`. The command chooses the best version that fits the cluster from the Catalogs of the cluster, or from --catalog,
/// prints it, and installs its image. A path that exists is a bundle; `prometheus@'*'` is the package even then.
#[derive(Debug, clap::Args)]
#[command(
    allow_missing_positional = true,
    after_long_help = "\
Output:
  What was created, the progress and the result on standard error; with --dry-run, the objects on
  standard output.

Exit codes: 0 healthy, or created with --wait=false; 1 failed; 2 wrong usage; 3 not healthy before
  the timeout; 5 no version of the package fits; 6 waits for a decision: approval, or
  `chandler resume`; 7 no catalog has the package, or the namespace does not exist; 8 refused

Required permissions: `create` on bundledeployments.core.rukpak.io; for files of this machine, `create`
and `patch` on configmaps in the controller's namespace.

Examples:
  Install an image as `harbour` into the namespace `harbour-system`:
    chandler install harbour quay.io/example/harbour-bundle:v1.2.0 --create-namespace
  Install the best version of a package of the cluster's Catalogs:
    chandler install prometheus@'>=0.50' --create-namespace
  Install an archive of a web server, and only this one:
    chandler install harbour https://example.com/harbour-1.2.tgz#sha256=DIGEST -n tenant
  Install the newest version of a chart in a Helm repository, and follow it:
    chandler install web 'helm+https://charts.example.com?chart=web' --class helm
  Install a directory, with a configuration:
    chandler install harbour ./harbour-operator -n tenant -f values.yaml --set replicas=2
  With a password from a Secret:
    chandler install harbour ./harbour-operator -n tenant \\
      --values-from secret/harbour-db:password=database.password
  Write a manifest for Git, and create nothing:
    chandler install harbour quay.io/example/harbour-bundle:v1.2.0 --class core-rukpak-io-registry --dry-run"
)]
pub struct Install {
    /// Name of the BundleDeployment [default: derived from BUNDLE]
    #[arg(value_name = "NAME", value_parser = values::name_before_bundle)]
    pub name: Option<String>,

    /// An image reference, the URL of an archive or a git repository, a chart in a Helm repository
    /// (helm+URL?chart=NAME&version=VERSION), a directory, an archive (.tar, .tar.gz, .tgz, .tar.zst, .zip), or a package of a catalog
    /// as `PACKAGE` or `PACKAGE@RANGE`
    #[arg(value_name = "BUNDLE", required = true)]
    pub bundle: String,

    /// How a package is chosen.
    #[command(flatten)]
    pub package: PackageArguments,

    /// The fields of the BundleDeployment that are set.
    #[command(flatten)]
    pub installation: InstallationArguments,
}

impl Install {
    /// Creates the BundleDeployment, and follows it.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let client = cluster::client(&self.installation.connection.options()).await?;
        if package::is_package(&self.bundle, &self.package.channels, &self.package.selection.catalogs)? {
            let catalogs = package::catalogs(
                &self.bundle,
                &self.installation.catalogs(&self.package.selection),
                &client,
                terminal,
            )
            .await?;
            let chosen = package::choose(&self.bundle, &self.package.channels, &catalogs, &client).await?;
            chosen.report(terminal);
            let name = self.name.clone().unwrap_or(chosen.package);
            return Box::pin(install(&client, &name, &chosen.image.into(), &self.installation, terminal)).await;
        }
        let name = self.name.clone().unwrap_or_else(|| {
            let name = naming::deployment(&self.bundle);
            terminal.line(format!("name: {name} (derived from {})", origin::shown(&self.bundle)));
            name
        });
        let bundle = NamedBundle::of_user(&self.bundle)?;
        Box::pin(install(&client, &name, &bundle, &self.installation, terminal)).await
    }
}

/// Creates a BundleDeployment for a bundle, and follows it.
pub(super) async fn install(
    client: &Client,
    name: &str,
    bundle: &NamedBundle,
    arguments: &InstallationArguments,
    terminal: &Terminal,
) -> Result<(), CommandError> {
    let install_namespace = arguments.namespace.clone().unwrap_or_else(|| naming::namespace(name));
    let config = configuration::combined(&arguments.configuration.options(), Map::new())?;
    for warning in secrets::warnings(&config) {
        terminal.line(warning);
    }
    if !arguments.dry_run {
        // A name that is taken is reported before the bundle is fetched.
        check_free(client, name).await?;
    }
    let delivery = Delivery {
        bundle,
        name,
        namespace: &install_namespace,
        class: arguments.class.as_deref(),
        config: &config,
        values_from: &arguments.values_from,
    };
    let delivered = delivery.prepare(client, &arguments.delivery()).await?;
    if let Some(note) = &delivered.note {
        terminal.line(format!("note: {}", one_line(note)));
    }
    missing_kinds::report(&delivered.missing, terminal);
    let wanted = wanted(name, &install_namespace, config, &delivered, arguments);
    let own = arguments.create_namespace.then(|| namespace::namespace(&install_namespace, arguments.pod_security));
    if arguments.dry_run {
        return print(own.as_ref(), &delivered, &wanted, arguments.output);
    }
    if own.is_none() {
        check_namespace(client, &install_namespace, delivered.release.as_ref()).await?;
    }
    let upload = Upload::of(Some(&delivered), client, &arguments.uploading()).await?;
    // The API server checks the object before anything is created for it.
    deployment::create(client, &wanted, Effect::Check).await?;
    if let Some(own) = &own
        && namespace::create(client, own).await?
    {
        terminal.line(format!("created namespace {install_namespace}"));
    }
    let written = content::create(client, &delivered.config_maps).await?;
    let created = match deployment::create(client, &wanted, Effect::Store).await {
        Ok(created) => created,
        Err(error) => return Err(content::discard(client, &written, error).await),
    };
    content::own(client, &created, &delivered.config_maps).await?;
    let class = match delivered.class.as_str() {
        "" => "class to be detected".to_owned(),
        class => format!("class {class}"),
    };
    let files = in_config_maps(&delivered);
    terminal.line(format!("created BundleDeployment {name} for namespace {install_namespace}, {class}{files}"));
    if let Some(upload) = &upload {
        upload.send(name, terminal).await?;
    }
    follow(client, name, arguments, terminal).await
}

/// Waits for the result, if the arguments say so.
pub(super) async fn follow(
    client: &Client,
    name: &str,
    arguments: &InstallationArguments,
    terminal: &Terminal,
) -> Result<(), CommandError> {
    if !arguments.waiting.wait {
        terminal.line(format!("`chandler status {name} --watch` follows the rollout"));
        return Ok(());
    }
    let namespace = Some(arguments.system_namespace.as_str());
    settled::until_healthy(client, name, namespace, terminal, arguments.waiting.timeout).await
}

/// `, files in 3 ConfigMaps`, if there are any.
pub(super) fn in_config_maps(delivered: &Delivered) -> String {
    match delivered.config_maps.len() {
        0 => String::new(),
        number => format!(", files in {}", count(number, "ConfigMap")),
    }
}

fn wanted(
    name: &str,
    install_namespace: &str,
    config: Map<String, Value>,
    delivered: &Delivered,
    arguments: &InstallationArguments,
) -> BundleDeployment {
    let spec = BundleDeploymentSpec {
        install_namespace: install_namespace.to_owned(),
        provisioner_class_name: delivered.class.clone(),
        source: delivered.source.clone(),
        config: (!config.is_empty()).then_some(config),
        values_from: arguments.values_from.clone(),
        service_account: arguments.account(),
        ..BundleDeploymentSpec::default()
    };
    let mut wanted = BundleDeployment::new(name, spec);
    wanted.labels_mut().extend(arguments.labels.iter().cloned());
    wanted
}

async fn check_free(client: &Client, name: &str) -> Result<(), CommandError> {
    match Api::<BundleDeployment>::all(client.clone()).get_opt(name).await {
        Ok(Some(_)) => Err(CommandError::failed(format!("BundleDeployment {name} exists"))
            .hint(format!("change it with `chandler upgrade {name} BUNDLE`, or choose another name"))),
        Ok(None) => Ok(()),
        // A user may have the permission to create and none to read.
        Err(kube::Error::Api(status)) if status.is_forbidden() => Ok(()),
        Err(error) => Err(cluster::not_read(name, &error)),
    }
}

/// Fails if the namespace does not exist and the release does not contain it: the rollout would wait for it.
async fn check_namespace(client: &Client, name: &str, release: Option<&Release>) -> Result<(), CommandError> {
    let is_own = |object: &chandler_core::Object| {
        let key = &object.key;
        key.is_namespace() && key.name == name
    };
    if release.is_some_and(|release| release.objects().iter().any(is_own)) {
        return Ok(());
    }
    let namespaces: Api<Namespace> = Api::all(client.clone());
    match namespaces.get_opt(name).await {
        Ok(None) => Err(CommandError::not_found(format!("namespace {name} does not exist"))
            .hint("--create-namespace creates it; -n names another one")),
        // Without the permission to read namespaces, the controller reports a missing one.
        Ok(Some(_)) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_forbidden() => Ok(()),
        Err(error) => Err(CommandError::failed(format!("failed to read namespace {name}")).because(&error)),
    }
}

/// Prints the objects in the order in which they must be created.
pub(super) fn print(
    namespace: Option<&Namespace>,
    delivered: &Delivered,
    deployment: &BundleDeployment,
    format: Format,
) -> Result<(), CommandError> {
    let failed = |error: serde_json::Error| CommandError::failed("failed to write the objects").because(&error);
    let mut objects = Vec::new();
    if let Some(namespace) = namespace {
        objects.push(serde_json::to_value(namespace).map_err(failed)?);
    }
    for config_map in &delivered.config_maps {
        objects.push(serde_json::to_value(config_map).map_err(failed)?);
    }
    objects.push(manifest::authored(serde_json::to_value(deployment).map_err(failed)?));
    output::print(&output::write(&objects, format)?)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use crate::{Arguments, command::Command};

    fn parsed(words: &[&str]) -> Option<(Option<String>, String)> {
        let arguments = Arguments::try_parse_from([&["chandler", "install"], words].concat()).ok()?;
        match arguments.command {
            Command::Install(install) => Some((install.name, install.bundle)),
            _ => None,
        }
    }

    #[test]
    fn the_name_comes_first_and_may_be_omitted() {
        let own = |text: &str| text.to_owned();
        assert_eq!(parsed(&["harbour", "./dir"]), Some((Some(own("harbour")), own("./dir"))));
        assert_eq!(parsed(&["./dir"]), Some((None, own("./dir"))));
        assert_eq!(parsed(&["./dir", "--wait=false", "-n", "x"]), Some((None, own("./dir"))));
        assert_eq!(parsed(&["./dir", "harbour"]), None, "a path is not a name");
        assert_eq!(parsed(&[]), None);
        assert_eq!(parsed(&["./dir", "--pod-security", "baseline"]), None, "no namespace is created");
    }
}
