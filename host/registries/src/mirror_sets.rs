//! ImageDigestMirrorSet and ImageTagMirrorSet: `config.openshift.io/v1`. Pure.
//!
//! The rules come from OpenShift, which writes these objects into the registries.conf of its nodes: a source has the mirrors of all
//! objects, in an order that agrees with each of them where one exists; a source that is never contacted according to one object is never
//! contacted.

use serde::Deserialize;

use crate::{
    MIRRORS, Registries,
    scope::{Location, Scope},
    settings::{Mirror, Pull, Table},
};

/// Which images a mirror set is about: its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// ImageDigestMirrorSet: images that are named by a digest.
    Digest,
    /// ImageTagMirrorSet: images that are named by a tag.
    Tag,
}

/// The spec of an object of either kind.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// The mirrors, in an ImageDigestMirrorSet.
    #[serde(default)]
    pub image_digest_mirrors: Vec<Mirrors>,
    /// The mirrors, in an ImageTagMirrorSet.
    #[serde(default)]
    pub image_tag_mirrors: Vec<Mirrors>,
}

/// The mirrors of a source.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Mirrors {
    /// The prefix of the images, in a form that registries.conf has as well.
    pub source: String,
    /// Locations, in the order in which they are asked.
    #[serde(default)]
    pub mirrors: Vec<String>,
    /// `AllowContactingSource`, the default, or `NeverContactSource`.
    #[serde(default)]
    pub mirror_source_policy: Option<String>,
}

/// All mirrors of one source, of all objects.
struct Merged {
    scope: Scope,
    lists: Vec<(Kind, Vec<Location>)>,
    never_contact: bool,
}

impl Registries {
    /// These settings merged with mirror sets, and the errors in some of them. Mirrors of a set come after mirrors of a file for the same
    /// prefix. A mirror is `insecure` if the settings of a file say so about its location.
    pub fn with_mirror_sets(&self, sets: &[(Kind, Spec)]) -> (Self, Vec<String>) {
        let (merged, mut problems) = merged(sets);
        let mut registries = self.clone();
        for Merged { scope, lists, never_contact } in merged {
            let known = self.tables.iter().find(|table| table.scope == scope).cloned();
            let mut table = known.unwrap_or_else(|| self.inherited(scope));
            for kind in [Kind::Digest, Kind::Tag] {
                let lists = lists.iter().filter(|(of, _)| *of == kind).map(|(_, list)| list.as_slice());
                for location in in_order(&lists.collect::<Vec<_>>()) {
                    let insecure = self.find(location.as_str(), "").is_some_and(|(table, _)| table.insecure);
                    let pull = kind.pull();
                    let is_known = |mirror: &Mirror| {
                        mirror.location == location && (mirror.pull == pull || mirror.pull == Pull::All)
                    };
                    if !table.mirrors.iter().any(is_known) {
                        table.mirrors.push(Mirror { location, insecure, pull });
                    }
                }
            }
            if table.mirrors.len() > MIRRORS {
                problems.push(format!("{} has more than {MIRRORS} mirrors; the rest is not used", table.scope.text()));
                table.mirrors.truncate(MIRRORS);
            }
            table.blocked |= never_contact;
            registries.set(table);
        }
        (registries, problems)
    }

    /// A table without mirrors, as insecure and blocked as the one of a file that it takes the place of for these images.
    fn inherited(&self, scope: Scope) -> Table {
        let (name, location) = (scope.name(), scope.location().cloned());
        let above = self.find(&name, "");
        let (insecure, blocked) = above.map_or((false, false), |(above, _)| (above.insecure, above.blocked));
        Table { scope, location, insecure, blocked, mirrors: Vec::new() }
    }
}

impl Kind {
    fn pull(self) -> Pull {
        match self {
            Self::Digest => Pull::DigestOnly,
            Self::Tag => Pull::TagOnly,
        }
    }
}

/// The sources of all objects, and what is wrong with some of them.
fn merged(sets: &[(Kind, Spec)]) -> (Vec<Merged>, Vec<String>) {
    let (mut merged, mut problems): (Vec<Merged>, _) = (Vec::new(), Vec::new());
    for (kind, spec) in sets {
        let entries = match kind {
            Kind::Digest => &spec.image_digest_mirrors,
            Kind::Tag => &spec.image_tag_mirrors,
        };
        for entry in entries {
            let scope = match Scope::parse(&entry.source) {
                Ok(scope) => scope,
                Err(error) => {
                    problems.push(format!("source {:?}: {error}", shortened(&entry.source)));
                    continue;
                }
            };
            let mut list = Vec::new();
            for mirror in &entry.mirrors {
                match Location::parse(mirror) {
                    Ok(location) => list.push(location),
                    Err(error) => problems.push(format!("mirror {:?}: {error}", shortened(mirror))),
                }
            }
            // The policy is valid where there are mirrors (the API of OpenShift); an unknown one is the stricter one.
            let allows = matches!(entry.mirror_source_policy.as_deref(), None | Some("" | "AllowContactingSource"));
            let never = !allows && !entry.mirrors.is_empty();
            match merged.iter_mut().find(|known| known.scope == scope) {
                Some(known) => {
                    known.lists.push((*kind, list));
                    known.never_contact |= never;
                }
                None => merged.push(Merged { scope, lists: vec![(*kind, list)], never_contact: never }),
            }
        }
    }
    (merged, problems)
}

/// The locations of all lists once, in an order that agrees with each list; where the lists contradict each other, the first list
/// counts.
fn in_order(lists: &[&[Location]]) -> Vec<Location> {
    let mut left: Vec<&Location> = Vec::new();
    for location in lists.iter().copied().flatten() {
        if !left.contains(&location) && left.len() <= MIRRORS {
            left.push(location);
        }
    }
    let mut ordered = Vec::new();
    while !left.is_empty() {
        let is_next = |location: &&Location| {
            lists.iter().all(|list| {
                let before = list.iter().take_while(|other| other != location);
                let is_listed = list.contains(location);
                !is_listed || before.into_iter().all(|other| !left.contains(&other))
            })
        };
        let next = left.iter().position(is_next).unwrap_or(0);
        ordered.push(left.remove(next).clone());
    }
    ordered
}

fn shortened(text: &str) -> String {
    text.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Version;

    fn set(kind: Kind, entries: Value) -> (Kind, Spec) {
        let field = if kind == Kind::Digest { "imageDigestMirrors" } else { "imageTagMirrors" };
        (kind, serde_json::from_value(json!({field: entries})).unwrap())
    }

    fn asked(file: &str, sets: &[(Kind, Spec)], repository: &str) -> [Vec<String>; 2] {
        let mut registries = Registries::default();
        registries.add_file("r.conf".as_ref(), file).unwrap();
        let (registries, problems) = registries.with_mirror_sets(sets);
        assert_eq!(problems, [""; 0]);
        [Version::Digest("d"), Version::Tag("t")].map(|version| {
            let endpoints = registries.endpoints(repository, version).unwrap_or_default();
            let texts = endpoints
                .into_iter()
                .map(|endpoint| format!("{}{}", endpoint.reference, if endpoint.insecure { "!" } else { "" }));
            texts.collect()
        })
    }

    #[test]
    fn objects_are_merged_with_each_other_and_with_the_file() {
        let entry = |source: &str, mirrors: &[&str]| json!({"source": source, "mirrors": mirrors});
        let sets = [
            set(Kind::Digest, json!([entry("a.io/x", &["b.io", "c.io"]), entry("other.io", &["d.io/o"])])),
            set(Kind::Digest, json!([entry("a.io/x", &["z.io", "b.io"])])),
            set(Kind::Tag, json!([entry("a.io/x", &["tags.io"])])),
            set(
                Kind::Digest,
                json!([{"source": "never.io", "mirrors": ["b.io/n"], "mirrorSourcePolicy": "NeverContactSource"}]),
            ),
            set(Kind::Tag, json!([{"source": "none.io", "mirrorSourcePolicy": "NeverContactSource"}])),
        ];
        let file = "[[registry]]\nlocation = \"a.io/x\"\n[[registry.mirror]]\nlocation = \"first.io\"\n\
                    [[registry]]\nlocation = \"z.io\"\ninsecure = true\n\
                    [[registry]]\nprefix = \"other.io\"\nlocation = \"moved.io\"\n";
        for (repository, digest, tag) in [
            (
                "a.io/x/y",
                &["first.io/y@d", "z.io/y@d!", "b.io/y@d", "c.io/y@d", "a.io/x/y@d"][..],
                &["first.io/y:t", "tags.io/y:t", "a.io/x/y:t"][..],
            ),
            ("other.io/y", &["d.io/o/y@d", "moved.io/y@d"], &["moved.io/y:t"]),
            ("never.io/y", &["b.io/n/y@d"], &[]),
            // The policy without mirrors means nothing.
            ("none.io/y", &["none.io/y@d"], &["none.io/y:t"]),
        ] {
            assert_eq!(asked(file, &sets, repository), [digest, tag], "{repository}");
        }
    }

    #[test]
    fn a_longer_source_does_not_unblock() {
        let sets = [set(Kind::Digest, json!([{"source": "a.io/x/y", "mirrors": ["b.io"]}]))];
        let file = "[[registry]]\nlocation = \"a.io\"\nblocked = true\n";
        assert_eq!(asked(file, &sets, "a.io/x/y/z"), [vec!["b.io/z@d"], vec![]]);
        let wide = [set(Kind::Digest, json!([{"source": "*.x.a.io", "mirrors": ["b.io"]}]))];
        let file = "[[registry]]\nprefix = \"*.a.io\"\nblocked = true\n";
        assert_eq!(asked(file, &wide, "y.x.a.io/z"), [vec!["b.io/z@d"], vec![]]);
        let file = "[[registry]]\nlocation = \"a.io\"\ninsecure = true\n";
        assert_eq!(asked(file, &sets, "a.io/x/y/z"), [vec!["b.io/z@d", "a.io/x/y/z@d!"], vec!["a.io/x/y/z:t!"]]);
    }

    #[test]
    fn what_is_wrong_is_named_and_the_rest_is_used() {
        let sets = [set(
            Kind::Digest,
            json!([{"source": "https://a.io", "mirrors": ["b.io"]}, {"source": "a.io", "mirrors": ["b.io:x", "c.io"],
                "mirrorSourcePolicy": "Sometimes"}]),
        )];
        let (registries, problems) = Registries::default().with_mirror_sets(&sets);
        assert_eq!(problems.len(), 2, "{problems:?}");
        let endpoints = registries.endpoints("a.io/x", Version::Digest("d")).unwrap();
        assert_eq!(endpoints.len(), 1, "an unknown policy contacts no source: {endpoints:?}");
    }

    #[test]
    fn lists_that_contradict_each_other_end() {
        let list = |names: &[&str]| names.iter().map(|name| Location::parse(name).unwrap()).collect::<Vec<_>>();
        for (lists, expected) in [
            (vec![list(&["b", "c"]), list(&["a", "b"])], vec!["a", "b", "c"]),
            (vec![list(&["a", "b"]), list(&["b", "a"])], vec!["a", "b"]),
            (vec![list(&["a", "a", "b"]), list(&["b", "c"])], vec!["a", "b", "c"]),
            (vec![], vec![]),
        ] {
            let lists: Vec<_> = lists.iter().map(Vec::as_slice).collect();
            let ordered = in_order(&lists);
            assert_eq!(ordered.iter().map(Location::as_str).collect::<Vec<_>>(), expected);
        }
    }
}
