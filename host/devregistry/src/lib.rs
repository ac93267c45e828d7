//! An OCI registry in this process.
