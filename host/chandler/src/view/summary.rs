//! A source, a provisioner or a release on one line.

use chandler_api::{BundleSource, ProvisionerInUse, ReleaseInUse};

use super::text::count;

/// The kind of a source, and its image, ConfigMaps, repository or URL.
pub fn source(source: &BundleSource) -> String {
    if let Some(image) = &source.image {
        return format!("image {}", image.reference);
    }
    if let Some(maps) = &source.config_maps {
        let names: Vec<&str> = maps.iter().map(|map| map.config_map.name.as_str()).collect();
        return format!("ConfigMaps {}", names.join(", "));
    }
    if let Some(git) = &source.git {
        let reference = [&git.reference.commit, &git.reference.tag, &git.reference.branch];
        let reference = reference.into_iter().flatten().next().map_or("", String::as_str);
        return format!("git {} {reference}", git.repository);
    }
    source.http.as_ref().map_or_else(|| source.kind.clone(), |http| format!("archive {}", http.url))
}

/// The class of a provisioner, with the name and version of the component.
pub fn provisioner(provisioner: &ProvisionerInUse) -> String {
    let name = [&provisioner.name, &provisioner.version].into_iter().flatten().map(String::as_str);
    let name = name.collect::<Vec<_>>().join(" ");
    if name.is_empty() { provisioner.class.clone() } else { format!("{} ({name})", provisioner.class) }
}

/// The number of objects and stages of a release, and its digest.
pub fn release(release: &ReleaseInUse) -> String {
    let number = |count| usize::try_from(count).unwrap_or_default();
    let (objects, stages) = (count(number(release.objects), "object"), count(number(release.stages), "stage"));
    format!("{objects} in {stages}, {}", release.digest)
}
