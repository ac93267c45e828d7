use chandler_core::MemoryContent;
use chandler_test_support::needs::fixture;

use super::*;
use crate::{Directory, Indexes, Limits};

fn findings(content: &dyn chandler_core::Content) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let indexes = Indexes::open(directory.path().join("indexes")).unwrap();
    let (index, mut findings) = indexes.build_for_lint(content, &Limits::default(), 100).unwrap();
    findings.extend(catalog(&index, 100).unwrap());
    findings
        .iter()
        .map(|finding| format!("{}:{} {}", finding.place.line, finding.problem.code(), finding.problem))
        .collect()
}

const PACKAGE: &str = "schema: olm.package\nname: p\ndefaultChannel: c\n";

fn channel(entries: &str) -> String {
    format!("---\nschema: olm.channel\npackage: p\nname: c\nentries:\n{entries}")
}

fn bundle(name: &str, version: &str) -> String {
    format!(
        "---\nschema: olm.bundle\npackage: p\nname: {name}\nimage: i\nproperties:\n\
         - {{type: olm.package, value: {{packageName: p, version: {version}}}}}\n"
    )
}

fn bundles(names: &str) -> String {
    names.chars().enumerate().map(|(at, name)| bundle(&name.to_string(), &format!("{at}.0.0"))).collect()
}

/// A catalog of one package, one channel with these entries, and a bundle for each letter.
fn graph(entries: &[&str], names: &str) -> Vec<String> {
    let entries = entries.iter().fold(String::new(), |text, entry| text + "- {" + entry + "}\n");
    findings(&MemoryContent::new([("a.yaml", format!("{PACKAGE}{}{}", channel(&entries), bundles(names)))]))
}

#[test]
fn update_graphs_are_checked_as_in_the_operator_registry() {
    let cases: &[(&[&str], &str, &[&str])] = &[
        (&["name: a"], "a", &[]),
        (&["name: a", "name: b, replaces: a"], "ab", &[]),
        // The last one may replace what is not in the channel.
        (&["name: a, replaces: z"], "a", &[]),
        (&["name: a, skips: [z, x]", "name: b, replaces: a, skipRange: '<1.0.0'"], "ab", &[]),
        (
            &["name: a", "name: b"],
            "ab",
            &["5:MultipleHeads channel \"c\": multiple channel heads found in graph: a, b"],
        ),
        (
            &["name: a, replaces: b", "name: b, replaces: a"],
            "ab",
            &["5:NoHead channel \"c\": no channel head found in graph"],
        ),
        (
            &["name: a, replaces: b", "name: b, replaces: a", "name: c, replaces: b"],
            "abc",
            &["5:Cycle channel \"c\": detected cycle in replaces chain of upgrade graph: b -> a -> b"],
        ),
        // Skipped bundles do not count in the chain, nor does their cycle.
        (&["name: a, replaces: b", "name: b, replaces: a", "name: c, replaces: b, skips: [a, b]"], "abc", &[]),
        (
            &["name: a", "name: b, skips: [w]", "name: c, replaces: b, skips: [x]", "name: w, replaces: a"],
            "abcw",
            &["5:Stranded channel \"c\" contains one or more stranded bundles: a"],
        ),
        (&["name: a, replaces: a"], "a", &["5:NoHead channel \"c\": no channel head found in graph"]),
        (&[], "", &["5:ChannelEmpty channel \"c\" of package \"p\" has no entry"]),
        (&["name: a", "name: a"], "a", &["10:EntryDuplicate channel \"c\" has entry \"a\" more than once"]),
        (
            &["name: a, replaces: b", "name: b"],
            "a",
            &["10:EntryWithoutBundle channel \"c\" has entry \"b\", but package \"p\" has no such bundle"],
        ),
        (&["name: a, skips: ['']"], "a", &["9:SkipEmpty entry \"a\" of channel \"c\" skips an empty name"]),
        (&["name: a", "name: b, replaces: a, skipRange: ''"], "ab", &[]),
        (
            &["name: a", "name: b, replaces: a, skipRange: '>=1.0.0 <v1.1.0'"],
            "ab",
            &[
                "10:SkipRangeInvalid entry \"b\" of channel \"c\" has the skipRange \">=1.0.0 <v1.1.0\", which is not a version range and updates nothing",
            ],
        ),
        (&["name: a"], "ab", &["18:BundleInNoChannel bundle \"b\" is in no channel"]),
    ];
    for (entries, names, expected) in cases {
        assert_eq!(graph(entries, names), *expected, "{entries:?}");
    }
    let nameless = graph(&["name: a", "replaces: a"], "a");
    assert!(nameless.contains(&"10:EntryNameMissing an entry of channel \"c\" has no name".to_owned()), "{nameless:?}");
}

#[test]
fn every_rule_has_a_finding() {
    let good = format!("{PACKAGE}{}{}", channel("- name: a\n"), bundles("a"));
    let deprecations = |entries: &str| format!("{good}---\nschema: olm.deprecations\npackage: p\nentries:\n{entries}");
    let with_bundle =
        |text: &str| format!("{PACKAGE}{}---\nschema: olm.bundle\npackage: p\nname: a\n{text}", channel("- name: a\n"));
    let property = |package: &str, version: &str| {
        with_bundle(&format!(
            "image: i\nproperties:\n- {{type: olm.package, value: {{packageName: {package}, version: {version}}}}}\n"
        ))
    };
    let cases: Vec<(String, &[&str])> = vec![
        (good.clone(), &[]),
        (format!("{good}---\n{PACKAGE}"), &["18:PackageDuplicate package \"p\" is defined more than once"]),
        (good.replace(PACKAGE, "schema: x\n"), &["3:PackageMissing package \"p\" has no olm.package blob"]),
        (
            good.replace("name: p\n", "name: P_\n")
                .replace("package: p\n", "package: P_\n")
                .replace("packageName: p", "packageName: P_"),
            &["1:PackageName package name \"P_\" is not a DNS-1123 label"],
        ),
        (good.replace("defaultChannel: c\n", "\n"), &["1:DefaultChannelMissing package \"p\" has no default channel"]),
        (
            good.replace("defaultChannel: c", "defaultChannel: d"),
            &["1:DefaultChannelUnknown default channel \"d\" of package \"p\" does not exist"],
        ),
        (
            good.replace("---\nschema: olm.ch", "icon: {base64data: eA==, mediatype: image/png}\n---\nschema: olm.ch"),
            &[],
        ),
        (
            good.replace(
                "---\nschema: olm.ch",
                "icon: {base64data: '<svg/>', mediatype: image/png}\n---\nschema: olm.ch",
            ),
            &["4:IconInvalid the icon of package \"p\" is not base64 and is not shown"],
        ),
        (property("p", "1.1"), &["16:VersionInvalid bundle \"a\": the version 1.1 is not text; write it in quotes"]),
        (
            PACKAGE.to_owned(),
            &[
                "1:NoChannel package \"p\" has no channel",
                "1:DefaultChannelUnknown default channel \"c\" of package \"p\" does not exist",
            ],
        ),
        (
            format!("{good}{}", channel("- name: a\n")),
            &["18:ChannelDuplicate channel \"c\" of package \"p\" is defined more than once"],
        ),
        (
            format!("{good}{}", channel("- name: a\n").replace("name: c\n", "\n")),
            &["18:ChannelNameMissing a channel of package \"p\" has no name"],
        ),
        (
            format!("{good}{}", bundle("a", "0.0.0")),
            &["18:BundleDuplicate bundle \"a\" of package \"p\" is defined more than once"],
        ),
        (
            format!(
                "{PACKAGE}{}{}{}",
                channel("- {name: b, replaces: a}\n- name: a\n"),
                bundle("a", "1.0.0+1"),
                bundle("b", "1.0.0+1")
            ),
            &["19:VersionDuplicate bundles a, b of package \"p\" have the same version 1.0.0+1"],
        ),
        (
            format!(
                "{PACKAGE}{}{}{}",
                channel("- {name: b, replaces: a}\n- name: a\n"),
                bundle("a", "1.0.0+1"),
                bundle("b", "1.0.0+2")
            ),
            &[],
        ),
        (
            format!("{good}---\nschema: olm.bundle\npackage: p\n"),
            &["18:BundleNameMissing a bundle of package \"p\" has no name"],
        ),
        (
            format!("{good}---\nschema: olm.bundle\nname: x\n---\nschema: olm.package\n"),
            &[
                "18:FieldInvalid package is not valid: a blob of schema olm.bundle needs it",
                "21:FieldInvalid name is not valid: a blob of schema olm.package needs it",
            ],
        ),
        (
            property("p", "1.0.0").replace("image: i\n", ""),
            &["11:BundleImageMissing bundle \"a\" has neither an image nor manifests"],
        ),
        (
            property("p", "1.0.0").replace("image: i\n", "image: /tmp/victim\n"),
            &["11:ImageInvalid the image of bundle \"a\" is not an image reference: invalid reference format"],
        ),
        (
            property("p", "1.0.0").replace("image: i\n", "image: u:s3cret@quay.io/a:v1\n"),
            &[
                "11:ImageInvalid the image of bundle \"a\" is not an image reference: an image reference has no user name and no password",
            ],
        ),
        (
            with_bundle("image: i\n"),
            &["11:PackageProperties bundle \"a\" has 0 properties of type olm.package, but must have one"],
        ),
        (
            property("p", "1.0.0") + "- {type: olm.package, value: {packageName: p, version: 1.0.0}}\n",
            &["17:PackageProperties bundle \"a\" has 2 properties of type olm.package, but must have one"],
        ),
        (property("q", "1.0.0"), &["16:PackageMismatch bundle \"a\" is in package \"p\", but its property says \"q\""]),
        (
            property("p", "v1"),
            &[
                "16:VersionInvalid bundle \"a\": \"v1\" is not a semantic version: unexpected character 'v' while parsing major version number",
            ],
        ),
        (
            deprecations(
                "- {reference: {schema: olm.channel, name: c}, message: m}\n- {reference: {schema: olm.package}, message: m}\n",
            ),
            &[],
        ),
        (
            deprecations("- {reference: {schema: olm.bundle, name: z}, message: m}\n"),
            &["21:DeprecationUnknown olm.bundle \"z\" is deprecated, but does not exist in package \"p\""],
        ),
        (
            deprecations("- {reference: {schema: olm.bundle, name: a}}\n"),
            &["21:DeprecationMessageMissing the deprecation of olm.bundle \"a\" has no message"],
        ),
        (
            deprecations(&"- {reference: {schema: olm.bundle, name: a}, message: m}\n".repeat(2)),
            &["22:DeprecationDuplicate olm.bundle \"a\" is deprecated more than once"],
        ),
        (
            deprecations("") + "---\nschema: olm.deprecations\npackage: p\n",
            &["22:DeprecationsDuplicate package \"p\" has more than one olm.deprecations blob"],
        ),
        (format!("{good}---\nschema: other\npackage: unknown\n"), &[]),
    ];
    for (text, expected) in cases {
        assert_eq!(findings(&MemoryContent::new([("a.yaml", text.as_str())])), expected, "{text}");
    }
}

#[test]
fn the_catalogs_of_the_seeds_have_the_findings_of_the_registry() {
    let Some(catalogs) = fixture("catalogs") else { return };
    let sample = Directory::open(catalogs.join("platform-operators-sample"), 100).unwrap();
    assert_eq!(findings(&sample), [""; 0]);
    let json = std::fs::read(catalogs.join("magiccatalog/fbc_catalog.json")).unwrap();
    assert_eq!(findings(&MemoryContent::new([("a.json", json)])), [""; 0]);
    // One version per file: only together they would be a catalog.
    let text = std::fs::read(catalogs.join("subscription/example-operator.v0.2.0-deprecations.yaml")).unwrap();
    assert_eq!(findings(&MemoryContent::new([("a.yaml", text)])), [""; 0]);
}
