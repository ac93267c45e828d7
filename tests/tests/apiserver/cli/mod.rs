//! §2: the real kubectl, row by row, and a new user's session.

mod applying;
mod changing;
mod session;
mod showing;

use crate::support::Case;

pub(crate) fn cases() -> Vec<Case> {
    [showing::cases(), applying::cases(), changing::cases(), session::cases()].into_iter().flatten().collect()
}
