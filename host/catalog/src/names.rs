//! Names that resemble a mistyped one.

/// How alike two names must be, from 0 to 1 (Jaro-Winkler).
const ALIKE: f64 = 0.8;
/// The shortest text that is looked for inside of names, in bytes.
const PART: usize = 3;

/// The names that a user may have meant, the most alike first, `most` at most.
pub fn similar<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>, most: usize) -> Vec<&'a str> {
    let wanted = wanted.to_lowercase();
    let score = |name: &str| {
        let contained = wanted.len() >= PART && name.contains(&wanted);
        strsim::jaro_winkler(&wanted, name).max(if contained { ALIKE } else { 0.0 })
    };
    let mut scored: Vec<(f64, &str)> = names.into_iter().map(|name| (score(&name.to_lowercase()), name)).collect();
    scored.retain(|(score, _)| *score >= ALIKE);
    scored.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(other.1)));
    scored.dedup_by(|one, other| one.1 == other.1);
    scored.into_iter().take(most).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistyped_and_shortened_names_are_found() {
        let names = ["argocd-operator", "prometheus", "cert-manager", "cert-utils-operator", "strimzi-kafka-operator"];
        assert_eq!(similar("promethus", names, 3), ["prometheus"]);
        assert_eq!(similar("kafka", names, 3), ["strimzi-kafka-operator"]);
        assert_eq!(similar("Cert-Manger", names, 1), ["cert-manager"]);
        assert_eq!(similar("zzz", names, 3), [""; 0]);
        assert_eq!(similar("", names, 3), [""; 0]);
    }
}
