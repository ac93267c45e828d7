//! Objects that `chandler adopt` adopts or leaves.

use chandler_rollout::Adoptee;
use serde::Serialize;

use super::{difference, terminal::Look, text::one_line};

/// The output of `chandler adopt`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Adoption<'a> {
    /// The objects to adopt.
    pub objects: &'a [Adoptee],
    /// The objects of another owner, which `--force` adopts.
    pub held: &'a [Adoptee],
}

impl Adoption<'_> {
    /// The objects as text, with their owners and the fields that would change.
    pub fn text(&self, look: Look) -> String {
        let mut text = String::new();
        for (sign, adoptees) in [("~ adopt", self.objects), ("! leave", self.held)] {
            for Adoptee { object, existing_owner, fields, note, .. } in adoptees {
                text.extend([
                    sign,
                    " ",
                    &one_line(&object.to_string()),
                    ", which ",
                    &one_line(&existing_owner.to_string()),
                    "\n",
                ]);
                if let Some(note) = note {
                    text.extend(["    ! ", &one_line(note), "\n"]);
                }
                for field in fields {
                    difference::push_field(&mut text, field, look);
                }
            }
        }
        text
    }
}
