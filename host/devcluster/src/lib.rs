//! An in-process Kubernetes API for `chandler dev` and the tests.
