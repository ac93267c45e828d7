use proptest::prelude::*;

use super::*;

/// Keys from ssh-keygen, and the fingerprint that it prints of the first.
const ONE: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHjIwcRQMDZHOFEo63cN6P7hUW+pM96cuCeLOwPM4v8x";
const TWO: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
const FINGERPRINT: &str = "SHA256:gNbyO7SmQ4o0sfm+DXWtUrOoXPA+egzFu2/vPUomHdw";

fn key(text: &str) -> Vec<u8> {
    STANDARD.decode(text.split(' ').nth(1).unwrap()).unwrap()
}

fn check(file: &str, host: &str, port: u16) -> Result<(), HostKeyError> {
    file.parse::<KnownHosts>().unwrap().of(host, port)?.check(&key(ONE))
}

#[test]
fn a_key_is_trusted_for_the_servers_that_its_lines_name() {
    let name = |name: &str| name.to_owned();
    let changed = |of: &str| HostKeyError::Changed { name: name(of), fingerprint: FINGERPRINT.to_owned() };
    let authority = HostKeyError::Authority { name: name("h"), line: 1 };
    for (file, host, port, expected) in [
        (format!("h {ONE} comment"), "h", 22, Ok(())),
        (format!("# h {TWO}\n\n\th,i\t{ONE}\r\n"), "i", 22, Ok(())),
        (format!("h {TWO}\nh {ONE}"), "h", 22, Ok(())),
        (format!("h {TWO}\nother {ONE}"), "h", 22, Err(changed("h"))),
        (format!("h {ONE}"), "h", 2222, Err(HostKeyError::Unknown(name("[h]:2222")))),
        (format!("[h]:2222 {ONE}"), "h", 2222, Ok(())),
        (format!("[h]:2222 {ONE}"), "h", 22, Err(HostKeyError::Unknown(name("h")))),
        (format!("[2001:db8::1]:2222 {ONE}"), "2001:db8::1", 2222, Ok(())),
        (format!("h {ONE}\n@revoked * {ONE}"), "h", 22, Err(HostKeyError::Revoked(2))),
        (format!("h {ONE}\n@revoked other {ONE}"), "h", 22, Ok(())),
        (format!("@revoked h {ONE}"), "h", 22, Err(HostKeyError::Unknown(name("h")))),
        (format!("@cert-authority * {ONE}"), "h", 22, Err(authority)),
        (format!("@cert-authority * {TWO}\nh {ONE}"), "h", 22, Ok(())),
        (format!("*,!h {ONE}"), "h", 22, Err(HostKeyError::Unknown(name("h")))),
        (format!("h ssh-dss AAAA\nh 1024 35 1234\nh {ONE}"), "h", 22, Ok(())),
    ] {
        assert_eq!(check(&file, host, port), expected, "{file}");
    }
}

#[test]
fn lines_that_cannot_be_read_are_named() {
    let long = "#".repeat(LONGEST + 1);
    let line = |problem| KnownHostsError::Line { line: 2, problem };
    for (file, expected) in [
        ("", KnownHostsError::Empty),
        ("# nothing\n", KnownHostsError::Empty),
        ("h ssh-dss AAAA", KnownHostsError::Empty),
        (&long, KnownHostsError::TooLong),
        ("\nh", line("it has to be a host name, a type and a key")),
        // The content of a public key file, without a host name before it.
        (&format!("\n{ONE}"), line("it has to be a host name, a type and a key")),
        ("\n@revoked h ssh-ed25519", line("it has to be a host name, a type and a key")),
        (&format!("\n@trusted h {ONE}"), line("it has an unknown marker")),
        ("\nh ssh-ed25519 x", line("its key is not base64")),
        (&format!("\nh {}", ONE.replace("ssh-ed25519", "ssh-rsa")), line("its key is not of the type that it names")),
        (&format!("\n|2|a|b {ONE}"), line("its host name is hashed in an unknown way")),
    ] {
        assert_eq!(file.parse::<KnownHosts>(), Err(expected), "{file:.80}");
    }
}

proptest! {
    /// Whatever the file, only keys that it has are trusted, and not those that it revokes.
    #[test]
    fn only_keys_of_the_file_are_trusted(lines in prop::collection::vec("(@revoked |@cert-authority )?[h*!,?]{1,3} ", 0..6), keys: u8) {
        let of = |at: usize| if keys >> at & 1 == 1 { ONE } else { TWO };
        let file: Vec<String> = lines.iter().enumerate().map(|(at, line)| format!("{line}{}", of(at))).collect();
        let has = |revoked: bool| lines.iter().enumerate().any(|(at, line)| of(at) == ONE && line.starts_with("@revoked") == revoked && !line.starts_with("@cert"));
        if let Ok(file) = file.join("\n").parse::<KnownHosts>()
            && let Ok(known) = file.of("h", 22)
            && known.check(&key(ONE)).is_ok()
        {
            prop_assert!(has(false));
        }
    }

    #[test]
    fn no_file_panics(text in "[@a-z|1,*! =#\\[\\]:\n\t]{0,80}") {
        let _ = text.parse::<KnownHosts>().map(|file| file.of("a", 22));
    }
}
