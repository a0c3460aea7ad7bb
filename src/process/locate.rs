//! Finding a program before it is started, so that a missing one is named with where it was sought.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

/// The absolute path of a program: a path as it is, a bare name by the `PATH` in `env`.
///
/// # Errors
/// When there is no such file or it may not be executed.
pub fn executable(name: &Path, env: &[(OsString, OsString)]) -> io::Result<PathBuf> {
    if name.as_os_str().is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "no program is named",
        ));
    }
    if name.components().count() > 1 || name.is_absolute() {
        let path = std::path::absolute(name)?;
        std::fs::metadata(&path)?;
        return if runnable(&path) {
            Ok(path)
        } else {
            Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "it is not an executable file",
            ))
        };
    }
    let path = env
        .iter()
        .rfind(|(key, _)| key == "PATH")
        .map_or(OsStr::new("/usr/bin:/bin"), |(_, value)| value);
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|candidate| runnable(candidate))
        .ok_or_else(|| {
            let text = format!("not found in PATH ({})", path.display());
            io::Error::new(io::ErrorKind::NotFound, text)
        })
}

fn runnable(path: &Path) -> bool {
    path.is_file() && access(path, AccessFlags::X_OK).is_ok()
}
