//! The helper's program: a sealed copy in memory, so that nothing inside a sandbox can ever reach (or change) the file
//! it came from.

use std::{
    fs::File,
    io::{self, Write},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

/// One copy per program file, for as long as this process lives.
static IMAGES: Mutex<Vec<(PathBuf, Arc<OwnedFd>)>> = Mutex::new(Vec::new());

/// The sealed copy of `program`.
pub(super) fn sealed(program: &Path) -> io::Result<Arc<OwnedFd>> {
    let mut images = IMAGES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, image)) = images.iter().find(|(path, _)| path == program) {
        return Ok(image.clone());
    }
    let image = Arc::new(copy(program)?);
    images.push((program.to_owned(), image.clone()));
    Ok(image)
}

fn copy(program: &Path) -> io::Result<OwnedFd> {
    let mut source = File::open(program)?;
    let name = c"sixb-sandbox-helper";
    let sealable = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let memory = match memfd_create(name, sealable | MemfdFlags::EXEC) {
        // Kernels before 6.3 do not know the flag, and need none.
        Err(rustix::io::Errno::INVAL) => memfd_create(name, sealable)?,
        other => other?,
    };
    let mut target = File::from(memory);
    io::copy(&mut source, &mut target)?;
    target.flush()?;
    let memory = OwnedFd::from(target);
    fcntl_add_seals(
        &memory,
        SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE,
    )?;
    Ok(memory)
}

/// A memfd with these bytes.
pub(super) fn memory(name: &std::ffi::CStr, bytes: &[u8]) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let memory = match memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
        Err(rustix::io::Errno::INVAL) => memfd_create(name, flags)?,
        other => other?,
    };
    let mut file = File::from(memory);
    file.write_all(bytes)?;
    Ok(file.into())
}
