//! The volumes of `k8s.io/api/core/v1`.

use super::meta::{LABEL_SELECTOR, OBJECT_META};
use crate::typed::records;

records! {
    AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE {
        "fsType" ? string, "partition" ? i32, "readOnly" ? bool, "volumeID" ! string,
    }
    AZURE_DISK_VOLUME_SOURCE {
        "cachingMode" * string, "diskName" ! string, "diskURI" ! string, "fsType" * string, "kind" * string,
        "readOnly" * bool,
    }
    AZURE_FILE_VOLUME_SOURCE { "readOnly" ? bool, "secretName" ! string, "shareName" ! string }
    CEPH_FS_VOLUME_SOURCE {
        "monitors" + [string], "path" ? string, "readOnly" ? bool, "secretFile" ? string,
        "secretRef" * LOCAL_OBJECT_REFERENCE, "user" ? string,
    }
    CINDER_VOLUME_SOURCE {
        "fsType" ? string, "readOnly" ? bool, "secretRef" * LOCAL_OBJECT_REFERENCE, "volumeID" ! string,
    }
    CLUSTER_TRUST_BUNDLE_PROJECTION {
        "labelSelector" * LABEL_SELECTOR, "name" * string, "optional" * bool, "path" ! string, "signerName" * string,
    }
    CONFIG_MAP_PROJECTION { "items" ? [KEY_TO_PATH], "name" ? string, "optional" * bool }
    CONFIG_MAP_VOLUME_SOURCE { "defaultMode" * i32, "items" ? [KEY_TO_PATH], "name" ? string, "optional" * bool }
    CSI_VOLUME_SOURCE {
        "driver" ! string, "fsType" * string, "nodePublishSecretRef" * LOCAL_OBJECT_REFERENCE, "readOnly" * bool,
        "volumeAttributes" ? {string},
    }
    DOWNWARD_API_PROJECTION { "items" ? [DOWNWARD_API_VOLUME_FILE] }
    DOWNWARD_API_VOLUME_FILE {
        "fieldRef" * OBJECT_FIELD_SELECTOR, "mode" * i32, "path" ! string,
        "resourceFieldRef" * RESOURCE_FIELD_SELECTOR,
    }
    DOWNWARD_API_VOLUME_SOURCE { "defaultMode" * i32, "items" ? [DOWNWARD_API_VOLUME_FILE] }
    EMPTY_DIR_VOLUME_SOURCE { "medium" ? string, "sizeLimit" * quantity }
    EPHEMERAL_VOLUME_SOURCE { "volumeClaimTemplate" * PERSISTENT_VOLUME_CLAIM_TEMPLATE }
    FC_VOLUME_SOURCE {
        "fsType" ? string, "lun" * i32, "readOnly" ? bool, "targetWWNs" ? [string], "wwids" ? [string],
    }
    FLEX_VOLUME_SOURCE {
        "driver" ! string, "fsType" ? string, "options" ? {string}, "readOnly" ? bool,
        "secretRef" * LOCAL_OBJECT_REFERENCE,
    }
    FLOCKER_VOLUME_SOURCE { "datasetName" ? string, "datasetUUID" ? string }
    GCE_PERSISTENT_DISK_VOLUME_SOURCE { "fsType" ? string, "partition" ? i32, "pdName" ! string, "readOnly" ? bool }
    GIT_REPO_VOLUME_SOURCE { "directory" ? string, "repository" ! string, "revision" ? string }
    GLUSTERFS_VOLUME_SOURCE { "endpoints" ! string, "path" ! string, "readOnly" ? bool }
    HOST_PATH_VOLUME_SOURCE { "path" ! string, "type" * string }
    IMAGE_VOLUME_SOURCE { "pullPolicy" ? string, "reference" ? string }
    ISCSI_VOLUME_SOURCE {
        "chapAuthDiscovery" ? bool, "chapAuthSession" ? bool, "fsType" ? string, "initiatorName" * string,
        "iqn" ! string, "iscsiInterface" ? string, "lun" ! i32, "portals" ? [string], "readOnly" ? bool,
        "secretRef" * LOCAL_OBJECT_REFERENCE, "targetPortal" ! string,
    }
    KEY_TO_PATH { "key" ! string, "mode" * i32, "path" ! string }
    LOCAL_OBJECT_REFERENCE { "name" ? string }
    NFS_VOLUME_SOURCE { "path" ! string, "readOnly" ? bool, "server" ! string }
    OBJECT_FIELD_SELECTOR { "apiVersion" ? string, "fieldPath" ! string }
    PERSISTENT_VOLUME_CLAIM_SPEC {
        "accessModes" ? [string], "dataSource" * TYPED_LOCAL_OBJECT_REFERENCE,
        "dataSourceRef" * TYPED_OBJECT_REFERENCE, "resources" ~ VOLUME_RESOURCE_REQUIREMENTS,
        "selector" * LABEL_SELECTOR, "storageClassName" * string, "volumeAttributesClassName" * string,
        "volumeMode" * string, "volumeName" ? string,
    }
    PERSISTENT_VOLUME_CLAIM_TEMPLATE { "metadata" ~ OBJECT_META, "spec" ! PERSISTENT_VOLUME_CLAIM_SPEC }
    PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE { "claimName" ! string, "readOnly" ? bool }
    PHOTON_PERSISTENT_DISK_VOLUME_SOURCE { "fsType" ? string, "pdID" ! string }
    POD_CERTIFICATE_PROJECTION {
        "certificateChainPath" ? string, "credentialBundlePath" ? string, "keyPath" ? string, "keyType" + string,
        "maxExpirationSeconds" * i32, "signerName" + string, "userAnnotations" ? {string},
    }
    PORTWORX_VOLUME_SOURCE { "fsType" ? string, "readOnly" ? bool, "volumeID" ! string }
    PROJECTED_VOLUME_SOURCE { "defaultMode" * i32, "sources" * [VOLUME_PROJECTION] }
    QUOBYTE_VOLUME_SOURCE {
        "group" ? string, "readOnly" ? bool, "registry" ! string, "tenant" ? string, "user" ? string,
        "volume" ! string,
    }
    RBD_VOLUME_SOURCE {
        "fsType" ? string, "image" ! string, "keyring" ? string, "monitors" + [string], "pool" ? string,
        "readOnly" ? bool, "secretRef" * LOCAL_OBJECT_REFERENCE, "user" ? string,
    }
    RESOURCE_FIELD_SELECTOR { "containerName" ? string, "divisor" ~ quantity, "resource" ! string }
    SCALEIO_VOLUME_SOURCE {
        "fsType" ? string, "gateway" ! string, "protectionDomain" ? string, "readOnly" ? bool,
        "secretRef" + LOCAL_OBJECT_REFERENCE, "sslEnabled" ? bool, "storageMode" ? string, "storagePool" ? string,
        "system" ! string, "volumeName" ? string,
    }
    SECRET_PROJECTION { "items" ? [KEY_TO_PATH], "name" ? string, "optional" * bool }
    SECRET_VOLUME_SOURCE { "defaultMode" * i32, "items" ? [KEY_TO_PATH], "optional" * bool, "secretName" ? string }
    SERVICE_ACCOUNT_TOKEN_PROJECTION { "audience" ? string, "expirationSeconds" * i64, "path" ! string }
    STORAGE_OS_VOLUME_SOURCE {
        "fsType" ? string, "readOnly" ? bool, "secretRef" * LOCAL_OBJECT_REFERENCE, "volumeName" ? string,
        "volumeNamespace" ? string,
    }
    TYPED_LOCAL_OBJECT_REFERENCE { "apiGroup" * string, "kind" ! string, "name" ! string }
    TYPED_OBJECT_REFERENCE { "apiGroup" * string, "kind" ! string, "name" ! string, "namespace" * string }
    VOLUME {
        "awsElasticBlockStore" * AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE, "azureDisk" * AZURE_DISK_VOLUME_SOURCE,
        "azureFile" * AZURE_FILE_VOLUME_SOURCE, "cephfs" * CEPH_FS_VOLUME_SOURCE, "cinder" * CINDER_VOLUME_SOURCE,
        "configMap" * CONFIG_MAP_VOLUME_SOURCE, "csi" * CSI_VOLUME_SOURCE, "downwardAPI" * DOWNWARD_API_VOLUME_SOURCE,
        "emptyDir" * EMPTY_DIR_VOLUME_SOURCE, "ephemeral" * EPHEMERAL_VOLUME_SOURCE, "fc" * FC_VOLUME_SOURCE,
        "flexVolume" * FLEX_VOLUME_SOURCE, "flocker" * FLOCKER_VOLUME_SOURCE,
        "gcePersistentDisk" * GCE_PERSISTENT_DISK_VOLUME_SOURCE, "gitRepo" * GIT_REPO_VOLUME_SOURCE,
        "glusterfs" * GLUSTERFS_VOLUME_SOURCE, "hostPath" * HOST_PATH_VOLUME_SOURCE, "image" * IMAGE_VOLUME_SOURCE,
        "iscsi" * ISCSI_VOLUME_SOURCE, "name" ! string, "nfs" * NFS_VOLUME_SOURCE,
        "persistentVolumeClaim" * PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE,
        "photonPersistentDisk" * PHOTON_PERSISTENT_DISK_VOLUME_SOURCE, "portworxVolume" * PORTWORX_VOLUME_SOURCE,
        "projected" * PROJECTED_VOLUME_SOURCE, "quobyte" * QUOBYTE_VOLUME_SOURCE, "rbd" * RBD_VOLUME_SOURCE,
        "scaleIO" * SCALEIO_VOLUME_SOURCE, "secret" * SECRET_VOLUME_SOURCE, "storageos" * STORAGE_OS_VOLUME_SOURCE,
        "vsphereVolume" * VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE,
    }
    VOLUME_PROJECTION {
        "clusterTrustBundle" * CLUSTER_TRUST_BUNDLE_PROJECTION, "configMap" * CONFIG_MAP_PROJECTION,
        "downwardAPI" * DOWNWARD_API_PROJECTION, "podCertificate" * POD_CERTIFICATE_PROJECTION,
        "secret" * SECRET_PROJECTION, "serviceAccountToken" * SERVICE_ACCOUNT_TOKEN_PROJECTION,
    }
    VOLUME_RESOURCE_REQUIREMENTS { "limits" ? {quantity}, "requests" ? {quantity} }
    VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE {
        "fsType" ? string, "storagePolicyID" ? string, "storagePolicyName" ? string, "volumePath" ! string,
    }
}
