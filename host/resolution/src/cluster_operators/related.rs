//! The objects that tools collect, must-gather among them: what is really there.

use chandler_api::RelatedObject;

use super::Package;

fn object(group: &str, resource: &str, name: &str) -> RelatedObject {
    RelatedObject { group: group.to_owned(), resource: resource.to_owned(), namespace: None, name: name.to_owned() }
}

/// All PlatformOperators, the namespace of the controller, the Resolution if there is one, and what each package has.
pub fn all(packages: &[Package], system_namespace: &str, resolution: Option<&str>) -> Vec<RelatedObject> {
    let mut related = vec![object("platform.openshift.io", "platformoperators", ""), namespace(system_namespace)];
    related.extend(resolution.map(|name| object("core.deppy.io", "resolutions", name)));
    related.extend(packages.iter().flat_map(installed));
    sorted(related)
}

/// One PlatformOperator, and what its package has.
pub fn one(package: &Package) -> Vec<RelatedObject> {
    let mut related = vec![object("platform.openshift.io", "platformoperators", &package.operator)];
    related.extend(installed(package));
    sorted(related)
}

/// The namespace of the controller and the kinds that it reconciles.
pub fn controller(system_namespace: &str) -> Vec<RelatedObject> {
    sorted(vec![
        namespace(system_namespace),
        object("platform.openshift.io", "platformoperators", ""),
        object("core.deppy.io", "resolutions", ""),
        object("core.rukpak.io", "bundledeployments", ""),
        object("chandler.dev", "catalogs", ""),
    ])
}

fn namespace(name: &str) -> RelatedObject {
    object("", "namespaces", name)
}

fn installed(package: &Package) -> Vec<RelatedObject> {
    let deployment = package.deployment.iter().map(|name| object("core.rukpak.io", "bundledeployments", name));
    deployment.chain(package.namespace.iter().map(|name| namespace(name))).collect()
}

fn sorted(mut related: Vec<RelatedObject>) -> Vec<RelatedObject> {
    related.sort();
    related.dedup();
    related
}
