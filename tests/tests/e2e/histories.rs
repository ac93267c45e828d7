//! Random histories of Resolutions and catalogs, against a model: nothing that is needed is ever absent or installed twice, nothing that is not
//! needed stays, and what a Resolution says at rest is true.
//!
//! `CHANDLER_HISTORY_SEED` tries another history.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fmt,
    sync::{Mutex, PoisonError},
};

use chandler_api::{Catalog, ConditionType, find_condition, names::OWNER_NAME_LABEL};
use chandler_tests::{World, wait};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams},
};
use serde_json::json;

use crate::{
    handovers::named,
    random::Random,
    resolutions::{create, delete, patch, resolutions, wanted},
    shop::{Shop, catalog},
};

/// A package, and what it needs.
type Package = (&'static str, &'static [&'static str]);

/// The packages of each catalog.
const CATALOGS: [(&str, &[Package]); 3] = [
    ("lower", &[("base", &[]), ("extra", &[])]),
    ("middle", &[("left", &["base"]), ("right", &["base"]), ("alone", &[])]),
    ("upper", &[("top", &["left", "right"])]),
];
const RESOLUTIONS: [&str; 2] = ["one", "two"];
const STEPS: usize = 14;

/// One change of the world.
#[derive(Clone, Debug)]
enum Step {
    Create(&'static str, BTreeSet<&'static str>),
    Edit(&'static str, BTreeSet<&'static str>),
    Delete(&'static str),
    /// The next version of a package.
    Publish(&'static str),
    /// A catalog is deleted, or created again.
    Outage(&'static str),
    Return(&'static str),
    /// The controller stops and starts again.
    Restart,
}

/// What the world should be like.
#[derive(Clone, Debug, Default)]
struct Model {
    /// The packages that each Resolution asks for.
    wishes: BTreeMap<&'static str, BTreeSet<&'static str>>,
    /// The minor version of each package that is the newest.
    versions: BTreeMap<&'static str, usize>,
    /// The catalog that is gone.
    away: Option<&'static str>,
}

impl Model {
    /// A wish with all that it needs.
    fn closure(wish: &BTreeSet<&'static str>) -> BTreeSet<&'static str> {
        let mut open: Vec<&str> = wish.iter().copied().collect();
        let mut closure = BTreeSet::new();
        while let Some(package) = open.pop() {
            if closure.insert(package) {
                open.extend(
                    packages().filter(|(name, _)| *name == package).flat_map(|(_, needs)| needs.iter().copied()),
                );
            }
        }
        closure
    }

    fn needed(&self) -> BTreeSet<&'static str> {
        self.wishes.values().flat_map(Self::closure).collect()
    }

    fn version(&self, package: &str) -> String {
        format!("1.{}.0", self.versions.get(package).copied().unwrap_or_default())
    }

    /// A step that the model can follow. While a catalog is away, wishes only shrink, and Resolutions stay: what no catalog has cannot be taken
    /// over.
    fn step(&self, random: &mut Random) -> Step {
        loop {
            let resolution = *random.pick(&RESOLUTIONS).expect("a Resolution");
            let package = random.pick(&packages().collect::<Vec<_>>()).expect("a package").0;
            let step = match (random.below(10), self.wishes.get(resolution)) {
                (0..=4, None) => Step::Create(resolution, [package].into()),
                (0..=4, Some(wish)) => {
                    let mut wish = wish.clone();
                    if !wish.remove(package) {
                        wish.insert(package);
                    }
                    Step::Edit(resolution, wish)
                }
                (5, Some(_)) => Step::Delete(resolution),
                (6 | 7, _) => Step::Publish(package),
                (8, _) => match self.away {
                    Some(away) => Step::Return(away),
                    None => Step::Outage(random.pick(&CATALOGS).expect("a catalog").0),
                },
                (9, _) => Step::Restart,
                _ => continue,
            };
            let is_possible = match &step {
                Step::Edit(name, wish) => {
                    !wish.is_empty() && (self.away.is_none() || wish.is_subset(&self.wishes[name]))
                }
                Step::Create(..) | Step::Delete(_) | Step::Publish(_) => self.away.is_none(),
                Step::Outage(_) | Step::Return(_) | Step::Restart => true,
            };
            if is_possible {
                return step;
            }
        }
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Create(name, wish) | Step::Edit(name, wish) => drop(self.wishes.insert(name, wish.clone())),
            Step::Delete(name) => drop(self.wishes.remove(name)),
            Step::Publish(package) => *self.versions.entry(package).or_default() += 1,
            Step::Outage(catalog) => self.away = Some(catalog),
            Step::Return(_) => self.away = None,
            Step::Restart => {}
        }
    }
}

fn packages() -> impl Iterator<Item = Package> {
    CATALOGS.iter().flat_map(|(_, packages)| packages.iter().copied())
}

/// The last difference between the model and the world, for a test that fails.
#[derive(Default)]
struct Difference(Mutex<String>);

impl Difference {
    /// Whether there is none.
    fn note(&self, found: Result<(), String>) -> bool {
        let is_none = found.is_ok();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = found.err().unwrap_or_default();
        is_none
    }
}

impl Drop for Difference {
    fn drop(&mut self) {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !last.is_empty() {
            eprintln!("{last}");
        }
    }
}

/// Fails with what was found if it is not what was expected.
fn same<T: PartialEq + fmt::Debug>(what: &str, found: T, expected: T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what}: found {found:?}, expected {expected:?}")) }
}

/// The version and the UID of the ConfigMap of each package that is installed.
async fn maps(world: &World) -> BTreeMap<&'static str, (String, String)> {
    let mut found = BTreeMap::new();
    for (package, _) in packages() {
        if let Some(map) = world.config_maps().get_opt(package).await.expect("the API server answers") {
            let version = map.data.as_ref().and_then(|data| data.get("version")).cloned().unwrap_or_default();
            found.insert(package, (version, map.uid().unwrap_or_default()));
        }
    }
    found
}

/// Compares the world with the model.
async fn compare(shop: &Shop<'_>, model: &Model) -> Result<(), String> {
    let world = shop.world;
    for name in RESOLUTIONS {
        let found = resolutions(world).get_opt(&named(world, name)).await.expect("the API server answers");
        same(&format!("{name} exists"), found.is_some(), model.wishes.contains_key(name))?;
        // Without a catalog, what its packages need is not known in full.
        let (Some(found), Some(wish)) = (found, model.wishes.get(name).filter(|_| model.away.is_none())) else {
            continue;
        };
        let status = found.status.clone().unwrap_or_default();
        same(&format!("{name} is observed"), status.observed_generation, found.metadata.generation)?;
        let ready = find_condition(&status.conditions, ConditionType::Ready);
        let ready = ready.map(|it| format!("{}/{}: {}", it.status, it.reason, it.message)).unwrap_or_default();
        let members: BTreeSet<String> = status.members.iter().map(|member| member.package.clone()).collect();
        let expected: BTreeSet<String> = wish.iter().map(|package| shop.name(package)).collect();
        let sentence = format!("True/Succeeded: decision {}: ", status.decision.unwrap_or_default());
        let nothing = "True/Succeeded: the decision has";
        if !ready.starts_with(&sentence) && !ready.starts_with(nothing) {
            return Err(format!("{name}: {ready}"));
        }
        // A set may have more: what others need stays where it is. What a package of another set needs is the concern of that set.
        same(&format!("{name} has what it asks for: {members:?}"), members.is_superset(&expected), true)?;
    }
    let (found, needed) = (maps(world).await, model.needed());
    let installed: BTreeSet<&str> = found.keys().copied().collect();
    same("installed", installed, needed.clone())?;
    if model.away.is_none() {
        for (package, (version, _)) in &found {
            same(&format!("the version of {package}"), version.clone(), model.version(package))?;
        }
    }
    let members = ListParams::default().labels(OWNER_NAME_LABEL);
    let members = world.deployments().list(&members).await.expect("the API server answers");
    let members = members.items.iter().map(kube::ResourceExt::name_any);
    let members: BTreeSet<String> = members.filter(|name| name.starts_with(&world.run().to_string())).collect();
    same("members of sets", members, needed.iter().map(|package| shop.name(package)).collect())
}

/// The shop of a catalog with these packages, each in the version that a model has.
async fn stocked<'a>(world: &'a World, title: &'static str, versions: &[(&'static str, Model)]) -> Shop<'a> {
    let mut shop = Shop::titled(world, title);
    for (package, model) in versions {
        let needs = packages().find(|(name, _)| name == package).map(|(_, needs)| needs).unwrap_or_default();
        let version: &'static str = Box::leak(model.version(package).into_boxed_str());
        shop = shop.with(package, version, needs).await;
    }
    shop
}

#[tokio::test(flavor = "multi_thread")]
async fn sets_are_as_the_model_says_after_every_step_of_a_random_history() {
    let mut world = World::new().await;
    let seed = env::var("CHANDLER_HISTORY_SEED").ok().map_or(1, |text| text.parse().expect("a number"));
    let (mut random, mut model, mut history) = (Random(seed), Model::default(), Vec::new());
    let mut versions: BTreeMap<&'static str, Vec<(&'static str, Model)>> = BTreeMap::new();
    for (title, packages) in CATALOGS {
        versions.insert(title, packages.iter().map(|(package, _)| (*package, model.clone())).collect());
    }
    for title in versions.keys().copied() {
        catalog(&stocked(&world, title, &versions[title]).await).await;
    }
    for _ in 0..STEPS {
        let step = model.step(&mut random);
        let before = (model.needed(), maps(&world).await);
        model.take(&step);
        history.push(step.clone());
        if let Step::Publish(package) = step {
            let title = CATALOGS.iter().find(|(_, packages)| packages.iter().any(|(name, _)| *name == package));
            versions.get_mut(title.expect("its catalog").0).expect("its versions").push((package, model.clone()));
        }
        if let Step::Restart = step {
            world.stop_controller().await;
            world.start_controller();
        }
        // The shops are made again, since they borrow the world. Images are pushed once: their content is the same.
        let mut shops = BTreeMap::new();
        for (title, _) in CATALOGS {
            shops.insert(title, stocked(&world, title, &versions[title]).await);
        }
        let any = &shops["lower"];
        match &step {
            Step::Create(name, wish) => {
                let wish: Vec<(&str, &str)> = wish.iter().map(|package| (*package, "")).collect();
                create(any, &named(&world, name), &wish).await;
            }
            Step::Edit(name, wish) => {
                let wish: Vec<(&str, &str)> = wish.iter().map(|package| (*package, "")).collect();
                patch(&world, &named(&world, name), json!({"packages": wanted(any, &wish)})).await;
            }
            Step::Delete(name) => delete(&world, &named(&world, name)).await,
            Step::Publish(_) => {
                for shop in shops.values() {
                    shop.publish().await;
                }
            }
            Step::Outage(title) => {
                let (catalogs, name): (Api<Catalog>, _) = (Api::all(world.client.clone()), any.name(title));
                catalogs.delete(&name, &DeleteParams::default()).await.expect("it exists");
                wait::until(&catalogs, &name, "gone", |catalog| catalog.is_none()).await;
            }
            Step::Return(title) => drop(catalog(&shops[title]).await),
            Step::Restart => {}
        }
        let difference = Difference::default();
        wait::eventually(&format!("seed {seed}: {history:#?}"), async || difference.note(compare(any, &model).await))
            .await;
        // What is needed before and after was never deleted.
        let now = (model.needed(), maps(&world).await);
        for package in before.0.intersection(&now.0) {
            let (before, now) = (before.1.get(package), now.1.get(package));
            assert_eq!(
                before.map(|it| &it.1),
                now.map(|it| &it.1),
                "{package} was installed again: seed {seed}: {history:#?}"
            );
        }
    }
    for name in model.wishes.keys() {
        delete(&world, &named(&world, name)).await;
    }
    world.finish().await;
}
