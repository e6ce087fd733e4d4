use std::{sync::Barrier, thread};

use proptest::prelude::*;

use super::*;

fn budget(file: u64, run: u64) -> Budget {
    Budget::new(BudgetLimits::new(file, run))
}

fn digest(name: u32) -> Digest {
    Digest::of(&name.to_le_bytes())
}

#[test]
fn limits_are_inclusive_and_errors_name_both_numbers() {
    let budget = budget(10, 15);
    for (bytes, expect) in [
        (10, None),
        (
            11,
            Some("the file has 11 bytes or more; a file may have at most 10 bytes (10 B)"),
        ),
        (
            u64::MAX,
            Some(
                "the file has 18446744073709551615 bytes or more; a file may have at most 10 bytes (10 B)",
            ),
        ),
    ] {
        let error = budget.reserve(bytes).err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), expect);
    }
    let held = budget.reserve(10).expect("fits");
    let error = budget.reserve(6).expect_err("too much").to_string();
    assert_eq!(
        error,
        "6 bytes more do not fit: 5 bytes are left of the 15 bytes (15 B) that a run may keep"
    );
    drop(held);
    assert_eq!(
        Budget::default().limits(),
        BudgetLimits::new(26_214_400, 104_857_600)
    );
    let error = Budget::default()
        .reserve(26_214_401)
        .expect_err("too much")
        .to_string();
    assert!(error.ends_with("26214400 bytes (25 MB)"), "{error}");
}

#[test]
fn case_58_parallel_puts_cannot_pass_the_budget() {
    let budget = budget(15, 15);
    let gate = Barrier::new(8);
    let won = thread::scope(|scope| {
        let puts: Vec<_> = (0..8)
            .map(|put| {
                let (budget, gate) = (&budget, &gate);
                scope.spawn(move || {
                    gate.wait();
                    budget
                        .reserve(10)
                        .map(|reservation| reservation.commit(digest(put)))
                        .is_ok()
                })
            })
            .collect();
        puts.into_iter()
            .filter(|_| true)
            .map(|put| put.join().expect("no panic"))
            .filter(|won| *won)
            .count()
    });
    assert_eq!((won, budget.used()), (1, 10));
    // A put that fails after its reservation leaves the usage as it was.
    let mut failing = budget.reserve(3).expect("fits");
    failing.grow(2).expect("fits");
    assert_eq!(budget.used(), 15);
    drop(failing);
    assert_eq!(budget.used(), 10);
}

#[test]
fn equal_content_is_charged_once() {
    let budget = budget(10, 15);
    budget.reserve(7).expect("fits").commit(digest(1));
    budget
        .reserve(7)
        .expect("reserved while it is unknown what it holds")
        .commit(digest(1));
    assert!(budget.is_charged(&digest(1)));
    assert_eq!(budget.used(), 7);
}

#[test]
fn known_content_is_free_in_a_full_budget() {
    let budget = budget(15, 15);
    budget.reserve(15).expect("fits").commit(digest(1));
    drop(
        budget
            .reserve_content(&digest(1), 15)
            .expect("charged before"),
    );
    budget
        .reserve_content(&digest(1), 15)
        .expect("charged before")
        .commit(digest(1));
    assert!(budget.reserve_content(&digest(2), 1).is_err());
    assert!(
        budget.reserve_content(&digest(1), 16).is_err(),
        "a file is bounded all the same"
    );
    assert_eq!(budget.used(), 15);
    // Both files of this content are counted: one replaced frees nothing, both do.
    assert!(budget.reserve_over(&digest(1), 1).is_err());
    let held = budget
        .reserve_content(&digest(1), 15)
        .expect("charged before");
    drop(held);
    assert_eq!(budget.used(), 15);
}

#[test]
fn overwriting_charges_the_difference() {
    for (old, new, used) in [(10, 12, 12), (10, 4, 4), (10, 10, 10), (0, 5, 5)] {
        let budget = budget(15, 15);
        budget.reserve(old).expect("fits").commit(digest(1));
        let reservation = budget
            .reserve_over(&digest(1), new)
            .expect("only the difference counts");
        assert_eq!(
            budget.used(),
            old.max(new),
            "both are counted until it is decided"
        );
        reservation.commit(digest(2));
        assert_eq!(
            (budget.used(), budget.is_charged(&digest(1))),
            (used, false),
            "{old} -> {new}"
        );

        // The same, but it fails.
        let reservation = budget.reserve_over(&digest(2), 1).expect("fits");
        assert!(
            budget.reserve_over(&digest(2), 15).is_err(),
            "one charge is no credit for two"
        );
        drop(reservation);
        assert_eq!(
            (budget.used(), budget.is_charged(&digest(2))),
            (used, true),
            "{old} -> {new}"
        );
    }
    // Another file has the same content: it stays charged.
    let budget = budget(15, 15);
    budget.reserve(8).expect("fits").commit(digest(1));
    budget.reserve(0).expect("fits").commit(digest(1));
    assert!(budget.reserve_over(&digest(1), 8).is_err());
    budget
        .reserve_over(&digest(1), 7)
        .expect("fits")
        .commit(digest(2));
    assert_eq!(budget.used(), 15);
}

#[test]
fn stress_of_parallel_calls_ends_with_what_was_charged() {
    const RUN: u64 = 1_000;
    let budget = budget(100, RUN);
    let charged: u64 = thread::scope(|scope| {
        let threads: Vec<_> = (0..8_u32)
            .map(|thread| {
                let budget = &budget;
                scope.spawn(move || {
                    let mut charged = 0;
                    for round in 0..2_000_u32 {
                        let id = thread * 10_000 + round;
                        let size = u64::from(id % 7 + 1);
                        let Ok(mut reservation) = budget.reserve(size) else {
                            continue;
                        };
                        assert!(budget.used() <= RUN, "over the budget");
                        let grown = reservation.grow(1).is_ok();
                        if id % 11 == 0 {
                            charged += reservation.bytes();
                            reservation.commit(digest(id));
                        } else if grown && id % 5 == 0 {
                            thread::yield_now();
                        }
                    }
                    charged
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .sum()
    });
    assert_eq!(budget.used(), charged);
    assert!(charged > RUN - 10, "the budget was used up: {charged}");
}

proptest! {
    /// Against the simplest model: a map of contents, and a sum of open reservations.
    #[test]
    fn used_is_what_is_charged_and_reserved(steps in prop::collection::vec((0_u8..5, 0_u32..6, 0_u64..12), 1..60)) {
        let budget = budget(10, 40);
        let size = |content: u32| u64::from(content) + 3;
        let mut files: Vec<u32> = Vec::new();
        let mut open: Vec<(Reservation, u64)> = Vec::new();
        for (step, content, bytes) in steps {
            match step {
                0 => open.extend(budget.reserve(bytes).ok().map(|reservation| (reservation, bytes))),
                1 => { open.pop(); }
                2 => if let Some((reservation, counted)) = open.last_mut()
                    && reservation.grow(bytes).is_ok()
                {
                    *counted += bytes;
                },
                3 => if let Ok(reservation) = budget.reserve(size(content)) {
                    reservation.commit(digest(content));
                    files.push(content);
                },
                _ => if let Some(old) = files.last().copied()
                    && let Ok(reservation) = budget.reserve_over(&digest(old), size(content))
                {
                    files.pop();
                    reservation.commit(digest(content));
                    files.push(content);
                },
            }
            let contents: std::collections::BTreeSet<u32> = files.iter().copied().collect();
            let charged: u64 = contents.iter().map(|content| size(*content)).sum();
            prop_assert_eq!(budget.used(), charged + open.iter().map(|(_, counted)| counted).sum::<u64>());
            prop_assert!(budget.used() <= 40);
        }
    }
}

#[test]
fn calls_that_keep_the_same_content_at_the_same_time_share_its_room() {
    let budget = Budget::new(BudgetLimits::new(10, 10));
    let digest = Digest::of(b"0123456789");
    let first = budget.reserve_content(&digest, 10).expect("room");
    let second = budget.reserve_content(&digest, 10).expect("the same bytes");
    assert!(
        budget.reserve_content(&Digest::of(b"x"), 1).is_err(),
        "other bytes"
    );
    drop(first);
    assert_eq!(budget.used(), 10, "the other call holds them still");
    second.commit(digest);
    assert_eq!(budget.used(), 10);
    let other = Budget::new(BudgetLimits::new(10, 10));
    drop(other.reserve_content(&digest, 10).expect("room"));
    assert_eq!(
        (other.used(), other.is_charged(&digest)),
        (0, false),
        "given back"
    );
}
