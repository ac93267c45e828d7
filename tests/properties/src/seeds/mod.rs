//! The seed inputs of the corpora: the ones in this module, and the fixtures beside the workspace.

#[cfg(feature = "sandbox")]
mod components;
mod lines;

use std::{fs, io, path::Path};

use crate::{
    archive::{Archive, RawRequest},
    cached,
    tars::{entry, record},
    zips,
};

/// A registry+v1 bundle with every feature.
pub(crate) const EVERYTHING: &[u8] = include_bytes!("everything.txt");

/// A plain+v0 bundle with run levels, lists, anchors and replaced images.
const PLAIN: &[u8] = include_bytes!("plain.txt");
/// A chart with a subchart, a hook, a schema and most of what templates use.
pub(crate) const CHART: &[u8] = include_bytes!("chart.txt");
/// A release image of OpenShift, with templates.
const PAYLOAD: &[u8] = include_bytes!("payload.txt");

/// Settings for registries: the example of the manual and more, mirror sets, and images.
const HELM_INDEX: &[u8] = include_bytes!("helm_index.yaml");
const REGISTRIES: &[u8] = include_bytes!("registries.txt");

/// A kubeconfig of another cluster with everything that is used, and one with everything that is refused.
const KUBECONFIGS: [&[u8]; 2] = [include_bytes!("kubeconfig.yaml"), include_bytes!("kubeconfig_refused.yaml")];
/// A webhook with the headers and the members of all types.
const WEBHOOK: &[u8] = include_bytes!("webhooks.txt");
/// A webhook with an identity token, and the keys of an issuer.
const IDENTITY: &[u8] = include_bytes!("identity.txt");

/// A notification, and a Secret of an Alert.
const NOTIFICATION: &[u8] = include_bytes!("notifications.txt");

/// A question to the resolver, with a catalog of every kind of constraint.
const RESOLVER: &[u8] = include_bytes!("resolver.json");

/// Variables for Deppy's solver.
const VARIABLES: &str = r#"{"variables":[{"id":"a","constraints":[{"type":"mandatory"},{"type":"dependency","ids":["b","c"]}]},{"id":"b","constraints":[{"type":"conflict","id":"c"}]},{"id":"c","constraints":[{"type":"atMost","n":1,"ids":["b","c"]},{"type":"or","id":"b"}]}]}"#;

/// An image with its reference and a pull secret. Its two layers are appended.
const IMAGE: &str = include_str!("image.txt");

/// A stored object, a request body, and a CRD.
const API: &str = include_str!("api.yaml");

/// Signatures in both forms of cosign, well-formed and worthless.
const SIGNATURES: &[&str] = &[
    include_str!("signature_envelope.json"),
    include_str!("signature_message.json"),
    include_str!("signature_payload.txt"),
];

/// Behaviours of the hostile provisioner, with their arguments.
const HOSTILE: &[&str] = &[
    "-- provision --\nemit-lines\n-- argument --\n{\"apiVersion\":\"v1\",\"kind\":\"A\",\"metadata\":{\"name\":\"a\"}}\n[]\n{\"apiVersion\":\"v1\"}\n",
    "-- provision --\ninvalid-content\n-- argument --\nit is \u{202e}odd\u{7}\n",
    "-- provision --\ninternal\n-- argument --\nno\n",
    "-- provision --\nmany-diagnostics\n-- argument --\nx\n",
    "-- config-schema --\n{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/properties/b\"},\"b\":{\"pattern\":\"^(a+)+$\"}},\"required\":[\"a\"]}\n-- request --\n{\"config\":{\"a\":\"aaaaaaaaaaaaaaaaaaaaaaaa!\"}}\n",
    "-- config-schema --\n{\"$defs\":{\"x\":{\"allOf\":[{\"$ref\":\"#/$defs/x\"}]}},\"$ref\":\"#/$defs/x\"}\n",
    "-- detect --\nhostile+v0\n",
];

/// Texts that YAML libraries parse differently.
const YAML: &[&str] = &[
    "a: &x [1, 0644, 0x1F, 0b11, 1_000, 1e3, .5, -.inf, 12:30:45]\nb: *x\nc: {<<: {d: yes, e: ~}, f: \"\\u00e9\"}\n",
    "--- |\n literal\n\n--- >-\n folded\n text\n...\n%YAML 1.1\n---\n? key\n: value\n",
    "a: 1\na: 2\nb: !!str 1\nc: !!binary aGk=\nd: !!float 3\ne: !!null ''\n",
    "base: &b {x: 1, y: [*n, &n 2]}\nmore: {<<: [*b, {z: 3}], x: 4}\n",
    "kind: ConfigMapList\napiVersion: v1\nitems:\n- metadata: {name: a}\n- null\n",
    "\u{feff}text: 'it''s'\nnext: \"a\\tb\\x41\\U0001F600\"\n# the end",
    "- - - - []\n- {a: [b, {c: d}]}\n-\t- x\n",
    "a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\nd: &d [*c,*c]\ne: [*d,*d]\n",
];

/// JSON texts, and nearly valid ones.
const JSON: &[&str] = &[
    r#"{"a":[1,-0,1.0,1e5,18446744073709551615,-9223372036854775808,1.5e-7],"b":{"\ud83d\ude00":"\u0000\n"},"a":null}"#,
    "[]{}\n[true,false,null]",
    "{a: 1, 'b': [x, y]}",
    r#"[[[[[[[[]]]]]]],{"":""}]"#,
    "  [\"\\\"\", \"\\\\\", \"/\"]\t\r\n",
];

/// A catalog with an ignored file, JSON and YAML, and most of what can be wrong.
const CATALOG: &str = "-- .indexignore --\n*.md\n!a.md\n/b/\n-- a.json --\n{\"schema\":\"olm.package\",\"name\":\"p\",\"defaultChannel\":\"c\"}\n\
    {\"schema\":\"olm.bundle\",\"package\":\"p\",\"name\":\"a\",\"image\":\"i\",\"properties\":[{\"type\":\"olm.package\",\"value\":\
    {\"packageName\":\"p\",\"version\":\"1.0.0+1\"}},{\"type\":\"olm.gvk\",\"value\":{\"group\":\"g\",\"kind\":\"K\",\"version\":\"v1\"}}]}\n\
    -- b/x --\n{{\n-- c.yaml --\n---\nSchema: olm.channel\npackage: p\nname: c\nentries:\n- name: a\n- {name: b, replaces: a, \
    skips: [z], skipRange: '<1.0.0'}\n...\n---\nschema: olm.deprecations\npackage: p\nentries:\n- {reference: {schema: olm.bundle, \
    name: a}, message: m}\n--- # x\nschema: other\nschema: another\n";

/// The objects of a pack: a file, one that is made of it, a link, directories, a submodule, commits and a tag.
const GIT_OBJECTS: &str = "-- blob --\nabc\n-- delta 0 --\n\u{4}\u{3}\u{3}xyz\n-- blob --\n../a\n-- tree --\n100644 a 0\n120000 l 2\n160000 s 0\n\
    -- tree --\n40000 d 3\n40000 e 3\n-- commit --\n4\nauthor a <b> 1 +0000\ncommitter a <b> 1 +0000\n\nm\n-- tag --\nobject x\n";

/// Scalars, one in a line.
const NUMBERS: &str = "0\n-0\n+0\n007\n08\n0o17\n0x_ff\n0b101\n1_000\n1e3\n1E-3\n.5\n5.\n-.5e+7\n9223372036854775807\n\
    9223372036854775808\n-9223372036854775808\n-9223372036854775809\n18446744073709551615\n18446744073709551616\n1e308\n1e309\n\
    0xffffffffffffffffff\n.inf\n-.Inf\n.nan\n1:30\n12e03\n0.1\n1.0\n1e19\n-1e19\n4.9e-324\n00\n+1\n--1\n";

/// The size in bytes of the largest bundle that is used as a seed: mutations of larger ones are slow and rarely find anything.
const LARGEST: usize = 64 << 10;

/// The seeds of one target, including the files of `fixtures` if that is a directory.
///
/// # Errors
/// If a directory cannot be read.
pub fn seeds(target: &str, fixtures: &Path) -> io::Result<Vec<Vec<u8>>> {
    let owned = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect::<Vec<_>>();
    Ok(match target {
        "yaml" => [owned(YAML), files(fixtures, &["yaml", "yml"], 16 << 10)?].concat(),
        "json" => [owned(JSON), files(fixtures, &["json"], 8 << 10)?].concat(),
        "numbers" => owned(&[NUMBERS]),
        "plain" => [vec![PLAIN.to_vec(), PAYLOAD.to_vec()], bundles(&fixtures.join("plain"))?].concat(),
        "resolver" => [vec![RESOLVER.to_vec()], owned(&[VARIABLES])].concat(),
        "registries" => vec![REGISTRIES.to_vec()],
        "helm_index" => vec![HELM_INDEX.to_vec()],
        "webhook" => vec![WEBHOOK.to_vec(), IDENTITY.to_vec()],
        "kubeconfig" => KUBECONFIGS.map(<[u8]>::to_vec).into(),
        "notification" => vec![NOTIFICATION.to_vec()],
        "registry" | "detect" => {
            [vec![EVERYTHING.to_vec(), PLAIN.to_vec(), PAYLOAD.to_vec()], bundles(fixtures)?].concat()
        }
        "sandbox" => {
            [vec![EVERYTHING.to_vec(), PLAIN.to_vec(), PAYLOAD.to_vec()], owned(HOSTILE), bundles(fixtures)?].concat()
        }
        #[cfg(feature = "sandbox")]
        "component" => components::components(),
        #[cfg(feature = "sandbox")]
        "component_size" => [components::nested(), choices(), components::components()].concat(),
        "browser" => [owned(lines::REQUESTS), choices()].concat(),
        "catalog" => [owned(&[CATALOG]), catalogs(&fixtures.join("catalogs"))?].concat(),
        "catalog_index" => choices(),
        "chart" => vec![CHART.to_vec()],
        "cached" => [cached::lines(), choices()].concat(),
        "generated" => [owned(lines::GENERATED), choices()].concat(),
        "git" => git(),
        "known_hosts" => owned(lines::KNOWN_HOSTS),
        "patterns" => owned(lines::PATTERNS),
        "delegation" => owned(lines::DELEGATIONS),
        "expression" => owned(lines::EXPRESSIONS),
        "text" => owned(lines::TEXTS),
        "archive" => archives(),
        "zip" => zips(),
        "signature" => owned(SIGNATURES),
        "image" => images(),
        "release" => [owned(&[API]), files(fixtures, &["yaml"], 8 << 10)?].concat(),
        "api" => [owned(&[API]), files(&fixtures.join("crd-upgrades"), &["json"], 16 << 10)?].concat(),
        "protobuf" => protobufs(),
        "registry_edits" => choices(),
        _ => Vec::new(),
    })
}

/// A first response, refs, a response with a pack in two bands, and packs.
fn git() -> Vec<Vec<u8>> {
    let line = |text: &str| format!("{:04x}{text}", text.len() + 4).into_bytes();
    let (one, two) = ("1".repeat(40), "2".repeat(40));
    let of = |how: u8, parts: &[Vec<u8>]| [vec![how], parts.concat()].concat();
    let end = b"0000".to_vec();
    vec![
        of(
            0,
            &[
                line("version 2\n"),
                line("ls-refs=unborn\n"),
                line("fetch=shallow\n"),
                line("object-format=sha1\n"),
                end.clone(),
            ],
        ),
        of(
            0,
            &[
                line(&format!("{one} refs/heads/main\n")),
                line(&format!("{one} refs/tags/v1.2.0 peeled:{two}\n")),
                end.clone(),
            ],
        ),
        of(0, &[line(&format!("{one} HEAD\0multi_ack side-band-64k\n")), end.clone()]),
        of(
            1,
            &[
                line("shallow-info\n"),
                line(&format!("shallow {one}\n")),
                b"0001".to_vec(),
                line("packfile\n"),
                line("\u{1}PACK"),
                line("\u{2}busy"),
                end,
            ],
        ),
        of(1, &[line("ERR not our ref")]),
        of(2, &[GIT_OBJECTS.as_bytes().to_vec()]),
        of(2, &[git_ladder().into_bytes()]),
    ]
}

/// Each object is made from the one before, which stays in memory for another one.
fn git_ladder() -> String {
    let rungs = (0..120).map(|rung| {
        let last = if rung == 0 { 0 } else { rung * 2 };
        format!("-- grown {last} --\na\n-- grown {last} --\nb\n")
    });
    format!("-- blob --\n{}\n{}", "x".repeat(30_000), rungs.collect::<String>())
}

/// The small files of catalogs, as archives.
fn catalogs(directory: &Path) -> io::Result<Vec<Vec<u8>>> {
    let archive = |text: Vec<u8>| [b"-- a/catalog.yaml --\n".to_vec(), text].concat();
    Ok(files(directory, &["yaml", "json"], 8 << 10)?.into_iter().map(archive).collect())
}

/// Choices for structured inputs: none, and some.
fn choices() -> Vec<Vec<u8>> {
    let bytes = |salt: u8| (0..64_u8).map(|byte| byte.wrapping_mul(37).wrapping_add(salt)).collect();
    (0..16).map(bytes).chain([Vec::new()]).collect()
}

/// Entries of all kinds, as plain archives and compressed ones.
fn tars() -> Vec<Vec<u8>> {
    let file = |name: &str, text: &str| entry(b'0', name.as_bytes(), b"", text.as_bytes());
    let end = vec![0; 1024];
    vec![
        [entry(b'5', b"manifests/", b"", b""), file("manifests/a.yaml", "a: 1\n"), end.clone()].concat(),
        [file("a", "x"), entry(b'2', b"b", b"a", b""), entry(b'1', b"c", b"a", b""), end.clone()].concat(),
        [entry(b'x', b"h", b"", &record("path", "long/name")), file("short", "x"), end.clone()].concat(),
        [entry(b'x', b"h", b"", &record("size", "1")), file("sized", "x"), end.clone()].concat(),
        [entry(b'g', b"h", b"", &record("comment", "c")), file("a", "x"), end.clone()].concat(),
        [entry(b'L', b"././@LongLink", b"", &[b'n'; 150]), file("n", "x"), end.clone()].concat(),
        [entry(b'K', b"././@LongLink", b"", b"a"), entry(b'2', b"b", b"", b""), file("a", "x"), end.clone()].concat(),
        // Names from two headers, in both orders.
        [entry(b'L', b"l", b"", b"b"), entry(b'x', b"h", b"", &record("path", "c")), file("a", "x"), end.clone()]
            .concat(),
        [entry(b'x', b"h", b"", &record("path", "c")), entry(b'L', b"l", b"", b"b"), file("a", "x"), end.clone()]
            .concat(),
        [
            file("a", "x"),
            entry(b'x', b"h", b"", &record("linkpath", "a")),
            entry(b'K', b"l", b"", b"a"),
            entry(b'2', b"b", b"a", b""),
            end.clone(),
        ]
        .concat(),
        [entry(b'S', b"sparse", b"", b""), end.clone()].concat(),
        [file(".wh.a", ""), file("d/.wh..wh..opq", ""), file("d/e", "x"), end].concat(),
    ]
}

fn archives() -> Vec<Vec<u8>> {
    let packed = |how: u8| tars().into_iter().map(move |tar| [vec![how], tar].concat());
    (1..4).flat_map(packed).collect()
}

/// Zip archives by their files, and as bytes.
fn zips() -> Vec<Vec<u8>> {
    let texts = [
        "-- manifests/a.yaml --\na: 1\n-- b --\n",
        "-- a --\nx\n-- ./a --\ny\n",
        "-- @link --\na-- a --\nx\n",
        "-- ../a --\nx\n-- a\\b --\n",
        "",
    ];
    let built = texts.into_iter().map(|text| [b"\x01", text.as_bytes()].concat());
    let raw = texts.into_iter().map(|text| [b"\0".to_vec(), zips::built(text.as_bytes())].concat());
    built.chain(raw).collect()
}

fn images() -> Vec<Vec<u8>> {
    let layers = tars();
    let with = |one: &[u8], two: &[u8], how: u8| {
        let layer =
            |name: &str, tar: &[u8]| [format!("-- {name}.tar --\n\n\n").as_bytes(), &[how], tar, b"\n"].concat();
        [IMAGE.as_bytes(), &layer("one", one), &layer("two", two)].concat()
    };
    let statuses = [
        "401 Unauthorized\nWWW-Authenticate: Bearer realm=\"http://127.0.0.1:1/t\",service=\"s\"",
        "503 x",
        "307 x\nLocation: http://169.254.169.254/latest",
        "302 x\nLocation: http://a:b@[::ffff:169.254.169.254]/",
        "308 x\nLocation: ../../v2/x/manifests/v1",
        "401 Unauthorized\nWWW-Authenticate: Bearer realm=\"http://0/t\"",
        "307 x\nLocation: /v2/y",
    ];
    let answers = statuses.map(|header| format!("-- x/manifests/v1 --\n{header}\n\n{{}}\n").into_bytes());
    let pairs = layers.iter().zip(layers.iter().skip(1));
    pairs.zip([1, 2, 3].into_iter().cycle()).map(|((one, two), how)| with(one, two, how)).chain(answers).collect()
}

/// Envelopes with a Pod and with nothing.
fn protobufs() -> Vec<Vec<u8>> {
    let field = |number: u8, bytes: &[u8]| {
        [vec![number << 3 | 2, u8::try_from(bytes.len()).unwrap_or(0)], bytes.to_vec()].concat()
    };
    let kind =
        |version: &str, kind: &str| field(1, &[field(1, version.as_bytes()), field(2, kind.as_bytes())].concat());
    let metadata =
        field(1, &[field(1, b"op"), field(3, b"ns"), field(11, &[field(1, b"a"), field(2, b"b")].concat())].concat());
    let container = field(2, &[field(1, b"op"), field(2, b"example.com/op"), field(6, &[24, 80])].concat());
    let object = [metadata, field(2, &container)].concat();
    ["Pod", "Deployment", "Secret", "ConfigMap", "Nothing"]
        .map(|name| {
            let version = if name == "Deployment" { "apps/v1" } else { "v1" };
            [b"k8s\0".to_vec(), kind(version, name), field(2, &object)].concat()
        })
        .into_iter()
        .chain([b"k8s\0".to_vec()])
        .collect()
}

/// The small files below a directory with one of these extensions.
fn files(directory: &Path, extensions: &[&str], largest: u64) -> io::Result<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    walk(directory, &mut |path, size| {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        if extensions.contains(&extension) && size <= largest {
            found.push(fs::read(path)?);
        }
        Ok(())
    })?;
    Ok(found)
}

/// The small bundles below a directory, as archives.
fn bundles(directory: &Path) -> io::Result<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    let mut pending = vec![directory.to_path_buf()];
    while let Some(directory) = pending.pop() {
        if directory.join("manifests").is_dir() {
            let mut archive = Archive { request: request(), ..Archive::default() };
            walk(&directory, &mut |path, _| {
                let inside = path.strip_prefix(&directory).unwrap_or(path).to_string_lossy().into_owned();
                archive.files.insert(inside, fs::read(path)?);
                Ok(())
            })?;
            let text = archive.write();
            if text.len() <= LARGEST {
                found.push(text);
            }
        } else if directory.is_dir() {
            for entry in fs::read_dir(directory)? {
                pending.extend(Some(entry?.path()).filter(|path| path.is_dir()));
            }
        }
    }
    Ok(found)
}

/// A request with which most operators can be installed.
fn request() -> RawRequest {
    let text = r#"{"config":{"certificateProvider":"cert-manager"},"target":{"name":"test","namespace":"ns"}}"#;
    serde_json::from_str(text).unwrap_or_default()
}

fn walk(directory: &Path, visit: &mut impl FnMut(&Path, u64) -> io::Result<()>) -> io::Result<()> {
    if !directory.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            walk(&entry.path(), visit)?;
        } else if kind.is_file() {
            visit(&entry.path(), entry.metadata()?.len())?;
        }
    }
    Ok(())
}
