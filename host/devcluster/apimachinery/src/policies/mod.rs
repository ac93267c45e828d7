//! ValidatingAdmissionPolicies of a Kubernetes API, as kube-apiserver 1.36 enforces them.
//!
//! Everything here is a function of its arguments: no store, no clock, no HTTP. Policies read the cluster through the trait
//! [`Cluster`]. Administrators write policies, but any user may write objects: evaluation is bounded (see [`limits`]), and the policy's
//! `failurePolicy` decides about every error.
//!
//! | module | holds |
//! |---|---|
//! | [`model`] | policies and bindings |
//! | [`attributes`] | a request for a change of an object |
//! | [`cluster`] | what policies read of the cluster |
//! | [`matching`] | which requests a policy or a binding is about |
//! | [`compile`](mod@compile) | the expressions of a policy, compiled once |
//! | [`environment`] | the variables of expressions and their types |
//! | [`activation`] | the values of the variables, composed ones only when they are used |
//! | [`authorizer`] | `authorizer` in expressions |
//! | [`params`] | the parameters of a binding |
//! | [`evaluation`] | the decisions of one policy about one request |
//! | [`admission`] | all policies about one request: denied, allowed, warnings |
//! | [`limits`] | how much an expression, a policy and a request may cost |
//! | [`set`] | the policies and bindings of a cluster |
//! | [`validation`] | which policies and bindings may be stored |

pub mod activation;
pub mod admission;
pub mod attributes;
pub mod authorizer;
pub mod cluster;
pub mod compile;
pub mod environment;
pub mod evaluation;
pub mod limits;
pub mod matching;
pub mod model;
pub mod params;
pub mod set;
pub mod validation;

#[cfg(test)]
mod tests;

pub use admission::{Admission, Denial, admit};
pub use attributes::{Attributes, Operation, Resource};
pub use cluster::{Cluster, ParamScope};
pub use set::PolicySet;
pub use validation::validate_policy;
