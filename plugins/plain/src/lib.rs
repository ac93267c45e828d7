//! The plain+v0 provisioner.
