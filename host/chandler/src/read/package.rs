//! Which version of a package is installed: the choice of the resolver for this cluster.

use chandler_api::BundleDeployment;
use chandler_catalogs::IndexCatalogs;
use chandler_resolver::{
    Answer, Catalogs as _, Change, Cluster, Decision, Installed, Kind, Member, Problem, Required, resolve,
};
use kube::{Api, Client, Discovery, ResourceExt as _, api::ListParams};

use super::question;
use crate::{
    CommandError,
    view::{
        resolution::{self, version},
        text::{count, one_line},
    },
};

/// A version of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The package.
    pub package: String,
    /// The image of the bundle.
    pub image: String,
    /// What was chosen and why, and what users should know of it.
    pub lines: Vec<String>,
}

/// Chooses the best version of a package that fits the cluster and what is installed there.
pub async fn choose(
    text: &str,
    channels: &[String],
    catalogs: &IndexCatalogs,
    client: &Client,
) -> Result<Chosen, CommandError> {
    let mut required = [question::required(text)?];
    question::choose_channels(&mut required, channels)?;
    let [required] = required;
    let deployments = deployments(client).await?;
    let taken = |deployment: &&BundleDeployment| installed(deployment).is_some_and(|it| it.package == required.package);
    if let Some(taken) = deployments.iter().find(taken) {
        return Err(is_installed(&required, taken));
    }
    let problem = Problem {
        required: vec![required.clone()],
        installed: deployments.iter().filter_map(installed).collect(),
        catalogs: catalogs.sources(),
        cluster: facts(client).await?,
        ..Problem::default()
    };
    question::check_packages(&problem, catalogs)?;
    let decision = match resolve(&problem, catalogs).map_err(|error| question::unanswered(&error))? {
        Answer::Decision(decision) => decision,
        Answer::Refusal(explanation) => {
            let hint = format!("`chandler resolve {text} --what-if` tries changes of the question");
            return Err(resolution::refused(&explanation, Some(hint.as_str())));
        }
    };
    chosen(&required, &decision, catalogs, &problem.cluster)
}

/// The choice, if nothing else has to be installed or changed for it.
fn chosen(
    required: &Required,
    decision: &Decision,
    catalogs: &IndexCatalogs,
    cluster: &Cluster,
) -> Result<Chosen, CommandError> {
    let package = &required.package;
    let member = decision
        .member(package)
        .ok_or_else(|| CommandError::failed(format!("the resolver chose no version of {package}")))?;
    let others: Vec<&Member> =
        decision.members.iter().filter(|other| other.package != *package && other.change != Change::Keep).collect();
    if !others.is_empty() {
        return Err(needs(member, &others));
    }
    if member.image.is_empty() {
        return Err(CommandError::failed(format!("the catalog names no image for {package} {}", version(member)))
            .hint("its manifests are in the catalog itself (olm.bundle.object), which `install` does not read"));
    }
    let mut versions = 0;
    for source in catalogs.sources() {
        let read = catalogs.package(&source.name, package).map_err(|error| question::unreadable(&error))?;
        versions += read.map_or(0, |read| read.bundles.len());
    }
    let mut lines = vec![one_line(&described(required, member, versions, cluster))];
    lines.extend(resolution::remarks(decision));
    Ok(Chosen { package: package.clone(), image: member.image.clone(), lines })
}

/// What was chosen and why, in one line.
fn described(required: &Required, member: &Member, versions: usize, cluster: &Cluster) -> String {
    let from =
        |word: &str, name: &Option<String>| name.as_ref().map(|name| format!(", {word} {name}")).unwrap_or_default();
    let asked = if required.range.is_empty() { String::new() } else { format!(" in {}", required.range) };
    let kubernetes = cluster.kubernetes.as_ref().map(|it| format!(" on Kubernetes {it}")).unwrap_or_default();
    format!(
        "{} {}{}{}: the best of {}{asked} that fits{kubernetes}",
        member.package,
        version(member),
        from("catalog", &member.catalog),
        from("channel", &member.channel),
        count(versions, "version"),
    )
}

fn needs(member: &Member, others: &[&Member]) -> CommandError {
    let commands = others.iter().map(|other| match other.change {
        Change::Install => format!("`chandler install {}@{}`", other.package, other.version),
        _ => format!("upgrade {} to {}", other.package, version(other)),
    });
    let names: Vec<String> = others.iter().map(|other| format!("{} {}", other.package, version(other))).collect();
    CommandError::failed(format!(
        "{} {} cannot be installed alone: it needs {}",
        member.package,
        version(member),
        names.join(" and ")
    ))
    .hint(format!("first: {}; `chandler resolve` explains why", commands.collect::<Vec<_>>().join(", ")))
}

fn is_installed(required: &Required, deployment: &BundleDeployment) -> CommandError {
    let version = installed(deployment).map(|it| it.version).unwrap_or_default();
    let name = deployment.name_any();
    CommandError::failed(format!(
        "package {} is installed: BundleDeployment {name}, version {version}",
        required.package
    ))
    .hint(format!("`chandler outdated` shows newer versions, and `chandler upgrade {name} IMAGE` installs one"))
}

/// The bundle of a package that a BundleDeployment has, or is being given.
pub fn installed(deployment: &BundleDeployment) -> Option<Installed> {
    let bundle = deployment.status.as_ref()?.bundle.as_ref()?;
    let (package, version) = (bundle.package.clone()?, bundle.version.clone()?);
    let name = bundle.name.clone().unwrap_or_else(|| format!("{package}.v{version}"));
    Some(Installed { package, name, version, ..Installed::default() })
}

/// All BundleDeployments that the user may see.
async fn deployments(client: &Client) -> Result<Vec<BundleDeployment>, CommandError> {
    match Api::<BundleDeployment>::all(client.clone()).list(&ListParams::default()).await {
        Ok(list) => Ok(list.items),
        // A user may have the permission to create and none to read.
        Err(kube::Error::Api(status)) if status.is_forbidden() => Ok(Vec::new()),
        Err(error) => Err(CommandError::failed("failed to list BundleDeployments").because(&error)),
    }
}

/// The version and the kinds of the cluster.
async fn facts(client: &Client) -> Result<Cluster, CommandError> {
    let failed =
        |error: kube::Error| CommandError::failed("failed to discover the APIs of the cluster").because(&error);
    let kubernetes = client.apiserver_version().await.map_err(failed)?.git_version;
    let discovery = Discovery::new(client.clone()).run_aggregated().await.map_err(failed)?;
    let kinds = chandler_controller::kinds(&discovery).iter().filter_map(|text| Kind::parse(text)).collect();
    Ok(Cluster { kubernetes: Some(kubernetes), openshift: None, kinds })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(package: &str, version: &str, change: Change) -> Member {
        Member {
            package: package.to_owned(),
            name: format!("{package}.v{version}"),
            version: version.to_owned(),
            release: None,
            catalog: Some("ours".to_owned()),
            channel: Some("stable".to_owned()),
            image: format!("quay.io/example/{package}:v{version}"),
            change,
            steps: Vec::new(),
            reasons: Vec::new(),
            deprecated: None,
        }
    }

    #[test]
    fn a_choice_is_one_line_and_what_else_is_needed_is_an_error() {
        let required = Required { package: "shop".to_owned(), range: ">=3".to_owned(), ..Required::default() };
        let shop = member("shop", "3.1.0", Change::Install);
        let cluster = Cluster { kubernetes: Some("v1.36.0".to_owned()), ..Cluster::default() };
        insta::assert_snapshot!(
            described(&required, &shop, 3, &cluster),
            @"shop 3.1.0, catalog ours, channel stable: the best of 3 versions in >=3 that fits on Kubernetes v1.36.0"
        );
        let kept =
            Decision { members: vec![shop.clone(), member("tool", "1.0.0", Change::Keep)], ..Decision::default() };
        let catalogs = IndexCatalogs::new();
        let chosen = |decision: &Decision| super::chosen(&required, decision, &catalogs, &cluster);
        assert_eq!(chosen(&kept).map(|chosen| chosen.image).unwrap(), "quay.io/example/shop:v3.1.0");
        let mut more = kept;
        more.members.push(member("database", "2.0.0", Change::Install));
        more.members.push(member("cache", "1.1.0", Change::Upgrade));
        insta::assert_snapshot!(chosen(&more).unwrap_err().to_string());
    }
}
