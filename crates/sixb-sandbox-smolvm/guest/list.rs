//! Listing and removal: walks that never follow a link.

use std::{
    fs::{self, File},
    io::Write,
    os::unix::{ffi::OsStringExt, net::UnixStream},
};

use crate::{
    files::{Failure, Outcome, Workspace, at, describe, kind, look},
    wire::{self, error},
};

/// Folders below folders: deeper ones are refused, so that a walk holds few descriptors.
const MAX_DEPTH: usize = 128;
const ENOENT: i32 = 2;
const EISDIR: i32 = 21;
const EPERM: i32 = 1;
const ENOTEMPTY: i32 = 39;
const EEXIST: i32 = 17;

impl Workspace {
    /// Fields: path, `all` or `one` level, `files` or `everything`, limit, names of folders that are left out…. Answers
    /// `DATA` frames of entries (path and description), then `OK`.
    pub(crate) fn list(&self, stream: &mut UnixStream, fields: &[Vec<u8>]) -> Outcome {
        let [path, depth, what, limit, skip @ ..] = fields else {
            return Err(wire::broken().into());
        };
        let (recursive, only_files, limit) =
            (depth == b"all", what == b"files", wire::number(limit)?);
        let found = self.find(path)?;
        let description = found.metadata()?;
        if !description.is_dir() {
            return Err(Failure::new(
                error::KIND,
                format!("{}/directory", kind(&description)),
            ));
        }
        let mut folders = vec![(path.clone(), found)];
        let mut batch = Vec::new();
        let mut count = 0;
        while let Some((path, folder)) = folders.pop() {
            // Closed to us or gone meanwhile: listed, not entered.
            let Ok(entries) = fs::read_dir(at(&folder, b".")) else {
                continue;
            };
            for entry in entries.flatten() {
                let name = entry.file_name().into_vec();
                let Ok(found) = look(&folder, &name) else {
                    continue;
                };
                let Ok(description) = found.metadata() else {
                    continue;
                };
                let below = if path.is_empty() {
                    name.clone()
                } else {
                    [path.as_slice(), b"/", &name].concat()
                };
                if description.is_dir() && recursive && !skip.contains(&name) {
                    if below.split(|byte| *byte == b'/').count() > MAX_DEPTH {
                        return Err(Failure::new(
                            error::LIMIT,
                            format!("depth of folders/{MAX_DEPTH}"),
                        ));
                    }
                    folders.push((below.clone(), found));
                }
                if only_files && !description.is_file() {
                    continue;
                }
                count += 1;
                if count > limit {
                    return Err(Failure::new(
                        error::LIMIT,
                        format!(
                            "{}/{limit}",
                            if only_files {
                                "files of a snapshot"
                            } else {
                                "entries of a listing"
                            }
                        ),
                    ));
                }
                wire::push(&mut batch, &below);
                for field in describe(&description) {
                    wire::push(&mut batch, field.as_bytes());
                }
                if batch.len() > wire::CHUNK {
                    stream.write_all(&wire::frame(wire::DATA, &batch))?;
                    batch.clear();
                }
            }
        }
        stream.write_all(&wire::frame(wire::DATA, &batch))?;
        Ok(stream.write_all(&wire::frame(wire::OK, &[]))?)
    }

    /// Field: path. What does not exist is removed already.
    pub(crate) fn remove(&self, stream: &mut UnixStream, fields: &[Vec<u8>]) -> Outcome {
        let [path] = fields else {
            return Err(wire::broken().into());
        };
        self.writable()?;
        if let Some((folder, name)) = self.parent_of(path)? {
            remove_at(&folder, &name, 0)?;
        }
        Ok(stream.write_all(&wire::frame(wire::OK, &[]))?)
    }
}

fn remove_at(folder: &File, name: &[u8], depth: usize) -> Outcome {
    match fs::remove_file(at(folder, name)) {
        Ok(()) => return Ok(()),
        Err(failed) => match failed.raw_os_error() {
            Some(ENOENT) => return Ok(()),
            Some(EISDIR | EPERM) if depth < MAX_DEPTH => {}
            _ => return Err(failed.into()),
        },
    }
    // Others may add entries meanwhile: a bounded number of rounds.
    for _ in 0..16 {
        let below = look(folder, name)?;
        if !below.metadata()?.is_dir() {
            return remove_at(folder, name, MAX_DEPTH);
        }
        for entry in fs::read_dir(at(&below, b"."))?.flatten() {
            remove_at(&below, &entry.file_name().into_vec(), depth + 1)?;
        }
        match fs::remove_dir(at(folder, name)) {
            Ok(()) => return Ok(()),
            Err(failed) => match failed.raw_os_error() {
                Some(ENOENT) => return Ok(()),
                Some(ENOTEMPTY | EEXIST) => {}
                _ => return Err(failed.into()),
            },
        }
    }
    Err(Failure::new("other", "something keeps adding files to it"))
}
