//! Requests, and which of them a fault matches.

use std::cell::OnceCell;

use http::Method;
use serde_json::Value;

use crate::request::query::{Query, WriteOptions};

/// A verb of the Kubernetes API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads a collection.
    List,
    /// Watches a collection.
    Watch,
    /// Creates an object.
    Create,
    /// Replaces an object.
    Update,
    /// Patches an object; server-side apply included.
    Patch,
    /// Deletes an object.
    Delete,
    /// Deletes a collection.
    DeleteCollection,
}

impl Verb {
    /// Each verb.
    pub const ALL: &[Self] = &[
        Self::Get,
        Self::List,
        Self::Watch,
        Self::Create,
        Self::Update,
        Self::Patch,
        Self::Delete,
        Self::DeleteCollection,
    ];
    /// Those that write.
    pub const WRITES: &[Self] = &[Self::Create, Self::Update, Self::Patch, Self::Delete, Self::DeleteCollection];

    /// The verb of a request (`RequestInfoFactory.NewRequestInfo` in `k8s.io/apiserver/pkg/endpoints/request`).
    pub fn of(method: &Method, collection: bool, watch: bool) -> Option<Self> {
        Some(match *method {
            Method::GET | Method::HEAD if watch => Self::Watch,
            Method::GET | Method::HEAD if collection => Self::List,
            Method::GET | Method::HEAD => Self::Get,
            Method::POST => Self::Create,
            Method::PUT => Self::Update,
            Method::PATCH => Self::Patch,
            Method::DELETE if collection => Self::DeleteCollection,
            Method::DELETE => Self::Delete,
            _ => return None,
        })
    }

    /// As RBAC rules write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

/// Whether the requests of a client can be affected; an extension of requests that come from this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Exposure {
    /// By every fault.
    #[default]
    Exposed,
    /// By faults that mean the simulation of workloads, too.
    Simulation,
    /// By none.
    Spared,
}

/// A request, as far as faults look at it.
#[derive(Debug)]
pub struct Occasion<'a> {
    /// The HTTP method.
    pub method: &'a Method,
    /// The path, still percent-encoded.
    pub path: &'a str,
    /// The query.
    pub query: &'a Query,
    /// `User-Agent`; empty when absent.
    pub client: &'a str,
    /// The body.
    pub body: &'a [u8],
    /// The clients that may be affected.
    pub exposure: Exposure,
    /// The resource; `None` for discovery and the like.
    pub object: Option<ObjectOccasion<'a>>,
    name_in_body: OnceCell<String>,
}

/// A request for objects.
#[derive(Clone, Copy, Debug)]
pub struct ObjectOccasion<'a> {
    /// API group; empty for the core group.
    pub group: &'a str,
    /// Name of the resource.
    pub plural: &'a str,
    /// Subresource; empty for the object itself.
    pub subresource: &'a str,
    /// Namespace; empty for cluster-scoped objects and for all namespaces.
    pub namespace: &'a str,
    /// Name; empty for collections.
    pub name: &'a str,
}

impl<'a> Occasion<'a> {
    /// A request without a client's name, for which only the path is known to begin with.
    pub fn new(method: &'a Method, path: &'a str, query: &'a Query, object: Option<ObjectOccasion<'a>>) -> Self {
        let name_in_body = OnceCell::new();
        Self { method, path, query, client: "", body: &[], exposure: Exposure::Exposed, object, name_in_body }
    }

    /// The verb; `None` for methods that have none. Non-resource requests have the verb `get`, as in RBAC.
    pub fn verb(&self) -> Option<Verb> {
        let collection = self.object.is_some_and(|object| object.name.is_empty());
        Verb::of(self.method, collection, self.object.is_some() && self.query.flag("watch"))
    }

    /// Whether a watch cache may answer it, which lags behind.
    pub fn tolerates_lag(&self) -> bool {
        match self.query.get("resourceVersion") {
            Some("0") => true,
            Some(_) => self.query.get("resourceVersionMatch") == Some("NotOlderThan"),
            None => false,
        }
    }

    /// The name in the path; for collections the one that `fieldSelector` asks for, for new objects that in the JSON body.
    fn name(&self) -> &str {
        let Some(object) = self.object else { return "" };
        if !object.name.is_empty() {
            return object.name;
        }
        if self.method != Method::POST {
            let terms = self.query.get("fieldSelector").unwrap_or_default().split(',');
            let mut names = terms.filter_map(|term| term.strip_prefix("metadata.name="));
            return names.next().map_or("", |name| name.strip_prefix('=').unwrap_or(name));
        }
        self.name_in_body.get_or_init(|| {
            let body: Value = serde_json::from_slice(self.body).unwrap_or_default();
            let name = body.pointer("/metadata/name").or_else(|| body.pointer("/metadata/generateName"));
            name.and_then(Value::as_str).unwrap_or_default().to_owned()
        })
    }
}

/// The requests that a fault affects: those that satisfy all given conditions. Texts are patterns: `*` matches any
/// characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matcher {
    /// One of these verbs; empty means each.
    pub verbs: Vec<Verb>,
    /// One of these HTTP methods; empty means each.
    pub methods: Vec<Method>,
    /// The path as sent.
    pub path: Option<String>,
    /// The API group; empty for the core group.
    pub group: Option<String>,
    /// The name of the resource in URLs.
    pub resource: Option<String>,
    /// The subresource; empty for the object itself.
    pub subresource: Option<String>,
    /// The namespace; empty for cluster-scoped objects and for requests about all namespaces.
    pub namespace: Option<String>,
    /// The name; empty where the request states none.
    pub name: Option<String>,
    /// `User-Agent`.
    pub client: Option<String>,
    /// The field manager, stated or made from the user agent.
    pub manager: Option<String>,
    /// Whether it is a dry run.
    pub dry_run: Option<bool>,
    /// Whether the simulation of workloads is meant, too.
    pub simulation: bool,
}

impl Matcher {
    /// Whether a request is meant.
    pub fn matches(&self, occasion: &Occasion<'_>) -> bool {
        match occasion.exposure {
            Exposure::Simulation if !self.simulation => return false,
            Exposure::Spared => return false,
            Exposure::Simulation | Exposure::Exposed => {}
        }
        let verb = |verbs: &[Verb]| verbs.is_empty() || occasion.verb().is_some_and(|verb| verbs.contains(&verb));
        if !verb(&self.verbs) || !(self.methods.is_empty() || self.methods.contains(occasion.method)) {
            return false;
        }
        let object = occasion.object;
        let about = [
            (&self.group, object.map(|object| object.group)),
            (&self.resource, object.map(|object| object.plural)),
            (&self.subresource, object.map(|object| object.subresource)),
            (&self.namespace, object.map(|object| object.namespace)),
            (&self.path, Some(occasion.path)),
            (&self.client, Some(occasion.client)),
        ];
        about.into_iter().all(|(pattern, found)| holds(pattern.as_deref(), found))
            && self.manager.as_deref().is_none_or(|pattern| is_like(pattern, &manager(occasion)))
            && self.dry_run.is_none_or(|wanted| wanted == occasion.query.get("dryRun").is_some())
            && (self.name.is_none() || holds(self.name.as_deref(), object.map(|_| occasion.name())))
    }
}

fn holds(pattern: Option<&str>, found: Option<&str>) -> bool {
    pattern.is_none_or(|pattern| found.is_some_and(|found| is_like(pattern, found)))
}

fn manager(occasion: &Occasion<'_>) -> String {
    WriteOptions::parse(occasion.query, occasion.client, "WriteOptions")
        .map(|options| options.field_manager)
        .unwrap_or_default()
}

/// Whether a text matches a pattern, in which `*` matches any characters.
fn is_like(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.split_once(part) {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let cases = [
            ("", "", true),
            ("", "a", false),
            ("web", "web", true),
            ("web", "webs", false),
            ("*", "", true),
            ("web-*", "web-1", true),
            ("web-*", "we", false),
            ("*-web", "my-web", true),
            ("a*b*c", "a--b--c", true),
            ("a*b*c", "abc", true),
            ("a*b*c", "acb", false),
            ("ab*ba", "aba", false),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(is_like(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn all_conditions_must_match() {
        let query = Query::parse("fieldManager=tester&dryRun=All");
        let object = ObjectOccasion {
            group: "apps",
            plural: "deployments",
            subresource: "status",
            namespace: "default",
            name: "web-1",
        };
        let path = "/apis/apps/v1/namespaces/default/deployments/web-1/status";
        let occasion = Occasion { client: "kube-rs/5", ..Occasion::new(&Method::PATCH, path, &query, Some(object)) };
        let text = |text: &str| Some(text.to_owned());
        let yes = [
            Matcher::default(),
            Matcher { verbs: vec![Verb::Get, Verb::Patch], ..Matcher::default() },
            Matcher { methods: vec![Method::PATCH], path: text("/apis/apps/*"), ..Matcher::default() },
            Matcher { group: text("apps"), resource: text("deployments"), ..Matcher::default() },
            Matcher { subresource: text("status"), namespace: text("default"), ..Matcher::default() },
            Matcher { name: text("web-*"), manager: text("tester"), client: text("kube-rs*"), ..Matcher::default() },
            Matcher { dry_run: Some(true), ..Matcher::default() },
        ];
        let no = [
            Matcher { verbs: vec![Verb::Update], ..Matcher::default() },
            Matcher { methods: vec![Method::PUT], ..Matcher::default() },
            Matcher { group: text(""), ..Matcher::default() },
            Matcher { subresource: text(""), ..Matcher::default() },
            Matcher { namespace: text("kube-*"), ..Matcher::default() },
            Matcher { manager: text("kube-rs"), ..Matcher::default() },
            Matcher { dry_run: Some(false), ..Matcher::default() },
        ];
        assert!(yes.iter().all(|matcher| matcher.matches(&occasion)));
        for matcher in no {
            assert!(!matcher.matches(&occasion), "{matcher:?}");
        }
        let discovery = Occasion::new(&Method::GET, "/apis", &query, None);
        assert!(!Matcher { group: text("*"), ..Matcher::default() }.matches(&discovery));
        assert!(Matcher { verbs: vec![Verb::Get], ..Matcher::default() }.matches(&discovery));
        let from = |exposure| Occasion { exposure, ..Occasion::new(&Method::GET, "/apis", &query, None) };
        let simulation = from(Exposure::Simulation);
        assert!(!Matcher::default().matches(&simulation));
        assert!(Matcher { simulation: true, ..Matcher::default() }.matches(&simulation));
        assert!(!Matcher { simulation: true, ..Matcher::default() }.matches(&from(Exposure::Spared)));
    }

    #[test]
    fn the_object_name_is_read_from_path_selector_or_body() {
        let none = Query::default();
        let selecting = Query::parse("watch=1&fieldSelector=metadata.namespace%3Dx%2Cmetadata.name%3Da");
        let collection = Some(ObjectOccasion { group: "", plural: "pods", subresource: "", namespace: "x", name: "" });
        let matcher = Matcher { name: Some("a".into()), ..Matcher::default() };
        let watch = Occasion::new(&Method::GET, "/", &selecting, collection);
        assert!(matcher.matches(&watch));
        assert_eq!(watch.verb(), Some(Verb::Watch));
        let create = Occasion {
            body: br#"{"metadata": {"name": "a"}}"#,
            ..Occasion::new(&Method::POST, "/", &none, collection)
        };
        assert!(matcher.matches(&create));
        assert!(!matcher.matches(&Occasion::new(&Method::POST, "/", &none, collection)));
    }
}
