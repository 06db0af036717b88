//! The lessons on the screen: one state, a pure [`update`], a loop of its own. The steps are done by the lab's class;
//! this only asks for them and shows what each side knows.

mod view;

use super::answer::{Answering, Worth};
use super::input::{self, Input, Typed};
use super::term::{self, Screen};
use super::theme::Theme;
use crate::error::{Error, Exit, Result};
use crate::keys::{Code, Key};
use crate::lab::class::{Class, Shown};
use crate::lab::lesson::{Act, LESSONS, Lesson, Step, Until};
use crate::lab::progress;
use crate::signals::Ends;
use ratatui::crossterm::event::Event;
use std::collections::BTreeSet;
use std::io;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

/// The whole state.
#[derive(Debug, Clone, Default)]
pub struct School {
    /// The lesson under the menu's cursor.
    pub at: usize,
    /// Names of finished lessons.
    pub finished: BTreeSet<String>,
    /// The lesson being played; none: the menu.
    pub playing: Option<Playing>,
    /// The person wants to go.
    pub quitting: bool,
    /// When a key is an answer.
    pub answering: Answering,
}

impl School {
    /// What a lesson asks for now, as a number; none in the menu.
    fn standing(&self) -> Option<u64> {
        let p = self.playing.as_ref()?;
        let over = u64::from(p.truth.is_some()) | u64::from(p.shown.too_late) << 1;
        Some((p.lesson as u64) << 32 | (p.step as u64) << 8 | over << 1 | u64::from(p.waiting))
    }
}

/// A lesson being played.
#[derive(Debug, Clone, Default)]
pub struct Playing {
    /// Which.
    pub lesson: usize,
    /// The step that comes next.
    pub step: usize,
    /// A step was asked for and isn't done.
    pub waiting: bool,
    /// What the person expects.
    pub guess: Option<u64>,
    /// What each side knows.
    pub shown: Shown,
    /// Effects when the last step was done: the lesson is over.
    pub truth: Option<u64>,
    /// A key that does nothing here was pressed.
    pub lost: bool,
}

impl Playing {
    /// What is played.
    pub fn lesson(&self) -> &'static Lesson {
        &LESSONS[self.lesson.min(LESSONS.len() - 1)]
    }

    /// Without steps: everything is allowed.
    pub fn is_free(&self) -> bool {
        self.lesson().steps.is_empty()
    }

    /// It is over, and the truth is what the lesson is about.
    pub fn is_true(&self) -> bool {
        self.truth.is_some_and(|n| n == self.lesson().effects)
    }

    /// The step that comes next.
    pub fn next(&self) -> Option<&'static Step> {
        self.lesson().steps.get(self.step)
    }
}

/// What comes in.
#[derive(Debug, Clone)]
pub enum Msg {
    /// A key.
    Key(Key),
    /// What comes next was typed then, together with more of it if it was `crowded`.
    Input { at: Duration, crowded: bool },
    /// A frame is on the screen.
    Drawn { at: Duration },
    /// So much time has passed, and nothing was typed.
    Quiet { at: Duration },
    /// The class shows something new.
    Shown(Shown),
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Open the stage of a lesson, in place of any other.
    Open(usize),
    /// End the lesson's processes.
    Close,
    /// Make a step happen.
    Do(Act, Until),
    /// A lesson was played to its end.
    Finished(&'static str),
}

/// The one way the state changes. Knows no clock and does nothing by itself.
pub fn update(school: &mut School, msg: Msg) -> Vec<Effect> {
    match (msg, school.playing.is_some()) {
        (Msg::Key(key), _) if key.ctrl && key.code == Code::Char('c') => {
            school.quitting = true;
            Vec::new()
        }
        (Msg::Key(key), false) => {
            school.answering.pressed(key);
            menu(school, key.code)
        }
        (Msg::Key(key), true) => {
            let worth = school.answering.worth(school.standing(), Some(key));
            school.answering.pressed(key);
            match (worth, key.code, school.standing()) {
                // Leaving is always heard.
                (_, Code::Esc | Code::Char('q'), _) | (Worth::Answer, ..) => {
                    lesson_key(school, key.code)
                }
                (Worth::Perhaps, _, Some(question)) => {
                    school.answering.hold(key, question);
                    Vec::new()
                }
                _ => Vec::new(),
            }
        }
        (Msg::Input { at, crowded }, _) => {
            school.answering.input(at, crowded);
            Vec::new()
        }
        (Msg::Drawn { at }, _) => {
            let question = school.standing();
            school.answering.drawn(question, at);
            Vec::new()
        }
        (Msg::Quiet { at }, _) => {
            let question = school.standing();
            let key = school.answering.take_held(question, at);
            key.map(|key| lesson_key(school, key.code)).unwrap_or_default()
        }
        (Msg::Shown(shown), _) => news(school, shown),
    }
}

fn menu(school: &mut School, code: Code) -> Vec<Effect> {
    let last = LESSONS.len() - 1;
    match code {
        Code::Char('q') => school.quitting = true,
        Code::Down | Code::Char('j') => school.at = (school.at + 1).min(last),
        Code::Up | Code::Char('k') => school.at = school.at.saturating_sub(1),
        Code::Char(c @ '1'..='9') if (c as usize - '1' as usize) <= last => {
            return open(school, c as usize - '1' as usize);
        }
        Code::Enter => return open(school, school.at),
        _ => {}
    }
    Vec::new()
}

/// Opens a lesson.
pub fn open(school: &mut School, lesson: usize) -> Vec<Effect> {
    school.at = lesson;
    school.playing = Some(Playing { lesson, ..Playing::default() });
    vec![Effect::Open(lesson)]
}

fn lesson_key(school: &mut School, code: Code) -> Vec<Effect> {
    let Some(p) = &mut school.playing else { return Vec::new() };
    p.lost = false;
    match code {
        Code::Char('q') => {
            school.quitting = true;
            return Vec::new();
        }
        Code::Esc => {
            school.playing = None;
            return vec![Effect::Close];
        }
        _ => {}
    }
    if p.shown.too_late {
        // It shows something else now: from the start, or nothing.
        return if code == Code::Enter { open(school, school.at) } else { Vec::new() };
    }
    if p.truth.is_some() {
        return match code {
            Code::Enter | Code::Char(' ') => match LESSONS.get(p.lesson + 1) {
                Some(_) => open(school, school.at + 1),
                None => Vec::new(),
            },
            _ => Vec::new(),
        };
    }
    let Code::Char(c) = code else { return Vec::new() };
    if p.is_free() {
        let act = Act::FREE.into_iter().find(|a| a.key() == c);
        p.lost = act.is_none();
        return act.map(|a| vec![Effect::Do(a, Until::Settled)]).unwrap_or_default();
    }
    match p.next() {
        _ if p.waiting => {}
        Some(Step::Do { act, until, .. }) if act.key() == c => {
            p.waiting = true;
            return vec![Effect::Do(*act, *until)];
        }
        Some(Step::Ask { .. }) if c.is_ascii_digit() => {
            p.guess = c.to_digit(10).map(u64::from);
            p.step += 1;
        }
        _ => p.lost = true,
    }
    Vec::new()
}

fn news(school: &mut School, shown: Shown) -> Vec<Effect> {
    let Some(p) = &mut school.playing else { return Vec::new() };
    // A question is a step of the lesson and none of the class.
    let asked = p.lesson().steps[..p.step.min(p.lesson().steps.len())]
        .iter()
        .filter(|s| matches!(s, Step::Ask { .. }))
        .count();
    let done = shown.done + asked > p.step;
    let failed = !shown.trouble.is_empty() && !shown.busy;
    if p.waiting && done && !p.is_free() {
        p.waiting = false;
        p.step += 1;
        if p.step == p.lesson().steps.len() {
            p.truth = Some(shown.effects.unwrap_or(0));
        }
    } else if p.waiting && failed {
        p.waiting = false;
    }
    p.shown = shown;
    if p.shown.too_late {
        p.waiting = false;
        return Vec::new();
    }
    if p.is_true() && school.finished.insert(p.lesson().name.to_owned()) {
        return vec![Effect::Finished(p.lesson().name)];
    }
    Vec::new()
}

/// Runs the lessons until a person quits or the program is told to end; the terminal is then given back. `first`: the
/// lesson to begin with; none: the menu.
///
/// # Errors
/// When there is no terminal, or a lesson's stage can't be made.
pub async fn run(first: Option<usize>, theme: Option<Theme>) -> Result<Exit> {
    let theme = match theme {
        Some(theme) => theme,
        None => super::theme::Themes::built_in()?.for_terminal(false).theme().clone(),
    };
    let no_terminal = |e: io::Error| Error::usage(format!("the terminal can't be used: {e}"));
    let size = signal(SignalKind::window_change()).map_err(no_terminal)?;
    let mut signals = (Ends::listen().map_err(no_terminal)?, size);
    let mut screen = Screen::enter().map_err(no_terminal)?;
    let done = turn(first, &theme, &mut screen, &mut signals).await;
    drop(screen);
    term::rethrow_panic();
    done.map(|()| Exit::Good)
}

async fn turn(
    first: Option<usize>,
    theme: &Theme,
    screen: &mut Screen,
    signals: &mut (Ends, tokio::signal::unix::Signal),
) -> Result<()> {
    let mut school = School { finished: progress::finished(), ..School::default() };
    let mut class: Option<Class> = None;
    let gone = |e: io::Error| Error::usage(format!("the terminal can't be used: {e}"));
    let mut input = Input::start().map_err(gone)?;
    let todo = first.map(|l| open(&mut school, l)).unwrap_or_default();
    carry_out(todo, &mut class)?;
    let began = Instant::now();
    let (ends, size) = signals;
    while !school.quitting {
        // A terminal that went away is a hang-up, not a fault.
        if screen.paint(|frame| view::view(&school, theme, frame)).is_err() {
            break;
        }
        update(&mut school, Msg::Drawn { at: began.elapsed() });
        let held = school.answering.held_until().map(|at| began + at);
        let news = async {
            if let Some(c) = class.as_mut()
                && c.shown.changed().await.is_ok()
            {
                return c.shown.borrow_and_update().clone();
            }
            std::future::pending().await
        };
        let msg = tokio::select! { biased;
            () = term::panicked() => break,
            _ = ends.next() => break,
            // No key comes with another size: it is painted anew.
            _ = size.recv() => {
                school.answering.unread();
                if screen.resized().is_err() {
                    break;
                }
                continue;
            }
            typed = input.next() => {
                let Some(Typed { event, at, crowded }) = typed else { break };
                if input::is_pressed(&event) {
                    let at = Instant::from_std(at) - began;
                    update(&mut school, Msg::Input { at, crowded });
                }
                match event {
                    Event::Key(event) => match Key::from_event(event) {
                        Some((key, _)) if key.ctrl && key.code == Code::Char('l') => {
                            school.answering.unread();
                            if screen.redraw().is_err() {
                                break;
                            }
                            continue;
                        }
                        Some((key, _)) => Msg::Key(key),
                        None => continue,
                    },
                    _ => continue,
                }
            },
            () = super::run::at(held), if held.is_some() => Msg::Quiet { at: began.elapsed() },
            shown = news => Msg::Shown(shown),
        };
        let todo = update(&mut school, msg);
        carry_out(todo, &mut class)?;
    }
    Ok(())
}

fn carry_out(todo: Vec<Effect>, class: &mut Option<Class>) -> Result<()> {
    for effect in todo {
        match effect {
            Effect::Open(lesson) => {
                *class = None;
                if let Some(lesson) = LESSONS.get(lesson) {
                    *class = Some(Class::open(lesson)?);
                }
            }
            Effect::Close => *class = None,
            Effect::Do(act, until) => {
                if let Some(class) = class {
                    class.act(act, until);
                }
            }
            // Not remembered is not a reason to stop a lesson.
            Effect::Finished(name) => drop(progress::finish(name)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second passes in which a person reads; then the key, and for a while no other.
    fn key(school: &mut School, code: Code) -> Vec<Effect> {
        let now = school.answering.now();
        update(school, Msg::Drawn { at: now });
        update(school, Msg::Input { at: now + Duration::from_secs(1), crowded: false });
        let mut todo = update(school, Msg::Key(Key::plain(code)));
        if let Some(at) = school.answering.held_until() {
            todo.extend(update(school, Msg::Quiet { at }));
        }
        todo
    }

    fn press(school: &mut School, keys: &str) -> Vec<Effect> {
        keys.chars().flat_map(|c| key(school, Code::Char(c))).collect()
    }

    #[test]
    fn a_held_key_neither_guesses_nor_does_a_step() {
        let mut s = School::default();
        press(&mut s, "1");
        let mut now = s.answering.now();
        for code in ['o'; 40] {
            update(&mut s, Msg::Drawn { at: now });
            now += Duration::from_millis(33);
            update(&mut s, Msg::Input { at: now, crowded: false });
            assert_eq!(update(&mut s, Msg::Key(Key::plain(Code::Char(code)))), []);
        }
        assert_eq!(press(&mut s, "o"), [Effect::Do(Act::Start, Until::Settled)]);
    }

    fn done(school: &mut School, done: usize, effects: u64) -> Vec<Effect> {
        update(school, Msg::Shown(Shown { done, effects: Some(effects), ..Shown::default() }))
    }

    #[test]
    fn a_lesson_goes_on_only_by_its_own_keys_and_asks_before_the_last_step() {
        let mut s = School::default();
        assert_eq!(press(&mut s, "1"), [Effect::Open(0)]);
        assert_eq!(press(&mut s, "x"), []);
        assert!(s.playing.as_ref().unwrap().lost);
        assert_eq!(press(&mut s, "o"), [Effect::Do(Act::Start, Until::Settled)]);
        assert_eq!(press(&mut s, "od"), [], "the step is still being done");
        done(&mut s, 1, 0);
        assert_eq!(press(&mut s, "d").len(), 1);
        done(&mut s, 2, 1);
        assert!(matches!(s.playing.as_ref().unwrap().next(), Some(Step::Ask { .. })));
        assert_eq!(press(&mut s, "n"), [], "first the question");
        assert_eq!(press(&mut s, "1"), []);
        assert_eq!(press(&mut s, "n"), [Effect::Do(Act::RetryNew, Until::Settled)]);
        assert_eq!(done(&mut s, 3, 2), [Effect::Finished("lost-answer")]);
        let p = s.playing.clone().unwrap();
        assert_eq!((p.guess, p.truth), (Some(1), Some(2)));
        assert_eq!(key(&mut s, Code::Enter), [Effect::Open(1)]);
    }

    #[test]
    fn a_lesson_that_shows_something_else_is_played_again_and_teaches_nothing() {
        let mut s = School::default();
        press(&mut s, "4o");
        done(&mut s, 1, 0);
        press(&mut s, "s");
        let late = Shown { done: 2, effects: Some(1), too_late: true, ..Shown::default() };
        assert_eq!(update(&mut s, Msg::Shown(late)), []);
        assert_eq!(press(&mut s, "krfa1"), [], "no further step means anything");
        assert_eq!(key(&mut s, Code::Enter), [Effect::Open(3)]);
        assert!(s.finished.is_empty());
        // Another count than the lesson is about: neither finished nor explained.
        let mut s = School::default();
        press(&mut s, "1o");
        done(&mut s, 1, 0);
        press(&mut s, "d");
        done(&mut s, 2, 1);
        press(&mut s, "2n");
        assert_eq!(done(&mut s, 3, 1), []);
        assert!(s.finished.is_empty() && !s.playing.as_ref().unwrap().is_true());
    }

    #[test]
    fn a_step_that_fails_can_be_tried_again_and_esc_goes_back_to_the_menu() {
        let mut s = School::default();
        press(&mut s, "4o");
        let trouble = Shown { trouble: "no".into(), ..Shown::default() };
        update(&mut s, Msg::Shown(trouble));
        assert_eq!(press(&mut s, "o"), [Effect::Do(Act::Start, Until::Settled)]);
        assert_eq!(key(&mut s, Code::Esc), [Effect::Close]);
        assert!(s.playing.is_none() && !s.quitting);
        press(&mut s, "q");
        assert!(s.quitting);
    }

    #[test]
    fn a_free_lesson_takes_all_its_keys_at_any_time() {
        let mut s = School::default();
        press(&mut s, "8");
        assert!(s.playing.as_ref().unwrap().is_free());
        assert_eq!(press(&mut s, "skrfanc").len(), 7);
    }
}
