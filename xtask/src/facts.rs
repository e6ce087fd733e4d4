//! What the checks know of the checkout, read once from cargo, git and the disk; the checks themselves are pure.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use cargo_metadata::{CargoOpt, DependencyKind, Metadata, MetadataCommand, Package, TargetKind};

/// A checkout of the workspace. All paths are relative to its root.
#[derive(Default)]
pub(crate) struct Facts {
    pub(crate) crates: Vec<Crate>,
    /// Every file that git tracks or would add.
    pub(crate) files: Vec<String>,
    /// The Rust files among them.
    pub(crate) sources: Vec<Source>,
}

/// A package of the workspace.
#[derive(Default)]
pub(crate) struct Crate {
    pub(crate) name: String,
    pub(crate) folder: String,
    /// Its direct dependencies, as `Cargo.toml` declares them.
    pub(crate) uses: Vec<Use>,
    /// The files its library and binaries start at.
    pub(crate) roots: Vec<String>,
}

#[derive(Default)]
pub(crate) struct Use {
    pub(crate) name: String,
    pub(crate) dev: bool,
    pub(crate) optional: bool,
}

pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// A broken rule, in words that a person who never read this program can act on.
#[derive(Clone, Debug)]
pub(crate) struct Violation {
    pub(crate) rule: String,
    pub(crate) place: String,
    pub(crate) remedy: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}\n  remedy: {}",
            self.place, self.rule, self.remedy
        )
    }
}

impl Facts {
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let metadata = metadata(root)?;
        let files = files(root)?;
        let mut sources = Vec::new();
        for path in files.iter().filter(|path| path.ends_with(".rs")) {
            let text = fs::read_to_string(root.join(path))
                .with_context(|| format!("cannot read {path}"))?;
            sources.push(Source {
                path: path.clone(),
                text,
            });
        }
        let crates = metadata
            .workspace_packages()
            .into_iter()
            .map(|package| Crate::new(package, &metadata))
            .collect();
        Ok(Self {
            crates,
            files,
            sources,
        })
    }
}

impl Crate {
    fn new(package: &Package, metadata: &Metadata) -> Self {
        let relative = |path: &cargo_metadata::camino::Utf8Path| {
            path.strip_prefix(&metadata.workspace_root)
                .unwrap_or(path)
                .to_string()
        };
        let is_root = |kind: &TargetKind| {
            matches!(
                kind,
                TargetKind::Lib | TargetKind::ProcMacro | TargetKind::Bin
            )
        };
        Self {
            name: package.name.to_string(),
            folder: package
                .manifest_path
                .parent()
                .map(relative)
                .unwrap_or_default(),
            uses: package
                .dependencies
                .iter()
                .map(|dependency| Use {
                    name: dependency.name.clone(),
                    dev: dependency.kind == DependencyKind::Development,
                    optional: dependency.optional,
                })
                .collect(),
            roots: package
                .targets
                .iter()
                .filter(|target| target.kind.iter().any(is_root))
                .map(|target| relative(&target.src_path))
                .collect(),
        }
    }
}

pub(crate) fn root() -> Result<PathBuf> {
    let xtask =
        std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let root = Path::new(&xtask)
        .parent()
        .context("xtask lies in the workspace")?;
    ensure!(
        root.join("Cargo.toml").exists(),
        "no workspace at {}: start this as `cargo xtask`",
        root.display()
    );
    Ok(root.to_owned())
}

pub(crate) fn metadata(root: &Path) -> Result<Metadata> {
    let mut command = MetadataCommand::new();
    command.current_dir(root).features(CargoOpt::AllFeatures);
    command.exec().context("cargo metadata")
}

/// Whether `package` goes to crates.io, unlike xtask and tests.
pub(crate) fn is_published(package: &Package) -> bool {
    package
        .publish
        .as_ref()
        .is_none_or(|registries| !registries.is_empty())
}

/// Whether this process may install packages and become another user.
pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// What git tracks or would add, without what `.gitignore` names: the checks judge a change before it is committed too.
fn files(root: &Path) -> Result<Vec<String>> {
    let mut git = Command::new("git");
    git.args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ])
    .current_dir(root);
    let output = git.output().context("cannot start git")?;
    ensure!(
        output.status.success(),
        "git ls-files: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let names = String::from_utf8(output.stdout).context("file names are UTF-8")?;
    // A tracked file that was deleted is still listed.
    Ok(names
        .split_terminator('\0')
        .filter(|name| root.join(name).exists())
        .map(str::to_owned)
        .collect())
}
