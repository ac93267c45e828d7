//! Secrets in texts: messages, logs, command lines.

use chandler_values::redaction::HIDDEN;

use super::{DISTINCT, Scrubber, keys::without_keys, names::is_telling};

/// How JSON Web Tokens begin, and tokens of well-known services.
const PREFIXES: [&str; 14] = [
    "eyJ",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "ASIA",
    "sk-",
    "sha256~",
];
/// The least length in bytes of such a token, and of one in JSON.
const TOKEN: usize = 16;
/// The least length in bytes of a word of mixed letters and digits that is hidden. Digests are longer, but have no capitals.
const MIXED: usize = 40;
/// Words before credentials in a header whose name is not in the text.
pub(super) const SCHEMES: [&str; 3] = ["bearer", "basic", "negotiate"];
/// What may be between a name and its value, after quotes.
const SEPARATORS: [char; 4] = ['=', ':', '>', '%'];

impl Scrubber {
    /// Hides what looks like a secret in a text, such as a message or a log.
    pub fn text(&mut self, text: &str) -> String {
        let text = without_keys(text);
        let mut is_continued = false;
        let mut result = String::new();
        for line in text.split_inclusive('\n') {
            let content = line.trim_end_matches(['\r', '\n']);
            let end = line.get(content.len()..).unwrap_or_default();
            if is_continued && !content.trim().is_empty() {
                result.push_str(HIDDEN);
                is_continued = false;
            } else {
                let words = self.words_of(content);
                result.push_str(&self.named(&words, &mut is_continued));
            }
            result.push_str(end);
        }
        result
    }

    /// Hides what is behind telling names: to the end of the quoted string, else of the line. `is_continued` becomes true if the value begins
    /// in the next line.
    fn named(&mut self, line: &str, is_continued: &mut bool) -> String {
        let (mut result, mut rest, mut is_quoted) = (String::new(), line, false);
        while let Some((before, after)) = next_value(rest) {
            is_quoted ^= has_odd_quotes(before);
            result.push_str(before);
            let end = end_of_value(after, is_quoted);
            let (value, next) = after.split_at(end);
            let plain = value.trim_matches(|c: char| c.is_whitespace() || "\"'\\,".contains(c));
            if plain.is_empty() || plain.chars().all(|c| "[{|>-+".contains(c)) {
                *is_continued = next.trim().is_empty();
                result.push_str(value);
            } else {
                self.remember(plain);
                let is_end = |c: char| c.is_whitespace() || "\"'\\,;&".contains(c);
                let is_scheme = |word: &&str| SCHEMES.iter().any(|scheme| word.eq_ignore_ascii_case(scheme));
                let first = plain.split(is_end).find(|word| !word.is_empty() && !is_scheme(word));
                self.remember(first.unwrap_or_default());
                result.extend([quote_of(value).0, HIDDEN, closing(value)]);
            }
            rest = next;
        }
        result + rest
    }

    /// Hides tokens and parts of URLs in the words of a line.
    fn words_of(&mut self, line: &str) -> String {
        let is_end = |c: char| c.is_whitespace() || "\"'`<>\\".contains(c);
        let (mut result, mut is_credential) = (String::new(), false);
        for part in line.split_inclusive(is_end) {
            let word = part.trim_end_matches(is_end);
            if is_credential && word.len() >= DISTINCT && word != HIDDEN {
                self.remember(word);
                result.push_str(HIDDEN);
            } else {
                result.push_str(&self.word(word));
            }
            result.push_str(part.get(word.len()..).unwrap_or_default());
            is_credential =
                word.is_empty() && is_credential || SCHEMES.iter().any(|scheme| word.eq_ignore_ascii_case(scheme));
        }
        result
    }

    fn word(&mut self, word: &str) -> String {
        let (head, query) = word.split_at(word.find(['?', '#']).unwrap_or(word.len()));
        let (start, address) = head.split_at(head.find("://").map_or(0, |at| at + 3));
        let is_url = !start.is_empty();
        let has_query = query.len() > 1 && (is_url || query.contains('='));
        let shown = self.tokens(start) + &self.address(address, is_url, query);
        if has_query {
            query
                .split(['?', '&', '#'])
                .for_each(|pair| self.remember(pair.split_once('=').map_or(pair, |(_, value)| value)));
            return shown + query.get(..1).unwrap_or_default() + HIDDEN;
        }
        shown + &self.tokens(query)
    }

    /// The part of a URL behind the scheme, or a word with the same form.
    fn address(&mut self, address: &str, is_url: bool, query: &str) -> String {
        let digest = ["@sha256:", "@sha512:"].iter().filter_map(|digest| address.find(digest)).min();
        let (place, digest) = address.split_at(digest.unwrap_or(address.len()));
        let authority = place.split('/').next().unwrap_or_default().trim_end_matches(|c: char| ",.;:)]}".contains(c));
        let port = authority.rsplit_once(':').map_or("", |(_, port)| port);
        // The `@` may be behind a character that is not expected in a password, or cut off.
        let is_cut = !authority.starts_with('[') && !port.bytes().all(|byte| byte.is_ascii_digit());
        if is_url && (query.contains('@') || is_cut && !place.contains('@')) {
            return HIDDEN.to_owned();
        }
        match place.rsplit_once('@') {
            Some((user, host)) if is_url || user.contains(':') => {
                if let Some((_, password)) = user.split_once(':') {
                    self.remember(password);
                }
                format!("{HIDDEN}@{}{digest}", self.tokens(host))
            }
            _ => self.tokens(place) + digest,
        }
    }

    /// Hides JSON Web Tokens, tokens of well-known services, and what looks like a random word.
    fn tokens(&mut self, text: &str) -> String {
        let is_end = |c: char| !(c.is_ascii_alphanumeric() || "-_.+~".contains(c));
        let mut result = String::new();
        for part in text.split_inclusive(is_end) {
            let word = part.trim_end_matches(is_end);
            let (before, token) = word.split_at(secret_in(word).unwrap_or(word.len()));
            result.push_str(before);
            if !token.is_empty() {
                self.remember(token);
                result.push_str(HIDDEN);
            }
            result.push_str(part.get(word.len()..).unwrap_or_default());
        }
        result
    }
}

/// Where a token begins in a word.
fn secret_in(word: &str) -> Option<usize> {
    let is_begin =
        |at: usize| word.as_bytes().get(..at).and_then(<[u8]>::last).is_none_or(|byte| !byte.is_ascii_alphabetic());
    let begins = PREFIXES.iter().flat_map(|prefix| word.match_indices(prefix)).map(|(at, _)| at);
    let begins = begins.filter(|at| is_begin(*at) && word.len() - at >= TOKEN);
    let has = |is: fn(&u8) -> bool| word.as_bytes().iter().any(is);
    let is_mixed = word.len() >= MIXED
        && !word.contains('.')
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_digit);
    begins.min().or(is_mixed.then_some(0))
}

/// The text up to the next value of a telling name, and from the value on.
fn next_value(text: &str) -> Option<(&str, &str)> {
    let is_name = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    let mut from = 0;
    loop {
        let begin = from + text.get(from..)?.find(is_name)?;
        let rest = text.get(begin..)?;
        let end = begin + rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        let (name, after) = (text.get(begin..end)?, text.get(end..)?);
        from = end;
        if !is_telling(name) {
            continue;
        }
        let quotes = after.trim_start_matches(|c: char| c.is_whitespace() || "\"'`\\])".contains(c));
        if let Some(value) = quotes.strip_prefix(SEPARATORS) {
            let value = value.trim_start_matches(|c: char| c.is_whitespace() || SEPARATORS.contains(&c));
            return text.split_at_checked(text.len() - value.len());
        }
        let value = after.trim_start_matches(|c: char| c.is_whitespace() || "\"'\\,".contains(c));
        if name.starts_with('-') && value.len() < after.len() && !value.starts_with('-') {
            return text.split_at_checked(text.len() - value.len());
        }
    }
}

/// Whether a string of JSON begins in a text and does not end in it, or the other way round.
fn has_odd_quotes(text: &str) -> bool {
    let (mut is_odd, mut is_escaped) = (false, false);
    for char in text.chars() {
        is_odd ^= char == '"' && !is_escaped;
        is_escaped = char == '\\' && !is_escaped;
    }
    is_odd
}

/// The opening quote of a value with its escapes, and the value behind it.
fn quote_of(value: &str) -> (&str, &str) {
    let escapes = value.len() - value.trim_start_matches('\\').len();
    match value.as_bytes().get(escapes) {
        Some(b'"' | b'\'' | b'`') => value.split_at(escapes + 1),
        _ => ("", value),
    }
}

/// The quote at the end of a quoted value.
fn closing(value: &str) -> &str {
    let (quote, rest) = quote_of(value);
    if rest.ends_with(quote) { quote } else { "" }
}

/// Where a value ends: behind its closing quote if nothing of it can follow, else before the end of the string that it is in, else with the line.
fn end_of_value(value: &str, is_quoted: bool) -> usize {
    let (quote, rest) = quote_of(value);
    let is_closed = |end: &usize| {
        let next = value.get(*end..).unwrap_or_default().chars().next();
        next.is_none_or(|c| c.is_whitespace() || ",;}])\"\\<".contains(c))
    };
    let end = find_quote(rest, quote).map(|at| quote.len() + at + quote.len()).filter(|_| !quote.is_empty());
    if let Some(end) = end.filter(is_closed) {
        return end;
    }
    // It may end the string before, or begin another one.
    let is_quoted = is_quoted && !value.starts_with('"');
    let end = find_quote(value, "\"").filter(|at| is_quoted && is_closed(&(at + 1)));
    end.unwrap_or(value.len())
}

/// Where a quote is that has the same escapes.
fn find_quote(text: &str, quote: &str) -> Option<usize> {
    text.match_indices(quote).map(|(at, _)| at).find(|at| {
        let before = text.get(..*at).unwrap_or_default();
        let escapes = before.len() - before.trim_end_matches('\\').len();
        // An escaped backslash does not escape a quote.
        quote.starts_with('\\') && escapes == 0 || !quote.starts_with('\\') && escapes.is_multiple_of(2)
    })
}
