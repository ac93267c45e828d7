//! The response to a denied request.

use crate::access::{
    attributes::{Attributes, NonResourceAttributes},
    quote::quote,
    user::User,
};

/// Why a request is denied: the text that follows "is forbidden: " in the response
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
    use crate::access::ResourceAttributes;

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
