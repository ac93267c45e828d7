//! A component, and the bundle that it is called with.

use super::bundle::{FetchArguments, RequestArguments};
use crate::read::plugin_call::CallOptions;

/// A component, a bundle, and the request.
#[derive(Clone, Debug, clap::Args)]
pub struct CallArguments {
    /// The component: a file, or a built-in class
    #[arg(value_name = "COMPONENT")]
    pub component: String,

    /// A directory, an archive (.tar, .tar.gz, .tgz, .tar.zst, .zip), the URL of an archive or a git repository, or an image reference
    #[arg(value_name = "BUNDLE")]
    pub bundle: String,

    /// The request to the provisioner.
    #[command(flatten)]
    pub request: RequestArguments,

    /// Kind that the cluster serves, as GROUP/VERSION/KIND or, for the core group, VERSION/KIND. Repeatable [default: none; the
    /// provisioner gets no kinds]
    #[arg(long = "api-kind", value_name = "KIND")]
    pub api_kinds: Vec<String>,

    /// Where the bundle is fetched from and unpacked.
    #[command(flatten)]
    pub fetch: FetchArguments,
}

impl CallArguments {
    /// The options.
    pub fn options(&self) -> CallOptions {
        CallOptions {
            bundle: self.request.options(&self.bundle, Some(&self.component), &self.fetch),
            api_kinds: self.api_kinds.clone(),
        }
    }
}
