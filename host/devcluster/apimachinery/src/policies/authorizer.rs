//! `authorizer` in expressions (`k8s.io/apiserver/pkg/cel/library`, Authz).

use std::sync::Arc;

use cel::{Value, objects::Opaque};
use chandler_expression::{EvaluationError, Meter, evaluate::Outcome};

use crate::{
    access::{
        Attributes as Access, Decision, NonResourceAttributes, ResourceAttributes, User,
        user::{service_account_groups, service_account_user_name},
    },
    policies::{attributes::Attributes, cluster::Cluster, limits},
    schema::names,
};

/// A value that `authorizer` leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Check {
    /// Whose rights are asked about.
    user: Arc<User>,
    step: Step,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Authorizer,
    Path(String),
    Group(String),
    Resource(ResourceAttributes),
    Decision(Decision),
}

impl Step {
    /// The bytes of its texts.
    fn bytes(&self) -> usize {
        match self {
            Self::Authorizer => 0,
            Self::Path(text) | Self::Group(text) => text.len(),
            Self::Resource(resource) => {
                let ResourceAttributes { namespace, verb, group, version, resource, subresource, name } = resource;
                [namespace, verb, group, version, resource, subresource, name].map(String::len).iter().sum()
            }
            Self::Decision(decision) => decision.reason.len(),
        }
    }
}

impl Opaque for Check {
    fn runtime_type_name(&self) -> &'static str {
        match self.step {
            Step::Authorizer => "kubernetes.authorization.Authorizer",
            Step::Path(_) => "kubernetes.authorization.PathCheck",
            Step::Group(_) => "kubernetes.authorization.GroupCheck",
            Step::Resource(_) => "kubernetes.authorization.ResourceCheck",
            Step::Decision(_) => "kubernetes.authorization.Decision",
        }
    }
}

/// `authorizer`, for the user of a request.
pub fn authorizer(user: &User) -> Value {
    Value::Opaque(Arc::new(Check { user: Arc::new(user.clone()), step: Step::Authorizer }))
}

/// `authorizer.requestResource`: what the request itself is about.
pub fn request_resource(attributes: &Attributes<'_>) -> Value {
    let resource = ResourceAttributes {
        group: attributes.resource.group.clone(),
        version: "*".to_owned(),
        resource: attributes.resource.plural.clone(),
        subresource: attributes.subresource.to_owned(),
        namespace: attributes.namespace.to_owned(),
        name: attributes.name.to_owned(),
        verb: String::new(),
    };
    Value::Opaque(Arc::new(Check { user: Arc::new(attributes.user.clone()), step: Step::Resource(resource) }))
}

/// Calls a function of such a value; `None` if the target is another.
pub fn call(
    function: &str,
    target: &Value,
    arguments: &[Value],
    cluster: &dyn Cluster,
    meter: &Meter,
) -> Option<Outcome> {
    let Value::Opaque(target) = target else { return None };
    let check = target.downcast_ref::<Check>()?;
    Some(check.call(function, arguments, cluster, meter))
}

impl Check {
    fn call(&self, function: &str, arguments: &[Value], cluster: &dyn Cluster, meter: &Meter) -> Outcome {
        let texts = arguments.iter().map(|argument| match argument {
            Value::String(text) => Ok(text.as_str()),
            _ => Err(EvaluationError::NoSuchOverload),
        });
        let texts: Vec<&str> = texts.collect::<Result<_, _>>()?;
        // The next step copies what this one knows.
        let bytes = texts.iter().map(|text| text.len()).fold(self.step.bytes(), usize::saturating_add);
        meter.charge_text(bytes)?;
        meter.take(bytes.saturating_add(size_of::<Self>()))?;
        let step = match (&self.step, function, texts.as_slice()) {
            (Step::Authorizer, "path", [path]) => Step::Path(not_empty(path, "path")?),
            (Step::Authorizer, "group", [group]) => Step::Group((*group).to_owned()),
            (Step::Authorizer, "serviceAccount", [namespace, name]) => return self.of_account(namespace, name),
            (Step::Group(group), "resource", [resource]) => Step::Resource(ResourceAttributes {
                group: group.clone(),
                version: "*".to_owned(),
                resource: not_empty(resource, "resource")?,
                ..ResourceAttributes::default()
            }),
            (Step::Resource(resource), "subresource", [text]) => {
                Step::Resource(ResourceAttributes { subresource: (*text).to_owned(), ..resource.clone() })
            }
            (Step::Resource(resource), "namespace", [text]) => {
                Step::Resource(ResourceAttributes { namespace: (*text).to_owned(), ..resource.clone() })
            }
            (Step::Resource(resource), "name", [text]) => {
                Step::Resource(ResourceAttributes { name: (*text).to_owned(), ..resource.clone() })
            }
            // RBAC does not look at selectors.
            (Step::Resource(_), "fieldSelector" | "labelSelector", [_]) => self.step.clone(),
            (Step::Resource(resource), "check", [verb]) => {
                let access = Access::Resource(ResourceAttributes { verb: (*verb).to_owned(), ..resource.clone() });
                self.decided(&access, cluster, meter)?
            }
            (Step::Path(path), "check", [verb]) => {
                let access = NonResourceAttributes { path: path.clone(), verb: (*verb).to_owned() };
                self.decided(&Access::NonResource(access), cluster, meter)?
            }
            (Step::Decision(decision), "allowed", []) => return Ok(Value::Bool(decision.allowed)),
            (Step::Decision(decision), "reason", []) => return Ok(Value::from(decision.reason.as_str())),
            // RBAC decides without errors.
            (Step::Decision(_), "errored", []) => return Ok(Value::Bool(false)),
            (Step::Decision(_), "error", []) => return Ok(Value::from("")),
            _ => return Err(EvaluationError::NoSuchOverload),
        };
        Ok(Value::Opaque(Arc::new(Self { user: Arc::clone(&self.user), step })))
    }

    fn decided(&self, access: &Access, cluster: &dyn Cluster, meter: &Meter) -> Result<Step, EvaluationError> {
        meter.charge(limits::AUTHORIZATION)?;
        Ok(Step::Decision(cluster.authorize(&self.user, access)))
    }

    #[expect(clippy::unused_self, reason = "it is a function of an authorizer, whichever")]
    fn of_account(&self, namespace: &str, name: &str) -> Outcome {
        if !names::dns1123_subdomain(name).is_empty() {
            return Err(EvaluationError::other("Invalid service account name"));
        }
        if !names::dns1123_label(namespace).is_empty() {
            return Err(EvaluationError::other("Invalid service account namespace"));
        }
        let user = User {
            name: service_account_user_name(namespace, name),
            groups: service_account_groups(namespace),
            ..User::default()
        };
        Ok(authorizer(&user))
    }
}

fn not_empty(text: &str, what: &str) -> Result<String, EvaluationError> {
    if text.trim().is_empty() {
        return Err(EvaluationError::other(format!("{what} must not be empty")));
    }
    Ok(text.to_owned())
}
