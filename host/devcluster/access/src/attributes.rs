//! What a request wants to do.

use serde::{Deserialize, Serialize};

use crate::{quote::quote, user::User};

/// What a request wants to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attributes {
    /// Something with objects.
    Resource(ResourceAttributes),
    /// Something with another path.
    NonResource(NonResourceAttributes),
}

/// Something with objects, in JSON the `ResourceAttributes` of `authorization.k8s.io`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceAttributes {
    /// The namespace; empty for cluster-scoped objects and for all namespaces.
    pub namespace: String,
    /// The verb, e.g. `list`.
    pub verb: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// The API version; no rule looks at it.
    pub version: String,
    /// The resource, e.g. `pods`.
    pub resource: String,
    /// The subresource, e.g. `log`; empty for none.
    pub subresource: String,
    /// The name of the object; empty for all.
    pub name: String,
}

/// Something with a path that names no objects, in JSON the `NonResourceAttributes` of `authorization.k8s.io`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NonResourceAttributes {
    /// The path.
    pub path: String,
    /// The method in lower case.
    pub verb: String,
}

impl Attributes {
    /// The verb.
    pub fn verb(&self) -> &str {
        match self {
            Self::Resource(resource) => &resource.verb,
            Self::NonResource(path) => &path.verb,
        }
    }

    /// The namespace; empty for none.
    pub fn namespace(&self) -> &str {
        match self {
            Self::Resource(resource) => &resource.namespace,
            Self::NonResource(_) => "",
        }
    }

    /// The same with another verb.
    pub fn with_verb(&self, verb: String) -> Self {
        match self {
            Self::Resource(resource) => Self::Resource(ResourceAttributes { verb, ..resource.clone() }),
            Self::NonResource(path) => Self::NonResource(NonResourceAttributes { verb, ..path.clone() }),
        }
    }
}

impl ResourceAttributes {
    /// Resource and subresource, as rules and messages name them: `pods/log`.
    pub fn combined(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.clone()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }
}

/// Why a request is refused, as the answer says it behind "is forbidden: "
/// (`k8s.io/apiserver/pkg/endpoints/handlers/responsewriters`).
pub fn refusal(user: &User, attributes: &Attributes, reason: &str) -> String {
    let who = quote(&user.name);
    let message = match attributes {
        Attributes::NonResource(NonResourceAttributes { path, verb }) => {
            format!("User {who} cannot {verb} path {}", quote(path))
        }
        Attributes::Resource(resource) => {
            let (what, group) = (quote(&resource.combined()), quote(&resource.group));
            let place = if resource.namespace.is_empty() {
                "at the cluster scope".to_owned()
            } else {
                format!("in the namespace {}", quote(&resource.namespace))
            };
            format!("User {who} cannot {} resource {what} in API group {group} {place}", resource.verb)
        }
    };
    let message = without_markup(&message);
    if reason.is_empty() { message } else { format!("{message}: {reason}") }
}

/// A browser shall not take a refusal for HTML.
fn without_markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_read_as_those_of_kubernetes() {
        let user = User::new("jane", &[]);
        let mut pods = ResourceAttributes {
            namespace: "shop".into(),
            verb: "list".into(),
            resource: "pods".into(),
            ..ResourceAttributes::default()
        };
        let text = |pods: &ResourceAttributes| refusal(&user, &Attributes::Resource(pods.clone()), "");
        assert_eq!(text(&pods), r#"User "jane" cannot list resource "pods" in API group "" in the namespace "shop""#);
        pods = ResourceAttributes { namespace: String::new(), subresource: "<x>".into(), group: "g".into(), ..pods };
        assert_eq!(
            text(&pods),
            r#"User "jane" cannot list resource "pods/&lt;x&gt;" in API group "g" at the cluster scope"#
        );
        let path = Attributes::NonResource(NonResourceAttributes { path: "/metrics".into(), verb: "get".into() });
        assert_eq!(refusal(&user, &path, "because"), r#"User "jane" cannot get path "/metrics": because"#);
        assert_eq!(path.with_verb("post".into()).verb(), "post");
    }
}
