//! Detect: asks the classes which of them recognises the content, if the spec does not name one.
//!
//! Classes are asked in the order of their priority, and classes with one priority at the same time; classes below the first priority that
//! recognises the content are not asked. A component's answer depends only on the content, so it is kept, and a reconcile that changes
//! nothing calls no plugin. A component that is quarantined is treated as a class that is not ready, and a call that fails counts towards a
//! quarantine.
//!
//! An installed release keeps its class. Classes with a higher priority are asked only to warn that they would be chosen for a new
//! installation.

use std::{sync::Arc, time::Duration};

use chandler_api::{BundleDeployment, BundleWarning};
use chandler_content::Tree;
use chandler_core::{Content, Digest};
use chandler_decisions::{
    account::requester,
    detection::{self, Answer, Detected, Incumbent, Opinion, Own, Undecided},
    quarantine::{self, Call, Purpose},
};
use chandler_engine::{CallError, Limits, Retry};
use chandler_turns::Requester;
use futures::future::join_all;
use kube::ResourceExt as _;

use super::{
    super::{detections::Detections, handles::DetectHandles},
    class::{self, ResolvedClass},
    render,
};
use crate::provisioner_class::{Calls, Class, NotReady, Offer};

/// The maximum time that one class may look at the content: it reads names and a few small files.
const TIME: Duration = Duration::from_secs(5);

/// A class, and what its author should know about the choice.
pub(super) struct DetectedClass {
    pub(super) class: ResolvedClass,
    pub(super) warning: Option<BundleWarning>,
}

/// The class that renders the content.
pub(super) async fn detect(
    handles: &DetectHandles<'_>,
    deployment: &BundleDeployment,
    tree: &Tree,
) -> Result<DetectedClass, Undecided> {
    let (name, digest) = (deployment.name_any(), tree.digest());
    let offers = offers(handles).await;
    let content: Arc<dyn Content> = Arc::new(tree.clone());
    let requester = &requester(deployment, handles.accounts);
    let (detections, calls) = (handles.detections, handles.calls);
    let counted = &quarantine::requester(requester, handles.accounts);
    let asking = Asking { detections, calls, name: &name, digest, content: &content, requester, counted };
    let found = match Incumbent::of(deployment, digest.as_str()) {
        Some(incumbent) => asking.installed(incumbent, &offers).await,
        None => asking.new_installation(&offers).await,
    };
    if found.is_err() {
        // The next try asks the classes again that may answer then.
        handles.detections.forget_transient(&name);
    }
    found
}

/// The classes that may be detected, with the highest priority first. Classes with foreign prefixes belong to other provisioners.
async fn offers(handles: &DetectHandles<'_>) -> Vec<Offer> {
    let mut offers = handles.classes.offers().await;
    let is_foreign = |offer: &Offer| handles.foreign.iter().any(|prefix| offer.name.starts_with(prefix.as_str()));
    offers.retain(|offer| !is_foreign(offer));
    offers.sort_by_key(|offer| std::cmp::Reverse(offer.priority));
    offers
}

/// The input of a detection.
struct Asking<'a> {
    detections: &'a Detections,
    calls: &'a Calls,
    /// The BundleDeployment.
    name: &'a str,
    digest: &'a Digest,
    content: &'a Arc<dyn Content>,
    /// On whose behalf the classes are asked.
    requester: &'a Requester,
    /// Who that is for the quarantine.
    counted: &'a str,
}

impl Asking<'_> {
    /// The class of an installed release, which stays.
    async fn installed(&self, incumbent: Incumbent<'_>, offers: &[Offer]) -> Result<DetectedClass, Undecided> {
        let offer = offers.iter().find(|offer| offer.name == incumbent.class());
        let own = match offer {
            None => Own::Gone,
            Some(Offer { class: Ok(_), .. }) if incumbent.is_settled() => Own::Unasked,
            Some(offer) => Own::Answered(self.opinion(offer).await.answer),
        };
        let kept = if let Ok(format) = detection::keep(incumbent, &own, &[]) {
            format
        } else {
            // The error names the classes that could render it.
            let others: Vec<&Offer> = offers.iter().filter(|other| other.name != incumbent.class()).collect();
            detection::keep(incumbent, &own, &self.opinions(&others).await)?
        };
        let Some(offer) = offer else { return Err(Undecided::Unrecognised { opinions: Vec::new() }) };
        let class = usable(offer, kept)?;
        let higher: Vec<&Offer> = offers.iter().filter(|other| other.priority > offer.priority).collect();
        // They decide nothing, so all are asked at once.
        let higher = join_all(higher.into_iter().map(|offer| self.opinion(offer))).await;
        Ok(DetectedClass { class, warning: detection::outranked(&offer.name, &higher) })
    }

    async fn new_installation(&self, offers: &[Offer]) -> Result<DetectedClass, Undecided> {
        let opinions = self.opinions(&offers.iter().collect::<Vec<_>>()).await;
        let Detected { class, format } = detection::choose(&opinions)?;
        let format = Some(format.to_owned());
        match offers.iter().find(|offer| offer.name == class) {
            Some(offer) => Ok(DetectedClass { class: usable(offer, format)?, warning: None }),
            None => Err(Undecided::Unrecognised { opinions }),
        }
    }

    /// The opinions of these classes, down to the first priority that recognises the content.
    async fn opinions(&self, offers: &[&Offer]) -> Vec<Opinion> {
        let mut opinions = Vec::with_capacity(offers.len());
        for level in offers.chunk_by(|one, other| one.priority == other.priority) {
            opinions.extend(join_all(level.iter().map(|offer| self.opinion(offer))).await);
            if detection::suffices(&opinions) {
                break;
            }
        }
        opinions
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
        if let Some(known) = self.detections.get(self.name, self.digest, component) {
            return known;
        }
        let inputs = Digest::of_json(&("detect", self.digest, component));
        let (deployment, requester) = (self.name, self.counted);
        let call = Call { deployment, requester, inputs: &inputs, purpose: Purpose::Detect };
        // Built-in components have no quarantine. A component that is not asked is not noted, so that it is asked once that is over.
        let pass = match class.artifact.is_some().then(|| self.calls.admit(name, component, call)).transpose() {
            Ok(pass) => pass,
            Err(quarantined) => return Answer::NotReady(quarantined.to_string()),
        };
        let looked = ask(class, self.content, self.requester).await;
        match (pass, &looked) {
            (Some(pass), Err(error)) if render::is_failure(error) => pass.failed_to_look(),
            (Some(pass), Ok(_)) => pass.looked(),
            _ => {}
        }
        let answer = match looked {
            Ok(None) => Answer::NotRecognised,
            Ok(Some(format)) if class.provisioner.facts().formats.contains(&format) => Answer::Recognised(format),
            Ok(Some(format)) => Answer::Undeclared(format),
            Err(error) => Answer::Failed { message: error.to_string(), is_transient: error.retry() != Retry::OnChange },
        };
        self.detections.note(self.name, self.digest, component, answer.clone());
        answer
    }
}

/// A class that is ready: other classes have no answer, and need not be asked.
fn usable(offer: &Offer, format: Option<String>) -> Result<ResolvedClass, Undecided> {
    match &offer.class {
        Ok(class) => Ok(class::resolved(&offer.name, class.clone(), format)),
        Err(_) => Err(Undecided::Loading(vec![offer.name.clone()])),
    }
}

/// Calls the component of a class.
async fn ask(class: &Class, content: &Arc<dyn Content>, requester: &Requester) -> Result<Option<String>, CallError> {
    let limits = Limits { time: class.limits.time.min(TIME), ..class.limits.clone() };
    class.provisioner.on_behalf_of(requester).detect(Arc::clone(content), &limits).await
}
