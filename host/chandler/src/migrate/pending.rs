//! A migration that has begun: an annotation of the BundleDeployment lists the objects that are deleted once it has adopted what runs.
//! So a second run of the command continues, also when the objects that the first one read are gone.

use chandler_api::BundleDeployment;
use kube::ResourceExt as _;

use super::ForeignObject;

/// The annotation.
pub const ANNOTATION: &str = "migrate.chandler.dev/detach";

/// Lists, in a BundleDeployment that is not created yet, the objects that are deleted once it has adopted what they manage.
pub fn begin(deployment: &mut BundleDeployment, managers: &[ForeignObject]) {
    // Objects with text fields always have a JSON form.
    let list = serde_json::to_string(managers).unwrap_or_default();
    deployment.annotations_mut().insert(ANNOTATION.to_owned(), list);
}

/// The objects to delete for a BundleDeployment whose migration has begun.
pub fn managers(deployment: &BundleDeployment) -> Option<Vec<ForeignObject>> {
    serde_json::from_str(deployment.annotations().get(ANNOTATION)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_migration_that_has_begun_is_recognized() {
        let mut deployment = BundleDeployment::default();
        assert_eq!(managers(&deployment), None);
        let manager = ForeignObject {
            api_version: "operators.coreos.com/v1alpha1".to_owned(),
            kind: "Subscription".to_owned(),
            namespace: Some("a".to_owned()),
            name: "b".to_owned(),
            uid: "1".to_owned(),
        };
        begin(&mut deployment, std::slice::from_ref(&manager));
        assert!(!deployment.spec.suspend, "the controller checks and adopts before anything is deleted");
        assert_eq!(managers(&deployment), Some(vec![manager]));
        deployment.annotations_mut().insert(ANNOTATION.to_owned(), "{".to_owned());
        assert_eq!(managers(&deployment), None);
    }
}
