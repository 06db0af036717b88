//! Children without a way to the user's terminal: each leads a session of its own, so that opening `/dev/tty` fails in
//! it and in what it starts (a passphrase that `ssh` asks for would be written over the screen, and would take the keys).

use process_wrap::std::{CommandWrap, CommandWrapper, ProcessSession};
use std::io;
use std::process::Command;

/// Makes what `command` starts the leader of a new session, which is a new process group as well: the group has the
/// number of the process. (The standard library's own way to this isn't stable; setsid(2) has to run in the child.)
///
/// # Errors
/// None that is known.
pub fn own_session(command: &mut Command) -> io::Result<()> {
    let nothing_else = CommandWrap::from(Command::new(""));
    ProcessSession.pre_spawn(command, &nothing_else)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Pid, getpgid, getsid};

    #[test]
    fn a_child_leads_a_session_and_a_group_and_knows_no_terminal() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "exec 2>/dev/null; echo x >/dev/tty && exit 7; read _; exit 3"]);
        command.stdin(std::process::Stdio::piped());
        own_session(&mut command).unwrap();
        let mut child = command.spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
        assert_eq!(getsid(pid).ok(), pid);
        assert_eq!(getpgid(pid).ok(), pid);
        drop(child.stdin.take());
        assert_eq!(child.wait().unwrap().code(), Some(3), "there is no terminal to write to");
    }
}
