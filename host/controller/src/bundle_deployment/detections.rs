//! What provisioners said about the content of BundleDeployments whose spec names no class.
//!
//! An answer depends only on the content and the component. Losing it costs one call.

use std::collections::HashMap;

use chandler_core::Digest;
use chandler_decisions::detection::Answer;
use parking_lot::{Mutex, MutexGuard};

/// The answers about the last content of each BundleDeployment.
#[derive(Default)]
pub(crate) struct Detections(Mutex<HashMap<String, Entry>>);

struct Entry {
    content: Digest,
    /// By the digest of the component.
    answers: HashMap<Digest, Answer>,
}

/// How many components the answers of one BundleDeployment are from: a class that is often updated leaves old ones behind.
const COMPONENTS: usize = 64;

impl Detections {
    /// What a component said about this content.
    pub(super) fn get(&self, name: &str, content: &Digest, component: &Digest) -> Option<Answer> {
        let all = self.all();
        all.get(name).filter(|entry| entry.content == *content)?.answers.get(component).cloned()
    }

    /// Notes it. Answers about other content of the BundleDeployment are forgotten.
    pub(super) fn note(&self, name: &str, content: &Digest, component: &Digest, answer: Answer) {
        let mut all = self.all();
        let fresh = || Entry { content: content.clone(), answers: HashMap::new() };
        let entry = all.entry(name.to_owned()).or_insert_with(fresh);
        if entry.content != *content || entry.answers.len() >= COMPONENTS {
            *entry = fresh();
        }
        entry.answers.insert(component.clone(), answer);
    }

    /// Forgets calls that failed and may succeed the next time.
    pub(super) fn forget_transient(&self, name: &str) {
        if let Some(entry) = self.all().get_mut(name) {
            entry.answers.retain(|_, answer| !matches!(answer, Answer::Failed { is_transient: true, .. }));
        }
    }

    /// Forgets a BundleDeployment.
    pub(crate) fn forget(&self, name: &str) {
        self.all().remove(name);
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_known_for_the_same_content_and_component() {
        let (detections, a, b) = (Detections::default(), Digest::of(b"a"), Digest::of(b"b"));
        let late = Answer::Failed { message: "late".into(), is_transient: true };
        detections.note("one", &a, &a, Answer::NotRecognised);
        detections.note("one", &a, &b, late.clone());
        assert_eq!(detections.get("one", &a, &a), Some(Answer::NotRecognised));
        assert_eq!(detections.get("one", &a, &b), Some(late));
        assert_eq!((detections.get("one", &b, &a), detections.get("two", &a, &a)), (None, None));
        detections.forget_transient("one");
        assert_eq!(detections.get("one", &a, &b), None, "it is asked again");
        detections.note("one", &b, &b, Answer::DeclaresNone);
        assert_eq!(detections.get("one", &a, &a), None, "the content is another one");
        detections.forget("one");
        assert_eq!(detections.get("one", &b, &b), None);
    }
}
