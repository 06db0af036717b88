use super::*;

#[test]
fn names_are_short_and_safe() {
    let name = |c: &[&str]| server_name(&c.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>());
    assert_eq!(name(&["/usr/bin/redial", "serve"]), "redial");
    assert_eq!(name(&["python3", "-u", "/srv/ticket server.py"]), "ticket-server");
    assert_eq!(
        name(&["npx", "-y", "@modelcontextprotocol/server-everything@1.0"]),
        "server-everything"
    );
    assert_eq!(name(&["uv", "run", "x.py"]), "x");
    assert_eq!(name(&["sh", "-c", "exec /srv/x secret"]), "sh");
    assert_eq!(name(&["../../..", "a"]), "server");
    assert_eq!(name(&[]), "server");
}

#[test]
fn a_folder_keeps_the_newest_and_touches_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("notes.jsonl"), "").unwrap();
    let mut held = Vec::new();
    for n in 0..5 {
        let place = open(dir.path(), "s", Some(2), Time(n * 1_000_000)).unwrap();
        if n == 0 {
            held.push(place.file); // still being written
        }
    }
    let mut names: Vec<String> = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names.len(), 4, "{names:?}");
    assert!(names.contains(&"notes.jsonl".into()) && names[0].starts_with("19700101-000000"));
    assert!(names.iter().any(|n| n.starts_with("19700101-000004")));
}

#[test]
fn two_taps_on_one_file_get_two_files_and_a_torn_end_is_closed() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r.jsonl");
    std::fs::write(&path, "{\"redial\"").unwrap();
    let first = open(&path, "s", None, Time(0)).unwrap();
    let second = open(&path, "s", None, Time(0)).unwrap();
    assert_eq!(first.path, path);
    assert_ne!(second.path, path);
    assert_eq!(std::fs::read(&path).unwrap(), b"{\"redial\"\n");
    let mode = std::fs::metadata(&second.path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // What is no recording is not touched.
    let script = dir.path().join("script.sh");
    std::fs::write(&script, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert!(open(&script, "s", None, Time(0)).is_err());
    let mode = std::fs::metadata(&script).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
    assert_eq!(std::fs::read(&script).unwrap(), b"#!/bin/sh\n");
    assert!(open(Path::new("/no/such/folder/r.jsonl"), "s", None, Time(0)).is_err());
    drop(first);
}
