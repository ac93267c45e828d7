//! One kind of source.

use std::fmt::Debug;

use chandler_api::BundleSource;
use chandler_content::{Images, Tree};

use crate::{Grantee, ImageRules, InvalidSource, Pinned, SourceError, SystemNamespace};

/// The clients that a source is read with, and on whose behalf.
#[derive(Clone, Copy)]
pub struct Environment<'a> {
    /// Registries, HTTP and SSH servers, and the store that trees are kept in.
    pub images: &'a Images,
    /// Secrets and ConfigMaps.
    pub system: &'a SystemNamespace,
    /// The signatures that the administrator demands of images.
    pub rules: &'a ImageRules,
    /// The object whose spec names the source.
    pub grantee: Grantee<'a>,
    /// The ServiceAccount on whose behalf it is installed, `NAMESPACE/NAME`; `None` for the controller.
    pub account: Option<&'a str>,
}

/// One kind of source, parsed.
///
/// The methods without an [`Environment`] are pure. Rules that apply to every kind (how often a source is resolved, which pin is used while
/// a server is unreachable) are in [`Sources`](crate::Sources).
pub trait SourceKind: Clone + Debug + PartialEq + Send + Sync + Sized {
    /// The value of `spec.source.type`, which is also the name of the field below `spec.source`.
    const TYPE: &'static str;
    /// The field of the API type.
    type Spec;
    /// Exactly the content that the source resolved to.
    type Pin: Clone + Debug + PartialEq + Send + Sync + Into<Pinned> + TryFrom<Pinned>;
    /// Credentials and certificates. They are read once for a resolve and the fetch that follows.
    type Access: Send + Sync;

    /// Reads the field of the API type.
    fn parse(spec: &Self::Spec) -> Result<Self, InvalidSource>;

    /// A short text for people, such as `image quay.io/example/harbour:v1`.
    fn describe(spec: &Self::Spec) -> String;

    /// Where the content is, in one word, or `None` if no single name says so.
    fn location(&self) -> Option<&str> {
        None
    }

    /// Whether the source may resolve to other content later: a tag can, a digest cannot.
    fn can_move(&self) -> bool;

    /// Reads credentials and certificates.
    fn access(&self, environment: Environment<'_>) -> impl Future<Output = Result<Self::Access, SourceError>> + Send;

    /// Whether the content is used only if it is signed.
    fn is_verified(&self, _rules: &ImageRules) -> bool {
        false
    }

    /// Finds out which content the source names now.
    fn resolve(
        &self,
        access: &Self::Access,
        environment: Environment<'_>,
    ) -> impl Future<Output = Result<Self::Pin, SourceError>> + Send;

    /// Finds out whether the source still names a pin, for a poll: `None` if it names, or may name, other content that only a fetch can
    /// identify. A poll must be cheap, since the source of every BundleDeployment is polled.
    fn poll(
        &self,
        _pin: &Self::Pin,
        access: &Self::Access,
        environment: Environment<'_>,
    ) -> impl Future<Output = Result<Option<Self::Pin>, SourceError>> + Send {
        async move { self.resolve(access, environment).await.map(Some) }
    }

    /// Fetches the content of a pin into the store, unless the store has it.
    fn fetch(
        pin: Self::Pin,
        access: &Self::Access,
        environment: Environment<'_>,
    ) -> impl Future<Output = Result<Tree, SourceError>> + Send;

    /// The source of the API that names the content of a pin and nothing else.
    fn to_api(pin: &Self::Pin) -> BundleSource;

    /// The pin that a recorded source of the same kind names, if this source may still resolve to it.
    fn recorded_pin(&self, _recorded: &Self) -> Option<Self::Pin> {
        None
    }

    /// Removes fields that records do not keep because they are long, or because the current spec's value counts: certificates.
    fn remove_certificates(_spec: &mut Self::Spec) {}

    /// This recorded source with the certificates of the current one.
    fn with_certificates_of(self, _current: &Self) -> Self {
        self
    }
}
