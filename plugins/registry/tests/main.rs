//! The integration tests of this crate, in one binary.
//!
//! | module | tests |
//! |---|---|
//! | `objects` | the objects of a small operator |
//! | `extended` | `compatibility: extended`, for bundles that OLM v1 refuses or breaks |
//! | `refusals` | refused bundles and configurations |
//! | `decisions` | decisions about quirks of OLM v1 that no other module covers |
//! | `requirements` | the requirements of a bundle on its cluster |
//! | `environment` | `operatorConditionName` and `proxy` |
//! | `description` | the description of a bundle |
//! | `schema` | the schema of the configuration, compared with OLM v1 |
//! | `yaml` | constructs of published bundles on which YAML parsers differ |
//! | `golden` | OLM v1's golden objects, and bundles of rukpak's test data |
//! | `corpus` | sixty real and synthetic bundles, compared with OLM v1 |
//! | `hostile` | bundles and configurations with arbitrary edits |
//! | `documentation` | the pages about registry+v1 name every code, and only existing tests |

mod corpus;
mod decisions;
mod description;
mod documentation;
mod duplicates;
mod environment;
mod extended;
mod golden;
mod hostile;
mod objects;
mod refusals;
mod requirements;
mod schema;
mod support;
mod yaml;
