//! SIGTERM and SIGINT end the program in order; a second SIGINT ends it at once; SIGHUP reloads.

use std::io;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::clock::Stop;

/// What a shell reports for a program that SIGINT ended.
const EXIT_INTERRUPTED: i32 = 130;

/// Starts the thread that acts on signals: the first SIGTERM or SIGINT sets `drain` (claim nothing
/// more) and, after `grace`, `kill` (end what runs); each SIGHUP calls `reload`.
///
/// # Errors
/// When the system refuses a handler.
pub fn listen(
    drain: Stop,
    kill: Stop,
    grace: Duration,
    reload: impl Fn() + Send + 'static,
) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let handle = move || {
        let mut asked = false;
        for signal in signals.forever() {
            match signal {
                SIGHUP => reload(),
                SIGINT if asked => std::process::exit(EXIT_INTERRUPTED),
                _ if asked => {}
                _ => {
                    asked = true;
                    log::info!("stopping: signal {signal}");
                    drain.set();
                    let kill = kill.clone();
                    std::thread::spawn(move || {
                        kill.wait(grace);
                        kill.set();
                    });
                }
            }
        }
    };
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(handle)?;
    Ok(())
}
