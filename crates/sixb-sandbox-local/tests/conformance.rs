//! The contract's own list of checks, against real local sandboxes.

use std::{path::PathBuf, sync::Arc};

use sixb_sandbox::{
    NetworkEnforcement,
    conformance::{Expectations, Suite},
};
use sixb_sandbox_local::LocalSandboxFactory;

async fn suite(state: PathBuf) -> Suite {
    let mut expect = Expectations::default();
    expect.network = NetworkEnforcement::AllOrNothing;
    expect.memory = false;
    expect.pids = false;
    expect.disk = false;
    Suite::new(
        Arc::new(LocalSandboxFactory::default().state_dir(state)),
        expect,
    )
}

sixb_sandbox::conformance_tests!(suite);
