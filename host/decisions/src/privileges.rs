//! Kinds of objects with which a release reaches beyond itself, and which of them a new release has and the one before had not.
//!
//! An author who changes a spec decides about the new release. No author decides what else adds to the same content: another component of the
//! class, other defaults in the configuration of the class, other values in the objects of `spec.valuesFrom`, which others may write, or a
//! component that renders more once the cluster serves another kind. So these additions wait for approval, whatever `spec.approval` says.

use std::collections::BTreeSet;

use chandler_api::{OwnKind, Revision};
use chandler_core::{Digest, ObjectKey, Release};
use serde_json::Value;

use super::{
    revisions::{Candidate, Cause, Config},
    updates,
};

/// The groups all of whose objects grant permissions, or decide about requests of others.
const GROUPS: &[&str] = &[
    "admissionregistration.k8s.io",
    "apiregistration.k8s.io",
    "authorization.openshift.io",
    "certificates.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "rbac.authorization.k8s.io",
    "security.openshift.io",
];
/// What the names of namespaces of the cluster itself begin with.
const NAMESPACES: &[&str] = &["kube-", "openshift-"];

/// What a release has and the one before it lacked, in words for users. `before` is `None` if that release is unavailable, and then counts
/// as one without any.
pub fn gained(before: Option<&Release>, after: &Release) -> Vec<String> {
    let had: BTreeSet<String> = before.map(privileges).unwrap_or_default();
    privileges(after).difference(&had).cloned().collect()
}

/// Whether the candidate was rendered by another component of the same class than the revision before it.
pub fn is_update_of_provisioner(history: &[Revision], candidate: &Candidate) -> bool {
    let new = &candidate.provisioner;
    let is_other =
        |current: &Revision| current.provisioner.class == new.class && current.provisioner.digest != new.digest;
    candidate.cause == Cause::Spec && history.last().is_some_and(is_other)
}

/// The revision that the author of the BundleDeployment decided about: the last one, or while that is a rollback the one that it rolled back, if
/// the candidate has its class, content, namespace and spec's configuration and is another release. Other content counts only if no value that
/// an object sets changed with it. `None` if the author decides about the candidate, or nothing changes.
pub fn decided<'a>(history: &'a [Revision], candidate: &Candidate) -> Option<&'a Revision> {
    let same = |revision: &&Revision| {
        revision.provisioner.class == candidate.provisioner.class
            && revision.install_namespace == candidate.install_namespace
            && has_spec_config(revision, candidate)
            && (revision.content_digest == candidate.content_digest || has_other_values(revision, candidate))
    };
    let decided = updates::recent(history).filter(|_| candidate.cause == Cause::Spec).find(same)?;
    (decided.release_digest != candidate.release.digest.as_str()).then_some(decided)
}

/// Whether objects of `spec.valuesFrom` changed under the same spec: other content, to which a tag may lead without the author, does not decide
/// about them.
fn has_other_values(revision: &Revision, candidate: &Candidate) -> bool {
    candidate.spec_config.is_some()
        && revision.spec_config_digest == candidate.spec_config
        && revision.values_from != candidate.values
}

/// Whether the spec has the same configuration and the same references to values. Who may write the values is not its author.
fn has_spec_config(revision: &Revision, candidate: &Candidate) -> bool {
    match (&revision.spec_config_digest, &candidate.spec_config) {
        (Some(before), Some(now)) => before == now,
        (Some(_), None) => false,
        (None, _) => has_own_config(revision, candidate),
    }
}

/// Whether the BundleDeployment sets the same configuration. Revisions of earlier versions have only the digest that includes the defaults
/// of the class.
fn has_own_config(revision: &Revision, candidate: &Candidate) -> bool {
    if revision.own_config_digest.is_some() {
        return revision.own_config_digest == candidate.own_config;
    }
    let all = match &candidate.config {
        Config::Known(config) => Digest::of(Value::Object(config.clone()).to_string().as_bytes()).to_string(),
        Config::Digest(digest) => digest.clone(),
    };
    revision.config_digest == all
}

/// The kinds of a release that reach beyond it.
fn privileges(release: &Release) -> BTreeSet<String> {
    release.objects().iter().filter_map(|object| privilege(&object.key)).collect()
}

fn privilege(key: &ObjectKey) -> Option<String> {
    let ObjectKey { group, kind, namespace, name, .. } = key;
    let is_kind = GROUPS.contains(&group.as_str()) || OwnKind::of(group, kind).is_some();
    if is_kind {
        return Some(format!("{kind}.{group}"));
    }
    if kind == "CustomResourceDefinition" && OwnKind::is_crd(name) {
        return Some(format!("CustomResourceDefinition {name}"));
    }
    let namespace = if key.is_namespace() { Some(name) } else { namespace.as_ref() };
    let namespace = namespace.filter(|name| NAMESPACES.iter().any(|prefix| name.starts_with(prefix)))?;
    Some(format!("objects in namespace {namespace}"))
}

#[cfg(test)]
mod tests {
    use chandler_api::{ProvisionerInUse, ValuesInUse};
    use chandler_core::Object;
    use serde_json::json;

    use super::*;

    fn release(objects: &[Value]) -> Release {
        let parse = |value: &Value| Object::parse(value.to_string().as_bytes(), 0, None).unwrap();
        Release::new(objects.iter().map(parse).collect(), Vec::new(), Vec::new())
    }

    fn object(api_version: &str, kind: &str, namespace: Option<&str>, name: &str) -> Value {
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": namespace}})
    }

    fn rendered_by(digest: &str) -> Candidate {
        let provisioner = ProvisionerInUse { digest: digest.to_owned(), ..ProvisionerInUse::default() };
        Candidate { provisioner, ..Candidate::of_release(&Digest::of(b"a"), "n") }
    }

    fn history(digest: &str) -> Vec<Revision> {
        let provisioner = ProvisionerInUse { digest: digest.to_owned(), ..ProvisionerInUse::default() };
        vec![Revision { provisioner, ..Revision::default() }]
    }

    #[test]
    fn what_an_update_of_a_provisioner_adds_is_named() {
        let map = object("v1", "ConfigMap", Some("shop"), "a");
        let binding = |name| object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", None, name);
        let added = [
            (binding("b"), "ClusterRoleBinding.rbac.authorization.k8s.io"),
            (object("chandler.dev/v1alpha1", "ProvisionerClass", None, "helm"), "ProvisionerClass.chandler.dev"),
            (object("core.rukpak.io/v1alpha2", "BundleDeployment", None, "x"), "BundleDeployment.core.rukpak.io"),
            (object("core.deppy.io/v1alpha1", "Resolution", None, "x"), "Resolution.core.deppy.io"),
            (
                object("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", None, "x"),
                "MutatingWebhookConfiguration.admissionregistration.k8s.io",
            ),
            (object("apiregistration.k8s.io/v1", "APIService", None, "v1.x"), "APIService.apiregistration.k8s.io"),
            (object("apps/v1", "DaemonSet", Some("kube-system"), "x"), "objects in namespace kube-system"),
            (object("v1", "Namespace", None, "kube-public"), "objects in namespace kube-public"),
            (
                object("apiextensions.k8s.io/v1", "CustomResourceDefinition", None, "catalogs.chandler.dev"),
                "CustomResourceDefinition catalogs.chandler.dev",
            ),
        ];
        let before = release(std::slice::from_ref(&map));
        for (object, expected) in &added {
            let after = release(&[map.clone(), object.clone()]);
            assert_eq!(gained(Some(&before), &after), [*expected]);
            assert_eq!(gained(None, &after), [*expected], "the earlier release is unavailable");
            assert_eq!(gained(Some(&after), &after), [""; 0], "it had one");
        }
        let more = release(&[map, object("apps/v1", "Deployment", Some("shop"), "a")]);
        assert_eq!(gained(Some(&before), &more), [""; 0]);
    }

    #[test]
    fn an_author_decides_about_content_and_own_configuration_only() {
        let config = |value: &Value| Config::Known(value.as_object().cloned().unwrap());
        let installed = Candidate {
            own_config: Some("own".into()),
            content_digest: "x".into(),
            config: config(&json!({"tide": "low"})),
            ..rendered_by("sha256:1")
        };
        let revision = |number: i64, candidate: &Candidate| Revision {
            number,
            content_digest: candidate.content_digest.clone(),
            install_namespace: candidate.install_namespace.clone(),
            provisioner: candidate.provisioner.clone(),
            own_config_digest: candidate.own_config.clone(),
            spec_config_digest: candidate.spec_config.clone(),
            config_digest: Digest::of(json!({"tide": "low"}).to_string().as_bytes()).to_string(),
            release_digest: candidate.release.digest.to_string(),
            ..Revision::default()
        };
        let history = [revision(1, &installed)];
        let number =
            |history: &[Revision], candidate: &Candidate| decided(history, candidate).map(|found| found.number);
        assert_eq!(number(&history, &installed), None, "nothing changes");
        let release = Candidate::of_release(&Digest::of(b"more"), "n").release;
        let more = Candidate { release, ..installed.clone() };
        assert_eq!(number(&history, &more), Some(1), "the component renders more, as in another cluster");
        let configured = Candidate { config: config(&json!({"tide": "high"})), ..more.clone() };
        assert_eq!(number(&history, &configured), Some(1), "the class has other defaults");
        let provisioner = rendered_by("sha256:2").provisioner;
        assert_eq!(number(&history, &Candidate { provisioner, ..more.clone() }), Some(1), "another component");

        // What its author decides.
        assert_eq!(number(&[], &more), None);
        for candidate in [
            Candidate { content_digest: "y".into(), ..more.clone() },
            Candidate { own_config: Some("other".into()), ..more.clone() },
            Candidate { install_namespace: "m".into(), ..more.clone() },
            Candidate { cause: Cause::Pinned(1), ..more.clone() },
        ] {
            assert_eq!(number(&history, &candidate), None, "{candidate:?}");
        }
        let mut other = more.clone();
        other.provisioner.class = "other".into();
        assert_eq!(number(&history, &other), None, "the author named another class");

        // Other values are the decision of who may write their objects, whatever the mode; other references are the author's.
        let from_values = Candidate { spec_config: Some("references".into()), ..installed.clone() };
        let history = [revision(1, &from_values)];
        let changed = |spec: Option<&str>| Candidate {
            own_config: Some("other values".into()),
            spec_config: spec.map(str::to_owned),
            ..more.clone()
        };
        assert_eq!(number(&history, &changed(Some("references"))), Some(1), "a writer of the values");
        assert_eq!(number(&history, &changed(Some("other references"))), None);
        assert_eq!(number(&history, &changed(None)), None, "the author removed the references");
        let moved = Candidate { content_digest: "y".into(), ..changed(Some("references")) };
        assert_eq!(number(&history, &moved), None, "a tag moved, and no value changed");
        let values = vec![ValuesInUse { resource_version: Some("2".into()), ..ValuesInUse::default() }];
        assert_eq!(
            number(&history, &Candidate { values, ..moved }),
            Some(1),
            "a tag moved after a writer of the values"
        );

        // A rollback decides nothing.
        let earlier = Candidate { content_digest: "w".into(), ..installed.clone() };
        let back = Revision { rollback_to: Some(1), ..revision(3, &earlier) };
        assert_eq!(number(&[revision(1, &earlier), revision(2, &installed), back], &more), Some(2));

        // A revision of an earlier version has no digest of its own configuration.
        let old = [Revision { own_config_digest: None, ..revision(1, &installed) }];
        assert_eq!((number(&old, &more), number(&old, &configured)), (Some(1), None));
    }

    #[test]
    fn what_an_author_decides_is_no_update_of_a_provisioner() {
        let history = history("sha256:1");
        assert!(is_update_of_provisioner(&history, &rendered_by("sha256:2")));
        assert!(!is_update_of_provisioner(&history, &rendered_by("sha256:1")), "the author's own change");
        assert!(!is_update_of_provisioner(&[], &rendered_by("sha256:2")), "the first installation");
        let mut other = rendered_by("sha256:2");
        other.provisioner.class = "other".into();
        assert!(!is_update_of_provisioner(&history, &other), "the author named another class");
        let back = Candidate { cause: Cause::Pinned(1), ..rendered_by("sha256:2") };
        assert!(!is_update_of_provisioner(&history, &back), "a rollback");
    }
}
