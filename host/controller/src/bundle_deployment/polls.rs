//! Resolves sources that can move again, at an interval.
//!
//! A BundleDeployment is reconciled only if its source moved, or if the server refuses the request: most tags never move, and
//! reconciling a thousand BundleDeployments also costs requests to the API server.

use std::time::Duration;

use chandler_api::BundleDeployment;
use chandler_decisions::account::{account, recorded, requester};
use chandler_permissions::AccountPolicy;
use chandler_source::{Resolution, Source, Sources};
use chandler_turns::{Requester, Rotation};
use futures::{StreamExt as _, stream};

use super::preparer::Preparer;
use crate::signals::Signal;

/// How many sources are polled at the same time: enough that unresponsive servers leave room for the others, since few requests to one
/// server run at once.
pub(super) const CONCURRENCY: usize = 64;
/// The least time between two rounds.
const PAUSE: Duration = Duration::from_secs(1);

/// Polls at the interval for images. Never ends.
pub(crate) async fn run(preparer: &Preparer) {
    loop {
        let (due, next) = preparer.memory.resolutions.due(preparer.cluster.options.image_poll_interval);
        // Requesters take turns: the unresponsive servers of one requester delay each other requester by one poll.
        let mut queue = Rotation::default();
        for (name, resolution) in due {
            let requester = requester_of(&name, preparer);
            queue.push(&requester, (name, resolution));
        }
        stream::iter(std::iter::from_fn(|| queue.pop()))
            .for_each_concurrent(CONCURRENCY, |(name, resolution)| async move {
                if poll(&name, &resolution, preparer).await {
                    preparer.signals.send(Signal::DeploymentInputChanged(&name));
                }
            })
            .await;
        tokio::time::sleep(next.max(PAUSE)).await;
    }
}

/// Polls one source. Returns whether its BundleDeployment must be reconciled.
pub(super) async fn poll(name: &str, asked: &Resolution, preparer: &Preparer) -> bool {
    let resolutions = &preparer.memory.resolutions;
    let guarded = preparer.deployments.guarded(name);
    let deployment = guarded.as_ref().and_then(|guarded| guarded.0.as_ref().ok());
    let policy = &preparer.cluster.options.accounts;
    let Some(deployment) = deployment.filter(|deployment| wants(deployment, &asked.source, policy)) else {
        resolutions.renew(name, asked, None);
        return false;
    };
    sources_for(deployment, preparer).poll(name, asked, resolutions).await
}

/// The sources for a BundleDeployment, on behalf of its account.
pub(super) fn sources_for(deployment: &BundleDeployment, preparer: &Preparer) -> Sources {
    let policy = &preparer.cluster.options.accounts;
    let sources = preparer.components.sources.on_behalf_of(requester(deployment, policy));
    sources.with_account(recorded(deployment, policy))
}

/// On whose behalf the source of a BundleDeployment is polled. A BundleDeployment that is gone is not polled.
pub(super) fn requester_of(name: &str, preparer: &Preparer) -> Requester {
    let deployment = preparer.deployments.get(name);
    deployment
        .map_or_else(Requester::controller, |deployment| requester(&deployment, &preparer.cluster.options.accounts))
}

/// Whether a BundleDeployment has this source, and is neither suspended nor refused because it names no ServiceAccount.
pub(super) fn wants(deployment: &BundleDeployment, source: &Source, policy: &AccountPolicy) -> bool {
    let installed = !deployment.spec.suspend && account(deployment, policy).is_ok();
    installed && Source::parse(&deployment.spec.source).is_ok_and(|current| current == *source)
}

#[cfg(test)]
mod tests {
    use chandler_api::{BundleSource, ImageSource};
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_source_is_polled_only_for_a_deployment_that_may_be_installed() {
        let image = ImageSource { reference: "registry.example.com/a:v1".into(), ..ImageSource::default() };
        let source = Source::parse(&BundleSource::image(image)).unwrap();
        let deployment = |more: Value| -> BundleDeployment {
            let mut spec = json!({"installNamespace": "shop", "provisionerClassName": "c",
                                  "source": {"type": "image", "image": {"ref": "registry.example.com/a:v1"}}});
            for (field, value) in more.as_object().unwrap() {
                spec[field] = value.clone();
            }
            let object = json!({"apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment",
                                "metadata": {"name": "x"}, "spec": spec});
            serde_json::from_value(object).unwrap()
        };
        let other = json!({"source": {"type": "image", "image": {"ref": "registry.example.com/a:v2"}}});
        for (more, optional, required) in [
            (json!({}), true, false),
            (json!({"serviceAccount": {"name": "deployer"}}), true, true),
            (json!({"serviceAccount": {"name": "deployer"}, "suspend": true}), false, false),
            (other, false, false),
        ] {
            let deployment = deployment(more.clone());
            let wanted =
                [AccountPolicy::OPTIONAL, AccountPolicy::REQUIRED].map(|policy| wants(&deployment, &source, &policy));
            assert_eq!(wanted, [optional, required], "{more}");
        }
    }
}
