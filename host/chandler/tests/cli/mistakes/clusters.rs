//! Mistakes with kubeconfigs, API servers and permissions.

use std::{fs, os::unix::fs::PermissionsExt as _};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chandler_devcluster::{DevCluster, Options};

use super::{
    Messages, mistake,
    servers::{self, unused_port},
};

/// A kubeconfig for a server, with these lines for the cluster and for the user.
fn kubeconfig(server: &str, cluster: &str, user: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: dev\n\
         clusters:\n- name: dev\n  cluster: {{server: '{server}'{cluster}}}\n\
         contexts:\n- name: dev\n  context: {{cluster: dev, user: dev}}\n\
         users:\n- name: dev\n  user: {{{user}}}\n"
    )
}

fn authority(pem: &str) -> String {
    format!(", certificate-authority-data: {}", STANDARD.encode(pem))
}

#[test]
fn a_kubeconfig_that_leads_nowhere_is_named() {
    let mut messages = Messages::new();
    let valid = kubeconfig("https://127.0.0.1:1", "", "token: a");
    let broken = messages.file("broken", "clusters: [\n");
    let empty = messages.file("empty", "");
    let unchosen = messages.file("unchosen", &valid.replace("current-context: dev\n", ""));
    let unknown = messages.file("unknown", &valid.replace("current-context: dev", "current-context: prod"));
    let clusterless = messages.file("clusterless", &valid.replace("{cluster: dev,", "{cluster: prod,"));
    let fileless = messages
        .file("fileless", &kubeconfig("https://127.0.0.1:1", ", certificate-authority: /not/there.pem", "token: a"));
    let exposed = messages.file("exposed", &valid);
    fs::set_permissions(&exposed, fs::Permissions::from_mode(0o666)).unwrap();
    let with = |file: &str| ["status", "x", "--kubeconfig", file].map(str::to_owned);
    messages.check(vec![
        mistake("no kubeconfig", &["status", "x"], "failed to read the kubeconfig", ".kube/config", "set --kubeconfig"),
        mistake(
            "a mistyped kubeconfig",
            &with("./none"),
            "failed to read the kubeconfig",
            "./none",
            "set --kubeconfig",
        ),
        mistake("a broken kubeconfig", &with(&broken), "is not valid", &broken, "kubectl config view"),
        mistake("an empty kubeconfig", &with(&empty), "has no current context", &empty, "kubectl config set-context"),
        mistake(
            "no current context",
            &with(&unchosen),
            "has no current context",
            &unchosen,
            "kubectl config use-context",
        ),
        mistake("an unknown context", &with(&unknown), "has no context \"prod\"", &unknown, "its contexts are dev"),
        mistake(
            "a context without its cluster",
            &with(&clusterless),
            "has no cluster \"prod\"",
            &clusterless,
            "kubectl config get-clusters",
        ),
        mistake(
            "an authority that is not there",
            &with(&fileless),
            "failed to read /not/there.pem",
            &fileless,
            "kubectl config view",
        ),
        mistake(
            "a kubeconfig that others can write",
            &with(&exposed),
            "can be written by other users",
            &exposed,
            "chmod 600",
        ),
    ]);
    insta::assert_snapshot!("mistakes.kubeconfigs", messages.finish());
}

#[test]
fn a_cluster_that_does_not_answer_is_named() {
    let mut messages = Messages::new();
    let port = unused_port();
    let website = servers::website();
    let (stranger, _) = servers::tls("127.0.0.1", false);
    let (expired, expired_pem) = servers::tls("127.0.0.1", true);
    let (other, other_pem) = servers::tls("api.example.com", false);
    messages.name(port.to_string(), "GONE");
    for (address, name) in [(website, "WEBSITE"), (stranger, "STRANGER"), (expired, "EXPIRED"), (other, "OTHER")] {
        messages.name(address.to_string(), name);
    }
    let (_, unrelated) = servers::tls("127.0.0.1", false);
    let file =
        |name: &str, server: &str, cluster: &str, user: &str| messages.file(name, &kubeconfig(server, cluster, user));
    let token = "token: a";
    let gone = file("gone", &format!("https://127.0.0.1:{port}"), "", token);
    let nameless = file("nameless", "https://api.invalid:6443", "", token);
    let page = file("page", &format!("http://{website}"), "", token);
    let plain = file("plain", &format!("https://{website}"), "", token);
    let untrusted = file("untrusted", &format!("https://{stranger}"), &authority(&unrelated), token);
    let late = file("late", &format!("https://{expired}"), &authority(&expired_pem), token);
    let renamed = file("renamed", &format!("https://{other}"), &authority(&other_pem), token);
    let plugin = "exec: {apiVersion: client.authentication.k8s.io/v1, command: no-such-plugin, interactiveMode: Never}";
    let plugin = file("plugin", &format!("https://{stranger}"), "", plugin);
    let with = |file: &str| ["status", "x", "--kubeconfig", file].map(str::to_owned);
    messages.check(vec![
        mistake(
            "no server",
            &with(&gone),
            "Connection refused",
            format!("https://127.0.0.1:{port} (context \"dev\" in {gone})"),
            "start the cluster",
        ),
        mistake("a server that is not in DNS", &with(&nameless), "api.invalid", &nameless, "not in DNS"),
        mistake(
            "a website",
            &with(&page),
            "did not answer as a Kubernetes API server",
            format!("http://{website}"),
            "kubectl cluster-info",
        ),
        mistake(
            "a server without TLS",
            &with(&plain),
            "does not speak TLS",
            format!("https://{website}"),
            "certificate-authority-data",
        ),
        mistake(
            "a wrong authority",
            &with(&untrusted),
            "its certificate is",
            format!("https://{stranger}"),
            "certificate-authority-data",
        ),
        mistake(
            "an expired certificate",
            &with(&late),
            "has expired",
            format!("https://{expired}"),
            "kubectl cluster-info",
        ),
        mistake(
            "a certificate of another host",
            &with(&renamed),
            "is for another host name",
            format!("https://{other}"),
            "kubectl cluster-info",
        ),
        mistake("a plugin that is not installed", &with(&plugin), "no-such-plugin", &plugin, "kubectl config view"),
    ]);
    insta::assert_snapshot!("mistakes.servers", messages.finish());
}

#[test]
fn a_cluster_that_refuses_says_what_is_missing() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let cluster = runtime.block_on(DevCluster::start(Options::default())).unwrap();
    let mut messages = Messages::new();
    messages.name(cluster.url().to_owned(), "SERVER");
    let admin = cluster.kubeconfig();
    let (before, _) = admin.split_once("    token:").unwrap();
    let bare = messages.file("admin", &admin);
    let wrong = messages.file("wrong", &format!("{before}    token: wrong\n"));
    let anonymous = messages.file("anonymous", &format!("{before}    as-groups: []\n"));
    let other = messages.file("other", &format!("{admin}    as: ann\n"));
    let with = |command: &str, file: &str| [command, "shop", "--kubeconfig", file].map(str::to_owned);
    messages.check(vec![
        mistake(
            "no CRDs",
            &with("status", &bare),
            "does not serve this kind",
            "BundleDeployment shop",
            "chandler crds | kubectl apply",
        ),
        mistake(
            "no CRDs for the history",
            &with("history", &bare),
            "does not serve this kind",
            "BundleDeployment shop",
            "chandler crds | kubectl apply",
        ),
        mistake(
            "no CRDs for an explanation",
            &with("explain", &bare),
            "does not serve this kind",
            "BundleDeployment shop",
            "chandler crds | kubectl apply",
        ),
        mistake(
            "no CRDs for a deletion",
            &with("delete", &bare),
            "does not serve this kind",
            "BundleDeployment shop",
            "chandler crds | kubectl apply",
        ),
        mistake(
            "no CRDs for the controller",
            &[
                "--log-level",
                "error",
                "controller",
                "--system-namespace",
                "default",
                "--cache-directory",
                &messages.path("cache"),
                "--kubeconfig",
                &bare,
            ],
            "does not serve this kind",
            "ProvisionerClasses",
            "chandler crds | kubectl apply",
        ),
        mistake(
            "no system namespace for the controller",
            &["--log-level", "error", "controller", "--kubeconfig", &bare],
            "namespaces \"chandler-system\" not found",
            "Lease chandler-system/chandler-controller",
            "kubectl apply -f deploy/rbac.yaml",
        ),
        mistake(
            "a controller that may not write its Lease",
            &["--log-level", "error", "controller", "--kubeconfig", &other],
            "\"ann\" cannot get",
            "Lease chandler-system/chandler-controller",
            "--leader-elect=false",
        ),
        mistake("an old token", &with("status", &wrong), "401 Unauthorized", cluster.url(), "kubectl auth whoami"),
        mistake(
            "no credentials",
            &with("status", &anonymous),
            "system:anonymous",
            "BundleDeployment shop",
            "has no credentials",
        ),
        mistake(
            "a user without permissions",
            &with("status", &other),
            "\"ann\" cannot get",
            "BundleDeployment shop",
            "kubectl auth can-i",
        ),
        mistake(
            "a user who may not delete",
            &with("delete", &other),
            "\"ann\" cannot get",
            "BundleDeployment shop",
            "kubectl auth can-i",
        ),
    ]);
    insta::assert_snapshot!("mistakes.permissions", messages.finish());
}
