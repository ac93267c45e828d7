//! Mirrors that the cluster sets: ImageDigestMirrorSets and ImageTagMirrorSets of OpenShift.
//!
//! They are read before anything is pulled, since they can forbid contacting a source, and then watched. A kind that the cluster does not
//! serve has no objects.

use std::{collections::BTreeMap, str::FromStr, time::Duration};

use chandler_client::Availability;
use chandler_content::RegistrySettings;
use chandler_registries::{
    Registries,
    mirror_sets::{Kind, Spec},
};
use futures::future::select_all;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams},
};
use serde::Deserialize as _;

use crate::dynamic;

/// The pause before the controller tries again to watch a kind.
const REFUSED: Duration = Duration::from_mins(1);

/// A kind of mirror sets that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MirrorSets {
    /// ImageDigestMirrorSets.
    ImageDigest,
    /// ImageTagMirrorSets.
    ImageTag,
}

/// A text that is not the name of a kind of mirror sets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is neither imagedigestmirrorsets nor imagetagmirrorsets")]
pub struct UnknownMirrorSets;

impl FromStr for MirrorSets {
    type Err = UnknownMirrorSets;

    fn from_str(text: &str) -> Result<Self, UnknownMirrorSets> {
        match text {
            "imagedigestmirrorsets" => Ok(Self::ImageDigest),
            "imagetagmirrorsets" => Ok(Self::ImageTag),
            _ => Err(UnknownMirrorSets),
        }
    }
}

impl MirrorSets {
    /// The kind, for messages.
    fn plural(self) -> &'static str {
        match self {
            Self::ImageDigest => "ImageDigestMirrorSets",
            Self::ImageTag => "ImageTagMirrorSets",
        }
    }

    fn api(self, client: &Client) -> Api<DynamicObject> {
        let (kind, plural) = match self {
            Self::ImageDigest => ("ImageDigestMirrorSet", "imagedigestmirrorsets"),
            Self::ImageTag => ("ImageTagMirrorSet", "imagetagmirrorsets"),
        };
        let kind = GroupVersionKind::gvk("config.openshift.io", "v1", kind);
        Api::all_with(client.clone(), &ApiResource::from_gvk_with_plural(&kind, plural))
    }

    fn kind(self) -> Kind {
        match self {
            Self::ImageDigest => Kind::Digest,
            Self::ImageTag => Kind::Tag,
        }
    }
}

/// Keeps the settings for registries equal to a file and the cluster.
pub(crate) struct ClusterMirrors {
    client: Client,
    availability: Availability,
    /// What the file sets.
    base: Registries,
    settings: RegistrySettings,
    /// Where to continue to watch each kind that the cluster serves.
    kinds: BTreeMap<MirrorSets, Option<String>>,
    /// The objects by kind.
    sets: BTreeMap<MirrorSets, Vec<Spec>>,
}

impl ClusterMirrors {
    /// The mirrors of these kinds, which are added to the mirrors of `base` in the settings of the pulls. Makes no request yet.
    pub(crate) fn new(
        client: &Client,
        availability: &Availability,
        (base, kinds): (&Registries, &[MirrorSets]),
        settings: RegistrySettings,
    ) -> Self {
        Self {
            client: client.clone(),
            availability: availability.clone(),
            base: base.clone(),
            settings,
            kinds: kinds.iter().map(|kind| (*kind, None)).collect(),
            sets: BTreeMap::new(),
        }
    }

    /// Reads all objects, and applies them.
    ///
    /// # Errors
    /// With the kind, if a kind that the cluster serves cannot be listed.
    pub(crate) async fn read(&mut self) -> Result<(), (&'static str, kube::Error)> {
        for (kind, version) in &mut self.kinds {
            let listed = dynamic::list(&kind.api(&self.client), &ListParams::default()).await;
            let (objects, at) = listed.map_err(|error| (kind.plural(), error))?;
            *version = at;
            self.sets.insert(*kind, specs(objects));
        }
        let all = self.sets.iter().flat_map(|(kind, specs)| specs.iter().map(|spec| (kind.kind(), spec.clone())));
        let (registries, problems) = self.base.with_mirror_sets(&all.collect::<Vec<_>>());
        for problem in problems {
            tracing::warn!(problem, "part of a mirror set of the cluster is not used");
        }
        self.settings.set(registries);
        Ok(())
    }

    /// Applies changes. Never ends.
    pub(crate) async fn run(mut self) {
        if self.kinds.is_empty() {
            return std::future::pending().await;
        }
        loop {
            let watches = self.kinds.iter().map(|(kind, version)| Box::pin(self.changed(*kind, version.clone())));
            select_all(watches).await;
            while let Err((kind, error)) = self.read().await {
                tracing::warn!(kind, %error, "mirror sets cannot be read; those that were read last are used");
                self.availability.pause(REFUSED, REFUSED).await;
            }
        }
    }

    /// Waits for a change of an object, or until it is time to look whether the cluster serves the kind.
    async fn changed(&self, kind: MirrorSets, version: Option<String>) {
        if let Some(version) = version {
            match dynamic::change(&kind.api(&self.client), &version).await {
                Ok(()) => return,
                Err(error) => tracing::debug!(kind = kind.plural(), %error, "the watch was interrupted"),
            }
        }
        self.availability.pause(REFUSED, REFUSED).await;
    }
}

/// The specs of objects. An object that cannot be decoded is reported and skipped.
fn specs(objects: Vec<DynamicObject>) -> Vec<Spec> {
    let spec = |object: DynamicObject| match object.data.get("spec").map(Spec::deserialize)? {
        Ok(spec) => Some(spec),
        Err(error) => {
            tracing::warn!(name = object.metadata.name, %error, "a mirror set cannot be decoded");
            None
        }
    };
    objects.into_iter().filter_map(spec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_the_names_of_resources() {
        assert_eq!("imagedigestmirrorsets".parse(), Ok(MirrorSets::ImageDigest));
        assert_eq!("imagetagmirrorsets".parse(), Ok(MirrorSets::ImageTag));
        assert_eq!("ImageTagMirrorSet".parse::<MirrorSets>(), Err(UnknownMirrorSets));
    }
}
