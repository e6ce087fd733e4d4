//! What the host's file system looks like: gathered once, so that plans are pure.

use std::path::Path;

/// Top-level entries that are shown read-only.
const SYSTEM: &[&str] = &[
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt",
];
/// Files and folders of `/etc` that programs need and that say nothing about the host's people.
const ETC: &[&str] = &[
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/fonts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/services",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
];
const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
];

/// What one path of the host is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A folder.
    Folder,
    /// A file or device.
    File,
    /// A symbolic link and where it points.
    Link(String),
}

/// The entries of the host that a sandbox may see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HostFacts {
    /// Read-only system entries that exist, in order.
    pub(crate) system: Vec<(String, Entry)>,
    /// Devices that exist.
    pub(crate) devices: Vec<String>,
    /// `/etc/resolv.conf`, for sandboxes that share the host's network.
    pub(crate) resolv_conf: String,
}

impl HostFacts {
    /// Looks at this host.
    pub(crate) fn gather() -> Self {
        let entry = |path: &str| {
            let metadata = std::fs::symlink_metadata(path).ok()?;
            let kind = metadata.file_type();
            Some(if kind.is_symlink() {
                Entry::Link(std::fs::read_link(path).ok()?.to_str()?.to_owned())
            } else if kind.is_dir() {
                Entry::Folder
            } else {
                Entry::File
            })
        };
        Self {
            system: SYSTEM
                .iter()
                .chain(ETC)
                .filter_map(|path| Some(((*path).to_owned(), entry(path)?)))
                .collect(),
            devices: DEVICES
                .iter()
                .filter(|path| Path::new(path).exists())
                .map(|path| (*path).to_owned())
                .collect(),
            resolv_conf: std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default(),
        }
    }
}
