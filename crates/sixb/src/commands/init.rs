//! `sixb init`: a commented `sixb.toml`.

use std::io;

use anyhow::{Result, anyhow};

use crate::{
    cli::InitArgs,
    config::{FILE_NAME, TEMPLATE},
    failure::Exit,
    host, terminal,
};

pub(super) fn run(args: &InitArgs) -> Result<Exit> {
    let path = args.dir.join(FILE_NAME);
    host::write_new(&path, TEMPLATE).map_err(|error| {
        let remedy = match error.kind() {
            io::ErrorKind::AlreadyExists => {
                "it is there already and stays as it is; edit it, or move it away and run `sixb init` again"
            }
            io::ErrorKind::NotFound => "make the folder first, or name one that exists",
            io::ErrorKind::NotADirectory => "DIR must be a folder: name the one to write sixb.toml into",
            _ => return anyhow!("{}: {error}; name a folder that you can write to", path.display()),
        };
        anyhow!("{}: {remedy}", path.display())
    })?;
    terminal::say(&format!(
        "wrote {}; its comments say what each line does",
        path.display()
    ));
    Ok(Exit::OK)
}
