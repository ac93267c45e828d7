//! Which version of a package is installed: the choice of the resolver for this cluster.

use std::{collections::BTreeMap, path::Path};

use chandler_api::BundleDeployment;
use chandler_catalog::IndexCatalogs;
use chandler_resolution::{
    Claim, InstalledImage,
    evidence::{self, Entry},
    installation::not_counted,
};
use chandler_resolver::{
    Answer, Catalogs as _, Change, Cluster, Decision, Installed, Kind, Member, Problem, Required, Source, resolve,
};
use kube::{Api, Client, ResourceExt as _, api::ListParams};

use super::{
    catalogs::{self, CatalogOptions},
    cluster,
    cluster_catalogs::ClusterCatalogs,
    cluster_facts::ClusterFacts,
    named::ListedImage,
    origin, question,
};
use crate::{
    CommandError,
    view::{
        invocation::quoted,
        resolution::{self, version},
        terminal::Terminal,
        text::{count, one_line},
    },
};

/// A version of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The package.
    pub package: String,
    /// The version.
    pub version: String,
    /// The image of the bundle.
    pub image: ListedImage,
    /// What was chosen and why, and what users should know of it.
    pub lines: Vec<String>,
}

impl Chosen {
    /// Tells the user what was chosen.
    pub fn report(&self, terminal: &Terminal) {
        for line in &self.lines {
            terminal.line(line);
        }
    }
}

/// Whether the text for a bundle is a package of a catalog. `channels` and `catalogs` are those that the user names.
pub fn is_package(text: &str, channels: &[String], catalogs: &[String]) -> Result<bool, CommandError> {
    let exists = Path::new(text).exists();
    let asks_catalogs = !channels.is_empty() || !catalogs.is_empty();
    match (origin::is_package(text), exists) {
        (true, false) => Ok(true),
        (true, true) if asks_catalogs => {
            Err(CommandError::usage(format!("{text} is a path that exists, and may be a package of a catalog"))
                .hint(format!("write `./{text}` for the path, or `{text}@'*'` for the package")))
        }
        (false, false) if !channels.is_empty() => {
            Err(CommandError::usage(format!("--channel chooses among the versions of a package, and {text} is none"))
                .hint("a package has no `/`, `:` or `.`: `chandler install prometheus --channel stable`"))
        }
        _ => Ok(false),
    }
}

/// Opens the catalogs that the text for a bundle, which is a package, is chosen from.
pub async fn catalogs(
    text: &str,
    options: &CatalogOptions,
    client: &Client,
    terminal: &Terminal,
) -> Result<IndexCatalogs, CommandError> {
    let cluster = ClusterCatalogs::of(options).with_client(client).for_use_with(terminal);
    let opened = catalogs::selected(options, &cluster).await;
    opened.map_err(|error| error.hint(format!("`{text}` is taken for a package, since no path of that name exists")))
}

/// Chooses the version that a BundleDeployment is upgraded to: the first step on the way to the best one that fits the cluster and what is
/// installed there. None if what is installed is the best.
pub async fn choose_upgrade(
    text: &str,
    channels: &[String],
    catalogs: &IndexCatalogs,
    client: &Client,
    existing: &BundleDeployment,
) -> Result<Option<Chosen>, CommandError> {
    let mut required = [question::required(text)?];
    question::choose_channels(&mut required, channels)?;
    let [required] = required;
    check_same_package(&required, existing)?;
    let (mut there, mut lines) = installations(&deployments(client).await?, catalogs, &required.package);
    // The user names this one, and so vouches for what it is.
    if let Some(own) = installed(existing).filter(|_| there.iter().all(|(name, _)| *name != existing.name_any())) {
        there.retain(|(_, installed)| installed.package != own.package);
        lines.retain(|line| !line.starts_with(&format!("BundleDeployment {} ", existing.name_any())));
        lines.push(format!(
            "no catalog lists the image of BundleDeployment {}: it counts as {} {}, as its bundle says",
            existing.name_any(),
            one_line(&own.package),
            one_line(&own.version)
        ));
        there.push((existing.name_any(), own));
    }
    let (decision, cluster) = decide(&required, text, there, catalogs, client).await?;
    if decision.member(&required.package).is_some_and(|member| member.change == Change::Keep) {
        return Ok(None);
    }
    let mut chosen = chosen(&required, &decision, catalogs, &cluster)?;
    chosen.lines.extend(lines);
    let member = decision.member(&required.package);
    if let Some((member, first)) = member.and_then(|member| Some((member, member.steps.first()?)))
        && first.name != member.name
    {
        chosen.image = ListedImage::of_catalog(&first.name, &first.image)?;
        chosen.version.clone_from(&first.version);
        chosen.lines.push(one_line(&format!(
            "upgrading to {} first, one of {} on the way to {}: run the command again when it is healthy",
            first.version,
            count(member.steps.len(), "step"),
            version(member)
        )));
    }
    Ok(Some(chosen))
}

/// Refuses to replace one package by another.
fn check_same_package(required: &Required, existing: &BundleDeployment) -> Result<(), CommandError> {
    let name = existing.name_any();
    match installed(existing) {
        Some(installed) if installed.package == required.package => Ok(()),
        Some(installed) => Err(CommandError::usage(format!(
            "BundleDeployment {name} has package {}, not {}",
            one_line(&installed.package),
            required.package
        ))
        .hint(format!("install {0} under another name: `chandler install NAME {0}`", quoted(&required.package)))),
        None => Err(CommandError::failed(format!("it is not known which package BundleDeployment {name} has"))
            .hint(format!("`chandler status {name}` shows its state; an image can be named in place of the package"))),
    }
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
    let (there, lines) = installations(&deployments(client).await?, catalogs, &required.package);
    if let Some((name, taken)) = there.iter().find(|(_, installed)| installed.package == required.package) {
        return Err(is_installed(&required, name, taken));
    }
    let (decision, cluster) = decide(&required, text, there, catalogs, client).await?;
    let mut chosen = chosen(&required, &decision, catalogs, &cluster)?;
    chosen.lines.extend(lines);
    Ok(chosen)
}

/// The decision of the resolver, and the cluster that it is for.
async fn decide(
    required: &Required,
    text: &str,
    there: Vec<(String, Installed)>,
    catalogs: &IndexCatalogs,
    client: &Client,
) -> Result<(Decision, Cluster), CommandError> {
    let mut installed: BTreeMap<String, Installed> = BTreeMap::new();
    for (_, bundle) in there {
        // Several BundleDeployments may have the same package; the resolver asks for one.
        installed.entry(bundle.package.clone()).or_insert(bundle);
    }
    let problem = Problem {
        required: vec![required.clone()],
        installed: installed.into_values().collect(),
        catalogs: catalogs.sources(),
        cluster: facts(client).await?,
        ..Problem::default()
    };
    question::check_packages(&problem, catalogs)?;
    match resolve(&problem, catalogs).map_err(|error| question::unanswered(&error))? {
        Answer::Decision(decision) => Ok((decision, problem.cluster)),
        Answer::Refusal(explanation) => {
            let hint = format!("`chandler resolve {} --what-if` tries changes of the question", quoted(text));
            Err(resolution::refused(&explanation, Some(hint.as_str())))
        }
    }
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
    let image = ListedImage::of_catalog(&member.name, &member.image)?;
    Ok(Chosen { package: package.clone(), version: member.version.clone(), image, lines })
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
        Change::Install => {
            format!("`chandler install {}`", quoted(&one_line(&format!("{}@{}", other.package, other.version))))
        }
        _ => one_line(&format!("upgrade {} to {}", other.package, version(other))),
    });
    let names: Vec<String> = others.iter().map(|other| format!("{} {}", other.package, version(other))).collect();
    CommandError::failed(one_line(&format!(
        "{} {} cannot be installed alone: it needs {}",
        member.package,
        version(member),
        names.join(" and ")
    )))
    .hint(format!("first: {}; `chandler resolve` explains why", commands.collect::<Vec<_>>().join(", ")))
}

fn is_installed(required: &Required, name: &str, installed: &Installed) -> CommandError {
    CommandError::failed(format!(
        "package {} is installed: BundleDeployment {name}, version {}",
        required.package,
        one_line(&installed.version)
    ))
    .hint(format!(
        "`chandler outdated` shows newer versions, and `chandler upgrade {} {}` installs one",
        quoted(name),
        quoted(&required.package)
    ))
}

/// The package and version that the bundle of a BundleDeployment claims, whether it is installed or being installed. For the one that the
/// user names: of others it proves nothing.
pub fn installed(deployment: &BundleDeployment) -> Option<Installed> {
    let bundle = deployment.status.as_ref()?.bundle.as_ref()?;
    let (package, version) = (bundle.package.clone()?, bundle.version.clone()?);
    let name = bundle.name.clone().unwrap_or_else(|| format!("{package}.v{version}"));
    Some(Installed { package, name, version, ..Installed::default() })
}

/// The bundle of these catalogs that a BundleDeployment has, or is being given, by its image.
pub fn proven(deployment: &BundleDeployment, catalogs: &IndexCatalogs) -> Option<Installed> {
    let package = Claim::of(deployment)?.package;
    let revision = deployment.status.as_ref()?.history.last()?;
    let image = InstalledImage::of(revision, &deployment.spec.source)?;
    let sources = catalogs.sources();
    // A package that cannot be read lists no image; the answer reports it if it is asked for.
    let entries = |source: &Source| evidence::entries(catalogs, &source.name, &package).unwrap_or_default();
    let entries: BTreeMap<String, Vec<Entry>> = sources.iter().map(|it| (it.name.clone(), entries(it))).collect();
    let of = |source: &Source| entries.get(&source.name).map(Vec::as_slice).unwrap_or_default();
    evidence::proven(&image, &package, &sources, of)
}

/// The bundles of these catalogs that BundleDeployments have, by name, and a line for each BundleDeployment that only claims to have this
/// package.
fn installations(
    deployments: &[BundleDeployment],
    catalogs: &IndexCatalogs,
    package: &str,
) -> (Vec<(String, Installed)>, Vec<String>) {
    let (mut found, mut claims) = (Vec::new(), Vec::new());
    for deployment in deployments {
        match proven(deployment, catalogs) {
            Some(installed) => found.push((deployment.name_any(), installed)),
            None => claims.extend(Claim::of(deployment)),
        }
    }
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    (found, not_counted(&claims, &[package].into(), "these catalogs"))
}

/// The bundles of a package that the BundleDeployments which the user may list have, by name, and notes about others that only claim to
/// have it.
pub async fn deployments_of(
    package: &str,
    catalogs: &IndexCatalogs,
    client: &Client,
) -> Result<(Vec<(String, Installed)>, Vec<String>), CommandError> {
    let (mut found, lines) = installations(&deployments(client).await?, catalogs, package);
    found.retain(|(_, installed)| installed.package == package);
    Ok((found, lines))
}

/// All BundleDeployments that the user may see.
async fn deployments(client: &Client) -> Result<Vec<BundleDeployment>, CommandError> {
    match Api::<BundleDeployment>::all(client.clone()).list(&ListParams::default()).await {
        Ok(list) => Ok(list.items),
        // A user may have the permission to create and none to read.
        Err(kube::Error::Api(status)) if status.is_forbidden() => Ok(Vec::new()),
        Err(error) => Err(cluster::not_listed(&error)),
    }
}

/// The version and the kinds of the cluster.
async fn facts(client: &Client) -> Result<Cluster, CommandError> {
    let ClusterFacts { kubernetes_version, api_kinds } = ClusterFacts::of(client).await?;
    let kinds = api_kinds.iter().filter_map(|text| Kind::parse(text)).collect();
    Ok(Cluster { kubernetes: Some(kubernetes_version), openshift: None, kinds })
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
            held_back: None,
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
        assert_eq!(chosen(&kept).map(|chosen| chosen.image.text().to_owned()).unwrap(), "quay.io/example/shop:v3.1.0");
        let mut more = kept;
        more.members.push(member("database", "2.0.0", Change::Install));
        more.members.push(member("cache", "1.1.0", Change::Upgrade));
        insta::assert_snapshot!(chosen(&more).unwrap_err().to_string());
        let forged = "x;touch pwn;$(id)\n  hint: `id`\u{202e}";
        more.members = vec![shop, member(forged, "1.0.0", Change::Install)];
        insta::assert_snapshot!(chosen(&more).unwrap_err().to_string(), @r"
        error: shop 3.1.0 cannot be installed alone: it needs x;touch pwn;$(id) hint: `id`\u{202E} 1.0.0
          hint: first: `chandler install 'x;touch pwn;$(id) hint: `id`\u{202E}@1.0.0'`; `chandler resolve` explains why
        ");
    }
}
