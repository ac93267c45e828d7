//! The watch of ProvisionerClasses, and what is loaded before it begins.

use std::{sync::Arc, time::Duration};

use futures::{Future, StreamExt as _, TryStreamExt as _, future::join_all};
use kube::{
    Api, ResourceExt as _,
    runtime::{
        Controller, WatchStreamExt as _,
        controller::Config,
        reflector::{self, Store, reflector},
        watcher,
    },
};

use super::{GuardedClass, load_into, load_last, on_error, reconcile, unreadable};
use crate::{
    context::Context,
    run::{ControllerError, DEBOUNCE},
};

/// How long the start waits for components that are not in the cache.
const PATIENCE: Duration = Duration::from_secs(10);

/// Loads every class once before the first BundleDeployment is looked at, so that a restart does not make those that use
/// one look as if it were missing. What served before a restart serves again at once; a class that cannot be read or had, or a
/// registry that does not answer, does not keep the others waiting.
pub(crate) async fn preload(context: &Context) -> Result<(), ControllerError> {
    let classes: Api<GuardedClass> = Api::all(context.client.clone());
    let classes = classes.list(&context.options.watch_selector.list()).await;
    let classes = classes.map_err(|source| ControllerError::List { what: "ProvisionerClasses", source })?;
    let loads = classes.items.iter().map(|guarded| async move {
        match &guarded.0 {
            Ok(class) => {
                context.classes.define(&class.name_any(), Err("its component is being loaded".to_owned()));
                if !load_last(class, context).await {
                    load_into(class, context).await;
                }
            }
            Err(error) => unreadable(&guarded.name_any(), &error.error, context),
        }
    });
    if tokio::time::timeout(PATIENCE, join_all(loads)).await.is_err() {
        tracing::warn!("not every ProvisionerClass could be loaded at the start; the rest follows");
    }
    Ok(())
}

/// Reconciles the classes; the store is ready when they were listed.
pub(crate) fn run(
    context: &Arc<Context>,
    shutdown: impl Future<Output = ()> + Send + Sync + 'static,
) -> (Store<GuardedClass>, impl Future<Output = ()>) {
    let (store, writer) = reflector::store::<GuardedClass>();
    let classes = Api::<GuardedClass>::all(context.client.clone());
    let events = watcher(classes, context.options.watch_selector.watch());
    let gone = {
        let (context, store) = (Arc::clone(context), store.clone());
        move |event: &watcher::Event<GuardedClass>| match event {
            watcher::Event::Delete(class) => forget(&class.name_any(), &context),
            // A deletion may have been missed.
            watcher::Event::InitDone => {
                let known = store.state();
                let is_gone = |name: &String| known.iter().all(|class| class.name_any() != *name);
                context.classes.defined().iter().filter(|name| is_gone(name)).for_each(|name| forget(name, &context));
            }
            _ => {}
        }
    };
    let events = reflector(writer, events.default_backoff()).inspect_ok(gone).applied_objects();
    let running = Controller::for_stream(events, store.clone())
        .with_config(Config::default().debounce(DEBOUNCE))
        .graceful_shutdown_on(shutdown)
        .run(reconcile, on_error, Arc::clone(context))
        .for_each(|_| async {});
    (store, running)
}

/// Renders nothing with a class any more, and has those told that name it.
pub(super) fn forget(name: &str, context: &Context) {
    if !context.classes.remove(name) {
        return;
    }
    tracing::info!(class = %name, "the ProvisionerClass is gone");
    for user in context.helped(|deployment| deployment.spec.provisioner_class_name == name) {
        context.wake(&user.name);
    }
    context.served.forget(name);
}

#[cfg(test)]
mod tests {
    use kube::{Client, client::Body};
    use serde_json::{Value, json};

    use super::*;
    use crate::{Options, approvals::Approvals, run, watches::ManagedWatches};

    /// An API server that answers everything with this.
    fn client(answer: &Value) -> Client {
        let text = answer.to_string();
        let service = tower::service_fn(move |_: http::Request<Body>| {
            let response = http::Response::new(Body::from(text.clone().into_bytes()));
            async move { Ok::<_, std::convert::Infallible>(response) }
        });
        Client::new(service, "default")
    }

    #[tokio::test]
    async fn a_class_that_cannot_be_read_does_not_stop_the_start() {
        let class = |name: &str, priority: &Value| {
            json!({"apiVersion": "chandler.dev/v1alpha1", "kind": "ProvisionerClass", "metadata": {"name": name},
                   "spec": {"image": "not a reference", "priority": priority}})
        };
        // As a newer version of the CRD may have it.
        let items = [class("odd", &json!("high")), class("plain", &json!(1))];
        let client = client(&json!({"apiVersion": "chandler.dev/v1alpha1", "kind": "ProvisionerClassList",
                                    "metadata": {}, "items": items}));
        let directory = tempfile::tempdir().expect("a directory");
        let options = Options { cache_directory: directory.path().to_owned(), ..Options::default() };
        let (watches, _triggers) = ManagedWatches::new(client.clone());
        let (approvals, _watch) = Approvals::new(client.clone(), watches.triggers());
        let (deployments, _writer) = reflector::store();
        let context = run::context(client, options, watches, approvals, deployments).expect("a context");
        preload(&context).await.expect("the start goes on");
        let message = async |name: &str| context.classes.get(name).await.err().map(|problem| problem.message);
        let odd = message("odd").await.unwrap_or_default();
        assert!(odd.starts_with("ProvisionerClass odd: its specification cannot be read: "), "{odd}");
        let plain = message("plain").await.unwrap_or_default();
        assert!(plain.contains("not a reference"), "{plain}");
    }
}
