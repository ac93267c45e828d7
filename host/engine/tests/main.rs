//! The integration tests of this crate, in one binary.
//!
//! | module | tests |
//! |---|---|
//! | `components` | components that the supported toolchains do not produce |
//! | `compiler` | compilation in a child process, its limits, the code cache and the quarantine |
//! | `contract` | the published versions of the contract never change, and their components keep running |
//! | `equality` | the same results in the sandbox as natively |
//! | `hostile` | a misbehaving guest fails with its own error, and nothing else is affected |
//! | `languages` | provisioners in other languages |
//! | `midcall` | events during a call |

mod compiler;
mod components;
mod contract;
mod equality;
mod hostile;
mod languages;
mod midcall;
mod support;
