//! What a guest plants where its outputs will be written.
#![expect(
    clippy::disallowed_methods,
    reason = "plants what a guest could have planted, and looks at what came of it"
)]

use std::{fs, io::Write, os::unix::fs::symlink};

use super::{super::place::real, *};

fn take(name: &str) -> Relative {
    Relative(name.split('/').map(|name| name.into()).collect())
}

async fn staged(folder: &Folder, name: &str) -> Staged {
    let mut partial = folder.begin().expect("begun");
    partial.write("text".into()).await.expect("written");
    partial.whole(take(name)).await.expect("whole")
}

/// `work`, which the guest may write to, and `victim`, which it may not.
struct Lab {
    root: tempfile::TempDir,
    work: PathBuf,
}

impl Lab {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("folder");
        for name in ["work", "victim"] {
            fs::create_dir(root.path().join(name)).expect("folder");
        }
        let work = real(&root.path().join("work")).expect("path");
        Self { root, work }
    }

    fn folder(&self, out: &Path) -> Folder {
        let place = Place::find(out, Some(&self.work)).expect("place");
        Folder::open(place, out, "run_1").expect("folder")
    }

    fn victim(&self) -> PathBuf {
        self.root.path().join("victim")
    }

    fn assert_victim_untouched(&self, attack: &str) {
        let found: Vec<_> = fs::read_dir(self.victim()).expect("victim").collect();
        assert!(found.is_empty(), "{attack}: {found:?}");
    }
}

#[tokio::test]
async fn nothing_that_the_guest_plants_in_its_workspace_leads_out_of_it() {
    type Attack = fn(&Lab);
    let attacks: [(&str, Attack); 6] = [
        ("a link at the run's folder", |lab| {
            fs::create_dir(lab.work.join("sixb-out")).expect("folder");
            symlink(lab.victim(), lab.work.join("sixb-out/run_1")).expect("link");
        }),
        ("a link at the output folder", |lab| {
            symlink(lab.victim(), lab.work.join("sixb-out")).expect("link");
        }),
        ("a relative link at the output folder", |lab| {
            symlink("../victim", lab.work.join("sixb-out")).expect("link");
        }),
        ("a folder made beforehand", |lab| {
            fs::create_dir_all(lab.work.join("sixb-out/run_1")).expect("folder");
        }),
        ("a link at the partial folder", |lab| {
            fs::create_dir(lab.work.join("sixb-out")).expect("folder");
            symlink(lab.victim(), lab.work.join("sixb-out/.run_1.partial")).expect("link");
        }),
        ("a file in the way", |lab| {
            fs::write(lab.work.join("sixb-out"), "").expect("file");
        }),
    ];
    for (attack, plant) in attacks {
        let lab = Lab::new();
        let folder = lab.folder(&lab.work.join("sixb-out"));
        let staged = staged(&folder, "deep/report.md").await;
        plant(&lab);
        folder.publish(staged).expect_err(attack);
        folder.finish();
        lab.assert_victim_untouched(attack);
    }
}

#[tokio::test]
async fn an_exposed_folder_gets_its_files_at_the_end_and_nothing_before() {
    let lab = Lab::new();
    let folder = lab.folder(&lab.work.join("sixb-out"));
    let staged = staged(&folder, "deep/report.md").await;
    assert_eq!(fs::read_dir(&lab.work).expect("work").count(), 0);
    let path = folder.publish(staged).expect("published");
    folder.finish();
    assert_eq!(fs::read_to_string(path).expect("report"), "text");
    let left = fs::read_dir(lab.work.join("sixb-out")).expect("folder");
    assert_eq!(left.count(), 1, "no partial folder is left");
}

#[test]
fn a_link_that_is_there_already_is_refused_before_the_run() {
    let lab = Lab::new();
    symlink(lab.victim(), lab.work.join("sixb-out")).expect("link");
    let out = lab.work.join("sixb-out");
    let place = Place::find(&out, Some(&lab.work)).expect("place");
    let error = Folder::open(place, &out, "run_1").expect_err("refused");
    assert!(error.to_string().contains("sixb-out is a link"), "{error}");
}

#[tokio::test]
async fn elsewhere_the_open_folder_is_written_to_even_if_its_name_is_taken_over() {
    let lab = Lab::new();
    let out = lab.root.path().join("out");
    let folder = lab.folder(&out);
    fs::rename(&out, lab.root.path().join("moved")).expect("rename");
    symlink(lab.victim(), &out).expect("link");
    let first = staged(&folder, "a/b").await;
    let second = staged(&folder, "a/b").await;
    folder.publish(first).expect("published");
    let (code, _) = folder.publish(second).expect_err("never replaced");
    assert_eq!(code, "output_name_taken");
    folder.finish();
    lab.assert_victim_untouched("a link at an open folder");
    assert!(lab.root.path().join("moved/run_1/a/b").is_file());
}

#[test]
fn a_folder_made_for_nothing_goes_again() {
    let lab = Lab::new();
    let out = lab.root.path().join("out");
    lab.folder(&out).finish();
    assert!(!out.exists());
    fs::create_dir(&out).expect("folder");
    fs::File::create(out.join("mine"))
        .and_then(|mut file| file.write_all(b"x"))
        .expect("file");
    lab.folder(&out).finish();
    assert!(out.join("mine").exists());
}
