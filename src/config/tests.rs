//! Files, environment and their order; what is refused, and how.

use super::*;

fn none(_: &str) -> Option<OsString> {
    None
}

#[test]
fn the_shipped_sample_equals_the_defaults() {
    let table = parse("sample", SAMPLE).unwrap();
    assert_eq!(Config::deserialize(table).unwrap(), Config::default());
    assert_eq!(Config::from(None, None, &none).unwrap(), Config::default());
    // What it shows commented out is right too, and every variable is named in it.
    let shown =
        SAMPLE.replace("# [", "[").replace("# idempotent", "idempotent").replace("# find", "find");
    let shown = shown.replace("\n[hints]", "").replace("\n[keys]", "");
    let config = Config::deserialize(parse("sample", &shown).unwrap()).unwrap();
    assert_eq!(config.hints["create_ticket"].idempotent, Some(true));
    assert_eq!(config.keys["main"]["find"], ["f", "f5"]);
    assert!(ENVIRONMENT.iter().all(|(name, _)| SAMPLE.contains(name)));
}

#[test]
fn the_environment_beats_the_project_beats_the_user() {
    let folder = tempfile::tempdir().unwrap();
    let (user, project) = (folder.path().join("config.toml"), folder.path().join("redial.toml"));
    std::fs::write(
        &user,
        "theme = \"light\"\nmouse = false\n[ledger]\nstale_seconds = 30.0\nowners = \"one\"",
    )
    .unwrap();
    std::fs::write(&project, "theme = \"mono\"\n[ledger]\nstale_seconds = 40.0").unwrap();
    let env = |n: &str| (n == "REDIAL_STALE_SECONDS").then(|| "50".into());
    let c = Config::from(Some(&user), Some(&project), &env).unwrap();
    assert_eq!((c.theme.as_str(), c.mouse, c.ledger.stale_seconds), ("mono", false, 50.0));
    assert_eq!(c.ledger.owners, "one");
    let gone = folder.path().join("nothing.toml");
    assert_eq!(Config::from(Some(&gone), None, &none).unwrap(), Config::default());
    assert_eq!(super::project(folder.path()), Some(project.clone()));
    let deep = folder.path().join("a/b");
    std::fs::create_dir_all(&deep).unwrap();
    assert_eq!(super::project(&deep), Some(project));
    std::fs::create_dir(folder.path().join("a/.git")).unwrap();
    assert_eq!(super::project(&deep), None);
}

#[test]
fn a_project_can_make_the_gate_stricter_and_not_milder() {
    let folder = tempfile::tempdir().unwrap();
    let (user, project) = (folder.path().join("config.toml"), folder.path().join("redial.toml"));
    std::fs::write(&user, "[hints.a]\nidempotent = true\n[hints.b]\nidempotent = true").unwrap();
    let hints =
        "[hints.a]\nidempotent = false\n[hints.b]\nidempotent = true\n[hints.c]\nread_only = true";
    std::fs::write(&project, hints).unwrap();
    let all = Config::from(Some(&user), Some(&project), &none).unwrap().hint_overrides();
    assert!(all["a"].project.not_idempotent && !all["a"].project.ignored);
    assert!(!all["b"].project.ignored && all["b"].idempotent == Some(true));
    assert!(all["c"].project.ignored && all["c"].read_only.is_none());
    std::fs::write(&user, "read_only = true").unwrap();
    std::fs::write(&project, "read_only = false").unwrap();
    assert!(Config::from(Some(&user), Some(&project), &none).unwrap().read_only);
}

#[test]
fn what_is_not_known_is_refused_with_the_nearest_right_one() {
    for (text, says) in [
        ("them = \"dark\"", "there is no key them; did you mean theme?"),
        ("[ledger]\nstale_second = 3", "no key ledger.stale_second; did you mean stale_seconds?"),
        ("[hints.x]\nidempotnt = true", "no key hints.x.idempotnt; did you mean idempotent?"),
        (
            "[keys.main]\nquti = [\"x\"]",
            "keys.main.quti: there is no such action; did you mean quit?",
        ),
        ("[keys.main]\nfind = [\"r\"]", "would mean two things"),
        ("mouse = 3", "invalid type"),
        ("theme = \"dark\"\nmouse = tru", "line 2"),
        ("[ledger]\nowners = \"few\"", "not auto, one or many"),
        ("[server]\ncall_seconds = -1.0", "not a number of seconds"),
        ("zzzzzzzz = 1", "there is no key zzzzzzzz"),
    ] {
        let e = parse("redial.toml", text).unwrap_err();
        assert!(e.what.starts_with("redial.toml: ") && e.what.contains(says), "{}", e.what);
    }
    let env = |n: &str| (n == "REDIAL_MOUSE").then(|| "maybe".into());
    let e = Config::from(None, None, &env).unwrap_err();
    assert!(e.what.contains("REDIAL_MOUSE"), "{}", e.what);
}

#[test]
fn whatever_has_the_name_of_the_file_is_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("redial.toml");
    let refused = |says: &str| {
        assert_eq!(super::project(folder.path()), Some(path.clone()));
        let e = Config::from(None, Some(&path), &none).unwrap_err();
        assert!(e.exit == crate::error::Exit::Usage && e.what.contains(says), "{}", e.what);
        let e = Config::from(Some(&path), None, &none).unwrap_err();
        assert!(e.what.contains(says), "{}", e.what);
    };
    std::fs::create_dir(&path).unwrap();
    refused("is a folder");
    std::fs::remove_dir(&path).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
    refused("is no ordinary file");
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("nowhere", &path).unwrap();
    refused("a link that leads nowhere");
    std::fs::remove_file(&path).unwrap();
    let mode = rustix::fs::Mode::from(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    refused("is no ordinary file");
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, b"theme = \"d\xffrk\"").unwrap();
    refused("no text in UTF-8: byte 11");
    std::fs::write(&path, vec![b'#'; LONGEST as usize + 1]).unwrap();
    refused("too large");
    std::fs::write(&path, "[record]\nredact_patterns = [\"(\"]").unwrap();
    refused("no regular expression");
    std::fs::write(&path, "[record]\nredact_keys = [\" - \"]").unwrap();
    refused("hides nothing");
}

#[test]
fn a_place_that_is_none_and_a_variable_that_is_nearly_ours_are_told() {
    let of = |name: &'static str, value: &'static str| {
        let told = environment::places(&|n: &str| (n == name).then(|| value.into()));
        told.map(|e| e.what).unwrap_or_default()
    };
    for home in ["/dev/null", "/nowhere/at/all", "here"] {
        assert!(of("HOME", home).contains("HOME"), "{home}");
    }
    assert_eq!((of("HOME", "/"), of("XDG_CONFIG_HOME", "/nowhere/at/all")), Default::default());
    assert!(of("XDG_CONFIG_HOME", "conf").contains("no absolute path"));
    let misspelt = |name: &str| environment::misspelt([OsString::from(name)].into_iter());
    for name in ["REDIAL_READONLY", "REDIAL_TEME", "redial_read_only", "REDIAL_STALE_SECOND"] {
        assert!(misspelt(name).unwrap_err().hint.is_some(), "{name}");
    }
    for name in ["REDIAL_READ_ONLY", "REDIAL_THEME", "REDIAL_SHOTS", "REDIAL_EXE", "REDIAL", "HOME"]
    {
        assert!(misspelt(name).is_ok(), "{name}");
    }
    use std::os::unix::ffi::OsStringExt;
    for name in ["REDIAL_REDACT_KEYS", "redial_redact_key", "REDIAL_RECORD_REDACT_PATHS"] {
        assert!(misspelt(name).unwrap_err().hint.unwrap().contains("--redact-key"), "{name}");
    }
    let bytes = OsString::from_vec(vec![0xff]);
    for (value, is_word) in [
        (None, true),
        (Some("1".into()), true),
        (Some("FALSE".into()), true),
        (Some("off".into()), true),
        (Some("garbage".into()), false),
        (Some("2".into()), false),
        (Some(" ".into()), false),
        (Some(bytes), false),
    ] {
        let told = environment::read_only(value.as_deref());
        assert_eq!(told.is_ok(), is_word, "{value:?}");
    }
    let bytes = |n: &str| (n == "REDIAL_MOUSE").then(|| OsString::from_vec(vec![0xff]));
    assert!(Config::from(None, None, &bytes).unwrap_err().what.contains("REDIAL_MOUSE"));
}

#[test]
fn a_project_binds_no_key_that_answers_a_question() {
    let folder = tempfile::tempdir().unwrap();
    let (user, project) = (folder.path().join("config.toml"), folder.path().join("redial.toml"));
    let keys = "[keys.reissue]\nsend-it = [\"s\"]\n";
    std::fs::write(&user, keys).unwrap();
    std::fs::write(&project, "[keys.main]\nfilter = [\"f7\"]\n").unwrap();
    let both = Config::from(Some(&user), Some(&project), &none).unwrap();
    assert_eq!(both.keys["reissue"]["send-it"], ["s"]);
    std::fs::write(&project, keys).unwrap();
    let e = Config::from(Some(&user), Some(&project), &none).unwrap_err();
    assert!(
        e.what.contains("redial.toml: keys.reissue.send-it: a project binds no key"),
        "{}",
        e.what
    );
}
