//! As root: make file calls as the user who owns the working directory, so that they may do just what that user may.

use std::io;

use rustix::{
    process::{Gid, Uid},
    thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid},
};

use crate::plan::HostUser;

/// While it lives, this thread (and only this one: the calls below are per thread) acts as another user.
#[derive(Debug)]
pub(super) struct Acting {
    groups: Option<Vec<Gid>>,
    /// Belongs to one thread: it must be dropped where it began.
    _thread: std::marker::PhantomData<*const ()>,
}

impl Acting {
    pub(super) fn begin(user: Option<HostUser>) -> io::Result<Self> {
        let nobody_else = std::marker::PhantomData;
        let Some(user) = user else {
            return Ok(Self {
                groups: None,
                _thread: nobody_else,
            });
        };
        let acting = Self {
            groups: Some(rustix::process::getgroups()?),
            _thread: nobody_else,
        };
        // Real and saved ids stay root's: that is the way back. A failure half-way goes back by `drop`.
        set_thread_groups(&[])?;
        set_thread_res_gid(None, Gid::from_raw(user.gid), None)?;
        set_thread_res_uid(None, Uid::from_raw(user.uid), None)?;
        Ok(acting)
    }
}

impl Drop for Acting {
    fn drop(&mut self) {
        let Some(groups) = &self.groups else { return };
        let back = set_thread_res_uid(None, Uid::ROOT, None)
            .and_then(|()| set_thread_res_gid(None, Gid::ROOT, None))
            .and_then(|()| set_thread_groups(groups));
        if back.is_err() {
            // A thread of the pool with the wrong user would do others' work: better no process than that.
            std::process::abort();
        }
    }
}
