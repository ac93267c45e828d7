//! The registry+v1 provisioner.
