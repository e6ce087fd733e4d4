//! From a list of origins to what a sandbox needs to reach them: listeners, lines of `/etc/hosts`, variables. Pure.
//!
//! Programs that know proxies use one listener for everything. For those that do not (node's `fetch`), each allowed name
//! gets a loopback address of its own inside, and the relay listens there at the origin's port.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fmt::Write as _,
    net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4},
    sync::Arc,
};

use sixb_sandbox::{AllowedOrigin, Result, SandboxError};

use super::{
    authority::{Authority, Host},
    policy::{Allowed, Policy},
};
use crate::protocol::MAX_LISTENERS;

/// The name of the project's gateway inside every sandbox.
pub(crate) const GATEWAY: &str = "gateway.sixb.internal";
/// Where the proxy listens, unless an origin is at this very address.
const PROXY_PORT: u16 = 3128;
/// Names get addresses from here on: far from what people bind by hand.
const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 16, 0, 1);

/// What a listener is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Role {
    /// HTTP proxy and SOCKS5.
    Proxy,
    /// Stands for this place.
    Direct(Authority),
}

/// What one sandbox needs.
#[derive(Debug)]
pub(crate) struct RelayPlan {
    /// Lines of `/etc/hosts`.
    pub(crate) hosts: String,
    /// The listeners, in order.
    pub(crate) listen: Vec<(SocketAddrV4, Role)>,
    /// Variables that lead programs to the proxy.
    pub(crate) env: Vec<(&'static str, String)>,
    /// The list itself.
    pub(crate) policy: Policy,
}

impl RelayPlan {
    /// Where the listeners are, in order.
    pub(crate) fn addresses(&self) -> Vec<SocketAddrV4> {
        self.listen.iter().map(|(address, _)| *address).collect()
    }
}

/// Plans a relay. `gateway` is where the project's gateway listens, as the host reaches it.
pub(crate) fn plan(allowed: &[AllowedOrigin], gateway: Option<SocketAddr>) -> Result<RelayPlan> {
    let mut origins = Vec::new();
    if let Some(address) = gateway {
        origins.push(Allowed {
            https: false,
            authority: Authority {
                host: Host::Name(GATEWAY.into()),
                port: 80,
            },
            address: Some(address),
        });
    }
    for origin in allowed {
        let origin = read(origin)?;
        let same =
            |other: &Allowed| (other.https, &other.authority) == (origin.https, &origin.authority);
        if !origins.iter().any(same) {
            origins.push(origin);
        }
    }
    let mut policy = Policy::default();
    let mut hosts = String::new();
    let places: HashSet<_> = origins.iter().map(|origin| &origin.authority).collect();
    let literal = |host: &Host| match host {
        Host::Ip(IpAddr::V4(address)) if address.is_loopback() => Some(*address),
        Host::Name(name) if name == "localhost" => Some(Ipv4Addr::LOCALHOST),
        _ => None,
    };
    let taken: BTreeSet<_> = places
        .iter()
        .filter_map(|place| literal(&place.host))
        .collect();
    let mut free = (u32::from(FIRST_ADDRESS)..)
        .map(Ipv4Addr::from)
        .filter(|address| !taken.contains(address));
    let mut names = BTreeMap::new();
    let mut direct = BTreeMap::new();
    for Authority { host, port } in origins.iter().map(|origin| &origin.authority) {
        let address = match (literal(host), host) {
            (Some(address), _) => address,
            (None, Host::Name(name)) => *names.entry(name).or_insert_with(|| {
                let address = free.next().unwrap_or(FIRST_ADDRESS);
                // A string takes every write.
                let _ = writeln!(hosts, "{address} {name}");
                policy.names.insert(address, host.clone());
                address
            }),
            // Nothing inside can have this address: only through the proxy.
            (None, Host::Ip(_)) => continue,
        };
        let role = Role::Direct(Authority {
            host: host.clone(),
            port: *port,
        });
        direct.insert(SocketAddrV4::new(address, *port), role);
    }
    let proxy = (PROXY_PORT..)
        .map(|port| SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))
        .find(|address| !direct.contains_key(address))
        .unwrap_or(SocketAddrV4::new(Ipv4Addr::LOCALHOST, PROXY_PORT));
    let listen: Vec<_> = std::iter::once((proxy, Role::Proxy))
        .chain(direct)
        .collect();
    if listen.len() > MAX_LISTENERS {
        return Err(SandboxError::InvalidInput {
            field: "network",
            value: format!("{} origins", allowed.len()),
            reason: format!(
                "need {} listeners, and a local sandbox has at most {MAX_LISTENERS}: list fewer origins",
                listen.len()
            ),
        });
    }
    let loopback6 = origins.iter().any(|origin| match origin.authority.host {
        Host::Ip(IpAddr::V6(address)) => address.is_loopback(),
        _ => false,
    });
    policy.allowed = origins.into_iter().map(Arc::new).collect();
    Ok(RelayPlan {
        hosts,
        listen,
        env: variables(proxy, loopback6),
        policy,
    })
}

fn read(allowed: &AllowedOrigin) -> Result<Allowed> {
    let origin = &allowed.origin;
    let invalid = |reason: String| SandboxError::InvalidInput {
        field: "network",
        value: origin.to_string(),
        reason,
    };
    let host = Host::parse(origin.host())
        .ok_or_else(|| invalid("has a host that is no name of the DNS".into()))?;
    if let Host::Name(name) = &host
        && (name == "localhost" || name.ends_with(".localhost"))
        && allowed.address.is_none()
    {
        return Err(invalid(format!(
            "is a name for loopback, where names never lead: list the address itself, {}://127.0.0.1:{}, and use it inside",
            origin.scheme(),
            origin.port()
        )));
    }
    Ok(Allowed {
        https: origin.scheme() == "https",
        authority: Authority {
            host,
            port: origin.port(),
        },
        address: allowed.address,
    })
}

/// What makes curl, git, pip, npm and most others use the proxy. curl reads `http_proxy` in lower case only, others the
/// upper case only.
fn variables(proxy: SocketAddrV4, loopback6: bool) -> Vec<(&'static str, String)> {
    // `ALL_PROXY` is no socks5h:// though that is served, too: Python's httpx fails at once where it has no SOCKS library,
    // and with it the clients of most model APIs.
    let proxy = format!("http://{proxy}");
    // Loopback stays direct, for the sandbox's own servers and for the direct ports. Not every program reads the range.
    let mut direct = format!("localhost,127.0.0.1,127.0.0.0/8,{GATEWAY}");
    if !loopback6 {
        direct.push_str(",::1");
    }
    let mut all = Vec::new();
    for name in [
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
    ] {
        all.push((name, proxy.clone()));
    }
    all.extend(["NO_PROXY", "no_proxy"].map(|name| (name, direct.clone())));
    all
}

/// Adds `proxy` variables to the sandbox's own. Whoever sets one, in either case, means both.
pub(crate) fn fill(env: &mut BTreeMap<String, String>, proxy: &[(&str, String)]) {
    let given: HashSet<String> = env.keys().map(|name| name.to_ascii_lowercase()).collect();
    for (name, value) in proxy {
        if !given.contains(&name.to_ascii_lowercase()) {
            env.insert((*name).to_owned(), value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origins(text: &str) -> Vec<AllowedOrigin> {
        text.split_whitespace()
            .map(|origin| AllowedOrigin::new(origin, origin.parse().expect(origin)))
            .collect()
    }

    fn listeners(plan: &RelayPlan) -> String {
        let shown = plan.listen.iter().map(|(address, role)| match role {
            Role::Proxy => format!("{address} proxy"),
            Role::Direct(place) => format!("{address} {place}"),
        });
        shown.collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn names_get_addresses_and_literals_keep_theirs() {
        for (list, hosts, listen) in [
            ("", "", "127.0.0.1:3128 proxy"),
            (
                "https://a.test http://a.test https://b.test:8443",
                "127.16.0.1 a.test\n127.16.0.2 b.test\n",
                "127.0.0.1:3128 proxy; 127.16.0.1:80 a.test:80; 127.16.0.1:443 a.test:443; 127.16.0.2:8443 b.test:8443",
            ),
            (
                "http://a.test:8443 https://a.test:8443 https://a.test:8443",
                "127.16.0.1 a.test\n",
                "127.0.0.1:3128 proxy; 127.16.0.1:8443 a.test:8443",
            ),
            (
                "http://127.0.0.1:8000 http://127.16.0.1 https://10.0.0.1 https://[::1] http://a.test",
                "127.16.0.2 a.test\n",
                "127.0.0.1:3128 proxy; 127.0.0.1:8000 127.0.0.1:8000; 127.16.0.1:80 127.16.0.1:80; 127.16.0.2:80 a.test:80",
            ),
            (
                "http://127.0.0.1:3128",
                "",
                "127.0.0.1:3129 proxy; 127.0.0.1:3128 127.0.0.1:3128",
            ),
        ] {
            let plan = plan(&origins(list), None).expect(list);
            assert_eq!(
                (plan.hosts.as_str(), listeners(&plan).as_str()),
                (hosts, listen),
                "{list}"
            );
        }
    }

    #[test]
    fn the_gateway_is_one_more_origin_wherever_it_listens() {
        let gateway = ([127, 0, 0, 1], 4000).into();
        let plan = plan(&[], Some(gateway)).expect("plan");
        assert_eq!(plan.hosts, "127.16.0.1 gateway.sixb.internal\n");
        assert!(listeners(&plan).ends_with("; 127.16.0.1:80 gateway.sixb.internal:80"));
        assert_eq!(plan.policy.allowed[0].address, Some(gateway));
    }

    #[test]
    fn what_cannot_work_is_refused_at_once() {
        let many: String = (0..MAX_LISTENERS)
            .map(|n| format!("http://n{n}.test "))
            .collect();
        for (list, says) in [
            ("http://localhost:3000", "http://127.0.0.1:3000"),
            ("http://a.localhost", "http://127.0.0.1:80"),
            (many.as_str(), "199 origins"),
        ] {
            let error = plan(&origins(list), None).expect_err("refused").to_string();
            assert!(error.contains(says), "{error}");
        }
        let pinned = origins("http://localhost:3000")
            .remove(0)
            .address(([127, 0, 0, 1], 3000).into());
        let plan = plan(&[pinned], None).expect("the operator says where it is");
        assert!(listeners(&plan).ends_with("127.0.0.1:3000 localhost:3000"));
        assert_eq!(plan.hosts, "", "localhost has its line already");
    }

    #[test]
    fn the_options_own_variables_win_in_either_case() {
        let plan = plan(&origins("https://a.test"), None).expect("plan");
        let mut env = BTreeMap::from([
            ("https_PROXY".to_owned(), "http://mine".to_owned()),
            ("NO_PROXY".to_owned(), "*".to_owned()),
        ]);
        fill(&mut env, &plan.env);
        let shown: Vec<_> = env
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        assert_eq!(
            shown,
            [
                "ALL_PROXY=http://127.0.0.1:3128",
                "HTTP_PROXY=http://127.0.0.1:3128",
                "NO_PROXY=*",
                "all_proxy=http://127.0.0.1:3128",
                "http_proxy=http://127.0.0.1:3128",
                "https_PROXY=http://mine",
            ]
        );
    }

    #[test]
    fn a_listed_loopback_of_ipv6_goes_through_the_proxy() {
        for (list, direct) in [("https://[::1]", false), ("https://a.test", true)] {
            let plan = plan(&origins(list), None).expect(list);
            let no_proxy = plan
                .env
                .iter()
                .find(|(name, _)| *name == "no_proxy")
                .expect("set");
            assert_eq!(no_proxy.1.contains("::1"), direct, "{no_proxy:?}");
        }
    }
}
