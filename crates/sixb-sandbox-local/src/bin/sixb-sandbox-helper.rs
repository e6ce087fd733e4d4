//! The helper as an installed program, for libraries whose host program cannot call `sixb_sandbox_local::init()`.

fn main() {
    sixb_sandbox_local::init();
    eprintln!(
        "sixb-sandbox-helper sets up sandboxes for programs that use the crate sixb-sandbox-local; it is not run by hand"
    );
    std::process::exit(2);
}
