//! One file per command.

mod demo;
mod doctor;
mod exec;
mod init;
mod run;
mod runs;
mod sandbox;
mod tool;

use anyhow::Result;

use crate::{
    cli::{Cli, Command},
    config::Config,
    failure::Exit,
};

/// Does what the command line says.
pub(crate) async fn run(cli: Cli) -> Result<Exit> {
    let config = || Config::load(cli.config.as_deref());
    match cli.command {
        Command::Demo(args) => demo::run(args).await,
        Command::Run(args) => run::run(args, &config()?).await,
        Command::Runs(command) => runs::run(command, &config()?).await,
        Command::Exec(args) => exec::run(args, &config()?).await,
        Command::Tool(args) => tool::run(args, &config()?).await,
        Command::Doctor(args) => doctor::run(args, config()).await,
        Command::Sandbox(command) => sandbox::run(command).await,
        Command::Init(args) => init::run(&args),
    }
}
