//! Which file a recording goes to: the path given, or a new one in a folder; mode 0600; one run at a time in one
//! file; the newest is remembered for `latest`.

use crate::error::{Error, Result};
use crate::time::Time;
use rustix::fs::{FlockOperation, flock};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// An open recording file; the lock on it ends with the process.
#[derive(Debug)]
pub struct Place {
    /// Where it is.
    pub path: PathBuf,
    /// Open for appending, locked.
    pub file: File,
}

/// Opens the file for `out`: a folder (one file a run, at most `keep` of them, oldest deleted first), or a file
/// that is appended to. A file that another tap is writing is left to it; this run gets one beside it.
///
/// # Errors
/// Exit 2 when nothing can be opened there.
pub fn open(out: &Path, server: &str, keep: Option<usize>, now: Time) -> Result<Place> {
    let as_folder = is_folder(out);
    let place = if as_folder {
        in_folder(out, server, now)?
    } else {
        match append(out)? {
            Some(place) => place,
            None => in_folder(out.parent().unwrap_or(Path::new(".")), server, now)?,
        }
    };
    if let (true, Some(keep)) = (as_folder, keep) {
        sweep(out, keep.max(1), &place.path);
    }
    Ok(place)
}

/// Whether `out` means a folder, there or to be made.
pub fn is_folder(out: &Path) -> bool {
    out.is_dir() || out.as_os_str().to_string_lossy().ends_with('/')
}

fn failed(path: &Path, e: &std::io::Error) -> Error {
    Error::usage(format!("{} can't be written: {e}; nothing was started", path.display()))
        .hint("--out names a file, or a folder that gets one file for each run")
}

/// `None` when another tap holds it.
fn append(path: &Path) -> Result<Option<Place>> {
    let mut file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .map_err(|e| failed(path, &e))?;
    if !may_be_ours(&mut file) {
        return Err(Error::usage(format!(
            "{} is there already and is no recording; nothing was started",
            path.display()
        ))
        .hint("--out names a new file, a recording to go on with, or a folder"));
    }
    // Whoever asks whether a tap writes it holds it for a moment, too.
    let free = (0..5).any(|n| {
        std::thread::sleep(std::time::Duration::from_millis(10 * n.min(1)));
        flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
    });
    if !free {
        return Ok(None);
    }
    if file.metadata().is_ok_and(|m| m.is_file()) {
        use std::os::unix::fs::PermissionsExt;
        // A file that was there may be readable by others; somebody else's can't be changed, only used.
        file.set_permissions(std::fs::Permissions::from_mode(0o600)).ok();
    }
    // A run that was killed may have left a torn line.
    let mut last = [b'\n'];
    if file.seek(SeekFrom::End(-1)).is_ok() && file.read(&mut last).is_ok() && last != [b'\n'] {
        // A full disk shows again with the first line, as a gap.
        file.write_all(b"\n").ok();
    }
    Ok(Some(Place { path: path.to_owned(), file }))
}

/// An empty file, one that begins as a recording does (also one of which only the begin of the first line was written),
/// or no file at all (a pipe, a device).
fn may_be_ours(file: &mut File) -> bool {
    const BEGIN: &[u8] = br#"{"redial":"recording","#;
    if !file.metadata().is_ok_and(|m| m.is_file()) {
        return true;
    }
    let mut head = Vec::new();
    let read = file
        .seek(SeekFrom::Start(0))
        .and_then(|_| Read::by_ref(file).take(BEGIN.len() as u64).read_to_end(&mut head));
    let first = head.split(|b| *b == b'\n').next().unwrap_or_default();
    let ours = BEGIN.starts_with(first) && (!first.is_empty() || head.is_empty());
    read.is_ok() && (ours || head.starts_with(br#"{"seq":"#))
}

fn in_folder(folder: &Path, server: &str, now: Time) -> Result<Place> {
    if !folder.as_os_str().is_empty() && !folder.is_dir() {
        let make = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        make.map_err(|e| failed(folder, &e))?;
    }
    for n in 0..100 {
        let path = folder.join(file_name(server, now, n));
        match OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => {
                // Nobody else can hold a file that was made just now.
                flock(&file, FlockOperation::NonBlockingLockExclusive).ok();
                return Ok(Place { path, file });
            }
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(failed(&path, &e)),
        }
    }
    Err(Error::usage(format!("{} has too many recordings of this moment", folder.display())))
}

/// `20261129-025710-tickets.jsonl`: by time (UTC) and server.
fn file_name(server: &str, now: Time, n: u32) -> String {
    let time: String = now.rfc3339().chars().filter(char::is_ascii_digit).take(14).collect();
    let (day, clock) = time.split_at(time.len().min(8));
    let more = if n == 0 { String::new() } else { format!("-{n}") };
    format!("{day}-{clock}-{server}{more}.jsonl")
}

/// Whether a file was named by [`file_name`]: only those are ever deleted.
fn is_ours(name: &str) -> bool {
    let b = name.as_bytes();
    let digits =
        |from: usize, to: usize| b.get(from..to).is_some_and(|d| d.iter().all(u8::is_ascii_digit));
    digits(0, 8)
        && b.get(8) == Some(&b'-')
        && digits(9, 15)
        && b.get(15) == Some(&b'-')
        && name.ends_with(".jsonl")
}

fn sweep(folder: &Path, keep: usize, current: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut ours: Vec<PathBuf> = entries
        .flatten()
        .filter(|e| e.file_name().to_str().is_some_and(is_ours))
        .map(|e| e.path())
        .filter(|p| p != current)
        .collect();
    ours.sort();
    let too_many = (ours.len() + 1).saturating_sub(keep);
    for old in ours.iter().take(too_many) {
        if crate::files::ordinary(old).is_err() {
            continue;
        }
        let Ok(file) = File::open(old) else { continue };
        // One that is still being written stays.
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            std::fs::remove_file(old).ok();
        }
    }
}

/// A short name of a server for file names: the program, or the script that an interpreter runs.
pub fn server_name(command: &[String]) -> String {
    const RUNNERS: [&str; 16] = [
        "python", "python3", "node", "npx", "bunx", "bun", "deno", "uv", "uvx", "pipx", "sh",
        "bash", "env", "tsx", "ruby", "docker",
    ];
    let base = |w: &String| {
        let name = w.rsplit('/').next().unwrap_or(w);
        let name = name.split('@').find(|p| !p.is_empty()).unwrap_or(name);
        ["py", "js", "mjs", "cjs", "ts", "rb", "sh"]
            .iter()
            .find_map(|e| name.strip_suffix(&format!(".{e}")))
            .unwrap_or(name)
            .to_owned()
    };
    let mut words = command.iter().filter(|w| !w.starts_with('-') && !w.contains('='));
    let first = words.next().map(base).unwrap_or_default();
    let is_runner = RUNNERS
        .contains(&first.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.'))
        || RUNNERS.contains(&first.as_str());
    // What a shell is told to do is no name.
    let is_script = command.get(1).is_some_and(|w| w == "-c" || w == "-e");
    let name = if is_runner && !is_script {
        words
            .find(|w| !matches!(w.as_str(), "run" | "tool" | "exec" | "x"))
            .map(base)
            .unwrap_or(first)
    } else {
        first
    };
    clean(&name)
}

/// Letters, digits, `-`, `_` and `.`, at most 40 of them.
pub fn clean(name: &str) -> String {
    let plain =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' });
    let name: String = plain.take(40).collect();
    let name = name.trim_matches(['-', '.']).to_owned();
    if name.is_empty() { "server".into() } else { name }
}

/// Where the path of the newest recording is remembered.
fn pointer() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
    let home = || std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".local/state"));
    Some(state.or_else(home)?.join("redial/latest"))
}

/// Remembers the recording that was begun last. Best effort: it is worth more than its being found as `latest`.
pub fn remember(path: &Path) {
    let (Some(to), Ok(path)) = (pointer(), std::path::absolute(path)) else { return };
    let write = || -> std::io::Result<()> {
        if let Some(dir) = to.parent() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        }
        let fresh = to.with_extension(std::process::id().to_string());
        let mut f =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
        f.write_all(std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()))?;
        std::fs::rename(&fresh, &to)
    };
    write().ok();
}

/// The file that a person means: a path, the newest recording in a folder, or `latest`, the one begun last.
///
/// # Errors
/// Exit 2 when there is none.
pub fn find(named: &Path) -> Result<PathBuf> {
    if named == Path::new("latest") && !named.exists() {
        let path = pointer().and_then(|p| crate::files::whole(&p, 64 << 10).ok()).map(|b| {
            PathBuf::from(<std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(b))
        });
        return path.filter(|p| p.exists()).ok_or_else(|| {
            Error::usage("there is no latest recording")
                .hint("name the file, or the folder given to `redial record --out`")
        });
    }
    let folder = match named.file_name() {
        _ if named.is_dir() => named,
        Some(n) if n == "latest" && !named.exists() => named.parent().unwrap_or(Path::new(".")),
        _ => return Ok(named.to_owned()),
    };
    let entries = std::fs::read_dir(folder)
        .map_err(|e| Error::usage(format!("{} can't be read: {e}", folder.display())))?;
    let newest = entries
        .flatten()
        .filter(|e| e.file_name().to_str().is_some_and(|n| n.ends_with(".jsonl")))
        .filter_map(|e| Some((e.metadata().ok()?.modified().ok()?, e.path())))
        .max();
    newest
        .map(|(_, p)| p)
        .ok_or_else(|| Error::usage(format!("{} holds no recording (*.jsonl)", folder.display())))
}

#[cfg(test)]
mod tests;
