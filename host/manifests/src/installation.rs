//! What an installation may consist of, whatever its settings were.

use serde_json::Value;

use crate::{
    NAMESPACE,
    adapt::rename,
    files::FILES,
    render::{ManifestsError, crds, rank},
};

/// The namespace of the accounts of tenants, which the profile `multi-tenant` creates. An administrator creates the accounts in it.
pub const TENANT_NAMESPACE: &str = "chandler-accounts";

/// The objects that [`objects`](crate::objects()) prints with any settings for a controller in this namespace, in an order that can be
/// applied: an installation has some of them, and its settings change their content. The CRDs are among them; the
/// [namespace of tenants](TENANT_NAMESPACE) and what is in it are not.
///
/// # Errors
/// A file in this program is wrong, which is a bug.
pub fn installation(namespace: &str) -> Result<Vec<Value>, ManifestsError> {
    let mut objects = crds()?;
    for (file, _) in FILES {
        objects.extend(file.objects()?.into_iter().filter(|object| !is_of_tenants(object)));
    }
    if namespace != NAMESPACE {
        for object in &mut objects {
            rename(object, namespace);
        }
    }
    objects.sort_by_key(rank);
    Ok(objects)
}

fn is_of_tenants(object: &Value) -> bool {
    let is = |pointer: &str| object.pointer(pointer).and_then(Value::as_str) == Some(TENANT_NAMESPACE);
    is("/metadata/namespace") || object["kind"] == "Namespace" && is("/metadata/name")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{Profile, Settings, objects};

    /// Kind, namespace and name.
    fn identities(objects: &[Value]) -> BTreeSet<[String; 3]> {
        let text = |object: &Value, pointer: &str| {
            object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let identity = |object: &Value| ["/kind", "/metadata/namespace", "/metadata/name"].map(|it| text(object, it));
        objects.iter().map(identity).collect()
    }

    #[test]
    fn it_has_every_object_of_every_profile_but_the_namespace_of_tenants() {
        for profile in Profile::ALL {
            let mut settings = Settings::of(profile);
            for setting in [
                "namespace=elsewhere",
                "watch=true",
                "content=true",
                "monitoring.serviceMonitor=true",
                "monitoring.rules=true",
            ] {
                settings.set(setting).unwrap();
            }
            let mut printed = identities(&objects(&settings).unwrap());
            printed.retain(|[_, namespace, name]| ![namespace, name].contains(&&TENANT_NAMESPACE.to_owned()));
            let all = identities(&installation("elsewhere").unwrap());
            let missing: Vec<_> = printed.difference(&all).collect();
            assert!(missing.is_empty(), "{}: {missing:?}", profile.name());
            assert!(!all.iter().any(|[_, namespace, _]| namespace == NAMESPACE || namespace == TENANT_NAMESPACE));
        }
        let crds = chandler_api::crds().len();
        let found = installation(NAMESPACE).unwrap();
        assert_eq!(found.iter().filter(|object| object["kind"] == "CustomResourceDefinition").count(), crds);
    }
}
