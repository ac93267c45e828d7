//! What `install` and `upgrade` set of a BundleDeployment.

use std::path::PathBuf;

use chandler_api::{ServiceAccountReference, ValuesReference};
use chandler_permissions::DefaultAccount;

use super::{
    catalogs::CatalogSelection, configuration::ConfigurationArguments, connection::Connection,
    content_service::ContentClientArguments, registry::RegistryArguments, values, wait::Wait,
};
use crate::{
    read::{
        catalogs::{CatalogOptions, FetchOptions},
        delivery::DeliveryOptions,
    },
    view::output::Format,
    write::{namespace::PodSecurity, upload::UploadOptions},
};

/// Which BundleDeployment is written, and how.
#[derive(Debug, clap::Args)]
pub struct InstallationArguments {
    /// Namespace to install into [default: NAME-system]
    #[arg(short, long, value_name = "NAMESPACE", value_parser = values::dns_label)]
    pub namespace: Option<String>,

    /// Create the namespace if it does not exist
    #[arg(long)]
    pub create_namespace: bool,

    /// Pod Security level that a created namespace enforces (label pod-security.kubernetes.io/enforce) [default: the cluster's]
    #[arg(long, value_enum, value_name = "LEVEL", requires = "create_namespace")]
    pub pod_security: Option<PodSecurity>,

    /// Provisioner class [default: the first built-in class that detects the format of the bundle; if none does and the cluster has others,
    /// the controller detects it]
    #[arg(long, visible_alias = "provisioner", value_name = "CLASS")]
    pub class: Option<String>,

    /// The configuration.
    #[command(flatten)]
    pub configuration: ConfigurationArguments,

    /// Values of the configuration from a ConfigMap or Secret in the namespace to install into (spec.valuesFrom), such as
    /// `configmap/base` or `secret/db`. The key is `values.yaml` unless KEY is set; with PATH, its text is the single value at that place:
    /// `secret/db:password=database.password`. Repeatable: the last one wins, and --config and --set win over all
    #[arg(long, value_name = "KIND/NAME[:KEY[=PATH]]", value_parser = values::values_reference)]
    pub values_from: Vec<ValuesReference>,

    /// ServiceAccount whose permissions install the bundle (spec.serviceAccount). Without NAMESPACE it is in the namespace to install into
    #[arg(long, value_name = "[NAMESPACE/]NAME")]
    pub service_account: Option<DefaultAccount>,

    /// Secret in the controller's namespace that the controller fetches an image or URL with (spec.source.image.pullSecret,
    /// spec.source.TYPE.auth.secret)
    #[arg(long, value_name = "NAME")]
    pub pull_secret: Option<String>,

    /// Label of a BundleDeployment that is created. Repeatable
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = values::label)]
    pub labels: Vec<(String, String)>,

    /// Print the objects that would be written, and write nothing. `kubectl apply --server-side -f -` accepts them
    #[arg(long)]
    pub dry_run: bool,

    /// Output format of --dry-run
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Yaml, requires = "dry_run")]
    pub output: Format,

    /// Whether and how long the command waits.
    #[command(flatten)]
    pub waiting: Wait,

    /// Namespace of the controller, for ConfigMaps with the files of a directory
    #[arg(long, value_name = "NAMESPACE", default_value = "chandler-system", env = "CHANDLER_SYSTEM_NAMESPACE", hide_env_values = true,
          value_parser = values::dns_label)]
    pub system_namespace: String,

    /// Upload the files of a directory or archive to the controller's content service, instead of ConfigMaps (spec.source.upload)
    #[arg(long)]
    pub upload: bool,

    /// How the command reaches the content service.
    #[command(flatten)]
    pub content: ContentClientArguments,

    /// Directory for unpacked bundles and compiled components
    /// [default: $XDG_CACHE_HOME/chandler, else ~/.cache/chandler]
    #[arg(long, value_name = "DIR", env = "CHANDLER_CACHE_DIRECTORY", hide_env_values = true)]
    pub cache_directory: Option<PathBuf>,

    /// How the command connects to the cluster.
    #[command(flatten)]
    pub connection: Connection,

    /// How the command connects to the registry of an image.
    #[command(flatten)]
    pub registry: RegistryArguments,
}

impl InstallationArguments {
    /// The value of `spec.serviceAccount`.
    pub fn account(&self) -> Option<ServiceAccountReference> {
        let DefaultAccount { namespace, name } = self.service_account.clone()?;
        Some(ServiceAccountReference { name, namespace })
    }

    /// How the files of the bundle reach the cluster.
    pub fn delivery(&self) -> DeliveryOptions {
        DeliveryOptions {
            upload: self.upload,
            pull_secret: self.pull_secret.clone(),
            system_namespace: self.system_namespace.clone(),
            cache_directory: self.cache_directory.clone(),
            registry: self.registry.options(),
        }
    }

    /// How files are uploaded.
    pub fn uploading(&self) -> UploadOptions {
        UploadOptions {
            connection: self.connection.options(),
            system_namespace: self.system_namespace.clone(),
            content: self.content.options(),
            cache_directory: self.cache_directory.clone(),
        }
    }

    /// The catalogs of a selection.
    pub fn catalogs(&self, selection: &CatalogSelection) -> CatalogOptions {
        let fetching =
            FetchOptions { registry: self.registry.options(), cache_directory: self.cache_directory.clone() };
        selection.options(fetching, self.connection.options(), &self.system_namespace)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Command {
        #[command(flatten)]
        installation: InstallationArguments,
    }

    #[test]
    fn an_account_may_be_in_another_namespace() {
        let account = |text: &str| {
            let parsed = Command::try_parse_from(["chandler", "--service-account", text]);
            parsed.map(|parsed| parsed.installation.account().unwrap())
        };
        let own = account("deployer").unwrap();
        assert_eq!((own.name.as_str(), own.namespace), ("deployer", None));
        let shared = account("chandler-accounts/team-a").unwrap();
        assert_eq!((shared.name.as_str(), shared.namespace.as_deref()), ("team-a", Some("chandler-accounts")));
        for wrong in ["a/b/c", "/a", "a/", "A"] {
            assert!(account(wrong).is_err(), "{wrong}");
        }
    }
}
