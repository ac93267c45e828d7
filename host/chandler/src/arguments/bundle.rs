//! A bundle to render, and the request to its provisioner.

use std::path::{Path, PathBuf};

use super::{configuration::ConfigurationArguments, registry::RegistryArguments, values};

/// Which bundle is rendered, and how.
#[derive(Clone, Debug, clap::Args)]
pub struct BundleArguments {
    /// A directory, an archive (.tar, .tar.gz, .tgz, .tar.zst, .zip), the URL of an archive or a git repository, or an image reference
    #[arg(value_name = "BUNDLE")]
    pub bundle: String,

    /// A built-in provisioner class, a ProvisionerClass of the cluster, or a component file [default: the first built-in class that
    /// detects the format of the bundle]
    #[arg(long, value_name = "CLASS|FILE.wasm")]
    pub provisioner: Option<String>,

    /// Namespace to install into [default: NAME-system]
    #[arg(short, long, value_name = "NAMESPACE", value_parser = values::dns_label)]
    pub namespace: Option<String>,

    /// Name of the BundleDeployment [default: derived from BUNDLE]
    #[arg(long, value_name = "NAME", value_parser = values::deployment_name)]
    pub name: Option<String>,

    /// The configuration.
    #[command(flatten)]
    pub configuration: ConfigurationArguments,

    /// Kubernetes version to render for, such as `1.36` [default: none; the provisioner gets no version]
    #[arg(long, value_name = "VERSION", value_parser = values::kubernetes_version)]
    pub kubernetes_version: Option<String>,

    /// How the command connects to the registry of an image.
    #[command(flatten)]
    pub registry: RegistryArguments,

    /// Directory for unpacked bundles and compiled components
    /// [default: $XDG_CACHE_HOME/chandler, else ~/.cache/chandler]
    #[arg(long, value_name = "DIR", env = "CHANDLER_CACHE_DIRECTORY", hide_env_values = true)]
    pub cache_directory: Option<PathBuf>,
}

impl BundleArguments {
    /// For the bundle of a BundleDeployment, whose spec decides everything else.
    pub fn of_deployment(registry: &RegistryArguments, cache_directory: Option<&Path>) -> Self {
        Self {
            bundle: String::new(),
            provisioner: None,
            namespace: None,
            name: None,
            configuration: ConfigurationArguments::default(),
            kubernetes_version: None,
            registry: registry.clone(),
            cache_directory: cache_directory.map(Path::to_owned),
        }
    }
}

/// Whether the text is a bundle. The name of a BundleDeployment has no slash, colon or dot.
pub fn is_bundle(text: &str) -> bool {
    text.contains(['/', ':', '.', std::path::MAIN_SEPARATOR])
}

/// Whether the text may be a package of a catalog: `PACKAGE` or `PACKAGE@RANGE`. The name of a package is a DNS label; what follows the `@`
/// of an image has a colon.
pub fn is_package(text: &str) -> bool {
    let (name, range) = text.split_once('@').unwrap_or((text, ""));
    values::dns_label(name).is_ok() && !range.contains([':', '/'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_has_a_range_and_an_image_has_a_colon() {
        for (text, package) in [
            ("prometheus", true),
            ("prometheus@0.56.0", true),
            ("shop@>=3, <4", true),
            ("./prometheus", false),
            ("prometheus.tgz", false),
            ("busybox:1", false),
            ("busybox@sha256:0123", false),
            ("quay.io/x/y", false),
            ("@1", false),
        ] {
            assert_eq!(is_package(text), package, "{text}");
        }
    }

    #[test]
    fn a_path_or_an_image_is_a_bundle_and_a_name_is_not() {
        for (text, bundle) in [("./my-operator", true), (".", true), ("quay.io/x/y:v1", true), ("my-operator", false)] {
            assert_eq!(is_bundle(text), bundle, "{text}");
        }
    }
}
