//! Write a Chandler provisioner: one trait and one export macro.
