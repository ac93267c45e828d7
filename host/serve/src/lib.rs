//! The content of bundles and catalogs over HTTPS, for callers that the API server vouches for.
//!
//! Each request has a bearer token of the API server. A TokenReview identifies the user, and a SubjectAccessReview checks the permission;
//! nothing is answered before. So users without permission cannot learn what exists.
//!
//! | request | permission | answer |
//! |---|---|---|
//! | GET `/bundles/NAME.tgz` | `get` on the path | the content of a BundleDeployment |
//! | GET `/catalogs/NAME/api/v1/all` | `get` on the path | all documents of a Catalog, as JSON lines |
//! | GET `/catalogs/NAME/api/v1/metas` | `get` on the path | those with a `schema`, `package` and `name` |
//! | PUT `/uploads/NAME.tgz` | `update` on the BundleDeployment | takes its content |
//!
//! | module | holds |
//! |---|---|
//! | [`server`] | the listener, and what it serves |
//! | `routes` | paths, checks of callers, and answers without content |
//! | `callers` | who calls, and whether they may |
//! | `bundles`, `catalogs`, `uploads` | the answers |
//! | `places` | how callers share the transfers that are under way |
//! | `conditional` | entity tags and ranges |
//! | `body` | bodies that a thread writes, for clients that may stop reading |
//! | `certificate` | the certificate: generated here, or from a Secret |
//! | `announcement` | the ConfigMap with the URL and the CA for clients |

mod announcement;
mod body;
mod bundles;
mod callers;
mod catalogs;
mod certificate;
mod conditional;
mod places;
mod refusal;
mod routes;
pub mod server;
mod uploads;

pub use self::{
    announcement::{AUTHORITY, URL},
    server::{Holding, Holdings, Listener, Options, ServeError, Served, Target},
};
