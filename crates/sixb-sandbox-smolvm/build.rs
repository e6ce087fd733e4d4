//! Compiles `guest/` into one static program for the same processor and places it where `src/guest.rs` includes it.
//!
//! The guest has no dependencies, so `rustc` alone builds it. Where no static libc is installed the crate still builds;
//! it then refuses to make sandboxes and says what to install.

#![expect(
    clippy::disallowed_methods,
    reason = "a build script starts the compiler and writes to OUT_DIR"
)]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

fn main() {
    println!("cargo::rerun-if-changed=guest");
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let out = PathBuf::from(variable("OUT_DIR")).join("sixb-guest");
    let built = variable("CARGO_CFG_TARGET_OS") == "linux"
        && compile(&variable("RUSTC"), &variable("CARGO_CFG_TARGET_ARCH"), &out);
    if !built {
        fs::write(&out, b"").expect("OUT_DIR can be written");
    }
}

fn compile(rustc: &str, arch: &str, out: &Path) -> bool {
    let mut errors = String::new();
    for libc in ["musl", "gnu"] {
        let ran = Command::new(rustc)
            .args([
                "guest/main.rs",
                "--crate-name",
                "sixb_guest",
                "--edition",
                "2024",
                "--cap-lints",
                "allow",
            ])
            .args(["--target", &format!("{arch}-unknown-linux-{libc}")])
            .args([
                "-C",
                "opt-level=s",
                "-C",
                "lto=fat",
                "-C",
                "codegen-units=1",
                "-C",
                "panic=abort",
                "-C",
                "strip=symbols",
                // Started with every command: nothing to relocate is time saved.
                "-C",
                "relocation-model=static",
            ])
            .args(["-C", "target-feature=+crt-static", "-o"])
            .arg(out)
            // What the crate is built with (coverage, sanitizers) is not for the guest.
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .output();
        match ran {
            Ok(ran) if ran.status.success() => return true,
            Ok(ran) => errors = String::from_utf8_lossy(&ran.stderr).into_owned(),
            Err(error) => errors = error.to_string(),
        }
    }
    let why = errors
        .lines()
        .find(|line| line.starts_with("error"))
        .unwrap_or("no reason given")
        .to_owned();
    println!(
        "cargo::warning=the program for inside microVMs was not built, so smolvm sandboxes will be refused ({why})"
    );
    false
}
