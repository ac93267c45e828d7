//! The content service: bundles and catalogs over HTTPS, for callers that the API server vouches for.

use std::{
    collections::BTreeMap,
    fs,
    io::Read as _,
    net::{Ipv4Addr, SocketAddr, TcpListener},
};

use chandler_api::BundleDeploymentStatus;
use chandler_certificates::{Policy, ServingCertificate};
use chandler_controller::{ContentOptions, Timing, options::LEASE};
use chandler_tests::{
    ContentClient, World,
    bundles::Bundle,
    content_service,
    controller_thread::ControllerThread,
    crash_point::CrashPoint,
    in_process::InProcess,
    wait,
    world::{condition, empty_cache},
};
use http::{Method, StatusCode};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use serde_json::{Value, json};

use crate::{PLAIN, catalogs, leader_election, permissions};

/// A world whose controller serves content.
pub(crate) async fn serving() -> World {
    let mut world = World::new().await;
    world.stop_controller().await;
    start(&mut world, |_| {});
    world
}

fn start(world: &mut World, change: impl FnOnce(&mut ContentOptions)) {
    world.start_controller_changed(|options| {
        let mut content = ContentOptions::at((Ipv4Addr::LOCALHOST, 0).into());
        change(&mut content);
        options.content = Some(content);
    });
}

/// An address that is free now.
fn free_address() -> SocketAddr {
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    socket.local_addr().expect("an address")
}

pub(crate) async fn announced(world: &World) -> ConfigMap {
    content_service::announced(world, "announced", |_| true).await
}

/// A new ServiceAccount that may get these paths, and its token.
pub(crate) async fn user(world: &World, name: &str, paths: &[&str]) -> String {
    user_with(world, name, json!([{"nonResourceURLs": paths, "verbs": ["get"]}])).await
}

/// A new ServiceAccount with these rules, and its token.
pub(crate) async fn user_with(world: &World, name: &str, rules: Value) -> String {
    let account: ServiceAccount = serde_json::from_value(json!({"metadata": {"name": name}})).expect("an account");
    let accounts = Api::<ServiceAccount>::namespaced(world.client.clone(), &world.namespace);
    accounts.create(&PostParams::default(), &account).await.expect("an account");
    let role = format!("{}-{name}", world.run());
    let group = "rbac.authorization.k8s.io";
    permissions::apply(
        world,
        &[
            json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": role},
                "rules": rules}),
            json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": role},
                "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": world.namespace}]}),
        ],
    )
    .await;
    content_service::token(world, &world.namespace, name).await
}

const BELL: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bell}\n";

async fn install(world: &World, name: &str, text: &str) -> BundleDeploymentStatus {
    let image = world.push(&Bundle::empty().with("manifests/bell.yaml", text)).await;
    let source = json!({"type": "image", "image": {"ref": image}});
    let spec = json!({"installNamespace": world.namespace, "provisionerClassName": PLAIN, "source": source});
    world.apply(name, spec).await;
    world.ready(name).await.status.expect("a status")
}

/// The files of an archive.
fn files(archive: &[u8]) -> BTreeMap<String, String> {
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(archive));
    let entries = archive.entries().expect("an archive").map(|entry| {
        let mut entry = entry.expect("an entry");
        let path = entry.path().expect("a path").display().to_string();
        let mut text = String::new();
        entry.read_to_string(&mut text).expect("a text");
        (path, text)
    });
    entries.collect()
}

#[tokio::test]
async fn the_content_of_a_bundle_is_served_to_those_who_may_read_it() {
    let mut world = serving().await;
    let name = world.name();
    let status = install(&world, &name, BELL).await;
    let announcement = announced(&world).await;
    let path = format!("/bundles/{name}.tgz");
    let url = &announcement.data.as_ref().expect("data")["url"];
    assert_eq!(status.content_url, Some(format!("{url}{path}")));

    let reader = user(&world, "reader", &[&path]).await;
    let client = ContentClient::new(&announcement, Some(reader.clone()));
    let whole = client.get(&path, &[]).await;
    assert_eq!(
        (whole.status, whole.header("content-type")),
        (StatusCode::OK, "application/gzip"),
        "{}",
        whole.body.len()
    );
    assert_eq!(files(&whole.body), [("manifests/bell.yaml".to_owned(), BELL.to_owned())].into());
    let tag = whole.header("etag");
    assert_eq!(client.get(&path, &[]).await.body, whole.body, "the same bytes each time");

    let known = client.get(&path, &[("if-none-match", tag)]).await;
    assert_eq!((known.status, known.body.len()), (StatusCode::NOT_MODIFIED, 0));
    let part = client.get(&path, &[("range", "bytes=10-19")]).await;
    assert_eq!((part.status, part.body.as_slice()), (StatusCode::PARTIAL_CONTENT, &whole.body[10..20]));
    assert_eq!(part.header("content-range"), format!("bytes 10-19/{}", whole.body.len()));
    let beyond = client.get(&path, &[("range", "bytes=999999-")]).await;
    assert_eq!(beyond.status, StatusCode::RANGE_NOT_SATISFIABLE);
    let head = client.send(Method::HEAD, &path, &[]).await.expect("an answer");
    assert_eq!((head.status, head.header("etag"), head.body.len()), (StatusCode::OK, tag, 0));
    let put = client.send(Method::PUT, &path, &[]).await.expect("an answer");
    assert_eq!(put.status, StatusCode::METHOD_NOT_ALLOWED);

    // A restart loses nothing, even if the registry is gone.
    world.stop_controller().await;
    start(&mut world, |_| {});
    let before = url.clone();
    let announcement = content_service::announced(&world, "announced again", |map| {
        map.data.as_ref().is_some_and(|data| data["url"] != before)
    });
    let client = ContentClient::new(&announcement.await, Some(reader));
    // The status is empty until the controller has observed it.
    let again = || async {
        let answer = client.get(&path, &[]).await;
        assert_ne!(answer.status, StatusCode::NOT_FOUND);
        answer.status == StatusCode::OK && answer.body == whole.body
    };
    wait::eventually("served again", again).await;

    // Other content has another tag.
    install(&world, &name, &BELL.replace("name: bell", "name: gong")).await;
    let other = client.get(&path, &[("if-none-match", tag)]).await;
    assert_eq!(other.status, StatusCode::OK);
    assert!(files(&other.body)["manifests/bell.yaml"].contains("gong"));
    world.delete(&name).await;
    wait::eventually("forgotten", || async { client.get(&path, &[]).await.status == StatusCode::NOT_FOUND }).await;
    world.finish().await;
}

#[tokio::test]
async fn nobody_else_learns_what_exists() {
    let world = serving().await;
    let name = world.name();
    install(&world, &name, BELL).await;
    let announcement = announced(&world).await;
    let (path, absent) = (format!("/bundles/{name}.tgz"), "/bundles/none.tgz".to_owned());
    let other = user(&world, "other", &["/bundles/others.tgz", "/bundles/deep/*"]).await;
    let nobody = ContentClient::new(&announcement, None);
    let liar = ContentClient::new(&announcement, Some(format!("{other}x")));
    let other = ContentClient::new(&announcement, Some(other));
    for path in [&path, &absent, &"/catalogs/none/api/v1/all".to_owned(), &"/".to_owned(), &"/metrics".to_owned()] {
        for client in [&nobody, &liar] {
            let answer = client.get(path, &[]).await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{path}: {}", answer.text());
            assert_eq!(answer.header("www-authenticate"), "Bearer realm=\"chandler\"");
        }
        let answer = other.get(path, &[]).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{path}: {}", answer.text());
        let expected = format!("system:serviceaccount:{}:other may not get {path}", world.namespace);
        assert!(answer.text().starts_with(&expected), "{}", answer.text());
    }
    // The service serves the content that was checked: no other spelling of the path leads there.
    for path in [
        format!("/bundles/deep/../{name}.tgz"),
        format!("/bundles/deep%2f..%2f{name}.tgz"),
        format!("/bundles//{name}.tgz"),
    ] {
        let answer = other.get(&path, &[]).await;
        assert!(matches!(answer.status, StatusCode::FORBIDDEN | StatusCode::NOT_FOUND), "{path}: {}", answer.status);
    }
    // Permission for a path that does not exist shows only that.
    let answer = other.get("/bundles/others.tgz", &[]).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND, "{}", answer.text());
    // The ConfigMap has what clients need and no key.
    let data = announcement.data.expect("data");
    assert_eq!(data.keys().collect::<Vec<_>>(), ["ca.crt", "url"]);
    assert!(!data["ca.crt"].contains("PRIVATE"));
    world.finish().await;
}

#[tokio::test]
async fn a_status_that_someone_else_wrote_shows_no_other_content() {
    let world = serving().await;
    let (name, thief) = (world.name(), format!("{}-thief", world.run()));
    let digest = install(&world, &name, BELL).await.content_digest.expect("a digest");
    // A BundleDeployment whose content cannot be fetched, with the digest of another one in its status.
    let source = json!({"type": "image", "image": {"ref": format!("{}/none:v1", world.registry.host())}});
    world
        .apply(&thief, json!({"installNamespace": world.namespace, "provisionerClassName": PLAIN, "source": source}))
        .await;
    world.condition(&thief, "Unpacked", "False", "UnpackFailed").await;
    let deployments: Api<chandler_api::BundleDeployment> = Api::all(world.client.clone());
    let forged =
        kube::api::Patch::Merge(json!({"status": {"contentDigest": digest, "contentURL": "https://evil.invalid/x"}}));
    deployments.patch_status(&thief, &kube::api::PatchParams::default(), &forged).await.expect("a status");
    let reader = user(&world, "reader", &["/bundles/*"]).await;
    let client = ContentClient::new(&announced(&world).await, Some(reader));
    assert_eq!(client.get(&format!("/bundles/{thief}.tgz"), &[]).await.status, StatusCode::NOT_FOUND);
    assert_eq!(client.get(&format!("/bundles/{name}.tgz"), &[]).await.status, StatusCode::OK);
    world.finish().await;
}

#[tokio::test]
async fn catalogs_are_served_as_catalogd_serves_them() {
    let world = serving().await;
    let name = world.name();
    let text =
        format!("{}---\n{}", catalogs::package("harbour", &["1.0.0", "1.1.0"]), catalogs::package("bell", &["2.0.0"]));
    let reference = catalogs::push(&world.registry, &[("catalog.yaml", &text)]).await;
    let source = json!({"type": "image", "image": {"ref": reference}});
    let _: chandler_api::Catalog = world.create(json!({"metadata": {"name": name}, "spec": {"source": source}})).await;
    catalogs::ready(&world, &name).await;
    let reader = user(&world, "reader", &["/catalogs/*"]).await;
    let client = ContentClient::new(&announced(&world).await, Some(reader));
    let (all, metas) = (format!("/catalogs/{name}/api/v1/all"), format!("/catalogs/{name}/api/v1/metas"));
    let documents = |text: &str| -> Vec<Value> {
        text.lines().map(|line| serde_json::from_str(line).expect("a document")).collect()
    };

    let answer = client.get(&all, &[]).await;
    assert_eq!((answer.status, answer.header("content-type")), (StatusCode::OK, "application/jsonl"));
    let everything = documents(&answer.text());
    assert_eq!(everything.len(), 7);
    assert_eq!(documents(&client.get(&metas, &[]).await.text()), everything);
    let known = client.get(&all, &[("if-none-match", answer.header("etag"))]).await;
    assert_eq!(known.status, StatusCode::NOT_MODIFIED);
    for (query, expected) in [
        ("schema=olm.bundle", 3),
        ("schema=olm.bundle&package=harbour", 2),
        ("package=harbour", 3),
        ("schema=olm.package&name=bell", 1),
        ("name=stable", 2),
        ("name=none", 0),
    ] {
        let answer = client.get(&format!("{metas}?{query}"), &[]).await;
        assert_eq!((answer.status, documents(&answer.text()).len()), (StatusCode::OK, expected), "{query}");
    }
    let answer = client.get(&format!("{metas}?pkg=harbour"), &[]).await;
    assert_eq!(
        (answer.status, answer.text().trim()),
        (StatusCode::BAD_REQUEST, "\"pkg\" is not a parameter: they are schema, package and name")
    );
    let absent = client.get("/catalogs/none/api/v1/all", &[]).await;
    assert_eq!(absent.status, StatusCode::NOT_FOUND);

    let compressed = client.get(&all, &[("accept-encoding", "gzip")]).await;
    assert_eq!(compressed.header("content-encoding"), "gzip");
    let mut text = String::new();
    flate2::read::GzDecoder::new(compressed.body.as_slice()).read_to_string(&mut text).expect("gzip");
    assert_eq!(documents(&text), everything);
    world.finish().await;
}

/// An archive of a bundle with one manifest.
pub(crate) fn archive(text: &str) -> Vec<u8> {
    let mut archive = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    let mut header = tar::Header::new_ustar();
    header.set_size(text.len() as u64);
    header.set_mode(0o644);
    archive.append_data(&mut header, "manifests/bell.yaml", text.as_bytes()).expect("an entry");
    archive.into_inner().expect("an archive").finish().expect("gzip")
}

pub(crate) fn uploaded(world: &World, digest: Option<&str>) -> Value {
    let upload = digest.map_or_else(|| json!({}), |digest| json!({"digest": digest}));
    json!({"installNamespace": world.namespace, "provisionerClassName": PLAIN, "source": {"type": "upload", "upload": upload}})
}

pub(crate) fn bell(tone: &str) -> String {
    format!("{BELL}data: {{tone: {tone}}}\n")
}

pub(crate) async fn tone(world: &World, tone: &str) {
    wait::until(&world.config_maps(), "bell", tone, |bell: Option<&ConfigMap>| {
        bell.and_then(|bell| bell.data.as_ref()).is_some_and(|data| data["tone"] == tone)
    })
    .await;
}

/// Permission to update one BundleDeployment, which is installed with the permissions of the controller.
pub(crate) fn updates(name: &str) -> Value {
    json!([{"apiGroups": ["core.rukpak.io"], "resources": ["bundledeployments"], "resourceNames": [name],
            "verbs": ["update", "installWithControllerRights"]}])
}

#[tokio::test]
async fn uploaded_content_is_installed_and_stays() {
    let mut world = serving().await;
    let (name, image) = (world.name(), format!("{}-image", world.run()));
    let path = format!("/uploads/{name}.tgz");
    install(&world, &image, &BELL.replace("name: bell", "name: other")).await;
    let announcement = announced(&world).await;
    let author = ContentClient::new(&announcement, Some(user_with(&world, "author", updates(&name)).await));
    let reader = ContentClient::new(&announcement, Some(user(&world, "reader", &["/bundles/*", "/uploads/*"]).await));
    let put = |client: &ContentClient, path: &str, text: &str| {
        let body = archive(text);
        let path = path.to_owned();
        let client = client.clone();
        async move { client.put(&path, &body).await }
    };
    let low = bell("low");
    assert_eq!(put(&author, &path, &low).await.status, StatusCode::NOT_FOUND, "there is no BundleDeployment yet");
    world.apply(&name, uploaded(&world, None)).await;
    let waiting = world.condition(&name, "Unpacked", "False", "UploadPending").await;
    let message = &condition(&waiting, "Unpacked").expect("Unpacked").message;
    assert!(message.starts_with("its files have not been uploaded yet"), "{message}");

    assert_eq!(put(&reader, &path, &low).await.status, StatusCode::FORBIDDEN);
    assert_eq!(put(&ContentClient::new(&announcement, None), &path, &low).await.status, StatusCode::UNAUTHORIZED);
    let foreign = put(&author, &format!("/uploads/{image}.tgz"), &low).await;
    assert_eq!(foreign.status, StatusCode::FORBIDDEN);
    let refused = author.put(&path, b"no archive").await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.text());

    let created = put(&author, &path, &low).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.text());
    tone(&world, "low").await;
    let status = world.ready(&name).await.status.expect("a status");
    assert_eq!(status.content_digest.as_deref(), Some(created.text().trim()));
    let resolved = status.resolved_source.and_then(|source| source.upload).and_then(|upload| upload.digest);
    assert_eq!(resolved, status.content_digest);
    assert_eq!(put(&author, &path, &low).await.status, StatusCode::NO_CONTENT);
    let changed = put(&author, &path, &bell("high")).await;
    assert_eq!(changed.status, StatusCode::CONFLICT, "{}", changed.text());
    let read = reader.get(&format!("/bundles/{name}.tgz"), &[]).await;
    assert_eq!(files(&read.body)["manifests/bell.yaml"], low);

    // It is still there after a restart.
    world.stop_controller().await;
    start(&mut world, |_| {});
    let bells = world.config_maps();
    bells.delete("bell", &DeleteParams::default()).await.expect("deleted");
    tone(&world, "low").await;

    // A later BundleDeployment of the same name is another one.
    world.delete(&name).await;
    world.apply(&name, uploaded(&world, status.content_digest.as_deref())).await;
    let waiting = world.condition(&name, "Unpacked", "False", "UploadPending").await;
    let message = &condition(&waiting, "Unpacked").expect("Unpacked").message;
    assert!(message.starts_with("its files have not been uploaded yet"), "{message}");
    world.finish().await;
}

/// Two replicas, each with a cache of its own: what `chandler manifests` refuses without a shared volume, and why.
#[tokio::test]
async fn all_replicas_serve_content_and_the_next_leader_lacks_uploads_in_the_cache_of_the_first() {
    let world = leader_election::world().await;
    let replica = |identity: &str| {
        let cache = empty_cache();
        let mut options = leader_election::candidate(&world, world.client.clone(), identity, Timing::default());
        options.cache_directory = cache.path().to_owned();
        let address = free_address();
        options.content = Some(ContentOptions::at(address));
        (ControllerThread::start(world.config(), options, CrashPoint::Never), address, cache)
    };
    let (first, _, _first_cache) = replica("first");
    let first_announcement = announced(&world).await;
    let (second, second_address, _second_cache) = replica("second");
    let name = world.name();
    world.apply(&name, uploaded(&world, None)).await;
    world.condition(&name, "Unpacked", "False", "UploadPending").await;
    let token = user_with(&world, "author", updates(&name)).await;
    let author = ContentClient::new(&first_announcement, Some(token.clone()));
    let answer = author.put(&format!("/uploads/{name}.tgz"), &archive(&bell("low"))).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text());
    world.ready(&name).await;

    // A replica that waits passes connections on, and callers check the certificate of the leader.
    let path = format!("/bundles/{name}.tgz");
    let reader = user(&world, "reader", &[&path]).await;
    let authority = first_announcement.data.as_ref().expect("data")["ca.crt"].clone();
    let beside = format!("https://{second_address}");
    let answer = ContentClient::at(&beside, &authority, Some(reader.clone())).get(&path, &[]).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    let direct = ContentClient::new(&first_announcement, Some(reader.clone())).get(&path, &[]).await;
    assert_eq!(answer.body, direct.body);
    let again = ContentClient::at(&beside, &authority, Some(token.clone()));
    let again = again.put(&format!("/uploads/{name}.tgz"), &archive(&bell("low"))).await;
    assert_eq!(again.status, StatusCode::NO_CONTENT, "{}", again.text());
    let refused = ContentClient::at(&beside, &authority, None).get(&path, &[]).await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);

    first.stop().await;
    let before = first_announcement.data.as_ref().expect("data")["url"].clone();
    let second_announcement = content_service::announced(&world, "announced by the second", |map| {
        map.data.as_ref().is_some_and(|data| data["url"] != before)
    })
    .await;
    let missing = world.condition(&name, "Unpacked", "False", "UnpackFailed").await;
    assert_eq!(condition(&missing, "Installed").expect("Installed").status, "True", "the installed release stays");
    tone(&world, "low").await;
    // The same upload again helps.
    let author = ContentClient::new(&second_announcement, Some(token));
    let answer = author.put(&format!("/uploads/{name}.tgz"), &archive(&bell("low"))).await;
    assert!(answer.status.is_success(), "{}", answer.text());
    world.condition(&name, "Unpacked", "True", "UnpackSuccessful").await;
    // The next leader serves there itself.
    let authority = &second_announcement.data.as_ref().expect("data")["ca.crt"];
    let answer = ContentClient::at(&beside, authority, Some(reader)).get(&path, &[]).await;
    assert_eq!((answer.status, answer.body), (StatusCode::OK, direct.body));
    second.stop().await;
    // Nothing points to a leader that has ended.
    let lease = leader_election::leases(&world).get(LEASE).await.expect("a Lease");
    assert_eq!(lease.metadata.annotations.unwrap_or_default().get("chandler.dev/content-address"), None);
    world.finish().await;
}

#[tokio::test]
async fn an_upload_that_the_spec_names_by_digest_can_be_replaced() {
    let world = serving().await;
    let (name, thief) = (world.name(), format!("{}-thief", world.run()));
    let path = format!("/uploads/{name}.tgz");
    let announcement = announced(&world).await;
    let author = ContentClient::new(&announcement, Some(user_with(&world, "author", updates(&name)).await));
    let unknown = format!("sha256:{}", "0".repeat(64));
    world.apply(&name, uploaded(&world, Some(&unknown))).await;
    world.condition(&name, "Unpacked", "False", "UploadPending").await;

    // Content is uploaded before the spec names it.
    for wanted in ["low", "high"] {
        let answer = author.put(&path, &archive(&bell(wanted))).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text());
        world.apply(&name, uploaded(&world, Some(answer.text().trim()))).await;
        tone(&world, wanted).await;
        world.ready(&name).await;
    }
    let history = world.ready(&name).await.status.expect("a status").history;
    assert_eq!(history.iter().filter(|revision| revision.outcome.as_str() == "Succeeded").count(), 2, "{history:?}");

    // Who knows a digest does not have the content.
    let digest = history.last().expect("a revision").content_digest.clone();
    world.apply(&thief, uploaded(&world, Some(&digest))).await;
    let refused = world.condition(&thief, "Unpacked", "False", "UploadPending").await;
    let message = &condition(&refused, "Unpacked").expect("Unpacked").message;
    assert!(message.starts_with("its files have not been uploaded yet"), "{message}");
    // A digest that was not uploaded does not affect the running release.
    world.apply(&name, uploaded(&world, Some(&unknown))).await;
    let refused = world.condition(&name, "Unpacked", "False", "UnpackFailed").await;
    let message = &condition(&refused, "Unpacked").expect("Unpacked").message;
    assert!(message.contains("was not uploaded for it"), "{message}");
    tone(&world, "high").await;
    world.finish().await;
}

#[tokio::test]
async fn uploads_without_end_are_cleaned_at_once() {
    let mut world = World::new().await;
    world.stop_controller().await;
    // Unused content is removed beyond half of the limit.
    let (cache, budget) = (empty_cache(), 1 << 20);
    let client = world.client.clone();
    world.start_controller_with(InProcess::Option("content_cache_bytes"), client, |options| {
        options.content_cache_bytes = 2 * budget;
        options.cache_directory = cache.path().to_owned();
        options.content = Some(ContentOptions::at((Ipv4Addr::LOCALHOST, 0).into()));
    });
    let name = world.name();
    world.apply(&name, uploaded(&world, None)).await;
    world.condition(&name, "Unpacked", "False", "UploadPending").await;
    let author = user_with(&world, "author", updates(&name)).await;
    let author = ContentClient::new(&announced(&world).await, Some(author));
    for number in 10..22 {
        let content = archive(&number.to_string().repeat(100_000));
        let answer = author.put(&format!("/uploads/{name}.tgz"), &content).await;
        let expected = if number == 10 { StatusCode::CREATED } else { StatusCode::CONFLICT };
        assert_eq!(answer.status, expected, "{}", answer.text());
    }
    let trees = cache.path().join("content/trees");
    wait::eventually("the cache is within its budget", || async {
        let trees = fs::read_dir(&trees).expect("the cache");
        let size = |tree: fs::DirEntry| fs::metadata(tree.path().join("pack")).map_or(0, |pack| pack.len());
        let size: u64 = trees.filter_map(Result::ok).map(size).sum();
        (200_000..=budget).contains(&size)
    })
    .await;
    world.finish().await;
}

fn secret(serving: &ServingCertificate) -> Secret {
    serde_json::from_value(json!({
        "metadata": {"name": "serving"}, "type": "kubernetes.io/tls",
        "stringData": {"tls.crt": serving.certificate, "tls.key": serving.key, "ca.crt": serving.authority},
    }))
    .expect("a Secret")
}

#[tokio::test]
async fn the_certificate_of_a_secret_is_served_and_follows_it() {
    let mut world = World::new().await;
    world.stop_controller().await;
    start(&mut world, |content| content.tls_secret = Some("serving".to_owned()));
    let issue = || {
        let names = ["127.0.0.1".to_owned()].into();
        ServingCertificate::issue(&names, time::OffsetDateTime::now_utc(), &Policy::default()).expect("a certificate")
    };
    let (first, second) = (issue(), issue());
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &world.system_namespace);
    // The service waits for the Secret.
    secrets.create(&PostParams::default(), &secret(&first)).await.expect("a Secret");
    let authority = |serving: &ServingCertificate| {
        let authority = serving.authority.clone();
        move |map: &ConfigMap| map.data.as_ref().is_some_and(|data| data["ca.crt"] == authority)
    };
    let announcement = content_service::announced(&world, "the first authority", authority(&first)).await;
    assert_eq!(ContentClient::new(&announcement, None).get("/", &[]).await.status, StatusCode::UNAUTHORIZED);

    secrets.delete("serving", &DeleteParams::default()).await.expect("deleted");
    secrets.create(&PostParams::default(), &secret(&second)).await.expect("a Secret");
    let next = content_service::announced(&world, "the second authority", authority(&second)).await;
    assert_eq!(ContentClient::new(&next, None).get("/", &[]).await.status, StatusCode::UNAUTHORIZED);
    let old = ContentClient::new(&announcement, None).send(Method::GET, "/", &[]).await;
    assert!(old.is_err(), "the old authority is no longer right");
    world.finish().await;
}
