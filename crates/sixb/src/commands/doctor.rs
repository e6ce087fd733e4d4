//! `sixb doctor`: what works on this machine, and how to get what does not.

use std::path::Path;

use anstyle::Style;
use anyhow::Result;
use serde::Serialize;
use serde_json::json;
use sixb_agent::{Endpoint, OpenAiModel};
use sixb_sandbox::{Capabilities, SandboxError};

use crate::{
    agents,
    cli::JsonArgs,
    config::{Config, web::FromEnv},
    factory,
    failure::Exit,
    host, stdout, terminal, web,
};

/// One line of the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Check {
    name: &'static str,
    status: Status,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Ok,
    /// It works without, less well.
    Weak,
    Missing,
}

/// Programs that agents expect, the Debian package of each, and what is lost without it. The sandbox shows `/usr` of the
/// host and nothing of its PATH, so that is where they are looked for.
const PROGRAMS: &[(&str, &str, Option<&str>)] = &[
    ("bash", "bash", None),
    ("awk", "mawk", Some("`sixb demo` needs it")),
    ("python3", "python3", Some("scripts in Python do not run")),
    ("curl", "curl", Some("commands cannot fetch over HTTP")),
    ("git", "git", Some("commands cannot use repositories")),
    ("rg", "ripgrep", Some("searching is slower with grep")),
];

const FOLDERS: &[&str] = &["/usr/local/bin", "/usr/bin", "/bin"];

/// `config`: a file that cannot be read is one line of the report.
pub(super) async fn run(args: JsonArgs, config: Result<Config>) -> Result<Exit> {
    let probed = factory::local().probe().await;
    let mut checks = vec![kernel()];
    checks.extend(user_namespaces());
    checks.push(isolation(&probed));
    if let Ok(capabilities) = &probed {
        checks.extend([
            landlock(capabilities),
            network(capabilities),
            limits(capabilities),
        ]);
    }
    let machines = factory::smolvm().findings().await;
    let mut microvms = machines.iter().all(|finding| finding.ok);
    checks.extend(machines.into_iter().map(microvm));
    if microvms {
        let booted = factory::smolvm().preflight().await;
        microvms = booted.is_ok();
        checks.push(trial_boot(booted));
    }
    let find = |program: &str| {
        FOLDERS
            .iter()
            .map(|folder| format!("{folder}/{program}"))
            .find(|path| host::is_file(Path::new(path)))
    };
    checks.extend(
        PROGRAMS
            .iter()
            .map(|&(name, package, loss)| program(name, package, loss, find(name))),
    );
    checks.push(model_server(sixb_agent::Endpoint::from_env()));
    checks.push(web_tools(&config, |name| std::env::var(name).ok()));
    let ready = checks.iter().all(|check| check.status != Status::Missing);
    if args.json {
        let capabilities = probed.ok();
        stdout::json(
            &json!({"version": env!("CARGO_PKG_VERSION"), "ready": ready, "checks": checks, "local": capabilities, "smolvm": {"ready": microvms}}),
        )?;
        return Ok(Exit::OK);
    }
    stdout::line(&verdict(&checks))?;
    for check in &checks {
        let (mark, style) = match check.status {
            Status::Ok => ("ok  ", terminal::GREEN),
            Status::Weak => ("weak", terminal::YELLOW),
            Status::Missing => ("miss", terminal::RED),
        };
        stdout::line(&format!(
            "{} {:<16} {}",
            mark_of(mark, style),
            check.name,
            check.detail
        ))?;
        if let Some(remedy) = &check.remedy {
            stdout::line(&format!("{:21} → {remedy}", ""))?;
        }
    }
    if ready {
        terminal::note("try `sixb demo`");
    }
    Ok(Exit::OK)
}

/// The first line: what all others come to.
fn verdict(checks: &[Check]) -> String {
    let missing: Vec<&str> = checks
        .iter()
        .filter(|check| check.status == Status::Missing)
        .map(|check| check.name)
        .collect();
    match missing[..] {
        [] => mark_of("sandboxes work here", terminal::GREEN),
        _ => format!(
            "{}; what is missing: {}",
            mark_of("sandboxes do not work here", terminal::RED),
            missing.join(", ")
        ),
    }
}

/// The report is data on stdout, so it is coloured only if that is a terminal too.
fn mark_of(mark: &str, style: Style) -> String {
    if std::io::IsTerminal::is_terminal(&std::io::stdout()) {
        terminal::paint(style, mark)
    } else {
        mark.to_owned()
    }
}

fn check(
    name: &'static str,
    status: Status,
    detail: impl Into<String>,
    remedy: Option<&str>,
) -> Check {
    Check {
        name,
        status,
        detail: detail.into(),
        remedy: remedy.map(str::to_owned),
    }
}

fn proc_value(path: &str) -> Option<String> {
    host::read_text(Path::new(path))
        .ok()
        .map(|text| text.trim().to_owned())
}

fn kernel() -> Check {
    match proc_value("/proc/sys/kernel/osrelease") {
        Some(release) => check("kernel", Status::Ok, format!("Linux {release}"), None),
        None => check(
            "kernel",
            Status::Missing,
            "not Linux, or /proc is not mounted",
            Some(
                "the local sandbox needs Linux: run sixb on a Linux machine or in a Linux container",
            ),
        ),
    }
}

/// The switches that distributions turn user namespaces off with. Only a trial sandbox tells whether they work.
fn user_namespaces() -> Vec<Check> {
    const SWITCHES: &[(&str, &str, &str)] = &[
        (
            "/proc/sys/user/max_user_namespaces",
            "0",
            "sudo sysctl -w user.max_user_namespaces=15000",
        ),
        (
            "/proc/sys/kernel/unprivileged_userns_clone",
            "0",
            "sudo sysctl -w kernel.unprivileged_userns_clone=1",
        ),
        (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        ),
    ];
    let off: Vec<Check> = SWITCHES
        .iter()
        .filter(|(path, blocked, _)| proc_value(path).as_deref() == Some(blocked))
        .map(|(path, value, remedy)| {
            check(
                "user namespaces",
                Status::Weak,
                format!("restricted: {path} is {value}"),
                Some(remedy),
            )
        })
        .collect();
    if off.is_empty() {
        vec![check(
            "user namespaces",
            Status::Ok,
            "not restricted by a setting",
            None,
        )]
    } else {
        off
    }
}

fn isolation(probed: &Result<Capabilities, SandboxError>) -> Check {
    match probed {
        Ok(capabilities) => check(
            "isolation",
            Status::Ok,
            format!("local: {}", capabilities.level),
            None,
        ),
        Err(SandboxError::IsolationUnavailable { what, remedy, .. }) => {
            check("isolation", Status::Missing, what, Some(remedy))
        }
        Err(error) => {
            // The remedy of such an error is what follows its first sentence.
            let text = error.to_string();
            let (what, remedy) = match text.split_once(". ") {
                Some((what, remedy)) => (what, remedy),
                None => (
                    text.as_str(),
                    "correct what the trial sandbox failed with, then run `sixb doctor` again",
                ),
            };
            let detail = format!("a trial sandbox did not start: {what}");
            check("isolation", Status::Missing, detail, Some(remedy))
        }
    }
}

/// A trial machine: a device that can be opened does not always give one.
fn trial_boot(booted: Result<(), SandboxError>) -> Check {
    match booted {
        Ok(()) => check("microvm", Status::Ok, "a trial machine booted", None),
        Err(SandboxError::IsolationUnavailable { what, remedy, .. }) => check(
            "microvm",
            Status::Weak,
            format!("--sandbox smolvm does not work: {what}"),
            Some(&remedy),
        ),
        Err(error) => check(
            "microvm",
            Status::Weak,
            format!("--sandbox smolvm does not work: {error}"),
            Some("use the local sandbox"),
        ),
    }
}

/// What `--sandbox smolvm` needs. Without it the local sandbox works on.
fn microvm(finding: sixb_sandbox_smolvm::Finding) -> Check {
    Check {
        name: finding.name,
        status: if finding.ok { Status::Ok } else { Status::Weak },
        detail: match finding.ok {
            true => finding.detail,
            false => format!("--sandbox smolvm does not work: {}", finding.detail),
        },
        remedy: finding.remedy,
    }
}

fn landlock(capabilities: &Capabilities) -> Check {
    if capabilities.level.contains("landlock") && !capabilities.level.contains("no landlock") {
        return check("landlock", Status::Ok, "a second wall around files", None);
    }
    check(
        "landlock",
        Status::Weak,
        "not in this kernel: one wall around files instead of two",
        Some("boot Linux 5.13 or newer with lsm=landlock,…"),
    )
}

fn network(capabilities: &Capabilities) -> Check {
    check(
        "network",
        Status::Ok,
        format!("--net enforced: {}", name_of(capabilities.network)),
        None,
    )
}

fn limits(capabilities: &Capabilities) -> Check {
    let limits = &capabilities.limits;
    let all = [
        ("memory", limits.memory),
        ("processes", limits.pids),
        ("processor", limits.cpus),
        ("disk", limits.disk),
    ];
    let enforced: Vec<String> = all
        .iter()
        .filter_map(|(what, enforcer)| Some(format!("{what} by {}", name_of((*enforcer)?))))
        .collect();
    let detail = match enforced.is_empty() {
        true => "none is enforced by this version, so asking for one is refused".to_owned(),
        false => enforced.join(", "),
    };
    check("limits", Status::Ok, detail, None)
}

/// The name that a value carries in JSON.
fn name_of(value: impl Serialize) -> String {
    serde_json::to_value(value)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// Which server models are asked at, and whether there is a key: never the key.
fn model_server(endpoint: Option<Endpoint>) -> Check {
    let Some(endpoint) = endpoint else {
        return check(
            "model server",
            Status::Weak,
            "none is named: only scripts can be played",
            Some(
                "export AI_GATEWAY_API_KEY (Vercel AI Gateway), OPENAI_API_KEY (OpenAI) or OPENAI_BASE_URL (any compatible server)",
            ),
        );
    };
    let key = match endpoint.key {
        Some(_) => "with a key",
        None => "without a key",
    };
    let detail = format!("{endpoint} by {}, {key}", endpoint.source);
    // The same checks as a run makes; it connects to nothing.
    match OpenAiModel::builder("check").endpoint(endpoint).build() {
        Ok(_) => check("model server", Status::Ok, detail, None),
        Err(error) => check(
            "model server",
            Status::Weak,
            format!("{detail}: {error}"),
            Some("correct the variable"),
        ),
    }
}

/// Whether web_search and web_fetch have a connector and a key: never the key. It connects to nothing.
fn web_tools(config: &Result<Config>, variable: impl Fn(&str) -> Option<String>) -> Check {
    const NAME: &str = "web tools";
    let config = match config {
        Ok(config) => config,
        Err(error) => {
            let remedy = "correct sixb.toml; `sixb init` elsewhere writes one to compare with";
            return check(NAME, Status::Weak, error.to_string(), Some(remedy));
        }
    };
    let Some(exa) = &config.connectors.exa else {
        return check(
            NAME,
            Status::Weak,
            "not set up: agents have no web_search and web_fetch",
            Some("add [connectors.exa] with api_key = \"env:EXA_API_KEY\" to sixb.toml"),
        );
    };
    let name = match &exa.api_key {
        Some(FromEnv(name)) => name.as_str(),
        None => "EXA_API_KEY",
    };
    let own_address = variable(web::BASE_URL).is_some_and(|url| !url.trim().is_empty());
    // What a run would refuse is told here too.
    match web::options(config, variable).and_then(|_| agents::check_tools(config)) {
        Ok(()) => {
            let address = match own_address {
                true => format!(", at the address in {}", web::BASE_URL),
                false => String::new(),
            };
            let detail = format!("Exa{address}, with the key in {name}");
            check(NAME, Status::Ok, detail, None)
        }
        Err(error) => {
            let text = error.to_string();
            // What follows the last semicolon says what to do.
            let (detail, remedy) = match text.rsplit_once("; ") {
                Some((detail, remedy)) => (detail, remedy),
                None => (text.as_str(), "correct it in sixb.toml"),
            };
            check(NAME, Status::Weak, detail, Some(remedy))
        }
    }
}

fn program(name: &'static str, package: &str, loss: Option<&str>, found: Option<String>) -> Check {
    match (found, loss) {
        (Some(path), _) => check(name, Status::Ok, path, None),
        (None, loss) => {
            let detail = format!(
                "not in /usr/bin{}",
                loss.map(|loss| format!(": {loss}")).unwrap_or_default()
            );
            let status = if loss.is_some() {
                Status::Weak
            } else {
                Status::Missing
            };
            check(
                name,
                status,
                detail,
                Some(&format!("sudo apt-get install {package}")),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sixb_sandbox::{Isolation, NetworkEnforcement};

    #[test]
    fn the_first_line_says_whether_sandboxes_work() {
        let failed = SandboxError::provider(
            "create",
            "/x: Permission denied. Name a state directory that this user may write",
            None,
        );
        let miss = isolation(&Err(failed));
        assert!(
            miss.detail.ends_with("/x: Permission denied")
                && miss.remedy.as_deref()
                    == Some("Name a state directory that this user may write"),
            "{miss:?}"
        );
        let weak = program("rg", "ripgrep", Some("searching is slower with grep"), None);
        assert_eq!(verdict(&[weak.clone(), kernel()]), "sandboxes work here");
        assert_eq!(
            verdict(&[weak, miss]),
            "sandboxes do not work here; what is missing: isolation"
        );
    }

    #[test]
    fn every_miss_has_a_remedy() {
        let unavailable = SandboxError::IsolationUnavailable {
            what: "no user namespaces".into(),
            remedy: "turn them on".into(),
        };
        let exa = |lines: &str| Config::parse(&format!("[connectors.exa]\n{lines}"));
        let planted = |name: &str| (name != web::BASE_URL).then(|| "sk-planted".to_owned());
        let capabilities = |level: &str| {
            Capabilities::new(
                Isolation::Namespaces,
                level,
                NetworkEnforcement::AllOrNothing,
            )
        };
        for check in [
            program("rg", "ripgrep", Some("searching is slower with grep"), None),
            program("bash", "bash", None, None),
            isolation(&Err(unavailable)),
            landlock(&capabilities("userns")),
            landlock(&capabilities("userns, no landlock")),
            model_server(None),
            model_server(Endpoint::of(|name| {
                (name == "OPENAI_BASE_URL")
                    .then(|| "https://u:sk-planted@a.test/v1?k=planted".to_owned())
            })),
            web_tools(&Ok(Config::default()), |_| None),
            web_tools(&Err(anyhow::anyhow!("sixb.toml:3: no")), |_| None),
            web_tools(&exa(""), planted),
            web_tools(&exa("api_key = \"env:KEY\""), |_| Some("sk-planted".into())),
            web_tools(&exa("api_key = \"env:KEY\""), |_| None),
            web_tools(&exa("api_key = \"env:KEY\""), |_| Some(" ".into())),
            web_tools(
                &exa("api_key = \"env:KEY\"\nbase_url = \"http://u:planted@a.test\""),
                planted,
            ),
        ] {
            assert!(!check.detail.contains("planted"), "{check:?}");
            assert!(
                check.status != Status::Ok && check.remedy.is_some(),
                "{check:?}"
            );
        }
        for check in [
            program("rg", "ripgrep", None, Some("/usr/bin/rg".into())),
            landlock(&capabilities("userns, landlock 7")),
            network(&capabilities("userns")),
            model_server(Endpoint::of(|name| {
                (name == "OPENAI_BASE_URL").then(|| "http://127.0.0.1:1/v1".to_owned())
            })),
            limits(&capabilities("userns")),
            web_tools(&exa("api_key = \"env:KEY\""), planted),
        ] {
            assert!(
                check.status == Status::Ok && check.remedy.is_none(),
                "{check:?}"
            );
        }
        assert!(
            network(&capabilities(""))
                .detail
                .ends_with("all-or-nothing")
        );
    }
}
