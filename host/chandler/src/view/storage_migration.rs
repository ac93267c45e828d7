//! What `chandler migrate storage` rewrites.

use serde::Serialize;

use super::text::{count, one_line};

/// A CRD whose objects may be stored in an old version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Migrated {
    /// The CRD.
    pub crd: String,
    /// The version in which its objects are stored afterwards.
    pub storage_version: String,
    /// The versions that are removed from `status.storedVersions`.
    pub removed: Vec<String>,
    /// The number of its objects, which are all rewritten.
    pub objects: usize,
}

/// One line for each CRD.
pub fn text(all: &[Migrated]) -> String {
    let line = |crd: &Migrated| {
        let (objects, removed) = (count(crd.objects, "object"), crd.removed.join(", "));
        let Migrated { crd, storage_version, .. } = crd;
        one_line(&format!("{crd}: rewrite {objects} as {storage_version}, remove {removed} from status.storedVersions"))
            + "\n"
    };
    all.iter().map(line).collect()
}

/// What could not be rewritten of a CRD.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// The first objects, each with the reason.
    pub first: Vec<String>,
    /// Their number.
    pub number: usize,
}

impl Refused {
    /// The most objects that are named.
    const NAMED: usize = 5;

    /// Notes an object.
    pub fn add(&mut self, object: &str, why: &str) {
        self.number += 1;
        if self.first.len() < Self::NAMED {
            self.first.push(one_line(&format!("{object}: {why}")));
        }
    }

    /// The objects as causes of an error.
    pub fn causes(&self) -> Vec<String> {
        let mut causes = self.first.clone();
        let more = self.number - self.first.len();
        if more > 0 {
            causes.push(format!("and {more} more"));
        }
        causes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_crd_is_a_line() {
        let crd = Migrated {
            crd: "catalogs.chandler.dev".into(),
            storage_version: "v1".into(),
            removed: vec!["v1alpha1".into(), "v1beta1".into()],
            objects: 1,
        };
        assert_eq!(
            text(&[crd]),
            "catalogs.chandler.dev: rewrite 1 object as v1, remove v1alpha1, v1beta1 from status.storedVersions\n"
        );
        assert_eq!(text(&[]), "");
    }

    #[test]
    fn objects_that_are_refused_are_counted_and_the_first_ones_named() {
        let mut refused = Refused::default();
        (0..7).for_each(|number| refused.add(&format!("o{number}"), "denied\nby a policy"));
        let causes = refused.causes();
        assert_eq!((causes.len(), causes.last().unwrap().as_str()), (6, "and 2 more"));
        assert!(causes[0].starts_with("o0: denied") && !causes[0].contains('\n'), "{causes:?}");
    }
}
