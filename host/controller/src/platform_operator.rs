//! The reconciler of PlatformOperators: one Resolution asks for the packages of all of them, and its set installs them.
//!
//! | module | contents | I/O |
//! |---|---|---|
//! | `reconciler` | the reconcile of one PlatformOperator, and its deletion | yes |
//! | `platform` | keeps the Resolution of all PlatformOperators as wanted | yes |
//! | `namespaces` | the namespaces of packages: which they are, and their creation | yes |
//! | `namespace_removal` | deletes the namespace of a package that is uninstalled, if it is empty | yes |
//! | `states` | the PlatformOperators, and which changes of other objects concern one | no |
//!
//! What they want together, the Resolution and the status are decided in `platform` in `host/resolution`.

mod namespace_removal;
mod namespaces;
mod platform;
mod reconciler;
mod states;

pub(crate) use self::{platform::Platform, reconciler::PlatformOperators, states::PlatformOperatorStates};
