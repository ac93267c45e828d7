//! The reconciler of ProvisionerClasses: resolve, verify, pull, check and compile a component, and only then put it into use.
//!
//! While a newer component cannot be loaded, the earlier one stays in use, unless it lacks signatures that are demanded now. Calls in
//! progress finish with the component that they started with.
//!
//! | module | contents | I/O |
//! |---|---|---|
//! | `reconciler` | the state of the reconciler, and one reconcile | yes |
//! | `preload` | loads the classes before the first reconcile | yes |
//! | `load` | loads the component of a class | yes |
//! | `classes` | the classes in use, by name | no |
//! | `components` | what pulls and compiles components, and which may run | no |
//! | `earlier` | components that rendered releases and that no class has any more | yes |
//! | `calls` | which components are quarantined, and figures about calls | no |
//! | `served` | which artifact last served each class, across restarts | disk |
//! | `retention` | whether a deleted class is kept while BundleDeployments use it | writes |
//! | `loads` | when components were loaded | no |
//! | `uses` | what those that use a class do with its component, and whose turn it is | no |
//! | `users` | which BundleDeployments a class concerns | no |
//! | `status` | derives the status | no |

mod calls;
mod classes;
mod components;
mod earlier;
mod load;
mod loads;
mod preload;
mod reconciler;
mod retention;
mod served;
mod status;
mod users;
mod uses;

pub(crate) use self::{
    calls::{Calls, Pass, Quarantined},
    classes::{Class, Classes, NotReady, Offer},
    components::Components,
    earlier::{EarlierError, component_of},
    reconciler::ProvisionerClasses,
    users::may_use,
};
