//! Requests, one after another and many at a time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures::{AsyncBufReadExt as _, TryStreamExt as _};
use http::Request;
use serde_json::{Value, json};
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::JoinSet,
};

use crate::{
    Error,
    objects::{self, NAMESPACES},
    sample::Sample,
    server::Server,
};

/// Where events of watches arrive: what was written, and when it was seen.
pub(crate) struct Watches {
    seen: tokio::sync::Mutex<UnboundedReceiver<(String, Instant)>>,
    tasks: JoinSet<()>,
    config_maps: usize,
}

impl Watches {
    pub(crate) fn len(&self) -> usize {
        self.tasks.len()
    }
}

/// A client that loads a server.
pub(crate) struct Load {
    client: kube::Client,
    objects: AtomicUsize,
    names: AtomicUsize,
}

impl Load {
    pub(crate) async fn new(server: &Server) -> Result<Self, Error> {
        Ok(Self { client: server.client().await?, objects: AtomicUsize::new(0), names: AtomicUsize::new(0) })
    }

    /// Creates namespaces and objects; how long the objects took.
    pub(crate) async fn fill(&self, count: usize) -> Result<Duration, Error> {
        for number in 0..NAMESPACES {
            let namespace =
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": objects::namespace(number)}});
            self.client.request_text(post("/api/v1/namespaces", &namespace)?).await?;
        }
        let begun = Instant::now();
        // As in a cluster, Deployments are applied and the rest is created.
        self.each(count, 16, |number| {
            let (path, object) = objects::object(number);
            if object.get("kind").and_then(Value::as_str) == Some("Deployment") {
                apply(&path, &object)
            } else {
                post(&path, &object)
            }
        })
        .await?;
        self.objects.store(count, Ordering::Relaxed);
        Ok(begun.elapsed())
    }

    /// Starts watches: half of ConfigMaps, the rest of Deployments and Pods; some in one namespace.
    pub(crate) async fn watch(&self, count: usize) -> Result<Watches, Error> {
        let (sender, seen) = unbounded_channel();
        let mut watches = Watches { seen: tokio::sync::Mutex::new(seen), tasks: JoinSet::new(), config_maps: 0 };
        for number in 0..count {
            let path = match number % 4 {
                0 | 1 => "/api/v1/configmaps".to_owned(),
                2 => "/apis/apps/v1/deployments".to_owned(),
                _ => format!("/api/v1/namespaces/{}/pods", objects::namespace(number)),
            };
            watches.config_maps += usize::from(number % 4 < 2);
            let request = Request::get(format!(
                "{path}?watch=1&allowWatchBookmarks=true&resourceVersion={}",
                self.revision(&path).await?
            ));
            let lines = self.client.request_stream(request.body(Vec::new())?).await?.lines();
            watches.tasks.spawn(follow(lines, sender.clone()));
        }
        Ok(watches)
    }

    async fn revision(&self, path: &str) -> Result<String, Error> {
        let list: Value = self.client.request(Request::get(format!("{path}?limit=1")).body(Vec::new())?).await?;
        let revision = list.pointer("/metadata/resourceVersion").and_then(Value::as_str);
        Ok(revision.ok_or("a list without a revision")?.to_owned())
    }

    pub(crate) async fn gets(&self, count: usize, clients: usize) -> Result<Sample, Error> {
        let all = self.objects.load(Ordering::Relaxed).max(1);
        self.each(count, clients, move |number| {
            // ConfigMaps are the small ones; a stride spreads them.
            let (path, object) = objects::object(number * 7919 % all / 4 * 4);
            let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            get(&format!("{path}/{name}"))
        })
        .await
    }

    pub(crate) async fn lists(&self, count: usize, clients: usize) -> Result<Sample, Error> {
        self.each(count, clients, |number| {
            get(match number % 3 {
                0 => "/api/v1/configmaps?limit=500",
                1 => "/apis/apps/v1/deployments?limit=500",
                _ => "/api/v1/pods?limit=500",
            })
        })
        .await
    }

    pub(crate) async fn selects(&self, count: usize, clients: usize) -> Result<Sample, Error> {
        self.each(count, clients, |number| {
            get(&format!("/apis/apps/v1/deployments?labelSelector=shard%3D{}", number % 16))
        })
        .await
    }

    pub(crate) async fn creates(&self, count: usize, clients: usize) -> Result<Sample, Error> {
        let first = self.names.fetch_add(count, Ordering::Relaxed);
        self.each(count, clients, move |number| {
            let object = objects::config_map(&format!("created-{}", first + number));
            post(&format!("/api/v1/namespaces/{}/configmaps", objects::namespace(number)), &object)
        })
        .await
    }

    /// Every apply changes something.
    pub(crate) async fn applies(&self, count: usize, clients: usize) -> Result<Sample, Error> {
        let first = self.names.fetch_add(count, Ordering::Relaxed);
        self.each(count, clients, move |number| {
            let replicas = u32::try_from(first + number).unwrap_or_default();
            let object = objects::deployment(&format!("applied-{}", number % 100), replicas);
            apply(&format!("/apis/apps/v1/namespaces/{}/deployments", objects::namespace(number % 100)), &object)
        })
        .await
    }

    /// From before a write until a watch has it, for every watch of ConfigMaps.
    pub(crate) async fn fan_out(&self, watches: &Watches, count: usize) -> Result<Sample, Error> {
        let mut seen = watches.seen.lock().await;
        let begun = Instant::now();
        let mut took = Vec::new();
        for _ in 0..count {
            let name = format!("created-{}", self.names.fetch_add(1, Ordering::Relaxed));
            let written = Instant::now();
            self.client
                .request_text(post("/api/v1/namespaces/bench-0/configmaps", &objects::config_map(&name))?)
                .await?;
            let mut missing = watches.config_maps;
            while missing > 0 {
                let (found, at) = seen.recv().await.ok_or("the watches have ended")?;
                if found == name {
                    took.push(at - written);
                    missing -= 1;
                }
            }
        }
        Ok(Sample::new(took, begun))
    }

    /// The index of the OpenAPI documents after another CRD came: clients ask for it then.
    pub(crate) async fn documents(&self, count: usize) -> Result<Sample, Error> {
        let begun = Instant::now();
        let mut took = Vec::new();
        for number in 0..count {
            let crd = objects::crd(number);
            self.client.request_text(post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd)?).await?;
            let served = get(&format!("/apis/bench{number}.example.com/v1"))?;
            while self.client.request_text(served.clone()).await.is_err() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            let before = Instant::now();
            self.client.request_text(get("/openapi/v3")?).await?;
            took.push(before.elapsed());
        }
        Ok(Sample::new(took, begun))
    }

    /// Sends this many requests, from this many clients at a time.
    async fn each(
        &self,
        count: usize,
        clients: usize,
        request: impl Fn(usize) -> Result<Request<Vec<u8>>, Error> + Clone + Send + 'static,
    ) -> Result<Sample, Error> {
        let next = Arc::new(AtomicUsize::new(0));
        let begun = Instant::now();
        let mut workers = JoinSet::new();
        for _ in 0..clients {
            let (next, client, request) = (Arc::clone(&next), self.client.clone(), request.clone());
            workers.spawn(async move {
                let mut took = Vec::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return Ok::<_, Error>(took);
                    }
                    let request = request(number)?;
                    let sent = Instant::now();
                    client.request_text(request).await?;
                    took.push(sent.elapsed());
                }
            });
        }
        let mut took = Vec::new();
        while let Some(done) = workers.join_next().await {
            took.extend(done??);
        }
        Ok(Sample::new(took, begun))
    }
}

async fn follow(
    mut lines: impl futures::Stream<Item = std::io::Result<String>> + Unpin + Send,
    seen: UnboundedSender<(String, Instant)>,
) {
    while let Ok(Some(line)) = lines.try_next().await {
        let at = Instant::now();
        let name = serde_json::from_str::<Value>(&line)
            .ok()
            .and_then(|event| Some(event.pointer("/object/metadata/name")?.as_str()?.to_owned()));
        if seen.send((name.unwrap_or_default(), at)).is_err() {
            return;
        }
    }
}

fn get(path: &str) -> Result<Request<Vec<u8>>, Error> {
    Ok(Request::get(path).body(Vec::new())?)
}

fn post(path: &str, object: &Value) -> Result<Request<Vec<u8>>, Error> {
    Ok(Request::post(path).header("content-type", "application/json").body(serde_json::to_vec(object)?)?)
}

fn apply(path: &str, object: &Value) -> Result<Request<Vec<u8>>, Error> {
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let request = Request::patch(format!("{path}/{name}?fieldManager=bench&force=true"));
    Ok(request.header("content-type", "application/apply-patch+yaml").body(serde_json::to_vec(object)?)?)
}
