//! What a history does, and what the world should be like after it.

use std::collections::{BTreeMap, BTreeSet};

use crate::random::Random;

/// A package, and what it needs.
pub(super) type Package = (&'static str, &'static [&'static str]);

/// The packages of each catalog.
pub(super) const CATALOGS: [(&str, &[Package]); 3] = [
    ("lower", &[("base", &[]), ("extra", &[])]),
    ("middle", &[("left", &["base"]), ("right", &["base"]), ("alone", &[])]),
    ("upper", &[("top", &["left", "right"])]),
];
/// The PlatformOperator, and its set.
pub(super) const OPERATOR: &str = "op";
/// What wants packages: two Resolutions and the PlatformOperator.
pub(super) const WANTING: [&str; 3] = ["one", "two", OPERATOR];

pub(super) fn packages() -> impl Iterator<Item = Package> {
    CATALOGS.iter().flat_map(|(_, packages)| packages.iter().copied())
}

/// What a Resolution or the PlatformOperator asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Wish {
    /// The PlatformOperator asks for one package.
    pub(super) packages: BTreeSet<&'static str>,
    /// The one version that is asked for, by package.
    pub(super) pins: BTreeMap<&'static str, usize>,
    /// Whether its dependencies stay at the versions that are installed.
    pub(super) keeps_dependencies: bool,
}

impl Wish {
    fn of(package: &'static str) -> Self {
        Self { packages: [package].into(), ..Self::default() }
    }
}

/// What a new version of a package is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quality {
    Good,
    /// Its workload never becomes healthy.
    Failing,
    /// The API server refuses one of its objects.
    Refused,
}

/// One change of the world.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Create(&'static str, Wish),
    Edit(&'static str, Wish),
    Delete(&'static str),
    /// The next version of a package.
    Publish(&'static str, Quality),
    /// The next version of a package whose newest version is bad, which no edit follows.
    Repair(&'static str),
    /// An edit of what wants packages that changes no wish: the upgrade from a version that fails does not wait any more.
    Touch,
    /// A catalog is deleted, or created again.
    Outage(&'static str),
    Return(&'static str),
    /// The controller stops and starts again.
    Restart,
}

/// A package that is installed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Installed {
    /// The minor version.
    pub(super) version: usize,
    /// The UID of its object.
    pub(super) uid: String,
    /// Whose set has it.
    pub(super) owner: &'static str,
    /// Its BundleDeployment.
    pub(super) deployment: String,
}

/// All packages that are installed.
pub(super) type World = BTreeMap<&'static str, Installed>;

/// What the world should be like.
#[derive(Clone, Debug)]
pub(super) struct Model {
    /// What each Resolution and the PlatformOperator ask for.
    pub(super) wishes: BTreeMap<&'static str, Wish>,
    /// The versions of each package; the number is the minor version.
    pub(super) versions: BTreeMap<&'static str, Vec<Quality>>,
    /// The catalog that is gone.
    pub(super) away: Option<&'static str>,
    /// The package whose last version that was published is bad, or leads on from such a version.
    pub(super) trouble: Option<&'static str>,
    /// How often specs were edited without a change of a wish.
    pub(super) touches: usize,
}

impl Model {
    pub(super) fn new() -> Self {
        let versions = packages().map(|(package, _)| (package, vec![Quality::Good])).collect();
        Self { wishes: BTreeMap::new(), versions, away: None, trouble: None, touches: 0 }
    }

    /// A package with all that it needs.
    pub(super) fn closure(package: &'static str) -> BTreeSet<&'static str> {
        let needs = packages().find(|(name, _)| *name == package).map(|(_, needs)| needs).unwrap_or_default();
        let mut closure: BTreeSet<&str> = needs.iter().flat_map(|needed| Self::closure(needed)).collect();
        closure.insert(package);
        closure
    }

    pub(super) fn needed(&self) -> BTreeSet<&'static str> {
        self.wishes.values().flat_map(|wish| wish.packages.iter().flat_map(|it| Self::closure(it))).collect()
    }

    pub(super) fn newest(&self, package: &str) -> usize {
        self.versions[package].len() - 1
    }

    pub(super) fn quality(&self, package: &str, version: usize) -> Quality {
        self.versions[package][version]
    }

    /// Whether a version of a package that a set has is not healthy.
    pub(super) fn fails(&self, package: &str, installed: &Installed) -> bool {
        self.quality(package, installed.version) == Quality::Failing
    }

    /// Whether the set of `owner` lets a package that it has follow its catalog.
    fn follows(&self, package: &str, owner: &str) -> bool {
        let Some(wish) = self.wishes.get(owner) else { return false };
        let stays = wish.keeps_dependencies && !wish.packages.contains(package);
        !stays && !wish.pins.contains_key(package)
    }

    /// The package that keeps the set of `owner` as it is, since the API server would refuse its newest version.
    pub(super) fn refused(&self, owner: &str, now: &World) -> Option<&'static str> {
        let package = self.trouble?;
        let is_refused = self.quality(package, self.newest(package)) == Quality::Refused;
        let is_member = now.get(package).is_some_and(|it| it.owner == owner);
        (is_refused && is_member && self.follows(package, owner)).then_some(package)
    }

    /// Whether a refused package stops `package`, which the same set has. The package of the PlatformOperator is optional: it stays as it is
    /// with what is refused, and the others are upgraded.
    fn stops(&self, refused: &str, package: &str, owner: &str, now: &World) -> bool {
        let wish = self.wishes.get(owner).filter(|_| owner == OPERATOR);
        let optional = wish.and_then(|wish| wish.packages.first()).filter(|it| now[*it].owner == owner);
        let left_out = optional.filter(|it| Self::closure(it).contains(refused));
        left_out.is_none_or(|optional| package == refused || package == *optional)
    }

    /// The members of the set of `owner` that fail.
    pub(super) fn failing(&self, owner: &str, now: &World) -> Option<&'static str> {
        let mut members = now.iter().filter(|(_, it)| it.owner == owner);
        members.find(|(package, it)| self.fails(package, it)).map(|(package, _)| *package)
    }

    /// The versions that a package may have.
    pub(super) fn versions_of(&self, package: &'static str, now: &World, before: &World) -> Vec<usize> {
        let (newest, owner) = (self.newest(package), now[package].owner);
        let Some(was) = before.get(package).map(|it| it.version) else { return vec![newest] };
        if self.away.is_some() {
            return vec![was, newest];
        }
        let pin = self.wishes.get(owner).and_then(|wish| wish.pins.get(package));
        // A set upgrades a member once the other members that it needs are healthy.
        let waits_for = |needed: &&str| {
            let of_set = now.get(needed).filter(|it| it.owner == owner && *needed != package);
            of_set.is_some_and(|it| self.fails(needed, it))
        };
        let waits = Self::closure(package).iter().any(waits_for);
        let is_repaired = self.quality(package, was) == Quality::Failing && self.trouble == Some(package);
        match pin {
            Some(pin) => vec![*pin],
            None if waits || !self.follows(package, owner) => vec![was],
            None if self.refused(owner, now).is_some_and(|it| self.stops(it, package, owner, now)) => vec![was],
            None if is_repaired => vec![was],
            None => vec![newest],
        }
    }

    /// A step that the model can follow.
    pub(super) fn step(&self, random: &mut Random, now: &World) -> Step {
        if self.trouble.is_some_and(|package| self.quality(package, self.newest(package)) == Quality::Good) {
            return Step::Touch;
        }
        loop {
            if let Some(step) = self.any_step(random, now).filter(|step| self.can(step, now)) {
                return step;
            }
        }
    }

    fn any_step(&self, random: &mut Random, now: &World) -> Option<Step> {
        let name = *random.pick(&WANTING)?;
        let package = random.pick(&packages().collect::<Vec<_>>())?.0;
        let wish = self.wishes.get(name);
        Some(match random.below(14) {
            0..=4 => match wish {
                None => Step::Create(name, Wish::of(package)),
                Some(_) if name == OPERATOR => Step::Edit(name, Wish::of(package)),
                Some(wish) => {
                    let mut wish = wish.clone();
                    if !wish.packages.remove(package) {
                        wish.packages.insert(package);
                    }
                    wish.pins.remove(package);
                    Step::Edit(name, wish)
                }
            },
            // A member of a set can be pinned at its version; what others have follows them.
            5 | 6 => {
                let (mut wish, installed) = (wish?.clone(), now.get(package)?);
                if random.percent(30) && name != OPERATOR {
                    wish.keeps_dependencies = !wish.keeps_dependencies;
                } else if wish.pins.remove(package).is_none() {
                    let is_own = wish.packages.contains(package) && installed.owner == name;
                    wish.pins.insert(package, is_own.then_some(installed.version)?);
                }
                Step::Edit(name, wish)
            }
            7 => Step::Delete(wish.map(|_| name)?),
            8 => Step::Publish(package, Quality::Good),
            9 => match self.trouble {
                Some(package) => Step::Repair(package),
                None => Step::Publish(package, Quality::Failing),
            },
            10 => match self.trouble {
                Some(package) => Step::Repair(package),
                None => Step::Publish(package, Quality::Refused),
            },
            11 | 12 => match self.away {
                Some(away) => Step::Return(away),
                None => Step::Outage(random.pick(&CATALOGS)?.0),
            },
            _ => Step::Restart,
        })
    }

    /// While a catalog is away, wishes only shrink, and what wants packages stays: what no catalog has cannot be taken over. While the newest
    /// version of a package is bad, wishes are at most deleted: what a set waits for would depend on the order of its steps.
    fn can(&self, step: &Step, now: &World) -> bool {
        match step {
            Step::Edit(name, wish) => {
                let is_less = self.wishes[name].packages.is_superset(&wish.packages);
                let is_possible = self.away.is_none() || is_less && !self.drops_for_others(name, wish, now);
                !wish.packages.is_empty() && is_possible && self.trouble.is_none()
            }
            Step::Publish(package, _) => self.away.is_none() && self.trouble != Some(*package),
            Step::Create(..) => self.away.is_none() && self.trouble.is_none(),
            Step::Delete(name) => self.away.is_none() && self.can_pass(name, now),
            Step::Outage(_) => self.trouble.is_none(),
            Step::Repair(_) | Step::Touch | Step::Return(_) | Step::Restart => true,
        }
    }

    /// Whether the set of `owner` would drop what others need.
    fn drops_for_others(&self, owner: &str, wish: &Wish, now: &World) -> bool {
        let mut rest = self.clone();
        rest.wishes.remove(owner);
        let needed = rest.needed();
        let kept: BTreeSet<&str> = wish.packages.iter().flat_map(|package| Self::closure(package)).collect();
        now.iter().any(|(package, it)| it.owner == owner && !kept.contains(package) && needed.contains(package))
    }

    /// Whether `owner` asks for or needs what another set has. Without its catalog, nothing proves what others installed.
    pub(super) fn is_unproven(&self, owner: &str, now: &World) -> bool {
        let needed = self.wishes[owner].packages.iter().flat_map(|package| Self::closure(package));
        let mut elsewhere = needed.filter(|package| now[package].owner != owner);
        self.away.is_some() && elsewhere.next().is_some()
    }

    /// Whether what others need of the set of `owner` can pass to them. A set adopts what needs a failing member only once that is healthy,
    /// and nothing while its checks refuse a member.
    fn can_pass(&self, owner: &str, now: &World) -> bool {
        let Some(trouble) = self.trouble else { return true };
        let mut rest = self.clone();
        rest.wishes.remove(owner);
        let needed = rest.needed();
        let mut passing = needed.iter().filter(|it| **it != trouble && now[*it].owner == owner);
        match self.quality(trouble, self.newest(trouble)) {
            Quality::Refused => now.get(trouble).is_none_or(|it| it.owner == owner) || passing.next().is_none(),
            _ => !passing.any(|it| Self::closure(it).contains(trouble)),
        }
    }

    pub(super) fn take(&mut self, step: &Step) {
        match step {
            Step::Create(name, wish) | Step::Edit(name, wish) => drop(self.wishes.insert(name, wish.clone())),
            Step::Delete(name) => drop(self.wishes.remove(name)),
            Step::Publish(package, quality) => {
                self.versions.entry(package).or_default().push(*quality);
                if *quality != Quality::Good {
                    self.trouble = Some(package);
                }
            }
            Step::Repair(package) => self.versions.entry(package).or_default().push(Quality::Good),
            Step::Touch => (self.trouble, self.touches) = (None, self.touches + 1),
            Step::Outage(catalog) => self.away = Some(catalog),
            Step::Return(_) => self.away = None,
            Step::Restart => {}
        }
    }
}
