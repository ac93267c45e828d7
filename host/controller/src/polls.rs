//! Asks now and then what the tags of images stand for.
//!
//! A BundleDeployment is looked at only where its tag stands for something else, or where the registry refuses to tell: most
//! tags never move, and a look at a thousand BundleDeployments is work for the API server, too.

use std::time::Duration;

use chandler_api::BundleDeployment;
use chandler_content::{FailureClass, ImageReference, ResolvedImage};
use futures::{StreamExt as _, stream};
use kube::runtime::reflector::{ObjectRef, Store as Reflected};
use tokio::sync::mpsc;

use crate::{
    bundle_deployment::{Guarded, image_access},
    context::Context,
    memory::Resolution,
};

/// How many tags are asked for at the same time.
const CONCURRENCY: usize = 4;
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
pub(crate) async fn run(
    deployments: Reflected<Guarded>,
    triggers: mpsc::UnboundedSender<ObjectRef<BundleDeployment>>,
    context: &Context,
) {
    loop {
        let (due, next) = context.memory.resolutions.due(context.options.image_poll_interval);
        stream::iter(due)
            .for_each_concurrent(CONCURRENCY, |(name, resolution)| {
                let (deployments, triggers) = (&deployments, &triggers);
                async move {
                    if poll(&name, &resolution, deployments, context).await {
                        context.memory.stalled.clear(&name);
                        let _ = triggers.send(ObjectRef::new(&name));
                    }
                }
            })
            .await;
        tokio::time::sleep(next.max(PAUSE)).await;
    }
}

/// Asks for one tag; whether its BundleDeployment is to be looked at.
async fn poll(name: &str, asked: &Resolution, deployments: &Reflected<Guarded>, context: &Context) -> bool {
    let resolutions = &context.memory.resolutions;
    if !is_wanted(name, asked, deployments) {
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

/// Whether a BundleDeployment still has this source and is not suspended.
fn is_wanted(name: &str, asked: &Resolution, deployments: &Reflected<Guarded>) -> bool {
    let Some(guarded) = deployments.get(&ObjectRef::new(name)) else { return false };
    let Ok(deployment) = &guarded.0 else { return false };
    !deployment.spec.suspend && deployment.spec.source.image.as_ref() == Some(&asked.source)
}

async fn ask(name: &str, asked: &Resolution, context: &Context) -> Answer {
    let Ok(reference) = asked.source.reference.parse::<ImageReference>() else { return Answer::Refused };
    let Ok(access) = image_access(&asked.source, &reference, context).await else { return Answer::Refused };
    match context.images.resolve(&reference, &access).await {
        Ok(resolved) => Answer::Image(resolved),
        Err(error) if error.class() == FailureClass::Transient => {
            tracing::warn!(deployment = name, image = %reference, %error, "the registry is away; the digest in use stays");
            Answer::Away
        }
        Err(_) => Answer::Refused,
    }
}
