//! Which addresses a name may stand for: the public ones, so that a name is no way into the host's own networks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_broadcast()
        || address.is_documentation()
        || address.is_multicast()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (18..20).contains(&b)))
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    let inner = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    if let Some(mapped) = address.to_ipv4_mapped() {
        return is_public_v4(mapped);
    }
    match parts {
        // NAT64 and 6to4 carry an address of the other kind.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => is_public_v4(inner(high, low)),
        [0x64, 0xff9b, 1, ..] => false,
        [0x2002, high, low, ..] => is_public_v4(inner(high, low)),
        [0x2001, 0xdb8, ..] | [0x2001, 0, ..] => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_public_internet_is_public() {
        for (address, expect) in [
            ("1.1.1.1", true),
            ("93.184.216.34", true),
            ("2606:4700::1111", true),
            ("127.0.0.1", false),
            ("10.1.2.3", false),
            ("172.16.0.1", false),
            ("192.168.1.1", false),
            ("169.254.169.254", false),
            ("100.64.0.1", false),
            ("0.0.0.0", false),
            ("255.255.255.255", false),
            ("::1", false),
            ("::", false),
            ("fe80::1", false),
            ("fd00::1", false),
            ("::ffff:127.0.0.1", false),
            ("::ffff:1.1.1.1", true),
            ("64:ff9b::7f00:1", false),
            ("64:ff9b::101:101", true),
            ("2002:7f00:1::", false),
            ("ff02::1", false),
        ] {
            assert_eq!(
                is_public(address.parse().expect(address)),
                expect,
                "{address}"
            );
        }
    }
}
