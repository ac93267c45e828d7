//! Volumes and storage classes.

use serde_json::Value;

use crate::{
    metadata,
    table::{
        cell::{AGE, NAME, NONE, UNSET, plain, text},
        column::{Column, Row},
    },
};

const ATTRIBUTES_CLASS: Column = Column::text("VolumeAttributesClass", |row| {
    plain(row.object.pointer("/spec/volumeAttributesClassName"), UNSET).into()
});
const VOLUME_MODE: Column =
    Column::text("VolumeMode", |row| plain(row.object.pointer("/spec/volumeMode"), UNSET).into()).wide();
const STORAGE_CLASS_NAME: Column = Column::text("StorageClass", |row| {
    let annotated = metadata::annotation(row.object, "volume.beta.kubernetes.io/storage-class");
    annotated.unwrap_or(row.text("/spec/storageClassName")).into()
});
const PHASE: Column = Column::text("Status", |row| {
    if metadata::is_deleting(row.object) { "Terminating".into() } else { row.text("/status/phase").into() }
});

/// PersistentVolumes.
pub(super) const PERSISTENT_VOLUME: &[Column] = &[
    NAME,
    Column::text("Capacity", |row| row.text_or("/spec/capacity/storage", "0").into()),
    Column::text("Access Modes", |row| access_modes(row, "/spec/accessModes").into()),
    Column::text("Reclaim Policy", |row| row.text("/spec/persistentVolumeReclaimPolicy").into()),
    PHASE,
    Column::text("Claim", |row| match row.object.pointer("/spec/claimRef") {
        Some(claim) => format!("{}/{}", text(claim, "/namespace"), text(claim, "/name")).into(),
        None => "".into(),
    }),
    STORAGE_CLASS_NAME,
    ATTRIBUTES_CLASS,
    Column::text("Reason", |row| row.text("/status/reason").into()),
    AGE,
    VOLUME_MODE,
];

/// PersistentVolumeClaims.
pub(super) const PERSISTENT_VOLUME_CLAIM: &[Column] = &[
    NAME,
    PHASE,
    Column::text("Volume", |row| row.text("/spec/volumeName").into()),
    Column::text("Capacity", |row| match row.text("/spec/volumeName") {
        "" => "".into(),
        _ => row.text_or("/status/capacity/storage", "0").into(),
    }),
    Column::text("Access Modes", |row| match row.text("/spec/volumeName") {
        "" => "".into(),
        _ => access_modes(row, "/status/accessModes").into(),
    }),
    STORAGE_CLASS_NAME,
    ATTRIBUTES_CLASS,
    AGE,
    VOLUME_MODE,
];

fn access_modes(row: Row<'_>, pointer: &str) -> String {
    const MODES: [(&str, &str); 4] =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let stated = |mode: &str| row.list(pointer).any(|value| value == mode);
    MODES.iter().filter(|(mode, _)| stated(mode)).map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}

/// StorageClasses.
pub(super) const STORAGE_CLASS: &[Column] = &[
    Column::text("Name", |row| {
        let name = metadata::name(row.object);
        let default =
            ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
        let default = default.iter().any(|key| metadata::annotation(row.object, key) == Some("true"));
        if default { format!("{name} (default)").into() } else { name.into() }
    })
    .names(),
    Column::text("Provisioner", |row| row.text("/provisioner").into()),
    Column::text("ReclaimPolicy", |row| row.text_or("/reclaimPolicy", "Delete").into()),
    Column::text("VolumeBindingMode", |row| row.text_or("/volumeBindingMode", "Immediate").into()),
    Column::text("AllowVolumeExpansion", |row| row.flag("/allowVolumeExpansion").unwrap_or(false).into()),
    AGE,
];

/// VolumeAttributesClasses.
pub(super) const VOLUME_ATTRIBUTES_CLASS: &[Column] =
    &[NAME, Column::text("DriverName", |row| row.text("/driverName").into()), AGE];

/// VolumeAttachments.
pub(super) const VOLUME_ATTACHMENT: &[Column] = &[
    NAME,
    Column::text("Attacher", |row| row.text("/spec/attacher").into()).names(),
    Column::text("PV", |row| row.text("/spec/source/persistentVolumeName").into()),
    Column::text("Node", |row| row.text("/spec/nodeName").into()),
    Column::boolean("Attached", |row| row.flag("/status/attached").unwrap_or(false).into()),
    AGE,
];

/// CSINodes.
pub(super) const CSI_NODE: &[Column] =
    &[NAME, Column::integer("Drivers", |row| row.count("/spec/drivers").into()), AGE];

/// CSIDrivers.
pub(super) const CSI_DRIVER: &[Column] = &[
    NAME,
    Column::boolean("AttachRequired", |row| row.flag("/spec/attachRequired").unwrap_or(true).into()),
    Column::boolean("PodInfoOnMount", |row| row.flag("/spec/podInfoOnMount").unwrap_or(false).into()),
    Column::boolean("StorageCapacity", |row| row.flag("/spec/storageCapacity").unwrap_or(false).into()),
    Column::text("TokenRequests", token_requests),
    Column::boolean("RequiresRepublish", |row| row.flag("/spec/requiresRepublish").unwrap_or(false).into()),
    Column::text("Modes", |row| {
        let modes = row.joined("/spec/volumeLifecycleModes");
        if modes.is_empty() { NONE.into() } else { modes.into() }
    }),
    AGE,
];

fn token_requests(row: Row<'_>) -> Value {
    if row.object.pointer("/spec/tokenRequests").is_none() {
        return UNSET.into();
    }
    let audiences = row.list("/spec/tokenRequests").map(|request| text(request, "/audience"));
    audiences.collect::<Vec<_>>().join(",").into()
}
