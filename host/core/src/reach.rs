//! How near an address is to this machine. Pure.
//!
//! Users name servers that the controller connects to: registries, web servers, other clusters. Which of them it may reach follows from
//! this.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How near an address is. Later variants are nearer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// Of the internet.
    Public,
    /// Of this network: RFC 1918, RFC 6598, and their likes of IPv6.
    Private,
    /// Of this machine.
    Loopback,
    /// Never the address of a source: link-local, where clouds serve each machine its credentials; the fixed addresses of such services
    /// elsewhere; unspecified, multicast and broadcast.
    Never,
}

/// Addresses outside of the link-local ranges at which clouds serve what a machine may know: Alibaba Cloud and Azure.
const METADATA_V4: [Ipv4Addr; 2] = [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(168, 63, 129, 16)];
/// The address of AWS's service.
const METADATA_V6: [Ipv6Addr; 1] = [Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)];

/// How near an address is, however it is written: an address of IPv6 that embeds one of IPv4 is as near as that one.
pub fn reach(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(address) => reach_v4(address),
        IpAddr::V6(address) => embedded(address).map_or_else(|| reach_v6(address), reach_v4),
    }
}

fn reach_v4(address: Ipv4Addr) -> Reach {
    let [first, second, ..] = address.octets();
    if address.is_loopback() {
        Reach::Loopback
    } else if METADATA_V4.contains(&address) || address.is_link_local() || first == 0 || first >= 224 {
        Reach::Never
    } else if address.is_private() || (first == 100 && (64..128).contains(&second)) {
        Reach::Private
    } else {
        Reach::Public
    }
}

fn reach_v6(address: Ipv6Addr) -> Reach {
    let first = address.segments()[0];
    if address.is_loopback() {
        Reach::Loopback
    } else if METADATA_V6.contains(&address)
        || address.is_unspecified()
        || address.is_multicast()
        || address.is_unicast_link_local()
    {
        Reach::Never
    } else if address.is_unique_local() || first & 0xffc0 == 0xfec0 {
        Reach::Private
    } else {
        Reach::Public
    }
}

/// The IPv4 address that an IPv6 address embeds: mapped, compatible, NAT64 (RFC 6052, RFC 8215) or 6to4.
pub fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let of = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Some(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        // These two are addresses of IPv6 themselves.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0x64, 0xff9b, 0 | 1, _, _, _, high, low]
        | [0x2002, high, low, ..] => of(high, low),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(text: &str) -> Reach {
        reach(text.parse().unwrap())
    }

    #[test]
    fn addresses_are_told_apart() {
        for (reach, addresses) in [
            (Reach::Public, &["1.1.1.1", "172.32.0.1", "100.128.0.1", "168.63.129.15", "2606:4700::1111"][..]),
            (Reach::Public, &["64:ff9b::1.1.1.1", "::ffff:1.1.1.1", "2002:0101:0101::1"]),
            (Reach::Private, &["10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "fd12::1", "fec0::1"]),
            (Reach::Private, &["::ffff:10.0.0.1", "64:ff9b::10.0.0.1", "2002:0a00:0001::1", "::10.0.0.1"]),
            (Reach::Loopback, &["127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1", "64:ff9b::127.0.0.1"]),
            (Reach::Never, &["169.254.169.254", "169.254.0.1", "fe80::1", "febf::1", "::ffff:169.254.169.254"]),
            (Reach::Never, &["0.0.0.0", "0.1.2.3", "::", "224.0.0.1", "239.1.1.1", "ff02::1", "255.255.255.255"]),
            (Reach::Never, &["240.0.0.1", "100.100.100.200", "168.63.129.16", "fd00:ec2::254", "2002:a9fe:a9fe::"]),
            (Reach::Never, &["64:ff9b::169.254.169.254", "64:ff9b:1::169.254.169.254", "::169.254.169.254"]),
        ] {
            for address in addresses {
                assert_eq!(of(address), reach, "{address}");
            }
        }
    }

    proptest! {
        /// However an address of IPv4 is wrapped, it is as near as it is.
        #[test]
        fn wrapping_an_address_gains_nothing(bits: u32) {
            prop_assume!(bits > 1);
            let address = Ipv4Addr::from_bits(bits);
            let [a, b, c, d] = address.octets().map(u16::from);
            let (high, low) = (a << 8 | b, c << 8 | d);
            for wrapped in [
                address.to_ipv6_mapped(),
                Ipv6Addr::new(0, 0, 0, 0, 0, 0, high, low),
                Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
                Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
            ] {
                prop_assert_eq!(reach(wrapped.into()), reach(address.into()), "{}", wrapped);
            }
        }
    }
}
