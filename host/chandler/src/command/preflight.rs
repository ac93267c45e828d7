//! `chandler preflight`.

use crate::{
    CommandError,
    arguments::{
        bundle::FetchArguments, connection::Connection, format::DataFormat, system_namespace::SystemNamespaceArguments,
        values,
    },
    read::{
        cache, cluster, next_release,
        preflight::{self, NextProvisioners},
        upgrade_checks,
    },
    view::{
        failure::FailureKind,
        output,
        preflight::{Report, Version},
        progress::Progress,
        terminal::{Frame, Terminal},
    },
};

/// Print what an upgrade of Chandler to another version would change
///
/// Renders the bundle of each BundleDeployment with the built-in provisioners of this command and of the new version, and compares
/// the releases object by object. It also compares the CRDs of the new version with the cluster's, validates the custom resources that
/// exist, and compares roles and the version of Kubernetes. Nothing is written, and no program in an image is run.
///
/// Use the command of the version that runs in the cluster: it stands for the controller. Bundles are fetched with your credentials and from
/// your network, as in `chandler diff`. What third-party provisioners render does not depend on the version of Chandler.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The findings about the cluster, and each BundleDeployment that would change, on standard output:
  objects that the new version adds (create), changes and removes, with the fields; Secret values
  are hidden. Progress and the counts on standard error.

Exit codes: 0 nothing would change, 1 failed or not everything could be checked, 2 wrong usage,
  4 a BundleDeployment would change, 7 a BundleDeployment does not exist,
  8 the new version refuses a bundle, or the cluster lacks what it needs

Examples:
  chandler preflight --to registry.example.com/chandler:v0.2.0
  Against a binary that you have downloaded:
    chandler preflight --to ./chandler-v0.2.0
  Only some BundleDeployments:
    chandler preflight --to ./chandler-v0.2.0 my-operator other-operator
    chandler preflight --to ./chandler-v0.2.0 --selector team=storage
  The names of those that would change:
    chandler preflight --to ./chandler-v0.2.0 -o json |
      jq -r '.deployments[] | select(.outcome == \"Changed\") | .name'")]
pub struct Preflight {
    /// BundleDeployments to check [default: all]
    #[arg(value_name = "NAME", value_parser = values::deployment_name)]
    pub names: Vec<String>,

    /// The new version: an image of Chandler by tag or digest, a directory with an OCI image layout or with the files of `chandler
    /// provisioners --to`, or a binary for this machine, which is run
    #[arg(long, value_name = "IMAGE|DIR|FILE")]
    pub to: Option<String>,

    /// Only those whose labels match, in the syntax of kubectl
    #[arg(short = 'l', long, value_name = "SELECTOR", conflicts_with = "names")]
    pub selector: Option<String>,

    /// Show the descriptions in the schemas of CRDs, too; JSON always has them
    #[arg(long)]
    pub descriptions: bool,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = DataFormat::Text)]
    pub output: DataFormat,

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

impl Preflight {
    /// Prints the report, and returns the exit code.
    pub async fn run(&self, terminal: &Terminal) -> Result<u8, CommandError> {
        let to = self.to.as_deref().ok_or_else(|| {
            CommandError::usage("--to is missing: it names the version of Chandler that you want to upgrade to")
                .hint("`chandler preflight --to IMAGE` reads the image of that version, and `--to FILE` runs its binary")
                .hint("`chandler diff NAME` compares a BundleDeployment with the cluster, and `chandler doctor` the installation")
        })?;
        let cache = cache::directory(self.fetch.cache_directory.as_deref())?;
        let options = self.fetch.of_deployment();
        let client = cluster::client(&self.connection.options()).await?;
        let progress = Progress::new(terminal);
        progress.busy("reading the new version");
        let next = next_release::open(to, &cache, &options.registry).await?;
        let current = preflight::current(&cache)?;
        progress.busy("compiling the provisioners of the new version");
        let provisioners = NextProvisioners::load(&current, &next.files).await;
        progress.busy("checking the cluster");
        let from = Version { version: chandler_manifests::VERSION.to_owned(), place: "this command".to_owned() };
        let to = Version { version: next.files.version.clone(), place: next.place };
        let found = upgrade_checks::findings(&client, &self.system.system_namespace, &next.files).await;
        let mut report = Report::new(from, to, found);
        let names = self.names(&client).await?;
        let checks = preflight::Preflight {
            client: &client,
            system_namespace: &self.system.system_namespace,
            options: &options,
            current: &current,
            next: &provisioners,
            cache: &cache,
        };
        let total = names.len();
        checks.run(&names, &mut report, |done| progress.busy(&format!("{done} of {total} BundleDeployments"))).await?;
        report.finish();
        progress.finish();
        let output = Terminal::output();
        let frame = Frame { width: output.columns(), look: output.look() };
        output::print(&output::data(&report, self.output, || report.text(frame, self.descriptions))?)?;
        terminal.line(report.line());
        Ok(exit_code(&report))
    }

    /// The BundleDeployments to check.
    async fn names(&self, client: &kube::Client) -> Result<Vec<String>, CommandError> {
        let mut found = preflight::names(client, self.selector.as_deref()).await?;
        if let Some(missing) = self.names.iter().find(|name| !found.contains(name)) {
            return Err(CommandError::not_found(format!("BundleDeployment {missing} does not exist"))
                .hint("`chandler list` lists them all"));
        }
        if !self.names.is_empty() {
            found.retain(|name| self.names.contains(name));
        }
        Ok(found)
    }
}

/// What stops an upgrade comes first, and what was not checked counts more than a change: an unknown change may be worse.
fn exit_code(report: &Report) -> u8 {
    if report.is_refused() {
        FailureKind::Refused.exit_code()
    } else if report.is_incomplete() {
        FailureKind::Failed.exit_code()
    } else if report.summary.changed > 0 {
        FailureKind::Changes.exit_code()
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{
        doctor::{Finding, State},
        preflight::{
            Checked,
            Outcome::{self, Changed, NotBuiltIn, Refused, RefusedByBoth, Unchanged, Unchecked},
        },
    };

    #[test]
    fn the_exit_code_is_that_of_the_worst_outcome() {
        let code = |outcomes: &[Outcome], states: &[State]| {
            let mut report = Report::default();
            for outcome in outcomes {
                report.push(Checked::new("a", "n", *outcome));
            }
            report.upgrade.extend(states.iter().map(|state| Finding::new("CRDs", *state, "")));
            exit_code(&report)
        };
        for (outcomes, states, expected) in [
            (&[Unchanged, NotBuiltIn, RefusedByBoth][..], &[State::Ok, State::Warning][..], 0),
            (&[Unchanged, Changed], &[], 4),
            (&[Changed, Unchecked], &[], 1),
            (&[Changed], &[State::Unknown], 1),
            (&[Unchecked, Refused], &[], 8),
            (&[Unchanged], &[State::Problem, State::Unknown], 8),
        ] {
            assert_eq!(code(outcomes, states), expected, "{outcomes:?} {states:?}");
        }
    }
}
