//! The figures that the project promises, each as a ratio to its floor, measured in the same run.
//!
//! `cargo xtask bench [FILTER]` builds this in release mode and runs it. The machine is shared and noisy: so subject and
//! floor take turns, and the median of their ratios counts. Nothing here fails for being slow: it says `short`.

#![expect(
    clippy::disallowed_methods,
    reason = "benchmarks start floors on the host and lay out their files"
)]

mod bash_view;
mod crowd;
mod figure;
mod floor;
mod output;
mod read;
mod start;
mod whole;

use figure::Report;

fn main() {
    // cargo adds `--bench`; what is left is a filter.
    let filter: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut report = Report::new(filter);
    runtime.block_on(async {
        start::run(&mut report).await;
        output::run(&mut report).await;
        read::run(&mut report).await;
        bash_view::run(&mut report).await;
        whole::run(&mut report).await;
        crowd::run(&mut report).await;
    });
    report.end();
}
