//! Folders with a live run, a killed one, and what a guest could plant for the clean-up.
#![expect(
    clippy::disallowed_methods,
    reason = "plants what a killed run or a guest could have left"
)]

use std::{fs, os::unix::fs::symlink};

use super::*;

struct Lab {
    root: tempfile::TempDir,
}

impl Lab {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("folder");
        fs::create_dir(root.path().join("work")).expect("folder");
        Self { root }
    }

    fn work(&self) -> PathBuf {
        crate::outputs::place::real(&self.root.path().join("work")).expect("path")
    }

    fn state(&self) -> PathBuf {
        self.root.path().join("state")
    }

    fn take(&self, run_id: &str) -> Result<Claim, RunError> {
        Claim::take(&self.state(), &self.work(), run_id)
    }

    /// A run that adds its files and dies.
    fn killed(&self) {
        let claim = self.take("run_dead").expect("claim");
        let missing: Vec<_> = layout::made().collect();
        claim.note(&missing).expect("note");
        fs::create_dir_all(self.work().join(layout::OUTPUTS)).expect("folder");
        fs::write(self.work().join(layout::OUTPUTS).join("draft"), "x").expect("file");
    }

    fn records(&self) -> usize {
        fs::read_dir(self.state().join(FOLDER))
            .expect("records")
            .count()
    }
}

#[test]
fn a_second_run_is_refused_while_the_first_one_lives_and_not_after() {
    let lab = Lab::new();
    let first = lab.take("run_1").expect("claim");
    let refused = lab.take("run_2").expect_err("refused").to_string();
    assert!(
        refused.contains("run_1") && refused.contains("work"),
        "{refused}"
    );
    assert_eq!(sweep_workspaces(&lab.state()).expect("sweep"), []);
    lab.take("run_3").expect_err("a sweep takes no claim away");
    first.release();
    assert_eq!(lab.records(), 0);
    drop(first);
    lab.take("run_4").expect("free again").release();
}

#[test]
fn what_a_killed_run_left_goes_with_a_sweep() {
    let lab = Lab::new();
    lab.killed();
    let swept = sweep_workspaces(&lab.state()).expect("sweep");
    let expect = SweptWorkspace {
        run_id: "run_dead".into(),
        workspace: lab.work(),
    };
    assert_eq!(swept, [expect]);
    assert_eq!(
        (
            lab.records(),
            fs::read_dir(lab.work()).expect("work").count()
        ),
        (0, 0)
    );
}

#[test]
fn what_a_killed_run_left_goes_with_the_next_run_there() {
    let lab = Lab::new();
    lab.killed();
    fs::write(lab.work().join(".sixb/mine"), "x").expect("file");
    let claim = lab.take("run_2").expect("claim");
    assert!(!lab.work().join(layout::CONTEXT).exists());
    assert!(
        lab.work().join(".sixb/mine").exists(),
        "only what the run added"
    );
    claim.release();
    assert!(lab.work().join(".sixb/mine").exists());
}

#[test]
fn links_that_a_guest_left_are_not_followed() {
    for planted in [".sixb", ".sixb/agent", ".sixb/agent/outputs"] {
        let lab = Lab::new();
        lab.killed();
        let victim = lab.root.path().join("victim");
        for folder in ["agent/outputs/published", "outputs/published", "published"] {
            fs::create_dir_all(victim.join(folder)).expect("folder");
            fs::write(victim.join(folder).join("precious"), "x").expect("file");
        }
        fs::remove_dir_all(lab.work().join(planted)).expect("removed");
        symlink(&victim, lab.work().join(planted)).expect("link");
        let _ = sweep_workspaces(&lab.state());
        for folder in ["agent/outputs/published", "outputs/published", "published"] {
            assert!(
                victim.join(folder).join("precious").exists(),
                "{planted}: {folder}"
            );
        }
    }
}

#[test]
fn a_record_can_only_name_what_runs_add() {
    let lab = Lab::new();
    let claim = lab.take("run_1").expect("claim");
    let added = ["data", "../work/data", "/etc", ""]
        .map(str::to_owned)
        .to_vec();
    append(&claim.file, &Added { added }).expect("note");
    fs::write(lab.work().join("data"), "x").expect("file");
    drop(claim);
    sweep_workspaces(&lab.state()).expect("sweep");
    assert!(lab.work().join("data").exists());
}

#[test]
fn without_a_home_the_state_is_in_a_folder_that_is_this_users() {
    let parent = tempfile::tempdir().expect("folder");
    let state = temporary_state(parent.path()).expect("state");
    assert!(state.is_dir());
    assert_eq!(temporary_state(parent.path()), Some(state.clone()));
    fs::remove_dir(&state).expect("removed");
    symlink("/", &state).expect("link");
    assert_eq!(
        temporary_state(parent.path()),
        None,
        "a link may be anybody's"
    );
}
