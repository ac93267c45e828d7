//! Translates objects of other installers into objects of Chandler. Pure: objects in, objects and notes out.
//!
//! | module | what it does |
//! |---|---|
//! | [`olm`] | Subscriptions of OLM v0, with their ClusterServiceVersions, OperatorGroups and InstallPlans |
//! | [`olm_v1`] | ClusterExtensions of OLM v1, with their ClusterObjectSets |
//! | [`rukpak`] | BundleDeployments `v1alpha1` of rukpak, with their Bundles |
//! | [`helm`] | releases of Helm 3 and 4: the chart as a bundle |
//! | [`cvo`](mod@cvo) | a component of an OpenShift release payload |
//! | [`belonging`] | which objects belong to what another installer runs, whatever its objects claim |
//! | [`migration`] | the result of a translation |
//! | [`pending`] | a migration that has begun, in an annotation of the BundleDeployment |
//! | [`restarts`] | changes that would restart workloads |

pub mod belonging;
pub mod cvo;
pub mod helm;
pub mod migration;
pub mod olm;
pub mod olm_v1;
pub mod pending;
pub mod restarts;
pub mod rukpak;

pub use self::migration::{CatalogImage, ForeignObject, Migration};
