//! Asks now and then what the tags of images stand for.
//!
//! A BundleDeployment is looked at only where its tag stands for something else, or where the registry refuses to tell: most
//! tags never move, and a look at a thousand BundleDeployments is work for the API server, too.

use std::time::Duration;

use chandler_api::{BundleDeployment, ImageSource};
use chandler_content::{FailureClass, ImageReference, ResolvedImage};
use chandler_permissions::AccountPolicy;
use futures::{StreamExt as _, stream};
use kube::runtime::reflector::ObjectRef;

use crate::{
    bundle_deployment::{account, image_access},
    context::Context,
    memory::Resolution,
};

/// How many tags are asked for at the same time: so many that registries that do not answer leave room for others, of which
/// each is asked by a few at once.
const CONCURRENCY: usize = 64;
/// How long one answer is waited for.
const PATIENCE: Duration = Duration::from_mins(1);
/// The least time between two rounds.
const PAUSE: Duration = Duration::from_secs(1);

/// What a registry said of a tag that was asked for before.
enum Answer {
    /// It stands for this now.
    Image(ResolvedImage),
    /// It could not be reached.
    Away,
    /// It refuses to tell, or what the question depends on is wrong.
    Refused,
}

/// Asks at the interval for images. Never ends.
pub(crate) async fn run(context: &Context) {
    loop {
        let (due, next) = context.memory.resolutions.due(context.options.image_poll_interval);
        stream::iter(due)
            .for_each_concurrent(CONCURRENCY, |(name, resolution)| async move {
                if poll(&name, &resolution, context).await {
                    context.memory.try_again(&name);
                    context.wake(&name);
                }
            })
            .await;
        tokio::time::sleep(next.max(PAUSE)).await;
    }
}

/// Asks for one tag; whether its BundleDeployment is to be looked at.
async fn poll(name: &str, asked: &Resolution, context: &Context) -> bool {
    let resolutions = &context.memory.resolutions;
    if !is_wanted(name, asked, context) {
        resolutions.renew(name, asked, None);
        return false;
    }
    match ask(name, asked, context).await {
        Answer::Image(now) if now == asked.resolved => {
            resolutions.renew(name, asked, Some(now));
            false
        }
        Answer::Image(now) => {
            tracing::info!(deployment = name, image = %now.pinned(), "the tag stands for another image");
            resolutions.renew(name, asked, Some(now))
        }
        // What is in use stays in use.
        Answer::Away => {
            resolutions.renew(name, asked, Some(asked.resolved.clone()));
            false
        }
        // The next look asks again and says why.
        Answer::Refused => resolutions.renew(name, asked, None),
    }
}

/// Whether there is a BundleDeployment that still wants to know.
fn is_wanted(name: &str, asked: &Resolution, context: &Context) -> bool {
    let guarded = context.deployments.get(&ObjectRef::new(name));
    let deployment = guarded.as_ref().and_then(|guarded| guarded.0.as_ref().ok());
    deployment.is_some_and(|deployment| wants(deployment, &asked.source, &context.options.accounts))
}

/// Whether a BundleDeployment has this source, and is neither suspended nor refused for want of an account.
fn wants(deployment: &BundleDeployment, source: &ImageSource, policy: &AccountPolicy) -> bool {
    let installed = !deployment.spec.suspend && account(deployment, policy).is_ok();
    installed && deployment.spec.source.image.as_ref() == Some(source)
}

async fn ask(name: &str, asked: &Resolution, context: &Context) -> Answer {
    let Ok(reference) = asked.source.reference.parse::<ImageReference>() else { return Answer::Refused };
    let Ok(access) = image_access(name, &asked.source, &reference, context).await else { return Answer::Refused };
    let Ok(answer) = tokio::time::timeout(PATIENCE, context.images.resolve(&reference, &access)).await else {
        tracing::warn!(deployment = name, image = %reference, "the registry does not answer; the digest in use stays");
        return Answer::Away;
    };
    match answer {
        Ok(resolved) => Answer::Image(resolved),
        Err(error) if error.class() == FailureClass::Transient => {
            tracing::warn!(deployment = name, image = %reference, %error, "the registry is away; the digest in use stays");
            Answer::Away
        }
        Err(_) => Answer::Refused,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_tag_is_asked_for_only_on_behalf_of_what_may_be_installed() {
        let source = ImageSource { reference: "registry.example.com/a:v1".into(), ..ImageSource::default() };
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
                [AccountPolicy::Optional, AccountPolicy::Required].map(|policy| wants(&deployment, &source, &policy));
            assert_eq!(wanted, [optional, required], "{more}");
        }
    }
}
