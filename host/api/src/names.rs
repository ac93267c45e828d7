//! Labels, annotations, finalizers and the classes that are built in.

/// The kind of the owner, on every object of a release: always `BundleDeployment`.
pub const OWNER_KIND_LABEL: &str = "core.rukpak.io/owner-kind";
/// The name of the owner, on every object of a release.
pub const OWNER_NAME_LABEL: &str = "core.rukpak.io/owner-name";
/// Keeps a deleted BundleDeployment until the objects of its release are gone.
pub const TEARDOWN_FINALIZER: &str = "chandler.dev/teardown";
/// Keeps a deleted ProvisionerClass while BundleDeployments name it, where its spec says so.
pub const IN_USE_FINALIZER: &str = "chandler.dev/in-use";
/// A finalizer of the predecessor, which removed a cached archive. Nothing needs it any more; it is taken off.
pub const DELETE_CACHED_BUNDLE_FINALIZER: &str = "core.rukpak.io/delete-cached-bundle";
/// A finalizer of the predecessor, which removed its unpack cache. Nothing needs it any more; it is taken off.
pub const CLEANUP_UNPACK_CACHE_FINALIZER: &str = "core.rukpak.io/cleanup-unpack-cache";
/// Marks a CRD whose objects may be parents of an ApplySet (KEP-3659).
pub const APPLYSET_PARENT_TYPE_LABEL: &str = "applyset.kubernetes.io/is-parent-type";
/// Asks for a reconcile at once, by a value that was not there before (a time, say): tags are resolved again, and a revision
/// that failed and was rolled back is tried again.
pub const REQUESTED_AT_ANNOTATION: &str = "reconcile.chandler.dev/requestedAt";
/// Has the objects of a release put right once where spec.drift says that they are left as they are: when its value is the one
/// of [`REQUESTED_AT_ANNOTATION`] and that was not acted upon yet.
pub const REPAIR_AT_ANNOTATION: &str = "reconcile.chandler.dev/repairAt";

/// The built-in class of plain bundles (plain+v0).
pub const PLAIN_CLASS: &str = "core-rukpak-io-plain";
/// The built-in class of registry bundles (registry+v1).
pub const REGISTRY_CLASS: &str = "core-rukpak-io-registry";
