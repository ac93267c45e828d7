//! The kinds of Chandler, in one list.
//!
//! Code that treats our own kinds differently starts from [`OwnKind`] and matches it without a wildcard, so that a new kind
//! does not compile until each such place has decided about it: the CRDs ([`crds`](mod@crate::crds)), and the permissions that a
//! bundle needs to contain such an object (`delegation` in `host/permissions`).

use std::borrow::Cow;

use kube::Resource;

use crate::{
    Alert, BundleDeployment, Catalog, ChangeApproval, PlatformOperator, PlatformPolicy, ProvisionerClass, Receiver,
    Resolution,
};

macro_rules! own_kinds {
    ($($(#[$doc:meta])* $kind:ident,)+) => {
        /// A kind of Chandler.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum OwnKind {
            $($(#[$doc])* $kind,)+
        }

        impl OwnKind {
            /// All of them, in the order in which their CRDs are installed.
            pub const ALL: &[Self] = &[$(Self::$kind,)+];

            /// The API group.
            pub fn group(self) -> Cow<'static, str> {
                match self { $(Self::$kind => <$kind as Resource>::group(&()),)+ }
            }

            /// The kind, as objects name it.
            pub fn kind(self) -> Cow<'static, str> {
                match self { $(Self::$kind => <$kind as Resource>::kind(&()),)+ }
            }

            /// The resource, as RBAC names it.
            pub fn plural(self) -> Cow<'static, str> {
                match self { $(Self::$kind => <$kind as Resource>::plural(&()),)+ }
            }
        }
    };
}

own_kinds! {
    /// [`BundleDeployment`]
    BundleDeployment,
    /// [`ProvisionerClass`]
    ProvisionerClass,
    /// [`ChangeApproval`]
    ChangeApproval,
    /// [`Catalog`]
    Catalog,
    /// [`Resolution`]
    Resolution,
    /// [`PlatformOperator`]
    PlatformOperator,
    /// [`PlatformPolicy`]
    PlatformPolicy,
    /// [`Receiver`]
    Receiver,
    /// [`Alert`]
    Alert,
}

impl OwnKind {
    /// The kind of Chandler that objects of this group and kind have, in whatever version.
    pub fn of(group: &str, kind: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|own| own.group() == group && own.kind() == kind)
    }

    /// Whether a CustomResourceDefinition of this name defines a kind in a group of Chandler, or below one.
    pub fn is_crd(name: &str) -> bool {
        let below = |own: &Self| name.strip_suffix(own.group().as_ref()).is_some_and(|rest| rest.ends_with('.'));
        Self::ALL.iter().any(below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crds;

    #[test]
    fn every_crd_belongs_to_a_kind_and_is_reserved() {
        let crds = crds();
        assert_eq!(crds.len(), OwnKind::ALL.len());
        for (crd, own) in crds.iter().zip(OwnKind::ALL) {
            assert_eq!(OwnKind::of(&crd.spec.group, &crd.spec.names.kind), Some(*own));
            assert_eq!(crd.spec.names.plural, own.plural());
            assert!(OwnKind::is_crd(crd.metadata.name.as_deref().unwrap()), "{own:?}");
            assert_eq!(crd.spec.scope, "Cluster", "the tables of permissions rely on it");
        }
    }

    #[test]
    fn only_names_in_our_groups_are_reserved() {
        for (name, reserved) in [
            ("resolutions.core.deppy.io", true),
            ("anything.chandler.dev", true),
            ("a.b.chandler.dev", true),
            ("chandler.dev", false),
            ("a.notchandler.dev", false),
            ("bundledeployments.core.rukpak.io.example.com", false),
        ] {
            assert_eq!(OwnKind::is_crd(name), reserved, "{name}");
        }
        assert_eq!(OwnKind::of("example.com", "BundleDeployment"), None);
        assert_eq!(OwnKind::of("core.deppy.io", "BundleDeployment"), None);
    }
}
