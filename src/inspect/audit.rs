//! Opens a trace for the audit, in whatever form it has, and takes it in piece by piece: for a command that wants all
//! of it, and for a screen that follows it.

use crate::audit::fact::{At, Fact};
use crate::audit::items::Items;
use crate::audit::join::Row;
use crate::audit::{Audit, Contracts, Finding, Findings, Options, Reader, contract};
use crate::endpoints;
use crate::error::{Error, Result};
use crate::files;
use crate::judge::State;
use crate::judge::state::stored;
use crate::ledger::{Ledger, LedgerError};
use crate::record::place;
use crate::record::redact::{Extra, MASK, Rules};
use crate::recording::import::{Form, look};
use crate::recording::lines::Lines;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// How much of a list is read at once.
const PIECE: usize = 1 << 20;
/// The longest contracts file, in bytes.
const LONGEST: u64 = 1 << 20;

/// A trace that is being audited.
pub struct Trace {
    path: PathBuf,
    form: Form,
    lines: Lines,
    reader: Reader,
    items: Items,
    read_to: u64,
    options: Options,
    /// What it tells so far.
    pub audit: Audit,
    rules: Option<Rules>,
    /// The first line that was no good, when none was.
    first_bad: Option<String>,
}

impl Trace {
    /// Opens a file; nothing is read yet but its beginning. `latest` and folders are resolved.
    ///
    /// # Errors
    /// Exit 6 when it can't be read.
    pub fn open(named: &Path, options: Options) -> Result<Trace> {
        let path = place::find(named)?;
        let (lines, form) = look(&path)?;
        Ok(Trace {
            form,
            lines,
            reader: Reader::new(form),
            items: Items::default(),
            read_to: 0,
            audit: Audit::new(options.clone()),
            options,
            // Recordings are clean already; a pattern of ours always compiles.
            rules: Rules::new(Extra::default()).ok(),
            first_bad: None,
            path,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its form's word.
    pub fn form_word(&self) -> &'static str {
        match self.form {
            Form::Recording => "recording",
            Form::Neutral => "neutral",
            Form::Trace => "trace_list",
        }
    }

    /// Whether places in it are items of a list, and not lines.
    pub fn is_list(&self) -> bool {
        self.form == Form::Trace && self.read_to > 0
    }

    /// Takes one more piece in; whether there may be more. A file that was replaced is read anew.
    ///
    /// # Errors
    /// Exit 6 when it can't be read any more.
    pub fn advance(&mut self) -> Result<bool> {
        if self.form == Form::Trace && self.begins_as_list()? {
            return self.list();
        }
        let began_anew = self.lines.begins_anew().map_err(|e| failed(&self.path, &e))?;
        if began_anew {
            self.audit = Audit::new(self.options.clone());
            self.reader = Reader::new(self.form);
        }
        let Trace { lines, reader, audit, first_bad, .. } = self;
        let more = lines
            .read(|line| reader.line(line.number, line.bytes, &mut take(audit, first_bad)))
            .map_err(|e| failed(&self.path, &e))?;
        for bad in lines.take_bad() {
            let at = At { line: bad.line, ..At::default() };
            take(audit, first_bad)(at, Fact::Bad(bad.why));
        }
        Ok(more)
    }

    fn begins_as_list(&mut self) -> Result<bool> {
        if self.read_to > 0 {
            return Ok(true);
        }
        let head = self.lines.at(0, 4096).map_err(|e| failed(&self.path, &e))?;
        let head = head.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&head);
        Ok(head.trim_ascii_start().first() == Some(&b'['))
    }

    fn list(&mut self) -> Result<bool> {
        let piece = self.lines.at(self.read_to, PIECE).map_err(|e| failed(&self.path, &e))?;
        self.read_to += piece.len() as u64;
        let Trace { items, reader, audit, first_bad, .. } = self;
        items.feed(&piece, &mut |number, bytes| {
            if bytes.is_empty() {
                let at = At { line: number, ..At::default() };
                take(audit, first_bad)(at, Fact::Bad("an empty item".into()));
            } else {
                reader.line(number, bytes, &mut take(audit, first_bad));
            }
        });
        Ok(!piece.is_empty())
    }

    /// Takes all of it in, its last line too where it has no end and nobody writes on it.
    ///
    /// # Errors
    /// Exit 6 when it can't be read, or is no trace at all.
    pub fn whole(&mut self) -> Result<()> {
        while self.advance()? {}
        if let Some((line, why)) = self.items.unfinished() {
            let at = At { line, ..At::default() };
            take(&mut self.audit, &mut self.first_bad)(at, Fact::Bad(why.into()));
        }
        if let Some((number, len)) = self.lines.unfinished()
            && !self.lines.is_held()
        {
            let from = self.lines.read_to().saturating_sub(len as u64);
            let bytes = self.lines.at(from, len).map_err(|e| failed(&self.path, &e))?;
            let Trace { reader, audit, first_bad, .. } = self;
            reader.line(number, &bytes, &mut take(audit, first_bad));
        }
        if self.audit.events == 0 && self.first_bad.is_some() {
            let why = self.first_bad.take().unwrap_or_default();
            return Err(Error::ledger(format!("{} is no trace: {why}", self.path.display()))
                .hint("a trace is what `redial record` writes, a list [{tool, arguments, result}], or lines {t, dir, msg}"));
        }
        if self.audit.events == 0 && self.lines.is_empty() && self.read_to == 0 {
            return Err(Error::ledger(format!(
                "{} is empty: there is nothing to audit",
                self.path.display()
            )));
        }
        Ok(())
    }

    /// What was found, without secrets.
    pub fn findings(&self) -> (Vec<Finding>, Findings) {
        let all = self.audit.findings();
        let list = all.list().iter().cloned().map(|f| self.clean(f)).collect();
        (list, all)
    }

    /// Whether values under this name are to be hidden: in a recording they are already.
    pub fn is_secret(&self, name: &str) -> bool {
        self.form != Form::Recording && self.rules.as_ref().is_some_and(|r| r.is_secret_name(name))
    }

    /// A trace of other programs may hold credentials.
    fn clean(&self, mut f: Finding) -> Finding {
        let Some(rules) = self.rules.as_ref().filter(|_| self.form != Form::Recording) else {
            return f;
        };
        if f.handle.as_deref().is_some_and(|h| rules.is_secret_name(h))
            && let Some(v) = f.value.take()
        {
            f.message = f.message.replace(&v, MASK);
            f.value = Some(MASK.into());
        }
        if let (Cow::Owned(m), _) = rules.text(&f.message) {
            f.message = m;
        }
        if let Some(v) = &f.value
            && let (Cow::Owned(v), _) = rules.text(v)
        {
            f.value = Some(v);
        }
        f
    }
}

fn failed(path: &Path, e: &std::io::Error) -> Error {
    Error::ledger(format!("{} can't be read: {e}", path.display()))
}

/// Folds a fact in, and keeps the first thing that could not be read.
fn take<'a>(audit: &'a mut Audit, first: &'a mut Option<String>) -> impl FnMut(At, Fact<'_>) + 'a {
    |at, fact| {
        if let Fact::Bad(why) = &fact {
            first.get_or_insert_with(|| format!("line {}: {why}", at.line));
        }
        audit.apply(at, fact);
    }
}

/// The contracts of a file, or of the `contracts.toml` beside the nearest `.mcp.json` of `here`, with where they are.
///
/// # Errors
/// Exit 2 when a named file can't be read, or what it says is wrong.
pub fn contracts(named: Option<&Path>, here: &Path) -> Result<Option<(PathBuf, Contracts)>> {
    let path = match named {
        Some(p) => p.to_owned(),
        None => {
            let beside = here.ancestors().find(|f| f.join(endpoints::FILE).is_file());
            match beside.map(|f| f.join(contract::FILE)).filter(|p| p.is_file()) {
                Some(p) => p,
                None => return Ok(None),
            }
        }
    };
    let wrong = |why: String| Error::usage(format!("{} can't be read: {why}", path.display()));
    let bytes = files::whole(&path, LONGEST).map_err(|e| wrong(e.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|e| {
        wrong(format!("it is no text in UTF-8 (byte {})", e.utf8_error().valid_up_to() + 1))
    })?;
    // Proposals of which nobody has agreed to one yet: not asked for by name, the file says nothing.
    let says_nothing = |l: &str| l.trim().is_empty() || l.trim_start().starts_with('#');
    if named.is_none() && text.lines().all(says_nothing) {
        return Ok(None);
    }
    let contracts = Contracts::parse(&path.display().to_string(), &text)?;
    Ok(Some((path, contracts)))
}

/// request_ids that the ledger is asked about in one look.
const AT_ONCE: usize = 200;

/// Joins the trace's calls to the rows of a ledger; what there is to say about that.
///
/// # Errors
/// Exit 6 when the ledger can't be read.
pub async fn join(audit: &mut Audit, ledger: &Ledger) -> Result<Vec<String>> {
    let requests = audit.requests();
    let mut several = 0;
    for some in requests.chunks(AT_ONCE) {
        let ids = some.to_vec();
        let rows = ledger
            .read_async(move |r| {
                ids.iter()
                    .map(|id| {
                        let row = r.row(id)?;
                        if row.as_ref().is_some_and(|row| !row.is_meant()) {
                            return Ok(None);
                        }
                        let effects = match &row {
                            Some(row) => row.effects.len(),
                            None => r.effects_of(id)?.len(),
                        };
                        Ok(Some(Row {
                            done: row
                                .as_ref()
                                .is_some_and(|row| stored(&row.status) == State::Done),
                            status: row.map(|row| row.status),
                            effects: effects as u64,
                        }))
                    })
                    .collect::<std::result::Result<Vec<Option<Row>>, LedgerError>>()
            })
            .await?;
        for (id, row) in some.iter().zip(&rows) {
            match row {
                Some(row) => audit.join(id, row),
                None => several += 1,
            }
        }
    }
    let mut said = Vec::new();
    if requests.is_empty() {
        said.push(
            "no call of this trace has a request_id: there is nothing to join the ledger to".into(),
        );
    }
    if several > 0 {
        said.push(format!(
            "{several} of its request_ids have several rows in the ledger: which is meant can't be told, so they are not joined"
        ));
    }
    if audit.requests_dropped() > 0 {
        said.push(format!(
            "the ledger was asked about the newest {} request_ids; {} older ones were let go",
            requests.len(),
            audit.requests_dropped()
        ));
    }
    Ok(said)
}
