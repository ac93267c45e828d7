//! Detect: asks the classes which of them recognises the content, where the spec names none.
//!
//! Classes with a higher priority are asked first, those of one priority at once, and those below the first that recognises the content
//! are not asked. A component answers from the content alone, so its answer is kept, and a reconcile that changes nothing calls no plugin.

use std::{sync::Arc, time::Duration};

use chandler_api::BundleDeployment;
use chandler_content::Tree;
use chandler_core::{Content, Digest};
use chandler_engine::{Limits, Retry};
use futures::future::join_all;
use kube::ResourceExt as _;

use super::{
    super::{
        decide::detection::{self, Answer, Detected, Incumbent, Opinion, Undecided},
        detections::Detections,
        handles::DetectHandles,
    },
    class::{self, ResolvedClass},
};
use crate::provisioner_class::{Class, NotReady, Offer};

/// The longest that one class looks at the content: it reads names and a few small files.
const TIME: Duration = Duration::from_secs(5);

/// The class that renders the content.
pub(super) async fn detect(
    handles: &DetectHandles<'_>,
    deployment: &BundleDeployment,
    tree: &Tree,
) -> Result<ResolvedClass, Undecided> {
    let (name, digest) = (deployment.name_any(), tree.digest());
    let offers = offers(handles).await;
    let priority = |class: &str| offers.iter().find(|offer| offer.name == class).map(|offer| offer.priority);
    let incumbent = Incumbent::of(deployment, digest.as_str(), priority);
    let content: Arc<dyn Content> = Arc::new(tree.clone());
    let asking = Asking { detections: handles.detections, name: &name, digest, content: &content, incumbent };
    let mut opinions = Vec::with_capacity(offers.len());
    for level in offers.chunk_by(|one, other| one.priority == other.priority) {
        opinions.extend(asking.level(level).await);
        if detection::suffices(&opinions) {
            break;
        }
    }
    let chosen = detection::choose(&opinions, incumbent);
    if chosen.is_err() {
        // The next try asks those again that may answer then.
        handles.detections.forget_transient(&name);
    }
    let Detected { class, format } = chosen?;
    let offer = offers.iter().find(|offer| offer.name == class);
    match offer.and_then(|offer| offer.class.as_ref().ok()) {
        Some(found) => Ok(class::detected(class, found.clone(), format)),
        // Only a class that is ready recognises anything.
        None => Err(Undecided::Unrecognised { opinions }),
    }
}

/// The classes among which that of the content is, with the highest priority first. Other provisioners have those with foreign prefixes.
async fn offers(handles: &DetectHandles<'_>) -> Vec<Offer> {
    let mut offers = handles.classes.offers().await;
    let is_foreign = |offer: &Offer| handles.foreign.iter().any(|prefix| offer.name.starts_with(prefix.as_str()));
    offers.retain(|offer| !is_foreign(offer));
    offers.sort_by_key(|offer| std::cmp::Reverse(offer.priority));
    offers
}

/// What classes are asked about.
struct Asking<'a> {
    detections: &'a Detections,
    /// The BundleDeployment.
    name: &'a str,
    digest: &'a Digest,
    content: &'a Arc<dyn Content>,
    incumbent: Option<Incumbent<'a>>,
}

impl Asking<'_> {
    /// The opinions of classes of one priority. That of the installed release decides among them, so it is asked first.
    async fn level(&self, offers: &[Offer]) -> Vec<Opinion> {
        if let Some(installed) = offers.iter().find(|offer| self.incumbent.is_some_and(|it| it.is_class(&offer.name))) {
            let opinion = self.opinion(installed).await;
            if detection::suffices(std::slice::from_ref(&opinion)) {
                return vec![opinion];
            }
        }
        join_all(offers.iter().map(|offer| self.opinion(offer))).await
    }

    async fn opinion(&self, offer: &Offer) -> Opinion {
        let answer = match &offer.class {
            Ok(class) => self.answer(&offer.name, class).await,
            Err(NotReady::Loading) => Answer::Loading,
            Err(NotReady::Failed(message)) => Answer::NotReady(message.clone()),
        };
        let Offer { name, priority, is_builtin, .. } = offer;
        Opinion { class: name.clone(), priority: *priority, is_builtin: *is_builtin, answer }
    }

    async fn answer(&self, name: &str, class: &Class) -> Answer {
        let component = class.provisioner.digest();
        if class.provisioner.facts().formats.is_empty() {
            return Answer::DeclaresNone;
        }
        if let Some(recorded) = self.incumbent.and_then(|incumbent| incumbent.recorded(name, component.as_str())) {
            return recorded;
        }
        if let Some(known) = self.detections.get(self.name, self.digest, component) {
            return known;
        }
        let answer = ask(class, self.content).await;
        self.detections.note(self.name, self.digest, component, answer.clone());
        answer
    }
}

/// Calls the component of a class.
async fn ask(class: &Class, content: &Arc<dyn Content>) -> Answer {
    let limits = Limits { time: class.limits.time.min(TIME), ..class.limits.clone() };
    match class.provisioner.detect(Arc::clone(content), &limits).await {
        Ok(None) => Answer::NotRecognised,
        Ok(Some(format)) if class.provisioner.facts().formats.contains(&format) => Answer::Recognised(format),
        Ok(Some(format)) => Answer::Undeclared(format),
        Err(error) => Answer::Failed { message: error.to_string(), is_transient: error.retry() != Retry::OnChange },
    }
}
