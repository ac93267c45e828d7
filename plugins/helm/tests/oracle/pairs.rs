//! The pairs of charts and values of the oracle, and how a render compares with Helm's.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "test helpers may panic, too")]

use std::{
    fs,
    path::{Path, PathBuf},
    rc::Rc,
};

use chandler_go_template::{Limits, Value};
use chandler_helm::{
    Helm,
    chart::{File, values},
    functions::{Certificate, Entropy, Environment, time},
    pipeline::{self, Request, Stage},
    render::{ApiVersions, Capabilities, Release},
};
use chandler_sdk::{
    Failure,
    testing::{Bundle, run},
};
use serde_json::{Value as Json, json};

/// A chart with a set of values.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pair {
    /// `PUBLISHER/NAME/SET`.
    pub(crate) id: String,
    chart: PathBuf,
    golden: PathBuf,
}

/// How a render compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// Equal manifests, hooks and notes.
    Equal,
    /// Both fail, with one text.
    SameError,
    /// Both fail at the same file and line, or in the same stage if Helm names no file.
    SamePlace,
    /// Both fail, at different places.
    OtherPlace,
    /// Another object, hook or note.
    Different,
    /// Fails here only.
    Fails,
    /// Fails in Helm only.
    Passes,
    /// A panic.
    Panics,
}

/// The result of a comparison.
pub(crate) struct Compared {
    pub(crate) class: Class,
    /// What differs.
    pub(crate) detail: String,
}

/// All pairs of an unpacked oracle, sorted.
pub(crate) fn pairs(folder: &Path) -> Vec<Pair> {
    let mut pairs = Vec::new();
    let below = |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    for chart in below(folder.join("charts")).flat_map(below) {
        for golden in below(chart.join("golden")) {
            let set = golden.file_stem().unwrap_or_default().to_string_lossy();
            let id = format!("{}/{set}", chart.strip_prefix(folder.join("charts")).unwrap_or(&chart).display());
            pairs.push(Pair { id, chart: chart.clone(), golden });
        }
    }
    pairs.sort();
    pairs
}

/// What Helm took as served.
pub(crate) fn capabilities(folder: &Path) -> Json {
    read(&folder.join("capabilities.json"))
}

fn read(path: &Path) -> Json {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Renders a pair, and compares.
pub(crate) fn compare(pair: &Pair, capabilities: &Json) -> Compared {
    let golden = read(&pair.golden);
    let (inner, capabilities, chart) = (golden.clone(), capabilities.clone(), pair.chart.clone());
    // Of the size that the main thread of a program may have.
    let render = std::thread::Builder::new().stack_size(64 << 20);
    let given = render.spawn(move || result(&chart, &inner, &capabilities)).unwrap().join();
    let mut given = given.unwrap_or_else(|_| json!({"outcome": "panic"}));
    mask(&mut given, &golden);
    let (class, detail) = classify(&golden, &given);
    Compared { class, detail }
}

fn classify(golden: &Json, given: &Json) -> (Class, String) {
    let error = |json: &Json| json["error"].as_str().unwrap_or_default().to_owned();
    match (golden["outcome"].as_str(), given["outcome"].as_str()) {
        (_, Some("panic")) => (Class::Panics, String::new()),
        (Some("error"), Some("error")) => {
            let (left, right) = (error(golden), error(given));
            let class = if left == right {
                Class::SameError
            } else if place(&left).map_or(golden["stage"] == given["stage"], |place_| place(&right) == Some(place_)) {
                Class::SamePlace
            } else {
                Class::OtherPlace
            };
            (class, format!("Helm {left}\n  here {right}"))
        }
        (Some("ok"), Some("ok")) => {
            let mut found = Vec::new();
            for key in ["manifests", "hooks", "notes"] {
                differences(&canonical(&golden[key]), &canonical(&given[key]), key, &mut found);
            }
            let class = if found.is_empty() { Class::Equal } else { Class::Different };
            let first: Vec<_> = found.iter().take(4).cloned().collect();
            (class, format!("{} differences\n  {}", found.len(), first.join("\n  ")))
        }
        (Some("ok"), _) => (Class::Fails, error(given)),
        _ => (Class::Passes, error(golden)),
    }
}

/// What the provisioner makes of a chart that Helm renders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Provisioned {
    /// The objects, and whether they request values.
    Objects(Vec<String>, bool),
    /// Why it needs what the provisioner does not give.
    Refused(String),
    /// Another failure.
    Failed(String),
}

/// Provisions a pair, without a cluster; nothing if Helm does not render it.
pub(crate) fn provision(pair: &Pair) -> Option<Provisioned> {
    let golden = read(&pair.golden);
    if golden["outcome"] != "ok" {
        return None;
    }
    let folder = pair.chart.clone();
    let provision = move || {
        let mut all = Vec::new();
        files(&folder.join("chart"), &folder.join("chart"), &mut all);
        let values = golden["values"].as_array().into_iter().flatten().filter_map(Json::as_str);
        let values = values.map(|file| values::read(&fs::read_to_string(folder.join(file)).unwrap()).unwrap());
        let values = values.fold(chandler_go_template::Map::new(), |base, over| values::merge(&base, &over));
        let text = |json: &Json| json.as_str().unwrap_or_default().to_owned();
        let config = json!({"values": plain(&Value::Map(values))});
        let request = chandler_sdk::Request::new()
            .with_name(text(&golden["release"]["name"]))
            .with_namespace(text(&golden["release"]["namespace"]))
            .with_config(serde_json::from_value(config).unwrap());
        let bundle = Bundle::new(all.into_iter().map(|file| (file.name, file.data.to_vec())));
        match run::<Helm>(&bundle, &request) {
            Ok(recorder) => {
                let objects: Vec<&Json> = recorder.objects.iter().map(|object| &object.value).collect();
                let text = |object: &Json| object.to_string();
                let requests = objects.iter().any(|object| text(object).contains(".chandler.dev/"));
                Provisioned::Objects(objects.into_iter().map(text).collect(), requests)
            }
            Err(Failure::Unsupported(findings)) => Provisioned::Refused(findings[0].message.clone()),
            Err(failure) => Provisioned::Failed(format!("{failure:?}")),
        }
    };
    let thread = std::thread::Builder::new().stack_size(64 << 20).spawn(provision).unwrap();
    Some(thread.join().unwrap_or_else(|_| Provisioned::Failed("a panic".to_owned())))
}

/// Constants: what is random is masked in the oracle.
struct Constants;

impl Entropy for Constants {
    fn generate(&self, function: &str, arguments: &[Value]) -> Option<Result<Value, String>> {
        let count = match arguments.first() {
            Some(Value::Int(count, _)) => usize::try_from(*count).unwrap_or_default().min(10_000),
            _ => 10,
        };
        let certificate = || {
            let pem = |kind: &str| format!("-----BEGIN {kind}-----\nAAAA\n-----END {kind}-----\n");
            Value::Object(Rc::new(Certificate { certificate: pem("CERTIFICATE"), key: pem("RSA PRIVATE KEY") }))
        };
        Some(Ok(match function {
            "randAlphaNum" | "randAlpha" | "randAscii" => Value::from("a".repeat(count)),
            "randNumeric" => Value::from("1".repeat(count)),
            "randBytes" => Value::from("AAAA".repeat(count.div_ceil(3))),
            "randInt" | "shuffle" => arguments.first().cloned().unwrap_or_default(),
            "uuidv4" => Value::from("00000000-0000-4000-8000-000000000000"),
            "htpasswd" => Value::from("user:$2a$10$aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
            "bcrypt" | "derivePassword" | "encryptAES" => Value::from("aaaa"),
            "genPrivateKey" => Value::from("-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n"),
            "getHostByName" | "env" | "expandenv" => Value::from(""),
            "now" => Value::Object(Rc::new(time::Time::utc(1_764_000_000))),
            _ => certificate(),
        }))
    }
}

fn files(folder: &Path, base: &Path, all: &mut Vec<File>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, base, all);
        } else if let (Ok(data), Ok(name)) = (fs::read(&path), path.strip_prefix(base)) {
            all.push(File::new(name.to_string_lossy(), data));
        }
    }
}

fn result(chart: &Path, golden: &Json, capabilities: &Json) -> Json {
    let mut all = Vec::new();
    files(&chart.join("chart"), &chart.join("chart"), &mut all);
    let texts = |json: &Json| {
        json.as_array().into_iter().flatten().filter_map(Json::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    let mut given = Vec::new();
    for file in texts(&golden["values"]) {
        match fs::read_to_string(chart.join(&file))
            .map_err(|error| error.to_string())
            .and_then(|text| values::read(&text))
        {
            Ok(values) => given.push(values),
            Err(error) => return json!({"outcome": "error", "stage": "values", "error": error}),
        }
    }
    let mut api_versions = texts(&capabilities["APIVersions"]);
    api_versions.extend(texts(&golden["extraApiVersions"]));
    let text = |json: &Json| json.as_str().unwrap_or_default().to_owned();
    let request = Request {
        files: all,
        values: given,
        release: Release {
            name: text(&golden["release"]["name"]),
            namespace: text(&golden["release"]["namespace"]),
            revision: 1,
            upgrade: false,
        },
        capabilities: Capabilities { kubernetes: "v1.33".to_owned(), api_versions: ApiVersions::new(api_versions) },
        environment: Environment { entropy: Some(Rc::new(Constants)) },
        limits: Limits::default(),
    };
    let rendered = match pipeline::render(request) {
        Ok(rendered) => rendered,
        Err(failure) => {
            let stage = match failure.stage {
                Stage::KubeVersion => "kubeVersion".to_owned(),
                stage => format!("{stage:?}").to_lowercase(),
            };
            return json!({"outcome": "error", "stage": stage, "error": failure.message, "refused": failure.refused});
        }
    };
    let mut manifests = Vec::new();
    for crd in &rendered.crds {
        let text = crd.file.text();
        for (_, part) in chandler_helm::manifest::split(&text) {
            match chandler_helm::yaml::read(&format!("{part}\n")) {
                Ok(value) if value.is_nil() => {}
                Ok(value) => manifests.push(json!({"path": crd.path, "object": plain(&value)})),
                Err(error) => return json!({"outcome": "error", "stage": "manifests", "error": error.to_string()}),
            }
        }
    }
    for manifest in rendered.documents.manifests {
        if let Some(object) = manifest.object.filter(|object| !object.is_null()) {
            manifests.push(json!({"path": manifest.path, "object": object.to_json()}));
        }
    }
    let hooks: Vec<Json> = rendered
        .documents
        .hooks
        .into_iter()
        .map(|hook| {
            json!({"path": hook.path, "name": hook.name, "kind": hook.kind, "events": hook.events, "weight": hook.weight,
                "deletePolicies": hook.delete_policies, "outputLogPolicies": hook.output_log_policies,
                "object": hook.object.map(|object| object.to_json())})
        })
        .collect();
    json!({"outcome": "ok", "manifests": manifests, "hooks": hooks, "notes": rendered.documents.notes})
}

/// A value as JSON.
fn plain(value: &Value) -> Json {
    match value {
        Value::Bool(value) => json!(value),
        Value::Int(value, _) => json!(value),
        Value::Float(value) => json!(value),
        Value::String(text) => json!(text.text()),
        Value::List(list) => list.items().iter().map(plain).collect(),
        Value::Map(map) => {
            Json::Object(map.entries().iter().map(|(key, value)| (key.to_string(), plain(value))).collect())
        }
        _ => Json::Null,
    }
}

/// Puts the mask at the masked places.
fn mask(json: &mut Json, golden: &Json) {
    for pointer in golden["masked"].as_array().into_iter().flatten().filter_map(Json::as_str) {
        if let Some(place) = json.pointer_mut(pointer) {
            *place = json!("<masked: differs between runs>");
        } else if let Some((parent, key)) = pointer.rsplit_once('/')
            && let Some(Json::Object(parent)) = json.pointer_mut(parent)
        {
            parent.insert(key.replace("~1", "/").replace("~0", "~"), json!("<masked: differs between runs>"));
        }
    }
}

/// Integral floats are integers in canonical JSON.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
fn canonical(json: &Json) -> Json {
    match json {
        Json::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => json!(float as i64),
            _ => json.clone(),
        },
        Json::Array(items) => items.iter().map(canonical).collect(),
        Json::Object(entries) => {
            Json::Object(entries.iter().map(|(key, value)| (key.clone(), canonical(value))).collect())
        }
        json => json.clone(),
    }
}

/// Where two values differ.
fn differences(wanted: &Json, given: &Json, path: &str, found: &mut Vec<String>) {
    match (wanted, given) {
        (Json::Object(left), Json::Object(right)) => {
            for key in left.keys().chain(right.keys().filter(|key| !left.contains_key(*key))) {
                differences(&wanted[key], &given[key], &format!("{path}/{key}"), found);
            }
        }
        (Json::Array(left), Json::Array(right)) => {
            for index in 0..left.len().max(right.len()) {
                differences(&wanted[index], &given[index], &format!("{path}/{index}"), found);
            }
        }
        _ if wanted == given => {}
        _ => found.push(format!("{path}: Helm {} here {}", short(wanted), short(given))),
    }
}

fn short(json: &Json) -> String {
    let text = json.to_string();
    text.chars().take(300).collect()
}

/// File and line of an error.
fn place(error: &str) -> Option<String> {
    let words = error.split([' ', '(', ')']);
    for word in words {
        let mut parts = word.trim_end_matches(':').split(':');
        if let (Some(path), Some(line)) = (parts.next(), parts.next())
            && path.contains('/')
            && line.parse::<u32>().is_ok()
        {
            return Some(format!("{path}:{line}"));
        }
    }
    None
}
