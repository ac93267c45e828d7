//! A provisioner or a release on one line.

use chandler_api::{ProvisionerInUse, ReleaseInUse};

use super::text::count;

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
