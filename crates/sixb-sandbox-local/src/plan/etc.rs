//! The synthetic files of `/etc`: nothing of the host's users, names or resolvers shows inside.

use super::{GUEST_ID, HOME, USER};

/// Path and content of each synthetic file.
pub(crate) fn files(hostname: &str, hosts: &str, resolv_conf: &str) -> Vec<(&'static str, String)> {
    vec![
        (
            "/etc/passwd",
            format!(
                "root:x:0:0:root:/root:/usr/sbin/nologin\n\
                 {USER}:x:{GUEST_ID}:{GUEST_ID}:Sixb agent:{HOME}:/bin/bash\n\
                 nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
            ),
        ),
        (
            "/etc/group",
            format!("root:x:0:\n{USER}:x:{GUEST_ID}:\nnogroup:x:65534:\n"),
        ),
        (
            "/etc/hosts",
            format!(
                "127.0.0.1 localhost {hostname}\n::1 localhost ip6-localhost ip6-loopback\n{hosts}"
            ),
        ),
        ("/etc/hostname", format!("{hostname}\n")),
        ("/etc/resolv.conf", resolv_conf.to_owned()),
        (
            "/etc/nsswitch.conf",
            "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n"
                .to_owned(),
        ),
        // The host's profile would reset PATH and may run anything; `bash -l` finds this one instead.
        (
            "/etc/profile",
            "# PATH and the rest of the environment come from the options of the sandbox.\n"
                .to_owned(),
        ),
        ("/etc/shells", "/bin/sh\n/bin/bash\n".to_owned()),
    ]
}
