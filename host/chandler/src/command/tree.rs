//! `chandler tree`.

use chandler_api::{BundleDeployment, Resolution};
use kube::Client;
use serde::Serialize;

use crate::{
    CommandError,
    arguments::{
        connection::Connection,
        format::{DataFormat, TreeFormat},
        target::{INSTALLED, Target},
    },
    read::{below, cluster, explained, reported},
    view::{
        output,
        overview::Overview,
        picture,
        terminal::{self, Terminal},
        text::one_line,
        tree::{self, Branch, TreeNode},
    },
};

/// Show the objects of a BundleDeployment or of a Resolution's set and their health as a tree
///
/// Shows the current objects in the cluster that belong to the ApplySet of the BundleDeployment: cluster-scoped objects first, then each
/// namespace, in the order in which the kinds are applied. Below each workload are its ReplicaSets (without those that are scaled to
/// zero), Jobs and Pods, and the claims that a Pod waits for. The first line says what runs and what waits, unless the spec is rolled out. Of a Resolution, the objects of each BundleDeployment of its packages.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The tree on standard output; kinds that could not be read on standard error. With -o json or yaml, the list of
  the objects; of a Resolution, a list with `bundleDeployment`, `package` and `objects` of each package.

Exit codes: 0 success; 1 failed, or a kind could not be read; 2 wrong usage; 7 not found

Examples:
  chandler tree my-operator
  All packages of a Resolution:
    chandler tree resolution/shop
  A picture:
    chandler tree my-operator -o svg > my-operator.svg
  List the objects that are not healthy:
    chandler tree my-operator -o json | jq '.[] | select(.health != \"healthy\")'")]
pub struct Tree {
    /// Name of the BundleDeployment, or `resolution/NAME`
    #[arg(value_name = "NAME", value_parser = INSTALLED.target())]
    pub name: Target,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = TreeFormat::Text)]
    pub output: TreeFormat,

    /// How the command connects to the cluster.
    #[command(flatten)]
    pub connection: Connection,
}

/// The objects of a package of a Resolution.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    package: String,
    bundle_deployment: String,
    /// Whether the BundleDeployment exists.
    exists: bool,
    objects: Vec<TreeNode>,
}

impl Part {
    fn branch(&self) -> Branch {
        let label = format!("BundleDeployment {}", self.bundle_deployment);
        match (self.exists, self.objects.is_empty()) {
            (false, _) => Branch::of(&format!("{label}: it does not exist yet"), Vec::new()),
            (true, true) => Branch::of(&format!("{label}: it has no objects yet"), Vec::new()),
            (true, false) => Branch::of(&label, tree::branches(&self.objects)),
        }
    }
}

impl Tree {
    /// Prints the tree.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let client = cluster::client(&self.connection.options()).await?;
        let mut unreadable = Vec::new();
        let text = if self.name.is_resolution() {
            let parts = self.parts(&client, &mut unreadable).await?;
            let branches: Vec<Branch> = parts.iter().map(Part::branch).collect();
            self.text(&format!("Resolution {}", self.name.name), &branches, &parts)?
        } else {
            let deployment = cluster::deployment(&client, &self.name.name).await?;
            let (nodes, failed) = objects(&client, &deployment).await;
            unreadable = failed;
            self.text(&tree::title(&Overview::of(&deployment)), &tree::branches(&nodes), &nodes)?
        };
        output::print(&text)?;
        for problem in &unreadable {
            terminal.line(format!("failed to read {}", one_line(problem)));
        }
        if unreadable.is_empty() { Ok(()) } else { Err(CommandError::failed("some kinds could not be read")) }
    }

    /// The objects of each package of the Resolution.
    async fn parts(&self, client: &Client, unreadable: &mut Vec<String>) -> Result<Vec<Part>, CommandError> {
        let resolution = reported::get::<Resolution>(client, &self.name.name).await?;
        let found = explained::of_resolution(client, resolution.clone()).await?;
        let mut parts = Vec::new();
        for member in resolution.status.iter().flat_map(|status| &status.members) {
            let Some(name) = member.bundle_deployment.clone() else { continue };
            let deployment = found.deployments.get(&name);
            let (objects, failed) = match deployment {
                Some(deployment) => objects(client, deployment).await,
                None => <(Vec<_>, Vec<_>)>::default(),
            };
            unreadable.extend(failed.into_iter().map(|problem| format!("{problem} (BundleDeployment {name})")));
            let (package, exists) = (member.package.clone(), deployment.is_some());
            parts.push(Part { package, bundle_deployment: name, exists, objects });
        }
        Ok(parts)
    }

    fn text(&self, title: &str, branches: &[Branch], data: &impl Serialize) -> Result<String, CommandError> {
        let title = one_line(title);
        Ok(match self.output {
            TreeFormat::Json => output::json(data)?,
            TreeFormat::Yaml => output::data(data, DataFormat::Yaml, String::new)?,
            TreeFormat::Text => {
                let output_terminal = Terminal::output();
                let mut lines = vec![title];
                let columns = output_terminal.columns();
                lines.extend(tree::branch_lines(branches, |health| output_terminal.look().sign(health), columns));
                terminal::drawn(&(lines.join("\n") + "\n")).into_owned()
            }
            TreeFormat::Mermaid => picture::mermaid(&title, branches),
            TreeFormat::Svg => picture::svg(&title, branches),
            TreeFormat::Html => picture::html(&title, branches),
        })
    }
}

/// The objects of a BundleDeployment with what is below them, and the kinds that could not be read.
async fn objects(client: &Client, deployment: &BundleDeployment) -> (Vec<TreeNode>, Vec<String>) {
    let mut members = cluster::members(client, deployment).await;
    let below = below::read(client, &mut members).await;
    if let Some(drift) = deployment.status.as_ref().and_then(|status| status.drift.as_ref()) {
        tree::mark_drift(&mut members.objects, drift);
    }
    (below.nodes(&members.objects), members.unreadable)
}
