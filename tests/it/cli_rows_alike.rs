//! Ledgers whose ids are not what the reference has: several rows with one id, columns that compare in their own way,
//! views, tables without rowid. Nothing is charged to a row that may be another's.

use crate::support::cli::{FakeStdio, redial};
use std::path::Path;

const COLUMNS: &str = "args_hash TEXT, status TEXT, result TEXT, owner TEXT, claimed_at REAL";

fn ledger(dir: &Path, sql: &str) -> String {
    let path = dir.join("ledger.db");
    rusqlite::Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    path.to_str().unwrap().to_owned()
}

/// acme's order-1 is done, globex's runs; one ticket carries the id.
const TENANTS: &str = "
    CREATE TABLE requests(request_id TEXT NOT NULL, tenant TEXT NOT NULL, args_hash TEXT, status TEXT, result TEXT,
      owner TEXT, claimed_at REAL, PRIMARY KEY(tenant, request_id));
    INSERT INTO requests VALUES('order-1','acme','h1','done','{}','9',100),('order-1','globex','h2','running',NULL,'10',200),
      ('order-2','acme','h3','done','{}','9',300);";

#[test]
fn rows_with_one_id_are_told_everywhere_and_an_effect_is_charged_to_none() {
    let dir = tempfile::tempdir().unwrap();
    let sql = format!(
        "{TENANTS} CREATE TABLE tickets(ticket_id INTEGER PRIMARY KEY, request_id TEXT, title TEXT);
         INSERT INTO tickets VALUES(1,'order-1','a'),(2,'order-2','c');"
    );
    let l = ledger(dir.path(), &sql);
    let rows = redial(&["rows", "--ledger", &l]);
    rows.expect(0, &["order-1 (tenant=acme)", "order-1 (tenant=globex)", "several rows"]);
    // Each of the steps says whose it is, and no place in the table is called a time.
    let cut = redial(&["rows", "--limit", "2", "--ledger", &l]);
    cut.expect(0, &["\norder-1 (tenant=globex)\n", "… and more (--limit N)"]);
    assert!(!cut.all().contains("newest"), "{}", cut.all());
    let find = redial(&["find", "order-1", "--ledger", &l]);
    find.expect(
        0,
        &["2 rows have this request_id", "tenant acme", "tenant globex", "1 effect carries it"],
    );
    let verify = redial(&["verify", "--expect-total", "2", "--ledger", &l]);
    verify.expect(1, &["several rows", "order-1 has 2 rows", "a row of order-1 is abandoned"]);
    let named = redial(&["find", "order-1", "--row", "tenant=globex", "--ledger", &l]);
    named.expect(0, &["tenant=globex was named: a server that looks at another one"]);
    assert!(!named.all().contains("say which is meant"), "{}", named.all());
    for ran in [&rows, &find, &verify] {
        let all = ran.all();
        for wrong in ["done without effect", "with effect", "exactly once: "] {
            assert!(!all.contains(wrong) || all.contains("NOT exactly once: "), "{wrong}: {all}");
        }
        assert!(
            !all.contains("done without effect") && !all.contains("abandoned with effect"),
            "{all}"
        );
    }
    let doc = redial(&["find", "order-1", "--json", "--row", "tenant=acme", "--ledger", &l]);
    assert_eq!(doc.get(&["ledger", "told_by", "tenant"]), "\"acme\"");
    assert_eq!(doc.doc()["rows"].as_array().unwrap().len(), 2);

    let server = FakeStdio::new();
    server.tools(r#"[{"name":"t","inputSchema":{"properties":{"request_id":{"type":"string"}}}}]"#);
    let reissue = ["reissue", "order-1", "--args", "{}", "--ledger", &l, "--confirm", "order-1"];
    server.run(&reissue).expect(2, &["2 rows have", "nothing was sent", "--row tenant=acme"]);
    server
        .run(&["call", "t", "--args", r#"{"request_id":"order-1"}"#, "--ledger", &l])
        .expect(2, &["2 rows have", "nothing was sent"]);
    assert_eq!(server.calls(), 0);
    let chosen = [&reissue[..], &["--row", "tenant=globex", "--timeout", "0.2"]].concat();
    server.run(&chosen);
    assert_eq!(server.calls(), 1);
}

#[test]
fn rows_alike_in_all_but_their_tenant_have_versions_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let sql = format!(
        "CREATE TABLE requests(request_id TEXT, tenant TEXT, {COLUMNS}, PRIMARY KEY(tenant, request_id));
         INSERT INTO requests VALUES('o','acme',NULL,'running',NULL,'A',1),('o','globex',NULL,'running',NULL,'A',1);"
    );
    let l = ledger(dir.path(), &sql);
    let doc = redial(&["find", "o", "--json", "--ledger", &l]).doc();
    let version = |i: usize| doc["rows"][i]["row_version"].as_str().unwrap().to_owned();
    assert_ne!(version(0), version(1));
    let server = FakeStdio::new();
    server.tools(r#"[{"name":"t","inputSchema":{"properties":{"request_id":{"type":"string"}}}}]"#);
    let tenant = format!("tenant={}", doc["rows"][0]["told_by"]["tenant"].as_str().unwrap());
    for (version, exit) in [(version(1), 3), (version(0), 4)] {
        let args = ["reissue", "o", "--args", "{}", "--ledger", &l, "--confirm", "o", "--timeout"];
        let row = ["0.2", "--row", &tenant, "--if-row", &version];
        server.run(&[&args[..], &row].concat()).expect(exit, &[]);
    }
    assert_eq!(server.calls(), 1);
}

#[test]
fn effects_that_name_the_tenant_are_each_rows_own() {
    let dir = tempfile::tempdir().unwrap();
    let sql = format!(
        "{TENANTS} CREATE TABLE tickets(ticket_id INTEGER PRIMARY KEY, request_id TEXT, tenant TEXT, title TEXT);
         INSERT INTO tickets VALUES(1,'order-1','acme','a'),(2,'order-2','acme','c'),(3,'order-1','globex','d');
         UPDATE requests SET status = 'done';"
    );
    let l = ledger(dir.path(), &sql);
    redial(&["verify", "--ledger", &l])
        .expect(0, &["exactly once: 3 requests, 3 effects", "several rows"]);
    let rows = redial(&["rows", "--json", "--ledger", &l]);
    for row in rows.doc()["rows"].as_array().unwrap() {
        assert_eq!(row["effects"], 1, "{row}");
    }
    let conn = rusqlite::Connection::open(&l).unwrap();
    conn.execute_batch("INSERT INTO tickets VALUES(4,'order-1','globex','d')").unwrap();
    redial(&["verify", "--ledger", &l]).expect(1, &["duplicate effect"]);
    conn.execute_batch("DELETE FROM tickets WHERE tenant = 'globex'").unwrap();
    redial(&["verify", "--ledger", &l]).expect(1, &["done without effect"]);
}

#[test]
fn rows_that_nothing_tells_apart_have_their_place() {
    let dir = tempfile::tempdir().unwrap();
    let sql = format!(
        "CREATE TABLE requests(request_id TEXT, {COLUMNS});
         INSERT INTO requests VALUES('r',NULL,'done',NULL,'A',1),('r',NULL,'done',NULL,'A',1),('s',NULL,'done',NULL,'A',1)"
    );
    let l = ledger(dir.path(), &sql);
    redial(&["find", "r", "--ledger", &l]).expect(0, &["2 rows have", "rowid 1", "rowid 2"]);
    redial(&["find", "s", "--ledger", &l]).expect(0, &["finished"]);
    assert!(!redial(&["find", "s", "--ledger", &l]).all().contains("rows have"));
    redial(&["verify", "--ledger", &l]).expect(1, &["r has 2 rows"]);
}

#[test]
fn a_key_lets_null_repeat_and_null_is_no_empty_text() {
    let dir = tempfile::tempdir().unwrap();
    let sql = format!(
        "CREATE TABLE requests(request_id TEXT, tenant TEXT, {COLUMNS}, UNIQUE(tenant, request_id));
         CREATE TABLE tickets(ticket_id INTEGER PRIMARY KEY, request_id TEXT, tenant TEXT, title TEXT);
         INSERT INTO requests VALUES('o',NULL,NULL,'done','{{}}','9',1),('o','',NULL,'done','{{}}','9',2),
           ('n',NULL,NULL,'done','{{}}','9',3),('n',NULL,NULL,'done','{{}}','9',4);
         INSERT INTO tickets VALUES(1,'o',NULL,'a'),(2,'o','','b'),(3,'n',NULL,'c'),(4,'n',NULL,'d');"
    );
    let l = ledger(dir.path(), &sql);
    let rows = redial(&["rows", "--ledger", &l]);
    rows.expect(0, &["o (tenant=NULL)", "o (tenant=)", "n (rowid=3)", "2 effects carry it"]);
    let verify = redial(&["verify", "--ledger", &l]);
    verify.expect(1, &["can't say whether exactly once"]);
    for ran in [rows, verify] {
        assert!(!ran.all().contains("duplicate") && !ran.all().contains("without effect"));
    }
}

#[test]
fn what_is_said_of_a_row_must_be_so_of_one() {
    let dir = tempfile::tempdir().unwrap();
    let sql = format!(
        "CREATE TABLE requests(request_id TEXT, method TEXT, path TEXT, {COLUMNS}, UNIQUE(request_id, method, path));
         INSERT INTO requests VALUES('o','POST','/a',NULL,'done',NULL,'9',1),('o','POST','/b',NULL,'done',NULL,'9',2),
           ('o','PUT','/a',NULL,'done',NULL,'9',3),('q','PUT','/a',NULL,'done',NULL,'9',4);"
    );
    let l = ledger(dir.path(), &sql);
    let find = |id: &str, row: &[&str]| {
        let mut args = vec!["find", id, "--ledger", &l];
        row.iter().for_each(|r| args.extend(["--row", r]));
        redial(&args)
    };
    find("o", &["method=POST"]).expect(2, &["2 rows of this request_id have method=POST"]);
    find("o", &["method=POST", "path=/a"]).expect(0, &["the one that was named"]);
    find("o", &["METHOD=PUT"]).expect(0, &["the one that was named"]);
    find("q", &["method=PUT"]).expect(0, &["finished"]);
    for (id, row) in [("q", "method=POST"), ("q", "colour=red"), ("gone", "method=PUT")] {
        find(id, &[row]).expect(2, &["no row of this request_id has"]);
    }
    find("q", &["method"]).expect(2, &["a column and its value are wanted"]);
    let server = FakeStdio::new();
    server.tools(r#"[{"name":"t","inputSchema":{"properties":{"request_id":{"type":"string"}}}}]"#);
    let reissue = ["reissue", "o", "--args", "{}", "--ledger", &l, "--confirm", "o"];
    server.run(&reissue).expect(2, &["--row method=PUT --row path=/a or"]);
    let other =
        ["reissue", "q", "--args", "{}", "--ledger", &l, "--confirm", "q", "--row", "method=POST"];
    server.run(&other).expect(2, &["no row of this request_id has", "nothing was sent"]);
    assert_eq!(server.calls(), 0);
}

#[test]
fn many_rows_of_one_id_are_all_told_as_that() {
    let dir = tempfile::tempdir().unwrap();
    let sql = format!(
        "CREATE TABLE requests(request_id TEXT, {COLUMNS});
         CREATE TABLE tickets(ticket_id INTEGER PRIMARY KEY, request_id TEXT, title TEXT);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 12000)
           INSERT INTO requests SELECT 'one', NULL, 'done', NULL, '9', i FROM n;
         INSERT INTO requests VALUES('two',NULL,'done',NULL,'9',0),('two',NULL,'done',NULL,'9',0);
         INSERT INTO tickets VALUES(1,'one','x');"
    );
    let l = ledger(dir.path(), &sql);
    redial(&["find", "one", "--ledger", &l]).expect(0, &["12000 rows have", "1 effect carries it"]);
    let all = redial(&["rows", "--limit", "12002", "--ledger", &l]).all();
    assert!(!all.contains("without effect") && all.contains("one (rowid=1)"));
}

#[test]
fn text_and_bytes_that_read_alike_are_two_rows_with_one_id() {
    let dir = tempfile::tempdir().unwrap();
    let sql = format!(
        "CREATE TABLE requests(request_id BLOB PRIMARY KEY, {COLUMNS});
         INSERT INTO requests VALUES(x'6162',NULL,'running',NULL,'A',1),('ab',NULL,'done',NULL,'A',1);"
    );
    let l = ledger(dir.path(), &sql);
    redial(&["find", "ab", "--ledger", &l]).expect(0, &["2 rows have this request_id"]);
}

#[test]
fn ids_are_compared_byte_by_byte_whatever_the_column_says() {
    for column in
        ["TEXT COLLATE NOCASE", "TEXT COLLATE RTRIM", "TEXT PRIMARY KEY COLLATE NOCASE", "BLOB", ""]
    {
        let dir = tempfile::tempdir().unwrap();
        let sql = format!(
            "CREATE TABLE requests(request_id {column}, {COLUMNS});
             CREATE TABLE tickets(ticket_id TEXT PRIMARY KEY, request_id {}, title TEXT);
             INSERT INTO requests VALUES('Aa',NULL,'done',NULL,'A',1),('b',NULL,'done',NULL,'A',1);
             INSERT INTO tickets VALUES('T1','aa','x'),('T2','b  ','y')",
            column.replace(" PRIMARY KEY", "")
        );
        let l = ledger(dir.path(), &sql);
        for (id, exit) in [("Aa", 0), ("aa", 1), ("b", 0), ("b  ", 1), ("B", 1)] {
            redial(&["find", id, "--ledger", &l]).expect(exit, &[]);
        }
        let verify = redial(&["verify", "--ledger", &l]);
        verify.expect(1, &["2 done without effect, 2 effects without request"]);
    }
}

#[test]
fn a_collation_that_only_the_server_knows_is_no_reason_to_read_nothing() {
    for table in ["", "WITHOUT ROWID"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger.db");
        let conn = rusqlite::Connection::open(&path).unwrap();
        conn.create_collation("backwards", |a, b| b.cmp(a)).unwrap();
        conn.execute_batch(&format!(
            "CREATE TABLE requests(request_id TEXT COLLATE backwards PRIMARY KEY, {COLUMNS}) {table};
             CREATE TABLE tickets(ticket_id TEXT PRIMARY KEY, request_id TEXT COLLATE backwards UNIQUE, title TEXT);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 300)
             INSERT INTO requests SELECT 'r-' || i, NULL, 'done', NULL, 'A', i FROM n;
             INSERT INTO tickets SELECT 'T' || request_id, request_id, 't' FROM requests;"
        ))
        .unwrap();
        drop(conn);
        let l = path.to_str().unwrap();
        redial(&["verify", "--ledger", l]).expect(0, &["exactly once: 300 requests, 300 effects"]);
        for id in ["r-1", "r-150", "r-300"] {
            redial(&["find", id, "--ledger", l]).expect(0, &["finished"]);
        }
    }
}

#[test]
fn a_view_is_read_like_a_table() {
    let dir = tempfile::tempdir().unwrap();
    let l = ledger(
        dir.path(),
        "CREATE TABLE jobs(id TEXT PRIMARY KEY, state INT, owner TEXT, at REAL) WITHOUT ROWID;
         CREATE TABLE made(n INTEGER PRIMARY KEY, job TEXT, what TEXT);
         CREATE VIEW requests AS SELECT id AS request_id, NULL AS args_hash, CASE state WHEN 2 THEN 'done' ELSE 'running' END AS status,
           NULL AS result, owner, at AS claimed_at FROM jobs;
         CREATE VIEW tickets AS SELECT n AS ticket_id, job AS request_id, what AS title FROM made;
         CREATE VIEW running AS SELECT request_id, owner FROM requests WHERE status = 'running';
         CREATE VIEW broken AS SELECT * FROM gone;
         INSERT INTO jobs VALUES('a',2,'A',1),('b',2,'A',1),('c',2,'A',1);
         INSERT INTO made VALUES(1,'a','x'),(2,'b','y'),(3,'c','z');",
    );
    redial(&["verify", "--ledger", &l]).expect(0, &["exactly once: 3 requests, 3 effects"]);
    redial(&["find", "b", "--ledger", &l]).expect(0, &["finished", "1 ticket: 2"]);
    // A view of the requests is no effect of theirs.
    let dir = tempfile::tempdir().unwrap();
    let l = ledger(
        dir.path(),
        &format!(
            "CREATE TABLE requests(request_id TEXT PRIMARY KEY, {COLUMNS});
             CREATE VIEW open AS SELECT request_id, owner FROM requests WHERE status <> 'done';
             INSERT INTO requests VALUES('a',NULL,'running',NULL,'A',1);"
        ),
    );
    let ran = redial(&["rows", "--ledger", &l]);
    ran.expect(0, &["a"]);
    assert!(!ran.all().contains("with effect"), "{}", ran.all());
}

#[test]
fn an_empty_id_is_found_like_every_id_that_a_list_shows() {
    let dir = tempfile::tempdir().unwrap();
    let sql = format!(
        "CREATE TABLE requests(request_id TEXT PRIMARY KEY, {COLUMNS});
         INSERT INTO requests VALUES('',NULL,'done',NULL,'A',1),('k',NULL,'done',NULL,'A',2);"
    );
    let l = ledger(dir.path(), &sql);
    redial(&["find", "", "--ledger", &l]).expect(0, &["finished"]);
    redial(&["find", "--id=", "--ledger", &l]).expect(0, &["\"\"\n", "finished"]);
    redial(&["rows", "--ledger", &l]).expect(0, &["  \"\"  "]);
    let conn = rusqlite::Connection::open(&l).unwrap();
    conn.execute_batch("INSERT INTO requests VALUES(NULL,NULL,'running',NULL,'A',1)").unwrap();
    redial(&["find", "", "--ledger", &l]).expect(0, &["2 rows have this request_id"]);
    let server = FakeStdio::new();
    server.run(&["find", "", "--ledger", &l]).expect(2, &["the request_id is empty"]);
    // A call that has none is no repeat of it.
    server.tools(r#"[{"name":"t","inputSchema":{"properties":{}}}]"#);
    server.run(&["call", "t", "--args", "{}", "--ledger", &l, "--timeout", "0.2"]);
    assert_eq!(server.calls(), 1);
}

#[test]
fn a_number_and_its_text_are_one_id_as_the_server_joins_them() {
    for (column, id) in [("INTEGER", "5"), ("REAL", "5"), ("REAL", "1e300"), ("REAL", "1.5")] {
        let dir = tempfile::tempdir().unwrap();
        let sql = format!(
            "CREATE TABLE requests(request_id {column} PRIMARY KEY, {COLUMNS});
             CREATE TABLE tickets(ticket_id INTEGER PRIMARY KEY, request_id TEXT, title TEXT);
             INSERT INTO requests VALUES({id},NULL,'done',NULL,'A',1),(7,NULL,'done',NULL,'A',1);
             INSERT INTO tickets VALUES(1,CAST({id} AS REAL),'t'),(2,7,'u');"
        );
        let l = ledger(dir.path(), &sql);
        redial(&["verify", "--ledger", &l]).expect(0, &["exactly once: 2 requests, 2 effects"]);
        for asked in [id, "7"] {
            redial(&["find", asked, "--ledger", &l]).expect(0, &["finished", "1 ticket"]);
        }
    }
}
