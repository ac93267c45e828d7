//! Random histories of two Resolutions, a PlatformOperator and three catalogs, against a model: nothing that is needed is ever absent or
//! installed twice, nothing that is not needed stays, and statuses at rest are true.
//!
//! `CHANDLER_HISTORY_SEED` tries another history, and `CHANDLER_HISTORY_STEPS` ends it earlier or later.

mod checks;
mod model;

use std::{collections::BTreeMap, env, mem};

use chandler_api::Catalog;
use chandler_tests::{World, wait};
use kube::{Api, api::DeleteParams};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{
    platform_operators,
    random::Random,
    resolutions::{create, delete, patch},
    shop::{Shop, catalog},
};
use checks::{compare, resolution_of};
use model::{CATALOGS, Model, OPERATOR, Quality, Step, Wish, packages};

const STEPS: u64 = 24;

/// The last difference between the model and the world, for a test that fails.
#[derive(Default)]
struct Difference(Mutex<String>);

impl Difference {
    fn note(&self, found: String) {
        *self.0.lock() = found;
    }
}

impl Drop for Difference {
    fn drop(&mut self) {
        let last = self.0.lock();
        if !last.is_empty() {
            eprintln!("{last}");
        }
    }
}

/// The shop of a catalog with its packages, each in the versions that the model has.
async fn stocked<'a>(world: &'a World, title: &'static str, model: &Model) -> Shop<'a> {
    let mut shop = Shop::titled(world, title);
    let stocked = CATALOGS.iter().find(|(name, _)| *name == title).map(|(_, packages)| *packages).unwrap_or_default();
    for (package, needs) in stocked {
        for (minor, quality) in model.versions[package].iter().enumerate() {
            let version: &'static str = Box::leak(format!("1.{minor}.0").into_boxed_str());
            shop = match quality {
                Quality::Good => shop.with(package, version, needs).await,
                Quality::Failing => shop.with_failing(package, version, needs).await.skipping(package),
                Quality::Refused => {
                    shop.with_map_and_needs(package, version, "NOT_A_NAME", needs).await.skipping(package)
                }
            };
        }
    }
    shop
}

/// The packages of a wish as the spec of a Resolution has them.
fn spec(shop: &Shop<'_>, wish: &Wish) -> Value {
    let request = |package: &&str| match wish.pins.get(package) {
        Some(minor) => json!({"name": shop.name(package), "version": format!("1.{minor}.0")}),
        None => json!({"name": shop.name(package)}),
    };
    let packages: Vec<Value> = wish.packages.iter().map(request).collect();
    json!({"packages": packages, "dependencyUpgrades": wish.keeps_dependencies.then_some("Pinned")})
}

/// The fields of the PlatformOperator for a wish.
fn operator_spec(shop: &Shop<'_>, wish: &Wish) -> Value {
    let package = wish.packages.first().expect("a package");
    let version = wish.pins.get(package).map(|minor| format!("1.{minor}.0"));
    json!({"package": {"name": shop.name(package)}, "version": version})
}

/// Does what a step says. The controller is restarted elsewhere.
async fn carry_out(shops: &BTreeMap<&'static str, Shop<'_>>, model: &Model, step: &Step) {
    let any = &shops["lower"];
    let world = any.world;
    match step {
        Step::Create(OPERATOR, wish) => {
            let package = wish.packages.first().expect("a package");
            platform_operators::create(any, OPERATOR, package, json!({})).await;
        }
        Step::Create(name, wish) => {
            let packages: Vec<(&str, &str)> = wish.packages.iter().map(|package| (*package, "")).collect();
            create(any, &resolution_of(any, name), &packages).await;
        }
        Step::Edit(OPERATOR, wish) => {
            platform_operators::patch(world, &any.name(OPERATOR), operator_spec(any, wish)).await;
        }
        Step::Edit(name, wish) => patch(world, &resolution_of(any, name), spec(any, wish)).await,
        Step::Delete(OPERATOR) => platform_operators::delete(world, &any.name(OPERATOR)).await,
        Step::Delete(name) => delete(world, &resolution_of(any, name)).await,
        Step::Publish(..) | Step::Repair(_) => {
            for shop in shops.values() {
                shop.publish().await;
            }
        }
        Step::Touch => {
            for name in model.wishes.keys() {
                let spec = json!({"output": {"resolveSet": {"historyLimit": 6 + model.touches % 2}}});
                patch(world, &resolution_of(any, name), spec).await;
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
}

#[tokio::test(flavor = "multi_thread")]
async fn sets_are_as_the_model_says_after_every_step_of_a_random_history() {
    let mut world = World::new().await;
    let number = |name: &str| env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let (seed, steps) =
        (number("CHANDLER_HISTORY_SEED").unwrap_or(1), number("CHANDLER_HISTORY_STEPS").unwrap_or(STEPS));
    let (mut random, mut model, mut history) = (Random(seed), Model::new(), Vec::new());
    let mut installed = model::World::new();
    for (title, _) in CATALOGS {
        catalog(&stocked(&world, title, &model).await).await;
    }
    for number in 0.. {
        if number >= steps && model.trouble.is_none() && model.away.is_none() {
            break;
        }
        let step = model.step(&mut random, &installed);
        let needed = model.needed();
        model.take(&step);
        history.push(step.clone());
        if env::var("CHANDLER_HISTORY_SEED").is_ok() {
            eprintln!("{step:?}");
        }
        if let Step::Restart = step {
            world.stop_controller().await;
            world.start_controller();
        }
        // The shops are made again, since they borrow the world. Images are pushed once: their content is the same.
        let mut shops = BTreeMap::new();
        for (title, _) in CATALOGS {
            shops.insert(title, stocked(&world, title, &model).await);
        }
        carry_out(&shops, &model, &step).await;
        let (difference, found) = (Difference::default(), Mutex::new(None));
        wait::eventually(&format!("seed {seed}: {history:#?}"), async || {
            let (is_same, world) = match compare(&shops["lower"], &model, &installed).await {
                Ok(world) => (true, Some(world)),
                Err(text) => {
                    difference.note(text);
                    (false, None)
                }
            };
            *found.lock() = world;
            is_same
        })
        .await;
        difference.note(String::new());
        let now = found.into_inner().expect("what is installed");
        let before = mem::replace(&mut installed, now);
        // Packages that are needed before and after were never deleted.
        for package in model.needed().intersection(&needed) {
            let uid = |world: &model::World| world.get(package).map(|it| it.uid.clone());
            assert_eq!(uid(&before), uid(&installed), "{package} was installed again: seed {seed}: {history:#?}");
        }
    }
    let any = Shop::titled(&world, "lower");
    for name in model.wishes.keys() {
        carry_out(&BTreeMap::from([("lower", Shop::titled(&world, "lower"))]), &model, &Step::Delete(name)).await;
    }
    let left = compare(&any, &Model::new(), &model::World::new()).await;
    assert_eq!(left.as_ref().map(BTreeMap::len), Ok(0), "{left:?}");
    for (package, _) in packages() {
        let deployment = world.deployments().get_opt(&any.name(package)).await.expect("the API server answers");
        assert!(deployment.is_none(), "{package} stays");
    }
    world.finish().await;
}
