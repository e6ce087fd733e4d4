//! `Budget`: how many bytes of files a run may keep. Reserved before they are taken in, so that parallel calls cannot pass it.

#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::Digest;

const MIB: u64 = 1 << 20;

/// The limits of a [`Budget`], in bytes, inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BudgetLimits {
    /// Of one file. Default: 25 MiB.
    pub file: u64,
    /// Of all files of a run. Default: 100 MiB.
    pub run: u64,
}

impl BudgetLimits {
    /// Limits of `file` and `run` bytes.
    pub const fn new(file: u64, run: u64) -> Self {
        Self { file, run }
    }
}

impl Default for BudgetLimits {
    fn default() -> Self {
        Self::new(25 * MIB, 100 * MIB)
    }
}

/// The bytes that one run may keep: all its tools together, and parallel calls. Clones share one budget.
///
/// A file is charged once, however often its content is kept; a charge stays for the run. Between the first byte and the
/// charge stands a [`Reservation`]: made or grown atomically before bytes are taken, given back on every failure.
///
/// ```
/// use sixb_artifacts::{Budget, BudgetLimits, Digest};
/// let budget = Budget::new(BudgetLimits::new(10, 15));
/// let mut first = budget.reserve(4)?;
/// first.grow(6)?; // a stream reserves as it grows
/// assert!(budget.reserve(6).is_err());
/// first.commit(Digest::of(b"0123456789"));
/// drop(budget.reserve(5)?); // given back
/// assert_eq!(budget.used(), 10);
/// # Ok::<(), sixb_artifacts::BudgetError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Budget {
    limits: BudgetLimits,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Charged and reserved bytes.
    used: u64,
    charged: HashMap<Digest, Charge>,
}

#[derive(Debug)]
struct Charge {
    bytes: u64,
    /// How many files of the run have this content.
    files: u32,
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(BudgetLimits::default())
    }
}

impl Budget {
    /// An unused budget.
    pub fn new(limits: BudgetLimits) -> Self {
        Self {
            limits,
            state: Arc::default(),
        }
    }

    /// Its limits.
    pub fn limits(&self) -> BudgetLimits {
        self.limits
    }

    /// Bytes that are charged or reserved now.
    pub fn used(&self) -> u64 {
        self.state().used
    }

    /// Whether this content was charged before: keeping it again is free.
    pub fn is_charged(&self, digest: &Digest) -> bool {
        self.state().charged.contains_key(digest)
    }

    /// Reserves `bytes` for a new file.
    ///
    /// # Errors
    /// [`BudgetError`] when the file or the run would pass its limit. Nothing is reserved then.
    pub fn reserve(&self, bytes: u64) -> Result<Reservation, BudgetError> {
        let mut reservation = Reservation::empty(self);
        reservation.grow(bytes)?;
        Ok(reservation)
    }

    /// Reserves `bytes` for a file whose content is known: nothing where it is charged already, however full the budget is.
    ///
    /// # Errors
    /// As [`reserve`](Self::reserve).
    pub fn reserve_content(&self, digest: &Digest, bytes: u64) -> Result<Reservation, BudgetError> {
        if bytes > self.limits.file {
            return Err(BudgetError::File {
                bytes,
                limit: self.limits.file,
            });
        }
        let mut state = self.state();
        if let Some(charge) = state.charged.get_mut(digest) {
            charge.files += 1;
        } else {
            let left = self.limits.run.saturating_sub(state.used);
            if bytes > left {
                return Err(BudgetError::Run {
                    bytes,
                    left,
                    limit: self.limits.run,
                });
            }
            // Charged at once and held: a call that keeps the same content at the same time needs no room of its own.
            state.used += bytes;
            state.charged.insert(*digest, Charge { bytes, files: 1 });
        }
        drop(state);
        let mut reservation = Reservation::empty(self);
        reservation.held = Some(*digest);
        Ok(reservation)
    }

    /// Reserves `bytes` for a file that will replace one of content `old`: only the difference counts.
    ///
    /// While the reservation lives the old content stays charged, and no other one may replace the same charge. Where `old` is
    /// not charged, or another file has the same content, this is [`reserve`](Self::reserve).
    ///
    /// # Errors
    /// As [`reserve`](Self::reserve).
    pub fn reserve_over(&self, old: &Digest, bytes: u64) -> Result<Reservation, BudgetError> {
        let credit = self.state().take_file(old);
        let mut reservation = Reservation::empty(self);
        reservation.credit = credit;
        reservation.grow(bytes)?;
        Ok(reservation)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The numbers are whole at every point where a holder of the lock could panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Ends one file's hold on its content. Its bytes stay in `used`, for the caller to keep or give back.
    fn take_file(&mut self, digest: &Digest) -> Option<Credit> {
        let charge = self.charged.get_mut(digest)?;
        charge.files -= 1;
        let bytes = if charge.files == 0 {
            self.charged.remove(digest)?.bytes
        } else {
            0
        };
        Some(Credit {
            digest: *digest,
            bytes,
        })
    }

    /// Counts one file of this content. `bytes` are in `used` already; what was counted before is given back.
    fn add_file(&mut self, digest: Digest, bytes: u64) {
        let charge = self
            .charged
            .entry(digest)
            .or_insert(Charge { bytes, files: 0 });
        if charge.files > 0 {
            self.used -= bytes;
        }
        charge.files += 1;
    }
}

/// The charge of a file that is being replaced.
#[derive(Debug)]
struct Credit {
    digest: Digest,
    /// Zero where another file has the same content.
    bytes: u64,
}

/// Bytes set aside for one file. Dropped without [`commit`](Self::commit), it gives them back.
#[derive(Debug)]
#[must_use = "dropping a reservation gives its bytes back"]
pub struct Reservation {
    budget: Budget,
    bytes: u64,
    credit: Option<Credit>,
    /// Content that was charged before and is counted once more for this file.
    held: Option<Digest>,
    /// There is nothing to give back.
    ended: bool,
}

impl Reservation {
    fn empty(budget: &Budget) -> Self {
        Self {
            budget: budget.clone(),
            bytes: 0,
            credit: None,
            held: None,
            ended: false,
        }
    }

    /// Sets `more` bytes aside, before they are taken in.
    ///
    /// # Errors
    /// [`BudgetError`] when the file or the run would pass its limit. What was set aside before stays so.
    pub fn grow(&mut self, more: u64) -> Result<(), BudgetError> {
        let limits = self.budget.limits;
        let bytes = self.bytes.saturating_add(more);
        if bytes > limits.file {
            return Err(BudgetError::File {
                bytes,
                limit: limits.file,
            });
        }
        let extra = self.beyond_credit(bytes) - self.beyond_credit(self.bytes);
        let mut state = self.budget.state();
        let left = limits.run.saturating_sub(state.used);
        if extra > left {
            return Err(BudgetError::Run {
                bytes: extra,
                left,
                limit: limits.run,
            });
        }
        state.used += extra;
        drop(state);
        self.bytes = bytes;
        Ok(())
    }

    /// How many bytes are set aside.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Charges the file: once for each content, however many files have it. A file that it replaces is charged no more.
    pub fn commit(mut self, digest: Digest) {
        if self.held == Some(digest) {
            self.ended = true;
            return;
        }
        self.release_held();
        self.ended = true;
        let (bytes, credit) = (self.bytes, self.credit.take());
        let mut state = self.budget.state();
        // What is counted for this file now: its own bytes, or the old file's where that was larger.
        let credit = credit.map_or(0, |credit| credit.bytes);
        state.used -= credit.saturating_sub(bytes);
        state.add_file(digest, bytes);
    }

    fn release_held(&mut self) {
        if let Some(digest) = self.held.take() {
            let mut state = self.budget.state();
            let freed = state.take_file(&digest).map_or(0, |credit| credit.bytes);
            state.used -= freed;
        }
    }

    /// Bytes of a file of this size that the replaced file's charge does not cover.
    fn beyond_credit(&self, bytes: u64) -> u64 {
        bytes.saturating_sub(self.credit.as_ref().map_or(0, |credit| credit.bytes))
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        self.release_held();
        let extra = self.beyond_credit(self.bytes);
        let mut state = self.budget.state();
        state.used -= extra;
        if let Some(credit) = self.credit.take() {
            state.add_file(credit.digest, credit.bytes);
        }
    }
}

/// A file does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BudgetError {
    /// The file is too large for any run.
    #[error("the file has {bytes} bytes or more; a file may have at most {limit} bytes ({})", Mib(*.limit))]
    File {
        /// Its size as far as it is known, in bytes.
        bytes: u64,
        /// The limit, in bytes.
        limit: u64,
    },
    /// The run has kept too much already.
    #[error("{bytes} bytes more do not fit: {left} bytes are left of the {limit} bytes ({}) that a run may keep", Mib(*.limit))]
    Run {
        /// What was asked for, in bytes.
        bytes: u64,
        /// What is left, in bytes.
        left: u64,
        /// The limit, in bytes.
        limit: u64,
    },
}

struct Mib(u64);

impl std::fmt::Display for Mib {
    /// `25 MB` means 25 MiB in texts for people.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            bytes if bytes < MIB => write!(f, "{bytes} B"),
            bytes if bytes % MIB == 0 => write!(f, "{} MB", bytes / MIB),
            bytes => write!(f, "{:.1} MB", bytes as f64 / MIB as f64),
        }
    }
}
