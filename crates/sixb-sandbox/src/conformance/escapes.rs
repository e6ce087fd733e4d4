//! Paths and links that lead out of the working directory, planted by the guest, against file calls that the host serves.

use tokio::time::Instant;

use super::{
    Suite,
    guest::{Guest, describe, fails_with, file, path, within},
    host::Folder,
};
use crate::{ByteRange, Command, FileKind, FileWrite, ListOptions, SandboxPath, SeekLine};

const OUTSIDE: &str = "outside the sandbox";

/// A folder of the host with one file, `canary`, that no call may read, change or add to.
struct Canary(Folder);

impl Canary {
    fn new() -> Self {
        Self(Folder::with("canary", OUTSIDE))
    }

    fn folder(&self) -> &str {
        self.0.text()
    }

    fn check(&self, after: &str) {
        assert_eq!(self.0.names(), ["canary"], "host folder after {after}");
        assert_eq!(
            self.0.read("canary").as_deref(),
            Some(OUTSIDE),
            "after {after}"
        );
    }
}

pub(super) async fn case_44_lexical(suite: &Suite) {
    let guest = suite.guest().await;
    for name in [
        "..",
        "../etc/passwd",
        "a/../../x",
        "a/b/..//../../x",
        "/etc/passwd",
        "/",
        &format!("{}-evil/x", guest.working_directory()),
    ] {
        let parsed = SandboxPath::parse_guest(name, guest.working_directory());
        fails_with(&format!("path {name:?}"), parsed, &["PathEscape"]);
    }
    let absolute = format!("{}/lexical/in", guest.working_directory());
    let inside = SandboxPath::parse_guest(&absolute, guest.working_directory())
        .expect("a guest path inside");
    guest
        .write_files(vec![FileWrite::new(inside, "x")])
        .await
        .expect("write");
    assert_eq!(&guest.read("lexical/in").await[..], b"x");
    guest.done().await;
}

/// Everything that reads through a path must be refused.
async fn no_reading(guest: &Guest, name: &str) {
    let source = file(name);
    fails_with(
        &format!("read_range of {name}"),
        guest.read_range(&source, ByteRange::new(0, 100)).await,
        &["PathEscape"],
    );
    fails_with(
        &format!("stat of {name}"),
        guest.stat(&source).await,
        &["PathEscape"],
    );
    fails_with(
        &format!("seek_line in {name}"),
        guest.seek_line(&source, SeekLine::new(1)).await,
        &["PathEscape"],
    );
}

/// A write to a link replaces the link, or is refused; it never follows it out.
async fn no_writing_through(guest: &Guest, name: &str) {
    match guest
        .write_files(vec![FileWrite::new(path(name), "written")])
        .await
    {
        Ok(()) => assert_eq!(
            guest.out(&format!("[ -h {name} ] || cat {name}")).await,
            "written",
            "{name} became a file"
        ),
        Err(error) => fails_with::<()>(&format!("writing {name}"), Err(error), &["PathEscape"]),
    }
}

pub(super) async fn case_42_a_link_to_the_outside(suite: &Suite) {
    let guest = suite.guest().await;
    let canary = Canary::new();
    for (name, target) in [
        ("out-canary", format!("{}/canary", canary.folder())),
        ("out-passwd", "/etc/passwd".into()),
        ("out-zero", "/dev/zero".into()),
    ] {
        let before = guest.out("cat /etc/passwd").await;
        guest
            .out(&format!("ln -s {target} {name}; ln -s {name} {name}-chain"))
            .await;
        no_reading(&guest, name).await;
        no_reading(&guest, &format!("{name}-chain")).await;
        no_writing_through(&guest, &format!("{name}-chain")).await;
        no_writing_through(&guest, name).await;
        canary.check(&format!("calls on {name}"));
        assert_eq!(
            guest.out("cat /etc/passwd").await,
            before,
            "after calls on {name}"
        );
        guest.remove(&path(name)).await.expect("a link is removed");
        canary.check("remove");
    }
    guest.done().await;
}

pub(super) async fn case_42_a_folder_link_to_the_outside(suite: &Suite) {
    let guest = suite.guest().await;
    let canary = Canary::new();
    for (name, target, inner) in [
        ("dir-canary", canary.folder(), "canary"),
        ("dir-etc", "/etc", "passwd"),
        ("dir-root", "/", "etc/passwd"),
    ] {
        guest.out(&format!("ln -s {target} {name}")).await;
        let (inner, new) = (format!("{name}/{inner}"), format!("{name}/new/file"));
        no_reading(&guest, &inner).await;
        for target in [&inner, &new] {
            let write = guest
                .write_files(vec![FileWrite::new(path(target), "written")])
                .await;
            fails_with(&format!("writing {target}"), write, &["PathEscape"]);
        }
        fails_with(
            &format!("removing {inner}"),
            guest.remove(&path(&inner)).await,
            &["PathEscape"],
        );
        let list = guest
            .list(&path(name), ListOptions::default().recursive())
            .await;
        fails_with(
            &format!("listing {name}"),
            list,
            &["PathEscape", "WrongKind"],
        );
        let listed = guest
            .list(&path("."), ListOptions::default().recursive())
            .await
            .expect("list");
        assert!(
            !listed
                .iter()
                .any(|entry| entry.path != path(name) && entry.path.starts_with(&path(name))),
            "{name} is not entered"
        );
        let entry = listed
            .iter()
            .find(|entry| entry.path == path(name))
            .expect("listed");
        assert_eq!(entry.stat.kind, FileKind::Symlink);
        let run = guest.run(Command::argv(["pwd", "-P"]).cwd(name)).await;
        if let Ok(output) = run {
            assert!(
                !output.stdout.text().contains(canary.folder()),
                "a cwd is a guest path: {}",
                describe(&output)
            );
        }
        guest
            .remove(&path(name))
            .await
            .expect("the link is removed");
        canary.check(&format!("calls on {name}"));
    }
    guest.done().await;
}

pub(super) async fn links_that_climb(suite: &Suite) {
    let guest = suite.guest().await;
    guest.out("mkdir -p climb/a/b; ln -s ../../.. climb/a/up; ln -s ../../../.. climb/a/b/up; ln -s a/up climb/chain").await;
    let climbs = "../".repeat(40) + "etc/passwd";
    guest.out(&format!("ln -s {climbs} climb/far")).await;
    no_reading(&guest, "climb/far").await;
    for name in ["climb/a/up/x", "climb/a/b/up/x", "climb/chain/x"] {
        no_reading(&guest, name).await;
        fails_with(
            &format!("writing {name}"),
            guest
                .write_files(vec![FileWrite::new(path(name), "x")])
                .await,
            &["PathEscape"],
        );
    }
    guest.out("ln -s .. climb/a/in; echo x > climb/x").await;
    assert_eq!(
        &guest.read("climb/a/in/x").await[..],
        b"x\n",
        "a link that climbs, but not out, is followed"
    );
    guest.done().await;
}

pub(super) async fn magic_links_of_proc(suite: &Suite) {
    let guest = suite.guest().await;
    for (name, target) in [
        ("magic-root", "/proc/self/root/etc/passwd"),
        ("magic-cwd", "/proc/self/cwd/magic-real"),
        ("magic-fd", "/proc/self/fd/0"),
    ] {
        guest
            .out(&format!("echo x > magic-real; ln -s {target} {name}"))
            .await;
        no_reading(&guest, name).await;
    }
    guest.out("ln -s /proc magic-proc").await;
    no_reading(&guest, "magic-proc/1/root/etc/passwd").await;
    guest.done().await;
}

pub(super) async fn link_loops_end(suite: &Suite) {
    let guest = suite.guest().await;
    guest
        .out("ln -s loop-b loop-a; ln -s loop-a loop-b; ln -s . loop-dot")
        .await;
    let read = within(
        suite.scale.seconds(5.0),
        "a loop of links ends",
        guest.try_read("loop-a"),
    )
    .await;
    assert!(read.is_err(), "a loop of links is an error: {read:?}");
    let root = path(".");
    let list = guest.list(&root, ListOptions::default().recursive().limit(100_000));
    within(
        suite.scale.seconds(20.0),
        "a link to its own folder is not entered",
        list,
    )
    .await
    .expect("list");
    guest.done().await;
}

/// The guest swaps a folder with a link, as fast as it can, while the host reads and writes below it: a check before the
/// use is not enough.
pub(super) async fn a_folder_swapped_for_a_link_while_in_use(suite: &Suite) {
    let guest = suite.guest().await;
    let canary = Canary::new();
    let swap = format!(
        "mkdir -p swap/real; echo inside > swap/real/canary; ln -s {} swap/link; cd swap; touch running
        python3 -c '
import os, shutil
def take(name):
    while True:
        try:
            return os.rename(name, \"at\")
        except OSError:
            # A call of the host made a folder in the moment when there was none.
            shutil.rmtree(\"at\", ignore_errors=True)
while os.path.exists(\"running\"):
    take(\"real\"); os.rename(\"at\", \"real\")
    take(\"link\"); os.rename(\"at\", \"link\")
'",
        canary.folder(),
    );
    let swapping = guest.run(Command::script(swap).timeout(suite.scale.seconds(50.0)));
    let using = async {
        guest
            .becomes("the swapping has begun", || async {
                guest.stat(&file("swap/running")).await.is_ok()
            })
            .await;
        let until = Instant::now() + suite.scale.passing(3.0);
        let (mut inside, mut refused) = (0, 0);
        for round in 0.. {
            if Instant::now() > until {
                break;
            }
            match guest.try_read("swap/at/canary").await {
                Ok(bytes) => {
                    assert_eq!(
                        &bytes[..],
                        b"inside\n",
                        "round {round}: a file of the host was read"
                    );
                    inside += 1;
                }
                Err(_) => refused += 1,
            }
            let write = FileWrite::new(path(format!("swap/at/new-{}/file", round % 3)), "x");
            let _ = guest.write_files(vec![write]).await;
            if let Ok(entries) = guest
                .list(&path("swap/at"), ListOptions::default().recursive())
                .await
            {
                let stray = entries.iter().find(|entry| {
                    entry.stat.size == OUTSIDE.len() as u64 && entry.stat.kind == FileKind::File
                });
                assert!(
                    stray.is_none(),
                    "round {round}: a folder of the host was listed: {stray:?}"
                );
            }
            if round % 50 == 0 {
                canary.check("a race");
            }
        }
        for round in 0..suite.scale.size(200) {
            // What is inside goes with the first that hits it; what is outside must stay.
            let _ = guest.remove(&path("swap/at/canary")).await;
            if round % 50 == 0 {
                canary.check("a race of removals");
            }
        }
        guest.remove(&path("swap/running")).await.expect("remove");
        assert!(
            inside > 0 && refused > 0,
            "the race took place: {inside} reads inside, {refused} refused"
        );
    };
    let (output, ()) = tokio::join!(swapping, using);
    let output = output.expect("the swapping loop");
    assert!(output.success(), "{}", describe(&output));
    canary.check("a race");
    guest.done().await;
}
