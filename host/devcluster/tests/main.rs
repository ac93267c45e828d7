//! The integration tests of this crate, in one binary.
//!
//! | module | tests |
//! |---|---|
//! | `writes` | create, update, patch, apply, delete |
//! | `watches` | lists at revisions, pages, watches |
//! | `lifecycle` | finalizers, owners, namespaces, CRDs |
//! | `many_versions` | a CRD with ten thousand versions delays no other request |
//! | `representations` | YAML, protobuf, gzip, entity tags, legacy paths |
//! | `access` | impersonation, RBAC, privilege escalation, reviews |
//! | `access_kubectl` | the same with kubectl |
//! | `tokens` | tokens of ServiceAccounts, and the default objects of every namespace |
//! | `browsers` | requests of web pages are refused |
//! | `faults` | fault injection |
//! | `time` | the same seed, clock and requests give the same bytes |
//! | `runtime` | kube's runtime: controllers, reflectors, leases |
//! | `service` | the API without sockets |
//! | `workloads` | simulated workloads |
//! | `kubectl` | kubectl as the administrator |

mod access;
mod access_kubectl;
mod browsers;
mod common;
mod faults;
mod kubectl;
mod lifecycle;
mod many_versions;
mod representations;
mod runtime;
mod service;
mod time;
mod tokens;
mod watches;
mod workloads;
mod writes;
