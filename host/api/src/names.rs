//! Labels, annotations, finalizers and built-in classes.

/// The kind of the owner, on every object of a release: always `BundleDeployment`.
pub const OWNER_KIND_LABEL: &str = "core.rukpak.io/owner-kind";
/// The name of the owner, on every object of a release.
pub const OWNER_NAME_LABEL: &str = "core.rukpak.io/owner-name";
/// Keeps a BundleDeployment that is being deleted until the objects of its release are deleted.
pub const TEARDOWN_FINALIZER: &str = "chandler.dev/teardown";
/// Keeps a ProvisionerClass that is being deleted while BundleDeployments name it, if its spec requires that.
pub const IN_USE_FINALIZER: &str = "chandler.dev/in-use";
/// A finalizer of RukPak, which removed a cached archive. The controller removes it, since nothing needs it any more.
pub const DELETE_CACHED_BUNDLE_FINALIZER: &str = "core.rukpak.io/delete-cached-bundle";
/// A finalizer of RukPak, which removed its unpack cache. The controller removes it, since nothing needs it any more.
pub const CLEANUP_UNPACK_CACHE_FINALIZER: &str = "core.rukpak.io/cleanup-unpack-cache";
/// Marks a CRD whose objects may be parents of an ApplySet (KEP-3659).
pub const APPLYSET_PARENT_TYPE_LABEL: &str = "applyset.kubernetes.io/is-parent-type";
/// A new value (a time, for example) requests an immediate reconcile: the controller resolves tags again, and retries a
/// revision that failed and was rolled back.
pub const REQUESTED_AT_ANNOTATION: &str = "reconcile.chandler.dev/requestedAt";
/// Requests one repair of the objects of a release although spec.drift is Report or Ignore. It takes effect when its value equals
/// [`REQUESTED_AT_ANNOTATION`]'s and the controller has not handled that value yet.
pub const REPAIR_AT_ANNOTATION: &str = "reconcile.chandler.dev/repairAt";

/// The built-in class of plain bundles (plain+v0).
pub const PLAIN_CLASS: &str = "core-rukpak-io-plain";
/// The built-in class of registry bundles (registry+v1).
pub const REGISTRY_CLASS: &str = "core-rukpak-io-registry";
/// The built-in class of sets: bundles of BundleDeployments.
pub const RESOLVESET_CLASS: &str = "core-rukpak-io-resolveset";
pub use chandler_core::order::DEPENDS_ON_ANNOTATION;
