//! Which limits are enforced here, and by what: the ladder from cgroups down to what the supervisor can see.

use sixb_sandbox::{Enforcer, LimitSupport, ResourceLimits, Result, SandboxError};

use super::cgroup::Bounds;
use crate::plan::Limits;

/// The smallest memory in which the supervisor and a shell still fit.
const MIN_MEMORY: u64 = 8 << 20;
/// The smallest disk on which a shell can make a here-document.
const MIN_DISK: u64 = 64 << 10;

/// What is asked for, and what can be had.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ladder {
    pub(super) limits: Limits,
    /// What a cgroup is to enforce; `None` = no cgroup is needed, or none can be had.
    pub(super) cgroup: Option<Bounds>,
    pub(super) disk_bytes: Option<u64>,
    pub(super) support: LimitSupport,
}

/// Chooses the rung of each limit. `inside` = the working directory may live in memory; `delegated` = a cgroup can be had.
pub(super) fn climb(asked: &ResourceLimits, inside: bool, delegated: bool) -> Result<Ladder> {
    check(asked)?;
    let mut missing = Vec::new();
    if asked.cpus.is_some() && !delegated {
        missing.push("processor time (needs a delegated cgroup v2)");
    }
    if asked.disk_bytes.is_some() && !inside {
        missing.push("disk, where the working directory is a folder of the host");
    }
    if !missing.is_empty() && !asked.best_effort {
        return Err(SandboxError::IsolationUnavailable {
            what: format!(
                "the local sandbox cannot limit {} here",
                missing.join(", nor ")
            ),
            remedy: "Leave that limit out, ask for best effort, or use a microVM backend".into(),
        });
    }
    let mut support = LimitSupport::default();
    support.memory = Some(if delegated {
        Enforcer::Cgroup
    } else {
        Enforcer::Supervisor
    });
    support.cpus = delegated.then_some(Enforcer::Cgroup);
    // Exact without a cgroup, too; with one, both hold.
    support.pids = Some(Enforcer::Rlimit);
    support.disk = inside.then_some(Enforcer::Tmpfs);
    let bounds = Bounds {
        memory_bytes: asked.memory_bytes,
        cpus: asked.cpus,
    };
    let memory_bytes = asked.memory_bytes.filter(|_| !delegated);
    Ok(Ladder {
        limits: Limits::new(asked.pids, memory_bytes, asked.open_files),
        cgroup: (delegated && bounds != Bounds::default()).then_some(bounds),
        disk_bytes: asked.disk_bytes.filter(|_| inside),
        support,
    })
}

/// Refuses numbers with which nothing could run.
fn check(asked: &ResourceLimits) -> Result<()> {
    let numbers = [
        ("memory_bytes", asked.memory_bytes, MIN_MEMORY),
        ("disk_bytes", asked.disk_bytes, MIN_DISK),
        ("pids", asked.pids.map(u64::from), 1),
        ("open_files", asked.open_files, 16),
    ];
    for (field, value, least) in numbers {
        if let Some(value) = value.filter(|value| *value < least) {
            return Err(SandboxError::InvalidInput {
                field,
                value: value.to_string(),
                reason: format!("is too small for any command: at least {least}"),
            });
        }
    }
    match asked.cpus {
        Some(cpus) if !(cpus.is_finite() && cpus > 0.0) => Err(SandboxError::InvalidInput {
            field: "cpus",
            value: cpus.to_string(),
            reason: "is not a positive number of cores".into(),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_enforced_is_refused_unless_best_effort_is_enough() {
        for (limits, inside, missing) in [
            (ResourceLimits::default().cpus(0.5), true, "processor"),
            (ResourceLimits::default().disk_bytes(1 << 20), false, "disk"),
        ] {
            let error = climb(&limits, inside, false)
                .expect_err(missing)
                .to_string();
            assert!(
                error.contains(missing) && error.contains("best effort"),
                "{error}"
            );
            assert!(climb(&limits.best_effort(), inside, false).is_ok());
        }
        let all = ResourceLimits::default()
            .memory_bytes(1 << 30)
            .pids(64)
            .disk_bytes(1 << 20);
        let ladder = climb(&all, true, false).expect("all three");
        assert_eq!(
            (ladder.limits.pids, ladder.limits.memory_bytes),
            (Some(64), Some(1 << 30))
        );
        assert_eq!(ladder.disk_bytes, Some(1 << 20));
    }

    #[test]
    fn a_delegated_cgroup_takes_over_memory_and_processor_time() {
        let asked = ResourceLimits::default().memory_bytes(1 << 30).cpus(0.5);
        let ladder = climb(&asked, true, true).expect("both");
        assert_eq!(
            ladder.limits.memory_bytes, None,
            "the supervisor need not look"
        );
        assert_eq!(
            ladder.cgroup,
            Some(Bounds {
                memory_bytes: Some(1 << 30),
                cpus: Some(0.5)
            })
        );
        assert_eq!(
            (ladder.support.memory, ladder.support.cpus),
            (Some(Enforcer::Cgroup), Some(Enforcer::Cgroup))
        );
        assert_eq!(
            climb(&ResourceLimits::default(), true, true)
                .expect("none")
                .cgroup,
            None
        );
    }

    #[test]
    fn limits_with_which_nothing_runs_are_named() {
        for (limits, value) in [
            (
                ResourceLimits::default().memory_bytes(1),
                "memory_bytes: \"1\"",
            ),
            (ResourceLimits::default().pids(0), "pids: \"0\""),
            (ResourceLimits::default().cpus(f64::NAN), "cpus: \"NaN\""),
        ] {
            let error = climb(&limits, true, false).expect_err(value).to_string();
            assert!(error.contains(value), "{error}");
        }
    }
}
