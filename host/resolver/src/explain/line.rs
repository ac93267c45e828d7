//! One condition of a contradiction.

use std::{collections::BTreeSet, fmt};

use serde::{Deserialize, Serialize};

use super::bundles::{bounded, listed, named, versions};
use crate::{
    encode::{BlockKind, Cause},
    problem::Hold,
    universe::{Block, GroupId, Node, Universe},
};

/// The longest text of a requirement in a line, in characters.
const NEED: usize = 400;
/// The most bundles in a line that skip others, and the most reasons of bundles that are excluded.
const REASONS: usize = 3;

/// How the text of a [`Line::Constraint`] begins.
pub const CONSTRAINT: &str = "a constraint of the request";

/// A condition that contradicts others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Line {
    /// The user asks for a package.
    Required {
        /// The package.
        package: String,
        /// The range, or empty.
        range: String,
        /// The channels, or empty.
        channels: Vec<String>,
        /// The catalogs that were looked at.
        catalogs: Vec<String>,
        /// The versions that match; those between the first and last few are counted.
        candidates: Vec<String>,
    },
    /// A constraint of the question asks for something.
    Constraint {
        /// What it asks for.
        need: String,
    },
    /// Versions of a package need something.
    Needs {
        /// The package.
        package: String,
        /// The versions.
        versions: Vec<String>,
        /// What they need.
        need: String,
    },
    /// Versions of a package are not possible here.
    Limited {
        /// The package.
        package: String,
        /// The versions.
        versions: Vec<String>,
        /// Why.
        limit: Limit,
    },
    /// A package is installed.
    Installed {
        /// The package.
        package: String,
        /// The version.
        version: String,
        /// Whether it may not change.
        pinned: bool,
    },
    /// A kind has one owner.
    OneOwner {
        /// The kind, as `Kind.group`.
        kind: String,
        /// The packages that provide it.
        packages: Vec<String>,
    },
    /// A package has one version.
    OneVersion {
        /// The package.
        package: String,
    },
}

/// Why a version is not possible here.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Limit {
    /// Kubernetes is too old.
    Kubernetes {
        /// The lowest version that one of them needs.
        least: String,
        /// The version of the cluster.
        cluster: String,
    },
    /// OpenShift is too new.
    OpenShift {
        /// The highest version that one of them runs on.
        most: String,
        /// The version of the cluster.
        cluster: String,
    },
    /// Their files say that they are not possible here.
    Excluded {
        /// Why, for the first few of them.
        why: Vec<String>,
    },
    /// The catalog has withdrawn them, with the property `olm.deprecated`.
    Withdrawn,
    /// They are deprecated, and the policy excludes that.
    Deprecated,
    /// Other bundles of their channels skip them.
    Skipped {
        /// The bundles that do.
        by: Vec<String>,
    },
    /// No path of upgrades leads to them.
    Upgrade {
        /// The bundle that is installed.
        from: String,
    },
    /// The catalog's entry is malformed.
    Malformed,
}

/// The line of a cause.
pub(crate) fn line(universe: &Universe<'_>, cause: &Cause) -> Line {
    let name = |group: GroupId| universe.groups[group].name.clone();
    let active = |group: GroupId| universe.active(group).map(|id| &universe.nodes[id]);
    match cause {
        Cause::Required(group) => {
            let (mut range, mut channels, mut catalogs) = (String::new(), Vec::new(), Vec::new());
            if let Some(wanted) = universe.question.required.get(name(*group).as_str()) {
                range.clone_from(&wanted.required.range);
                channels.extend(wanted.channels.iter().cloned());
                let selected =
                    |source: &&&crate::problem::Source| wanted.required.catalogs.matches(&source.name, &source.labels);
                catalogs.extend(universe.question.sources.iter().filter(selected).map(|source| source.name.clone()));
            }
            let candidates = versions(active(*group).filter(|node| node.asked));
            Line::Required { package: name(*group), range, channels, catalogs, candidates }
        }
        Cause::Needs(group, need) if universe.root == Some(*group) => Line::Constraint { need: bounded(need, NEED) },
        Cause::Needs(group, need) => {
            let needs = |node: &&Node| {
                let texts = node.needs.iter().filter_map(|(index, _)| node.bundle.needs.get(*index));
                texts.map(ToString::to_string).any(|text| text == *need)
            };
            let versions = versions(active(*group).filter(needs));
            Line::Needs { package: name(*group), versions, need: bounded(need, NEED) }
        }
        Cause::Blocked(group, kind) => {
            let blocked = || active(*group).filter(|node| node.blocks.iter().any(|block| block.kind() == *kind));
            let blocks = || blocked().flat_map(|node| &node.blocks);
            Line::Limited {
                package: name(*group),
                versions: versions(blocked()),
                limit: limit(universe, *group, *kind, blocks()),
            }
        }
        Cause::Installed(group) => {
            let held = universe.question.installed.get(name(*group).as_str());
            let version = held.map(|held| held.version.to_string()).unwrap_or_default();
            let pinned = held.is_some_and(|held| held.installed.hold == Hold::Pinned);
            Line::Installed { package: name(*group), version, pinned }
        }
        Cause::OneOwner(kind) => {
            let provides = |node: &Node| node.bundle.provides.iter().any(|provided| provided.owned() == *kind);
            let owners = universe.by_name.values().filter(|group| active(**group).any(provides));
            Line::OneOwner { kind: kind.clone(), packages: owners.map(|group| name(*group)).collect() }
        }
        Cause::OneVersion(group) => Line::OneVersion { package: name(*group) },
    }
}

fn limit<'a>(
    universe: &Universe<'_>,
    group: GroupId,
    kind: BlockKind,
    blocks: impl Iterator<Item = &'a Block>,
) -> Limit {
    let cluster = &universe.question.problem.cluster;
    match kind {
        BlockKind::Kubernetes => {
            let least =
                blocks.filter_map(|block| if let Block::Kubernetes(least) = block { Some(least) } else { None });
            let least = least.min().map(ToString::to_string).unwrap_or_default();
            Limit::Kubernetes { least, cluster: cluster.kubernetes.clone().unwrap_or_default() }
        }
        BlockKind::OpenShift => {
            let most = blocks.filter_map(|block| if let Block::OpenShift(most) = block { Some(most) } else { None });
            let most = most.max().map(ToString::to_string).unwrap_or_default();
            Limit::OpenShift { most, cluster: cluster.openshift.clone().unwrap_or_default() }
        }
        BlockKind::Excluded => {
            let why = blocks.filter_map(|block| if let Block::Excluded(why) = block { Some(why) } else { None });
            let why: BTreeSet<String> = why.map(|why| bounded(why, NEED)).collect();
            Limit::Excluded { why: why.into_iter().take(REASONS).collect() }
        }
        BlockKind::Withdrawn => Limit::Withdrawn,
        BlockKind::Deprecated => Limit::Deprecated,
        BlockKind::Skipped => {
            let by = blocks.filter_map(|block| if let Block::Skipped(by) = block { Some(by.as_str()) } else { None });
            let by: BTreeSet<&str> = by.collect();
            Limit::Skipped { by: by.into_iter().take(REASONS).map(str::to_owned).collect() }
        }
        BlockKind::Unreachable => {
            let held = universe.question.installed.get(universe.groups[group].name.as_str());
            Limit::Upgrade { from: held.map(|held| held.installed.name.clone()).unwrap_or_default() }
        }
        BlockKind::Malformed => Limit::Malformed,
    }
}

impl fmt::Display for Line {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Required { package, range, channels, catalogs, candidates } => {
                write!(to, "package {package}")?;
                if !range.is_empty() {
                    write!(to, " {range}")?;
                }
                if !channels.is_empty() {
                    write!(to, " in {}", named("channel", channels, "or"))?;
                }
                write!(to, " is required")?;
                match (catalogs.as_slice(), candidates.as_slice()) {
                    ([], []) => write!(to, ", and no catalog is selected"),
                    (_, []) => write!(to, ", and no version in {} matches", named("catalog", catalogs, "and")),
                    _ => Ok(()),
                }
            }
            Self::Constraint { need } => write!(to, "{CONSTRAINT} asks for {need}"),
            Self::Needs { package, versions, need } => {
                let verb = if versions.len() == 1 { "needs" } else { "need" };
                write!(to, "{package} {} {verb} {need}", listed(versions, "and"))
            }
            Self::Limited { package, versions, limit } => {
                let several = versions.len() != 1;
                write!(to, "{package} {} ", listed(versions, "and"))?;
                match limit {
                    Limit::Kubernetes { least, cluster } => {
                        let verb = if several { "need" } else { "needs" };
                        write!(to, "{verb} Kubernetes {least} or newer, and the cluster has {cluster}")
                    }
                    Limit::OpenShift { most, cluster } => {
                        let verb = if several { "run" } else { "runs" };
                        write!(to, "{verb} on OpenShift up to {most}, and the cluster has {cluster}")
                    }
                    Limit::Excluded { why } => {
                        let verb = if several { "are" } else { "is" };
                        write!(to, "{verb} not possible here: {}", why.join("; "))
                    }
                    Limit::Withdrawn => {
                        let verb = if several { "have" } else { "has" };
                        write!(to, "{verb} the property olm.deprecated, with which a catalog withdraws a bundle")
                    }
                    Limit::Skipped { by } => {
                        let verb = if several { "are" } else { "is" };
                        write!(to, "{verb} skipped by {}, and what a channel skips is not chosen", listed(by, "and"))
                    }
                    Limit::Deprecated => {
                        let verb = if several { "are" } else { "is" };
                        write!(to, "{verb} deprecated, and the policy excludes deprecated bundles")
                    }
                    Limit::Upgrade { from } => write!(to, "cannot be reached by upgrades from {from}"),
                    Limit::Malformed => write!(to, "cannot be read"),
                }
            }
            Self::Installed { package, version, pinned: true } => {
                write!(to, "{package} {version} is installed and pinned")
            }
            Self::Installed { package, version, pinned: false } => write!(to, "{package} {version} is installed"),
            Self::OneOwner { kind, packages } => {
                write!(to, "only one of {} may provide kind {kind}", listed(packages, "and"))
            }
            Self::OneVersion { package } => write!(to, "only one version of {package} can be installed"),
        }
    }
}
