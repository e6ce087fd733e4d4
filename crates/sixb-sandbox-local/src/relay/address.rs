//! Addresses that a name may not lead to: whoever owns a listed name also chooses what it resolves to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether a resolved name may be followed to `address`.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => v4(address),
        IpAddr::V6(address) => v6(address),
    }
}

/// The IANA registry of special-purpose addresses, without those that are reachable from everywhere.
fn v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !matches!(
        (a, b, c),
        (0, ..)                                       // this network
        | (10, ..) | (172, 16..=31, _) | (192, 168, _) // private
        | (100, 64..=127, _)                          // carriers; metadata of Alibaba Cloud
        | (127, ..)                                   // loopback
        | (169, 254, _)                               // link-local; metadata of nearly every cloud
        | (192, 0, 0)                                 // protocol assignments; metadata of Oracle Cloud
        | (192, 0, 2) | (198, 51, 100) | (203, 0, 113) // documentation
        | (192, 88, 99)                               // 6to4 relays
        | (198, 18..=19, _)                           // benchmarks
        | (224.., ..) // multicast, reserved, broadcast
    ) && address != AZURE
}

/// Azure's platform services: an address of the public range that only machines there reach.
const AZURE: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

/// Global unicast without special ranges; what embeds an IPv4 address is as good as that address, or not needed.
fn v6(address: Ipv6Addr) -> bool {
    let [a, b, c, d, ..] = address.segments();
    let [.., x, y] = address.segments();
    let embedded = || {
        let [a, b] = x.to_be_bytes();
        let [c, d] = y.to_be_bytes();
        v4(Ipv4Addr::new(a, b, c, d))
    };
    match (a, b) {
        // NAT64: hosts of IPv6-only networks reach the IPv4 internet so.
        (0x64, 0xff9b) => c == 0 && d == 0 && address.segments()[4..6] == [0, 0] && embedded(),
        // Teredo and other protocol assignments, ORCHID, documentation, 6to4.
        (0x2001, 0..=0x1ff) | (0x2001, 0xdb8) | (0x2002, _) => false,
        // Documentation, once more.
        (0x3fff, 0..=0xfff) => false,
        // Loopback, unspecified, v4-mapped and -compatible, unique local (metadata of AWS), link-local, multicast, … lie
        // outside of global unicast.
        (0x2000..=0x3fff, _) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_public() {
        for (addresses, public) in [
            (
                "1.1.1.1 9.255.255.255 11.0.0.1 100.63.255.255 100.128.0.1 172.15.0.1 172.32.0.1 192.167.0.1 \
                 192.169.0.1 169.253.0.1 198.17.0.1 198.20.0.1 223.255.255.255 168.63.129.17",
                true,
            ),
            (
                "0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.100.100.200 100.127.255.255 127.0.0.1 127.255.0.1 \
                 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.192 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 \
                 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 \
                 168.63.129.16",
                false,
            ),
            (
                "2606:4700:4700::1111 2a00:1450:4001:82b::200e 2001:4860:4860::8888 2001:200::1 64:ff9b::101:101",
                true,
            ),
            (
                ":: ::1 ::ffff:127.0.0.1 ::ffff:1.1.1.1 ::127.0.0.1 ::ffff:0:127.0.0.1 64:ff9b::7f00:1 \
                 64:ff9b::a9fe:a9fe 64:ff9b::1:101:101 64:ff9b:1::101:101 64:ff9b:1::a9fe:a9fe 100::1 2001::1 \
                 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:10::1 2001:20::1 2001:db8::1 2002:7f00:1::1 2002:101:101::1 \
                 3fff::1 5f00::1 fc00::1 fd00:ec2::254 fd20:ce::254 fe80::1 febf::1 fec0::1 ff02::1",
                false,
            ),
        ] {
            for address in addresses.split_whitespace() {
                let parsed: IpAddr = address.parse().expect(address);
                assert_eq!(is_public(parsed), public, "{address}");
            }
        }
    }
}
