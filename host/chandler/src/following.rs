//! Following a BundleDeployment until nothing more happens by itself.

use std::time::Duration;

use chandler_api::BundleDeployment;
use futures::StreamExt as _;
use kube::{Api, Client, runtime::watcher};

use crate::{
    live,
    narration::{Narrator, Standing},
    progress::Progress,
    text::count,
    tree,
};

/// How often the objects are counted while they become healthy.
const COUNT: Duration = Duration::from_secs(1);

/// Reports what becomes of a BundleDeployment until it is healthy or has failed. `last` holds how it stood at each time.
pub async fn follow(client: &Client, name: &str, progress: &mut Progress, last: &mut Standing) -> Standing {
    let deployments: Api<BundleDeployment> = Api::all(client.clone());
    let mut states = watcher::watch_object(deployments, name).boxed();
    let mut narrator = Narrator::default();
    let mut current = None;
    let mut tick = tokio::time::interval(COUNT);
    loop {
        tokio::select! {
            state = states.next() => match state {
                Some(Ok(Some(deployment))) => {
                    let (steps, standing) = narrator.observe(&deployment);
                    for step in steps {
                        progress.step(step.label, &step.text);
                    }
                    match standing {
                        Standing::Waiting { ref message, .. } => {
                            progress.wait(message);
                            *last = standing;
                        }
                        end => return end,
                    }
                    current = Some(deployment);
                }
                // Deleted, not there yet, or mistyped.
                Some(Ok(None)) => {
                    let message = format!("BundleDeployment {name} does not exist; waiting until it is created");
                    progress.step("absent", &message);
                    (current, *last) = (None, Standing::Waiting { message, reason: None });
                }
                Some(Err(error)) => tracing::debug!(%error, "the watch was interrupted"),
                None => return futures::future::pending().await,
            },
            _ = tick.tick(), if progress.terminal().is_interactive() => {
                if let (Some(deployment), Standing::Waiting { message, .. }) = (&current, &*last) {
                    let members = live::members(client, deployment).await;
                    let (healthy, all) = tree::healthy(&members.objects);
                    progress.wait(&format!("{healthy} of {} healthy; {message}", count(all, "object")));
                }
            }
        }
    }
}
