//! The inputs of a decision: the objects, the time, and the simulated behaviour.

use std::{collections::HashMap, time::Duration};

use serde_json::Value;
use time::OffsetDateTime;

use super::{
    behaviour::Behaviour,
    cache::Cache,
    fields::{controller, count, label, text},
    kind::{Key, Kind},
    revision,
    rules::{Rules, Step},
    template::same_template,
};
use crate::{clock, metadata};

/// The world as a decision sees it.
pub(super) struct World<'a> {
    pub(super) cache: &'a Cache,
    pub(super) rules: &'a Rules,
    pub(super) now: OffsetDateTime,
    /// Why the last attempt to create something for an object was refused.
    pub(super) refusals: &'a HashMap<Key, String>,
}

impl<'a> World<'a> {
    /// The current time in the format of objects.
    pub(super) fn timestamp(&self) -> String {
        clock::seconds(self.now)
    }

    /// How long ago something was; zero when that is not known or lies ahead.
    pub(super) fn since(&self, time: Option<OffsetDateTime>) -> Duration {
        time.and_then(|time| Duration::try_from(self.now - time).ok()).unwrap_or_default()
    }

    /// The controller of an object, when it exists.
    pub(super) fn controller(&self, object: &Value) -> Option<(Kind, &'a Value)> {
        let reference = controller(object)?;
        let kind = Kind::of_reference(reference)?;
        let owner = self.cache.find(kind, metadata::namespace(object), text(reference, "/name"))?;
        (metadata::uid(owner) == text(reference, "/uid")).then_some((kind, owner.as_ref()))
    }

    /// The simulated behaviour of an object.
    pub(super) fn behaviour(&self, kind: Kind, object: &Value) -> Behaviour {
        self.ruled(kind, object)
            .or_else(|| self.annotated(kind, object))
            .unwrap_or_else(|| Behaviour::of_images(object))
    }

    /// How long a step takes an object.
    pub(super) fn delay(&self, step: Step, kind: Kind, object: &Value) -> Duration {
        self.nearest(kind, object, |kind, namespace, name| self.rules.delay_of(step, kind, namespace, name))
            .unwrap_or_default()
    }

    fn ruled(&self, kind: Kind, object: &Value) -> Option<Behaviour> {
        self.nearest(kind, object, |kind, namespace, name| self.rules.behaviour(kind, namespace, name))
    }

    /// The behaviour that is set for an object, or else for its owner.
    fn nearest<T>(&self, kind: Kind, object: &Value, read: impl Fn(&str, &str, &str) -> Option<T>) -> Option<T> {
        let (mut kind, mut object) = (kind, object);
        loop {
            let found = read(kind.name(), metadata::namespace(object), metadata::name(object));
            if found.is_some() {
                return found;
            }
            (kind, object) = self.controller(object)?;
        }
    }

    /// The behaviour in the annotations of the object or its Pod template, or of the workload that runs its current revision.
    /// The behaviour of a new revision does not affect Pods of earlier ones.
    fn annotated(&self, kind: Kind, object: &Value) -> Option<Behaviour> {
        let (own, template) = (Behaviour::annotated(object), object.pointer("/spec/template"));
        let stated = own.or_else(|| template.and_then(Behaviour::annotated));
        if kind != Kind::Pod || stated.is_some() {
            return stated;
        }
        let (kind, owner) = self.controller(object)?;
        match kind {
            Kind::ReplicaSet => match self.controller(owner) {
                Some((Kind::Deployment, deployment))
                    if same_template(owner.pointer("/spec/template"), deployment.pointer("/spec/template")) =>
                {
                    Behaviour::annotated(deployment)
                }
                _ => Behaviour::annotated(owner),
            },
            Kind::StatefulSet | Kind::DaemonSet => {
                let present = self.cache.controlled(Kind::ControllerRevision, metadata::uid(owner));
                let present = present.iter().max_by_key(|revision| count(revision, "/revision"));
                let hash = label(object, revision::HASH_LABEL);
                let of_present = present.is_none_or(|revision| revision::is_named(kind, revision, hash));
                Behaviour::annotated(owner).filter(|_| of_present)
            }
            _ => Behaviour::annotated(owner),
        }
    }

    /// The objects of a kind that an object controls and that are not being deleted.
    pub(super) fn living(&self, kind: Kind, owner: &Value) -> Vec<&'a Value> {
        let controlled = self.cache.controlled(kind, metadata::uid(owner)).into_iter().map(AsRef::as_ref);
        controlled.filter(|object| !metadata::is_deleting(object)).collect()
    }

    /// The objects of a kind in a namespace without a controller.
    pub(super) fn orphans(&self, kind: Kind, namespace: &str) -> impl Iterator<Item = &'a Value> {
        let all = self.cache.orphans(kind, namespace).into_iter().map(AsRef::as_ref);
        all.filter(|object| !metadata::is_deleting(object))
    }
}
