use sixb_sandbox::{Command, CreateOptions, SandboxExt, SandboxFactory};
use sixb_sandbox_local::LocalSandboxFactory;
#[tokio::test(flavor = "multi_thread")]
async fn hello() {
    let state = tempfile::tempdir().unwrap();
    let factory = LocalSandboxFactory::default().state_dir(state.path());
    let t = std::time::Instant::now();
    let sandbox = factory.create(CreateOptions::default()).await.unwrap();
    eprintln!("{:?} {:?}", t.elapsed(), sandbox.capabilities());
    for script in ["id; ls / ~ /etc /dev; mount; cat /proc/self/status | grep -E 'Cap|Secc|NoNew'; env; ps -ef; touch /workspace/x; ls -la /workspace /proc/1/; readlink /proc/1/exe; cat /proc/1/environ; unshare -Ur true; exit 3", "true", "true", "nosuch", "cat /etc/shadow; cat /dev/tty; echo x > /etc/x; ls /root"] {
        let t = std::time::Instant::now();
        let out = sandbox.run(Command::script(script)).await.unwrap();
        eprintln!("{:?} {:?} sig {:?} reason {:?}\n{}\n--\n{}", t.elapsed(), out.exit_code, out.signal, out.reason, out.stdout.text(), out.stderr.text());
    }
    let out = sandbox.run(Command::argv(["nosuchprog"])).await.unwrap();
    eprintln!("{:?} {}", out.exit_code, out.stderr.text());
    sandbox.destroy().await.unwrap();
    eprintln!("{:?} {:?}", factory.list().await, std::fs::read_dir(state.path().join("sandboxes/local")).unwrap().count());
}
