//! Whether a BundleDeployment can be upgraded to the newest version without naming it, and what to do where it cannot.

use chandler_api::{BundleDeployment, GitRef, HttpSource, ReportingKind};
use chandler_content::shown_url;
use chandler_resolution::Claim;
use chandler_versions::Version;
use kube::ResourceExt as _;

use super::{
    error::CommandError,
    invocation::quoted,
    relocation::chart_argument,
    subject::Subject,
    text::{one_line, printable},
};

/// The object that decides which version a BundleDeployment has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decider {
    /// Its kind.
    pub kind: ReportingKind,
    /// Its name.
    pub name: String,
}

/// The error for a BundleDeployment whose newest version cannot be chosen, whatever the catalogs have; `None` for one that they decide
/// about.
pub fn refusal(deployment: &BundleDeployment, decider: Option<&Decider>) -> Option<CommandError> {
    let name = deployment.name_any();
    if let Some(decider) = decider {
        return Some(decided(&name, decider));
    }
    if let Some(revision) = deployment.spec.rollout.as_ref().and_then(|rollout| rollout.to_revision) {
        return Some(
            CommandError::failed(format!(
                "{name} is pinned to revision {revision} by your rollback: it is not upgraded"
            ))
            .hint(format!("`chandler rollback {name} --cancel` ends the rollback, and rolls out the spec"))
            .hint(format!("`chandler upgrade {name} BUNDLE` ends it as well, and installs that bundle")),
        );
    }
    let source = &deployment.spec.source;
    if source.config_maps.is_some() || source.upload.is_some() {
        let upload = if source.upload.is_some() { " --upload" } else { "" };
        return Some(unnamed(&name, "its files came from a machine, and have no source with newer versions").hint(
            format!(
                "name the new files: `chandler upgrade {name} ./DIRECTORY{upload}`, or an archive, an image or a URL"
            ),
        ));
    }
    if let Some(http) = &source.http {
        if let Some(chart) = &http.chart {
            return Some(of_chart(&name, http, chart));
        }
        let why = "its source is an archive at a URL, which has no list of versions";
        let new = format!("name the new archive: `chandler upgrade {name} URL`");
        let fetched = format!("`chandler reconcile {name}` fetches the URL again");
        let refused = unnamed(&name, why).hint(new);
        return Some(if http.sha256.is_none() { refused.hint(fetched) } else { refused });
    }
    source.git.as_ref().map(|git| of_repository(&name, &git.reference))
}

fn of_chart(name: &str, source: &HttpSource, chart: &str) -> CommandError {
    let version = one_line(source.version.as_deref().unwrap_or("*"));
    if source.sha256.is_none() && Version::parse(&version).is_err() {
        return unnamed(name, &format!("it follows the newest version in {version} of its Helm repository by itself"))
            .hint(format!("`chandler reconcile {name}` fetches it now"));
    }
    let next = HttpSource { version: Some("VERSION".to_owned()), sha256: None, ..source.clone() };
    let argument = one_line(&chart_argument(&HttpSource { url: shown_url(&source.url), ..next }, chart));
    unnamed(name, "its source is one version of a chart")
        .hint(format!("name the new one: `chandler upgrade {name} {}`", quoted(&argument)))
}

fn of_repository(name: &str, reference: &GitRef) -> CommandError {
    let again = format!("`chandler reconcile {name}` fetches it now");
    match reference {
        GitRef { branch: Some(branch), .. } => {
            let branch = one_line(branch);
            unnamed(name, &format!("it follows the branch {branch} of its repository by itself")).hint(again)
        }
        GitRef { semver: Some(range), .. } => {
            let range = one_line(range);
            unnamed(name, &format!("it follows the newest tag in {range} of its repository by itself")).hint(again)
        }
        _ => unnamed(name, "its source is one tag or commit of a repository")
            .hint(format!("name the new one: `chandler upgrade {name} 'git+https://HOST/REPOSITORY?tag=TAG'`")),
    }
}

/// The error for a BundleDeployment with an image that no catalog lists.
pub fn unlisted(deployment: &BundleDeployment) -> CommandError {
    let name = deployment.name_any();
    if deployment.status.as_ref().is_none_or(|status| status.history.is_empty()) {
        return unnamed(&name, "nothing of it is installed yet")
            .hint(format!("`chandler status {name}` shows what it waits for"));
    }
    let error = unnamed(&name, "no catalog lists its image").hint(format!(
        "name the new image: `chandler upgrade {name} IMAGE`; `chandler reconcile {name}` resolves its tag again"
    ));
    match Claim::of(deployment) {
        Some(claim) => error.hint(format!(
            "its bundle calls itself {} {}: `chandler upgrade {name} {}` trusts that, and asks the catalogs",
            one_line(&claim.package),
            one_line(&claim.version),
            quoted(&one_line(&claim.package))
        )),
        None => error,
    }
}

/// The error for a BundleDeployment whose version another object decides.
fn decided(name: &str, Decider { kind, name: decider }: &Decider) -> CommandError {
    let subject = Subject::new(*kind, decider);
    let failed = CommandError::failed(format!("{kind} {decider} decides which version {name} has"));
    match kind {
        ReportingKind::Resolution => failed.hint(format!(
            "`chandler explain {subject}` shows which versions it can choose; `kubectl edit {subject}` changes them in spec.packages"
        )),
        ReportingKind::PlatformOperator => failed.hint(format!(
            "`chandler explain {subject}` shows which versions it can choose; `kubectl edit {subject}` changes them in spec.version"
        )),
        _ => failed.hint(format!("{name} is part of its bundle: `chandler upgrade {subject}` upgrades both")),
    }
}

fn unnamed(name: &str, why: &str) -> CommandError {
    CommandError::usage(printable(&format!("which version of {name} is the newest is not known: {why}")).into_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn deployment(spec: Value, status: Value) -> BundleDeployment {
        let mut object = json!({
            "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": "shop"},
            "spec": {"installNamespace": "n", "source": {"type": "image", "image": {"ref": "quay.io/example/shop:v1"}}},
        });
        object["spec"].as_object_mut().unwrap().extend(spec.as_object().cloned().unwrap_or_default());
        object["status"] = status;
        serde_json::from_value(object).unwrap()
    }

    fn of_source(source: Value) -> Option<CommandError> {
        refusal(&deployment(json!({"source": source}), Value::Null), None)
    }

    #[test]
    fn an_image_is_the_decision_of_the_catalogs() {
        assert!(refusal(&deployment(json!({}), Value::Null), None).is_none());
    }

    #[test]
    fn each_other_source_says_what_to_name_instead() {
        let git =
            |reference: Value| json!({"type": "git", "git": {"repository": "https://e.com/a.git", "ref": reference}});
        let chart = |version: Value| {
            let mut source = json!({"type": "http", "http": {"url": "https://e.com/charts", "chart": "web"}});
            source["http"].as_object_mut().unwrap().extend(version.as_object().cloned().unwrap());
            source
        };
        let errors: Vec<String> = [
            json!({"type": "configMaps", "configMaps": []}),
            json!({"type": "upload", "upload": {}}),
            json!({"type": "http", "http": {"url": "https://e.com/a.tgz"}}),
            json!({"type": "http", "http": {"url": "https://e.com/a.tgz", "sha256": "00"}}),
            chart(json!({})),
            chart(json!({"version": "^1"})),
            chart(json!({"version": "1.2.3"})),
            git(json!({"branch": "main"})),
            git(json!({"semver": ">=1.0"})),
            git(json!({"tag": "v1"})),
        ]
        .into_iter()
        .map(|source| of_source(source).unwrap().to_string())
        .collect();
        insta::assert_snapshot!(errors.join("\n"));
    }

    #[test]
    fn a_rollback_and_another_object_decide_before_the_source() {
        let pinned = deployment(json!({"rollout": {"toRevision": 2}}), Value::Null);
        let mut errors = vec![refusal(&pinned, None).unwrap().to_string()];
        for kind in [ReportingKind::Resolution, ReportingKind::PlatformOperator, ReportingKind::BundleDeployment] {
            errors.push(refusal(&pinned, Some(&Decider { kind, name: "sea".to_owned() })).unwrap().to_string());
        }
        insta::assert_snapshot!(errors.join("\n"));
    }

    #[test]
    fn an_image_without_a_catalog_may_be_trusted_by_name() {
        let revision = json!({
            "number": 1, "source": {"type": "image"}, "contentDigest": "", "provisioner": {"class": "c", "digest": ""},
            "installNamespace": "n", "configDigest": "", "releaseDigest": "", "outcome": "Succeeded",
        });
        let status = json!({"history": [revision], "bundle": {"package": "shop;id", "version": "1.0.0"}});
        insta::assert_snapshot!(unlisted(&deployment(json!({}), status)).to_string());
        insta::assert_snapshot!(unlisted(&deployment(json!({}), Value::Null)).to_string());
    }
}
