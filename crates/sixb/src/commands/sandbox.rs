//! `sixb sandbox list`, `sixb sandbox sweep` and `sixb sandbox install`: of all providers.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use serde_json::json;
use sixb_agent::{state_folder, sweep_workspaces};
use sixb_sandbox::SandboxRecord;

use crate::{cli::SandboxCommand, factory, failure::Exit, stdout, terminal, values::Provider};

const PROVIDERS: [Provider; 2] = [Provider::Local, Provider::Smolvm];

pub(super) async fn run(command: SandboxCommand) -> Result<Exit> {
    match command {
        SandboxCommand::List(args) => {
            let mut records = Vec::new();
            for provider in PROVIDERS {
                records.extend(factory::of(provider).list().await?);
            }
            if args.json {
                stdout::json(&records)?;
                return Ok(Exit::OK);
            }
            for record in &records {
                stdout::line(&describe(record, SystemTime::now()))?;
            }
            if records.is_empty() {
                terminal::note("no sandboxes");
            } else if records.iter().any(|record| !record.owner_alive) {
                terminal::note("`sixb sandbox sweep` removes those whose owner is gone");
            }
        }
        SandboxCommand::Sweep(args) => {
            let mut removed = Vec::new();
            for provider in PROVIDERS {
                removed.extend(factory::of(provider).sweep().await?);
            }
            // After the sandboxes: what is left in a workspace is nobody's then.
            let cleaned = match state_folder() {
                Some(state) => sweep_workspaces(&state)
                    .with_context(|| format!("the records of open runs in {}", state.display()))?,
                None => Vec::new(),
            };
            let folders: Vec<_> = cleaned
                .iter()
                .map(|swept| swept.workspace.display())
                .collect();
            if args.json {
                let folders: Vec<_> = folders.iter().map(ToString::to_string).collect();
                stdout::json(&json!({"removed": removed, "cleanedWorkspaces": folders}))?;
                return Ok(Exit::OK);
            }
            for id in &removed {
                stdout::line(id)?;
            }
            for folder in &folders {
                terminal::note(&terminal::plain(&format!(
                    "removed what a killed run left in {folder}"
                )));
            }
            match removed.len() {
                0 if folders.is_empty() => terminal::note("nothing to remove"),
                0 => {}
                count => terminal::note(&format!("removed {count}")),
            }
        }
        SandboxCommand::Install(_) => {
            let install = || sixb_sandbox_smolvm::install(terminal::note);
            let installed = tokio::task::spawn_blocking(install).await??;
            stdout::line(&installed.program.display().to_string())?;
        }
    }
    Ok(Exit::OK)
}

fn describe(record: &SandboxRecord, now: SystemTime) -> String {
    let age = now
        .duration_since(UNIX_EPOCH + Duration::from_secs(record.created_at))
        .unwrap_or_default()
        .as_secs();
    let age = match age {
        0..60 => format!("{age}s"),
        60..3_600 => format!("{}m", age / 60),
        _ => format!("{}h", age / 3_600),
    };
    format!(
        "{}\t{}\t{}\t{age}\towner {} {}",
        record.id,
        record.provider,
        if record.running {
            "running"
        } else {
            "not running"
        },
        record.owner_pid,
        if record.owner_alive { "alive" } else { "gone" },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_five_columns() {
        let record = SandboxRecord::new("s1".into(), "local", 7, false, true, 100);
        let now = UNIX_EPOCH + Duration::from_secs(100 + 185);
        assert_eq!(
            describe(&record, now),
            "s1\tlocal\trunning\t3m\towner 7 gone"
        );
    }
}
