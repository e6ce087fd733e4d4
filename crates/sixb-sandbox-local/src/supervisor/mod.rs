//! The supervisor: process 1 of the sandbox. Starts commands, reaps, enforces deadlines, kills trees.
//!
//! It lives next to hostile code, so it parses nothing that a command can write, and holds nothing worth stealing. When
//! the host's end of the socket closes, it ends, and with it every process of the sandbox.

mod leader;
mod memory;
mod rlimits;
mod tree;

use std::{
    collections::BTreeMap,
    io,
    os::fd::{AsFd, OwnedFd},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, Signal, WaitOptions, kill_process},
};

use crate::{
    plan::Limits,
    protocol::{End, Killed, NotStarted, ToHost, ToSupervisor, receive, send},
};
use leader::{Leader, Report};

/// What `ps` shows of it, inside and on the host.
pub(crate) const SUPERVISOR_NAME: &std::ffi::CStr = c"sixb-supervisor";
/// How often a tree that is being killed is looked at again.
const KILL_ROUND: Duration = Duration::from_millis(2);
/// After so many rounds, and ever less often after that, the whole sandbox is stopped for a moment: something forks faster
/// than a round takes.
const PATIENT_ROUNDS: u32 = 4;
/// How often memory is looked at, where it is limited.
const MEMORY_ROUND: Duration = Duration::from_millis(20);

/// Serves the host until it goes; `handed` are the descriptors that the plan promised it. Never returns.
pub(crate) fn main(control: OwnedFd, landlock_abi: u32, handed: Vec<OwnedFd>, limits: Limits) -> ! {
    let fds: Vec<_> = handed.iter().map(AsFd::as_fd).collect();
    let ready = send(&control, &ToHost::Ready { landlock_abi }, &fds);
    drop(handed);
    if ready.is_ok() {
        let mut supervisor = Supervisor {
            control,
            limits,
            commands: BTreeMap::new(),
        };
        // An error on the socket means that there is no host any more.
        while let Ok(true) = supervisor.round() {}
    }
    if !rustix::process::getpid().is_init() {
        // No namespace ends with this process.
        tree::kill_everything_below();
    }
    std::process::exit(0)
}

struct Supervisor {
    control: OwnedFd,
    limits: Limits,
    commands: BTreeMap<u64, Running>,
}

struct Running {
    leader: Leader,
    deadline: Option<Instant>,
    /// How the command's own process ended, once known.
    end: Option<End>,
    /// All descendants are to go; the end is told afterwards.
    killing: Option<Killed>,
    /// Rounds of killing so far.
    rounds: u32,
    told: bool,
}

impl Supervisor {
    /// Waits for something to happen and handles it. `false` once the host is gone.
    fn round(&mut self) -> io::Result<bool> {
        let wait = self.next_wait();
        let (mut request, mut reports) = (false, Vec::new());
        {
            let mut fds = vec![PollFd::new(&self.control, PollFlags::IN)];
            let ids: Vec<u64> = self.commands.keys().copied().collect();
            fds.extend(
                self.commands
                    .values()
                    .map(|running| PollFd::new(&running.leader.reports, PollFlags::IN)),
            );
            let timeout = wait.map(|wait| Timespec {
                tv_sec: wait.as_secs() as _,
                tv_nsec: wait.subsec_nanos().into(),
            });
            match poll(&mut fds, timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            request |= !fds[0].revents().is_empty();
            reports.extend(
                ids.iter()
                    .zip(&fds[1..])
                    .filter(|(_, fd)| !fd.revents().is_empty())
                    .map(|(id, _)| *id),
            );
        }
        for id in reports {
            self.report(id)?;
        }
        if request && !self.request()? {
            return Ok(false);
        }
        self.enforce();
        // Leaders that ended, and orphans whose leader a command killed.
        while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
        Ok(true)
    }

    fn next_wait(&self) -> Option<Duration> {
        let now = Instant::now();
        let waits = self.commands.values().filter_map(|running| {
            match (running.killing, running.deadline) {
                (Some(_), _) => Some(KILL_ROUND),
                (None, Some(deadline)) if running.end.is_none() => {
                    Some(deadline.saturating_duration_since(now))
                }
                _ => None,
            }
        });
        waits
            .chain(
                (self.limits.memory_bytes.is_some() && !self.commands.is_empty())
                    .then_some(MEMORY_ROUND),
            )
            .min()
    }

    /// One message of the host.
    fn request(&mut self) -> io::Result<bool> {
        match receive::<ToSupervisor>(&self.control)? {
            None => Ok(false),
            Some((ToSupervisor::Kill { id }, _)) => {
                if let Some(running) = self.commands.get_mut(&id) {
                    running.killing.get_or_insert(Killed::Asked);
                }
                Ok(true)
            }
            Some((ToSupervisor::Run { id }, fds)) => {
                let own = u32::try_from(self.commands.len())
                    .unwrap_or(u32::MAX)
                    .saturating_add(2);
                match leader::start(fds, &self.limits, own) {
                    Ok((leader, deadline)) => {
                        let running = Running {
                            leader,
                            deadline,
                            end: None,
                            killing: None,
                            rounds: 0,
                            told: false,
                        };
                        self.commands.insert(id, running);
                    }
                    Err(why) => send(&self.control, &ToHost::NotStarted { id, why }, &[])?,
                }
                Ok(true)
            }
        }
    }

    /// One message of a leader, or its end.
    fn report(&mut self, id: u64) -> io::Result<()> {
        let Some(running) = self.commands.get_mut(&id) else {
            return Ok(());
        };
        match running.leader.read_report() {
            Some(Report::Ended(end)) => {
                running.end = Some(end);
                if running.killing.is_none() {
                    running.told = true;
                    send(
                        &self.control,
                        &ToHost::Exited {
                            id,
                            end,
                            killed: None,
                        },
                        &[],
                    )?;
                }
            }
            Some(Report::Started) => send(&self.control, &ToHost::Started { id }, &[])?,
            Some(Report::Cwd(errno)) => {
                running.told = true;
                let why = NotStarted::Cwd(errno);
                send(&self.control, &ToHost::NotStarted { id, why }, &[])?;
            }
            Some(Report::Fork(errno)) => {
                running.told = true;
                let why = NotStarted::Fork(errno);
                send(&self.control, &ToHost::NotStarted { id, why }, &[])?;
            }
            // The leader ended: so did all its descendants, unless a command killed it.
            None => {
                if running.end.is_none() {
                    self.kill_strays(id);
                }
                let Some(running) = self.commands.remove(&id) else {
                    return Ok(());
                };
                if !running.told {
                    let end = running.end.unwrap_or(End::Lost);
                    let killed = running.killing;
                    send(&self.control, &ToHost::Exited { id, end, killed }, &[])?;
                }
            }
        }
        Ok(())
    }

    /// Deadlines, and the next round of each kill.
    fn enforce(&mut self) {
        let now = Instant::now();
        if let Some(limit) = self.limits.memory_bytes {
            let leaders: Vec<Pid> = self
                .commands
                .values()
                .map(|running| running.leader.pid)
                .collect();
            if let Some(hog) = memory::hog(limit, &leaders)
                && let Some(running) = self
                    .commands
                    .values_mut()
                    .find(|running| running.leader.pid == hog)
            {
                running.killing.get_or_insert(Killed::Memory);
            }
        }
        for running in self.commands.values_mut() {
            if running.end.is_none() && running.deadline.is_some_and(|deadline| deadline <= now) {
                running.killing.get_or_insert(Killed::Deadline);
            }
            if running.killing.is_some() {
                let leader = running.leader.pid;
                running.rounds += 1;
                let first = running.rounds == 1 && tree::is_crowded();
                let later = running.rounds >= PATIENT_ROUNDS && running.rounds.is_power_of_two();
                if first || later {
                    tree::kill_frozen(|family| family.descendants(leader));
                } else {
                    tree::kill_descendants(leader);
                }
                // A command may have stopped its own leader, which then reaps and tells nothing.
                let _ = kill_process(leader, Signal::CONT);
            }
        }
    }

    /// A command killed its own leader: what it left is now a child of this process. Only leaders belong here.
    fn kill_strays(&self, dead: u64) {
        let leaders: Vec<Pid> = self
            .commands
            .iter()
            .filter(|(id, _)| **id != dead)
            .map(|(_, running)| running.leader.pid)
            .collect();
        // Whoever descends from this process, but not from a leader.
        let strays = |family: &tree::Family| -> Vec<Pid> {
            let top = family.children(rustix::process::getpid());
            let strays = top.into_iter().filter(|pid| !leaders.contains(pid));
            strays
                .flat_map(|stray| [vec![stray], family.descendants(stray)].concat())
                .collect()
        };
        tree::kill_frozen(strays);
        while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
    }
}
