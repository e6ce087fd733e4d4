//! What a machine's file system is made of.

use std::{fmt, path::PathBuf, str::FromStr};

use sixb_sandbox::{Result, SandboxError};

/// What a machine's file system is made of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Image {
    /// The agent image (bash, curl, jq, git, ripgrep, python3) in `${XDG_CACHE_HOME:-~/.cache}/sixb/smolvm/agent-image`.
    #[default]
    Agent,
    /// smolvm's own small system: busybox, without bash and Python.
    Bare,
    /// A file of `docker save` (`.tar`, `.tar.gz`, `.tgz`) or a folder with an unpacked root file system.
    Path(PathBuf),
    /// A reference that the machine pulls when it starts: `debian:12`, `ghcr.io/owner/name:tag`.
    Registry(String),
}

impl FromStr for Image {
    type Err = SandboxError;

    /// `agent`, `bare`, a path (begins with `/` or `.`, or ends like an archive), else a registry reference.
    fn from_str(text: &str) -> Result<Self> {
        let is_path = text.starts_with(['/', '.'])
            || [".tar", ".tar.gz", ".tgz"]
                .iter()
                .any(|end| text.ends_with(end));
        match text {
            "agent" => Ok(Self::Agent),
            "bare" => Ok(Self::Bare),
            _ if is_path => Ok(Self::Path(text.into())),
            _ if text.is_empty() || text.starts_with('-') || text.contains(char::is_whitespace) => Err(SandboxError::InvalidInput {
                field: "image",
                value: text.into(),
                reason: "is no image: write `agent`, `bare`, a path that begins with ./ or /, or a reference such as debian:12".into(),
            }),
            reference => Ok(Self::Registry(reference.into())),
        }
    }
}

impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent => f.write_str("agent"),
            Self::Bare => f.write_str("bare"),
            Self::Path(path) => path.display().fmt(f),
            Self::Registry(reference) => f.write_str(reference),
        }
    }
}

/// `${XDG_CACHE_HOME:-~/.cache}/sixb/smolvm/agent-image`: an unpacked root file system.
pub fn agent_image_folder() -> Option<PathBuf> {
    crate::factory::user_folder("XDG_CACHE_HOME", ".cache")
        .map(|folder| folder.join("sixb/smolvm/agent-image"))
}

/// smolvm's program in a root file system that machines boot from.
const AGENT: &str = "usr/local/bin/smolvm-agent";

/// How smolvm comes by a file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// smolvm's own small system.
    Own,
    /// The machine boots from this folder: the quickest, since no container is made in it.
    Root(PathBuf),
    /// A container in smolvm's own system: a folder, an archive or a reference.
    Container(String),
}

impl Image {
    /// How smolvm comes by it.
    pub(crate) fn source(&self) -> Result<Source> {
        let path = match self {
            Self::Bare => return Ok(Source::Own),
            Self::Registry(reference) => return Ok(Source::Container(reference.clone())),
            Self::Agent => {
                let found = agent_image_folder().filter(|folder| folder.join(AGENT).is_file());
                found.ok_or_else(|| SandboxError::IsolationUnavailable {
                    what: "the agent image is not there".into(),
                    remedy: format!(
                        "Build it with `cargo xtask agent-image`, which puts it into {}; or choose another image",
                        agent_image_folder().map_or("the cache folder".into(), |folder| folder.display().to_string())
                    ),
                })?
            }
            Self::Path(path) => {
                if !path.exists() {
                    return Err(SandboxError::InvalidInput {
                        field: "image",
                        value: path.display().to_string(),
                        reason: "does not exist: name a file of `docker save` or a folder with an unpacked root file system".into(),
                    });
                }
                path.clone()
            }
        };
        let absolute = std::path::absolute(&path)
            .map_err(|error| SandboxError::io("find the image", error))?;
        if absolute.join(AGENT).is_file() {
            return Ok(Source::Root(absolute));
        }
        Ok(Source::Container(absolute.to_string_lossy().into_owned()))
    }

    /// The host that the image is pulled from.
    pub(crate) fn registry_host(&self) -> Option<String> {
        let Self::Registry(reference) = self else {
            return None;
        };
        let first = reference.split('/').next().unwrap_or_default();
        let is_host =
            reference.contains('/') && (first.contains(['.', ':']) || first == "localhost");
        Some(if is_host {
            first.split(':').next().unwrap_or(first).to_owned()
        } else {
            "docker.io".to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_told_by_its_form() {
        for (text, expect, host) in [
            ("agent", Image::Agent, None),
            ("bare", Image::Bare, None),
            ("./rootfs", Image::Path("./rootfs".into()), None),
            ("/x/y.tgz", Image::Path("/x/y.tgz".into()), None),
            ("app.tar", Image::Path("app.tar".into()), None),
            (
                "debian:12",
                Image::Registry("debian:12".into()),
                Some("docker.io"),
            ),
            (
                "ghcr.io/o/n:1",
                Image::Registry("ghcr.io/o/n:1".into()),
                Some("ghcr.io"),
            ),
            (
                "localhost:5000/n",
                Image::Registry("localhost:5000/n".into()),
                Some("localhost"),
            ),
        ] {
            let image: Image = text.parse().expect(text);
            assert_eq!((image.registry_host().as_deref(), image), (host, expect));
        }
        for bad in ["", "--net", "a b"] {
            let error = bad.parse::<Image>().expect_err(bad).to_string();
            assert!(error.contains(&format!("{bad:?}")), "{error}");
        }
    }
}
