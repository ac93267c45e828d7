//! Printed hints work: following them once is enough.

use chandler_tests::bundles::sample;

use crate::commands::Session;

/// The first printed command that begins with these words.
fn command<'a>(text: &'a str, words: &str) -> Vec<&'a str> {
    let mut commands = text.split('`').skip(1).step_by(2);
    let found = commands.find(|command| command.starts_with(words));
    assert!(found.is_some(), "no command {words:?} in {text}");
    found.unwrap().split(' ').skip(1).collect()
}

const OLD: &str = "registry/harbour-operator.v0.1.0";

#[tokio::test(flavor = "multi_thread")]
async fn findings_about_crds_of_a_directory_are_listed_and_approved_as_printed() {
    let session = Session::start().await;
    let name = session.world.name();
    let installed = session.install(&name, sample(OLD).path().to_str().unwrap(), &[]).await;
    assert_eq!(installed.code, Some(0), "{}", installed.stderr);
    let next = sample("registry/harbour-operator.v0.2.0").replacing(
        "manifests/harbour.example.com_berths.yaml",
        "maxLength: 63",
        "maxLength: 31",
    );
    let refused = session.run(&["upgrade", &name, next.path().to_str().unwrap()]).await;
    assert_eq!(refused.code, Some(8), "{}", refused.stderr);
    assert_eq!(refused.stderr.matches("^.spec.ship").count(), 1, "a finding is printed once: {}", refused.stderr);
    let watched = session.run(&["status", &name, "--watch"]).await;
    let watched = watched.stderr + &watched.stdout;
    assert_eq!(watched.matches("^.spec.ship").count(), 1, "a finding is printed once: {watched}");
    let listed = session.run(&command(&refused.stderr, "chandler diff")).await;
    assert!(listed.stdout.contains("v1alpha1: ^.spec.ship: "), "{} {}", listed.stdout, listed.stderr);
    let approve = command(&listed.stderr, "chandler approve");
    let approved = session.run(&[approve.as_slice(), &["--yes"]].concat()).await;
    assert_eq!(approved.code, Some(0), "{}", approved.stderr);
    let followed = session.run(&command(&approved.stderr, "chandler status")).await;
    assert_eq!(followed.code, Some(0), "{}", followed.stderr);
    session.world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_that_does_not_watch_all_namespaces_is_installed_by_the_printed_command() {
    let session = Session::start().await;
    for (unsupported, watched) in [(vec!["AllNamespaces"], Some(())), (vec!["AllNamespaces", "OwnNamespace"], None)] {
        let name = session.world.name();
        let bundle = unsupported.into_iter().fold(sample(OLD), |bundle, mode| {
            let file = "manifests/harbour-operator.clusterserviceversion.yaml";
            let (from, to) = ("supported: true", "supported: false");
            bundle.replacing(file, &format!("type: {mode}, {from}"), &format!("type: {mode}, {to}"))
        });
        let refused = session.install(&name, bundle.path().to_str().unwrap(), &[]).await;
        assert_eq!(refused.code, Some(1), "{}", refused.stderr);
        let printed = command(&refused.stderr, "chandler install");
        let value = watched.map_or("NAMESPACE", |()| session.world.namespace.as_str());
        assert_eq!(printed.last(), Some(&format!("watchNamespace={value}").as_str()));
        if watched.is_some() {
            let installed = session.run(&printed).await;
            assert_eq!(installed.code, Some(0), "{}", installed.stderr);
            let deleted = session.run(&["delete", &name, "--yes"]).await;
            assert_eq!(deleted.code, Some(0), "{}", deleted.stderr);
        }
    }
    session.world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_that_watches_only_all_namespaces_is_upgraded_by_the_printed_command() {
    let session = Session::start().await;
    let name = session.world.name();
    let own = format!("watchNamespace={}", session.world.namespace);
    let installed = session.install(&name, sample(OLD).path().to_str().unwrap(), &["--set", &own]).await;
    assert_eq!(installed.code, Some(0), "{}", installed.stderr);
    let next = ["OwnNamespace", "SingleNamespace"].into_iter().fold(
        sample("registry/harbour-operator.v0.2.0"),
        |bundle, mode| {
            let file = "manifests/harbour-operator.clusterserviceversion.yaml";
            let (from, to) = ("supported: true", "supported: false");
            bundle.replacing(file, &format!("type: {mode}, {from}"), &format!("type: {mode}, {to}"))
        },
    );
    let refused = session.run(&["upgrade", &name, next.path().to_str().unwrap()]).await;
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    let upgraded = session.run(&command(&refused.stderr, "chandler upgrade")).await;
    assert_eq!(upgraded.code, Some(0), "{}", upgraded.stderr);
    session.world.finish().await;
}
