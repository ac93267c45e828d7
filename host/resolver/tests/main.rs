//! The integration tests of this crate, in one binary.
//!
//! | module | tests |
//! |---|---|
//! | `decisions` | decisions and explanations, example by example |
//! | `resolving_docs` | the examples of docs/resolving.md |
//! | `what_if` | what a question with one change would be answered |
//! | `properties` | all answers, against a resolver that looks at every set |
//! | `single` | the mode `Single` against an oracle of OLM v1's rules, on random questions |
//! | `published` | the same on published catalogs |
//! | `olm_v0` | the cases of OLM v0's resolver |
//! | `vectors` | the vectors of OLM v1 and Deppy |

mod decisions;
mod olm_v0;
mod properties;
mod published;
mod resolving_docs;
mod single;
mod support;
mod vectors;
mod what_if;
