//! `chandler explain`.

use chandler_api::ReportingKind;
use k8s_openapi::jiff::Timestamp;

use crate::{
    CommandError,
    arguments::{
        connection::Connection,
        controller_namespace::ControllerNamespaceArguments,
        format::DataFormat,
        target::{Takes, Target},
    },
    read::{
        cluster,
        controller_lease::{self, Evidence},
        explained,
    },
    view::{output, path::Path, terminal::Terminal},
};

/// Every kind that leads to packages.
pub(super) const TAKES: Takes =
    Takes::kinds(&[ReportingKind::BundleDeployment, ReportingKind::Resolution, ReportingKind::PlatformOperator]);

/// Explain the state of a package, from the request to its objects
///
/// Follows a wish through the cluster: what was asked for, which versions were decided and why, the set, its members and their objects.
/// It names the step that waits or has failed, what helps, and the states that OLM's Subscription, InstallPlan and
/// ClusterServiceVersion would have. A name without a kind may belong to a BundleDeployment, a Resolution or a PlatformOperator.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The explanation on standard output. Signs: ✓ done, … working or waiting, ✗ needs action,
  - not reached.

Exit codes: 0 success, whatever the state; 1 failed; 2 wrong usage; 7 not found

Examples:
  Why is this version installed, and what comes next?
    chandler explain prometheus
  All packages of a Resolution, or of a PlatformOperator:
    chandler explain resolution/shop
    chandler explain platformoperator/service-mesh
  The packages that are not at their best version:
    chandler explain resolution/shop -o json |
      jq '.packages[] | select(.subscription != \"AtLatestKnown\") | .package'")]
pub struct Explain {
    /// Name of a BundleDeployment, `resolution/NAME` or `platformoperator/NAME` (`po/NAME`)
    #[arg(value_name = "NAME", value_parser = TAKES.target())]
    pub name: Target,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = DataFormat::Text)]
    pub output: DataFormat,

    /// Where the Lease of the controller is.
    #[command(flatten)]
    pub controller: ControllerNamespaceArguments,

    /// How the command connects to the cluster.
    #[command(flatten)]
    pub connection: Connection,
}

impl Explain {
    /// Prints the explanation.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let client = cluster::client(&self.connection.options()).await?;
        let found = explained::find(&client, self.name.kind, &self.name.name).await?;
        let path = Path::new(&found);
        output::print(&output::data(&path, self.output, || path.text(Terminal::output().columns()))?)?;
        let evidence = Evidence::of(found.deployments.values(), Timestamp::now());
        controller_lease::report_absence(&client, &self.controller.system_namespace, evidence, terminal).await;
        Ok(())
    }
}
