//! Certificates of webhooks and aggregated APIs: the host issues and rotates them.
//!
//! A chart makes an authority (`genCA`) and a certificate (`genSignedCert`) for a Service, stores the certificate in a Secret, and the authority in
//! each `caBundle`. The host makes the Secret and each `caBundle` itself, so the Secret is left out and the Service and its clients are annotated.
//! The certificate of a server that only Pods call has the same form without a `caBundle`, and perhaps further names: the Secret has all that its clients
//! need, and nothing else has a part of it. What does not have this form is left as it is, and refused later.

use std::{collections::BTreeSet, net::IpAddr};

use chandler_sdk::certificates::{INJECT_CA, PEER_NAMES, RESTART_ON_ROTATION, SERVING_SECRET};
use serde_json::Value as Json;

use super::{Segment, State, What, resolve::Emitted};

/// The most names in [`PEER_NAMES`].
const MAX_PEER_NAMES: usize = 50;
/// Kinds whose Pods may be restarted.
const WORKLOADS: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];

/// A place with a `caBundle`.
struct Client {
    /// The index of the object.
    object: usize,
    /// The map with `caBundle` and `service`.
    pointer: String,
    service: Service,
    /// The certificate that it trusts.
    authority: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Service {
    namespace: String,
    name: String,
}

impl Service {
    /// Names that the host puts into a certificate, and the short one, which nothing outside of its namespace can use.
    fn has(&self, name: &str) -> bool {
        let (own, namespace) = (&self.name, &self.namespace);
        let hosts = [own.clone(), format!("{own}.{namespace}"), self.host(), format!("{}.cluster.local", self.host())];
        // A name may end with the point of the root.
        hosts.iter().any(|host| host == name.trim_end_matches('.'))
    }

    /// Whether the host puts a name into a certificate.
    fn issues(&self, name: &str) -> bool {
        name != self.name && self.has(name)
    }

    /// The name by which the API server calls it.
    fn host(&self) -> String {
        format!("{}.{}.svc", self.name, self.namespace)
    }
}

/// Replaces certificates of this form by requests.
pub(super) fn request(state: &State, objects: &mut Vec<Emitted>, namespace: &str) {
    let clients: Vec<Client> =
        objects.iter().enumerate().flat_map(|(index, object)| clients(state, index, object, namespace)).collect();
    let (mut left_out, mut replaced) = (BTreeSet::new(), BTreeSet::new());
    for index in 0..objects.len() {
        let Some(secret) = objects.get(index).filter(|object| object.is("v1", "Secret")) else { continue };
        let Some((certificate, authority)) = serving(state, secret) else { continue };
        let names = state.certificates.get(certificate).map(|issued| issued.names.as_slice()).unwrap_or_default();
        // The first is the common name, which is a name of the server only without others.
        let names = if names.len() > 1 { names.get(1..).unwrap_or_default() } else { names };
        let (own, name) = (secret.namespace(namespace).to_owned(), secret.text("/metadata/name").to_owned());
        let mut served: BTreeSet<Service> = clients
            .iter()
            .filter(|client| client.authority == authority && names.contains(&client.service.host()))
            .map(|client| client.service.clone())
            .filter(|service| service.namespace == own && position(objects, service, namespace).is_some())
            .collect();
        if clients.iter().any(|client| client.authority == authority) {
            if served.is_empty() || !names.iter().all(|name| served.iter().any(|service| service.has(name))) {
                continue;
            }
        } else {
            let Some((service, further)) = peer(state, objects, (index, authority), names, namespace) else { continue };
            if let Some(object) = position(objects, &service, namespace).and_then(|index| objects.get_mut(index)) {
                object.annotate(PEER_NAMES, &further);
            }
            served.insert(service);
        }
        left_out.insert(index);
        replaced.insert(authority);
        for service in &served {
            if let Some(object) = position(objects, service, namespace).and_then(|index| objects.get_mut(index)) {
                object.annotate(SERVING_SECRET, &name);
            }
        }
        for client in clients.iter().filter(|client| client.authority == authority && served.contains(&client.service))
        {
            let Some(object) = objects.get_mut(client.object) else { continue };
            object.annotate(INJECT_CA, "true");
            if let Some(configuration) = object.value.pointer_mut(&client.pointer).and_then(Json::as_object_mut) {
                configuration.remove("caBundle");
            }
        }
        // Programs of charts expect certificates that never change.
        for object in objects.iter_mut().filter(|object| object.namespace(namespace) == own && mounts(object, &name)) {
            object.annotate(RESTART_ON_ROTATION, "true");
        }
    }
    for index in 0..objects.len() {
        // A chart keeps an authority only for its next render, which needs none.
        if objects.get(index).is_some_and(|object| {
            authority(state, object).is_some_and(|authority| replaced.contains(&authority))
                && !is_mentioned(objects, index, object.text("/metadata/name"))
        }) {
            left_out.insert(index);
        }
    }
    let mut index = 0;
    objects.retain(|_| {
        index += 1;
        !left_out.contains(&(index - 1))
    });
}

/// The Service of a server whose certificate no `caBundle` trusts, and the further names of the certificate.
fn peer(
    state: &State,
    objects: &[Emitted],
    (index, authority): (usize, usize),
    names: &[String],
    namespace: &str,
) -> Option<(Service, String)> {
    let secret = objects.get(index)?;
    let own = secret.namespace(namespace);
    // The host gives each Secret an authority of its own: certificates of one authority would not trust each other.
    let is_shared = objects.iter().enumerate().any(|(other, object)| {
        other != index && object.is("v1", "Secret") && serving(state, object).is_some_and(|(_, of)| of == authority)
    });
    // Clients that take the certificate itself for an authority would not trust the host's.
    let has_authority = ["/data/ca.crt", "/stringData/ca.crt"].iter().any(|key| secret.value.pointer(key).is_some());
    if is_shared || !has_authority {
        return None;
    }
    let has_another = |object: &Emitted| {
        let annotations = object.value.pointer("/metadata/annotations");
        annotations.is_some_and(|annotations| annotations.get(SERVING_SECRET).is_some())
    };
    let services = objects
        .iter()
        .filter(|object| object.is("v1", "Service") && object.namespace(namespace) == own && !has_another(object));
    let mut services =
        services.map(|object| Service { namespace: own.to_owned(), name: object.text("/metadata/name").to_owned() });
    let service = services.find(|service| names.iter().any(|name| service.has(name)))?;
    // At least one, so that the certificate is also for clients.
    let mut further: BTreeSet<&str> =
        names.iter().map(|name| name.trim_end_matches('.')).filter(|name| !service.issues(name)).collect();
    further.insert(&service.name);
    let is_name = |name: &&str| {
        let host = name.strip_prefix("*.").unwrap_or(name);
        name.parse::<IpAddr>().is_ok() || (host.len() <= 253 && host.split('.').all(is_label))
    };
    if further.len() > MAX_PEER_NAMES || !further.iter().all(is_name) {
        return None;
    }
    let further = further.into_iter().collect::<Vec<_>>().join(",");
    Some((service, further))
}

/// Whether a text is a label of a DNS name, as names of Kubernetes have them.
fn is_label(label: &str) -> bool {
    let is_end = |end: Option<u8>| end.is_some_and(|end| end.is_ascii_lowercase() || end.is_ascii_digit());
    label.len() <= 63
        && label.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && is_end(label.bytes().next())
        && is_end(label.bytes().next_back())
}

/// The places of an object with the placeholder of an authority as `caBundle`.
fn clients(state: &State, index: usize, object: &Emitted, default: &str) -> Vec<Client> {
    let pointers: Vec<String> = match object.text("/kind") {
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
            let count = object.value.get("webhooks").and_then(Json::as_array).map_or(0, Vec::len);
            (0..count).map(|number| format!("/webhooks/{number}/clientConfig")).collect()
        }
        "CustomResourceDefinition" => vec!["/spec/conversion/webhook/clientConfig".to_owned()],
        "APIService" => vec!["/spec".to_owned()],
        _ => Vec::new(),
    };
    let client = |pointer: String| {
        let bundle = object.text(&format!("{pointer}/caBundle"));
        let What::Base64(text) = state.what(state.only(bundle.trim())?)? else { return None };
        let What::Certificate(authority) = state.what(state.only(text.trim())?)? else { return None };
        let name = object.text(&format!("{pointer}/service/name")).to_owned();
        let namespace = match object.text(&format!("{pointer}/service/namespace")) {
            "" => default.to_owned(),
            namespace => namespace.to_owned(),
        };
        Some(Client { object: index, pointer, service: Service { namespace, name }, authority: *authority })
    };
    pointers.into_iter().filter_map(client).collect()
}

/// The authority of a Secret that holds only its certificate and key.
fn authority(state: &State, secret: &Emitted) -> Option<usize> {
    let data = secret.value.get("data").filter(|_| secret.is("v1", "Secret"))?.as_object()?;
    if secret.value.get("stringData").is_some() || data.keys().any(|key| !matches!(key.as_str(), "tls.crt" | "tls.key"))
    {
        return None;
    }
    let part = |key: &str| match state.what(state.only(data.get(key)?.as_str()?.trim())?)? {
        What::Base64(text) => state.what(state.only(text.trim())?),
        _ => None,
    };
    match (part("tls.crt")?, part("tls.key")?) {
        (What::Certificate(certificate), What::Key(key)) if certificate == key => Some(*certificate),
        _ => None,
    }
}

/// Whether another object contains a name as a whole text, as a volume does that is made of a Secret.
fn is_mentioned(objects: &[Emitted], index: usize, name: &str) -> bool {
    fn mentions(value: &Json, name: &str) -> bool {
        match value {
            Json::String(text) => text == name,
            Json::Array(items) => items.iter().any(|item| mentions(item, name)),
            Json::Object(entries) => entries.values().any(|entry| mentions(entry, name)),
            Json::Null | Json::Bool(_) | Json::Number(_) => false,
        }
    }
    objects.iter().enumerate().any(|(other, object)| other != index && mentions(&object.value, name))
}

/// The certificate and the authority of a Secret that holds nothing else, under the keys that the host uses.
fn serving(state: &State, secret: &Emitted) -> Option<(usize, usize)> {
    let keys: BTreeSet<&str> = ["data", "stringData"]
        .iter()
        .flat_map(|field| secret.value.get(*field).and_then(Json::as_object).into_iter().flat_map(|data| data.keys()))
        .map(String::as_str)
        .collect();
    if !keys.iter().all(|key| matches!(*key, "tls.crt" | "tls.key" | "ca.crt")) {
        return None;
    }
    let text = |key: &str| {
        if let Some(text) = secret.value.get("stringData").and_then(|data| data.get(key)) {
            return text.as_str();
        }
        match state.what(state.only(secret.value.get("data")?.get(key)?.as_str()?.trim())?)? {
            What::Base64(text) => Some(text.as_str()),
            _ => None,
        }
    };
    let What::Key(certificate) = state.what(state.only(text("tls.key")?.trim())?)? else { return None };
    let authority = state.certificates.get(*certificate)?.issuer.unwrap_or(*certificate);
    let holds = |text: &str, wanted: &[usize]| {
        let mut found = Vec::new();
        for segment in state.segments(text) {
            match segment {
                Segment::Text(text) if text.trim().is_empty() => {}
                Segment::Placeholder(id) => match state.what(id) {
                    Some(What::Certificate(number)) => found.push(*number),
                    _ => return false,
                },
                Segment::Text(_) => return false,
            }
        }
        found == wanted
    };
    let chain = text("tls.crt")?;
    let is_chain = holds(chain, &[*certificate]) || holds(chain, &[*certificate, authority]);
    let is_authority = !keys.contains("ca.crt") || text("ca.crt").is_some_and(|text| holds(text, &[authority]));
    (is_chain && is_authority).then_some((*certificate, authority))
}

/// The index of a Service.
fn position(objects: &[Emitted], service: &Service, namespace: &str) -> Option<usize> {
    objects.iter().position(|object| {
        object.is("v1", "Service")
            && object.text("/metadata/name") == service.name
            && object.namespace(namespace) == service.namespace
    })
}

/// Whether the Pods of a workload mount a Secret.
fn mounts(object: &Emitted, secret: &str) -> bool {
    let volumes = object.value.pointer("/spec/template/spec/volumes").and_then(Json::as_array);
    WORKLOADS.contains(&object.text("/kind"))
        && volumes.into_iter().flatten().any(|volume| {
            let projected = volume.pointer("/projected/sources").and_then(Json::as_array).into_iter().flatten();
            let names = projected.map(|source| source.pointer("/secret/name"));
            let own = volume.pointer("/secret/secretName");
            std::iter::once(own).chain(names).flatten().any(|name| name == secret)
        })
}
