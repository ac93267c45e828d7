//! Pending changes, and approving them.

use chandler_api::{BundleDeployment, ChangeApproval, PendingChange};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::{Api, api::PostParams};

use crate::World;

impl World {
    /// Waits until a change is pending approval, and returns it.
    pub async fn pending(&self, name: &str) -> PendingChange {
        let deployment = self.condition(name, "Progressing", "False", "ApprovalRequired").await;
        deployment.status.and_then(|status| status.pending_change).expect("a pending change")
    }

    /// Approves a change, as `chandler approve` does.
    pub async fn approve(&self, name: &str, change: &str) -> ChangeApproval {
        let deployment: BundleDeployment = self.deployments().get(name).await.expect("the BundleDeployment");
        let approval =
            ChangeApproval::of(&deployment, change, &self.user().await, None).expect("a stored BundleDeployment");
        self.approvals().create(&PostParams::default(), &approval).await.expect("the approval is accepted")
    }

    /// All approvals.
    pub fn approvals(&self) -> Api<ChangeApproval> {
        Api::all(self.client.clone())
    }

    /// The user name of the test, as the API server authenticates it.
    pub async fn user(&self) -> String {
        let reviews: Api<SelfSubjectReview> = Api::all(self.client.clone());
        let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await.expect("an answer");
        review.status.and_then(|status| status.user_info?.username).expect("a user")
    }
}
