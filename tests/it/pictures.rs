//! The README's pictures: real frames, drawn by the program and written as SVG. `REDIAL_PICTURES=1 cargo test --test it
//! readme` writes them anew, and the README's table of keys with them; otherwise they are compared.

use crate::screens::draw;
use crate::support::night;
use crate::support::svg::svg;
use ratatui::layout::Rect;
use ratatui::text::Span;
use ratatui::widgets::Widget;
use redial::tui::App;
use std::path::Path;

fn compare(name: &str, app: &App, theme: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/{name}.svg"));
    // Times of day are shown in the local zone; a picture has to be the same in all.
    let mut buffer = draw(app, theme);
    for y in 0..buffer.area.height {
        for x in 0..buffer.area.width.saturating_sub(7) {
            let clock: String = (x..x + 8).map(|x| buffer[(x, y)].symbol().to_owned()).collect();
            let b = clock.as_bytes();
            let is_clock = b.len() == 8
                && b.iter().enumerate().all(|(i, b)| match i {
                    2 | 5 => *b == b':',
                    _ => b.is_ascii_digit(),
                });
            if is_clock {
                Span::raw("03:00").render(Rect::new(x, y, 5, 1), &mut buffer);
            }
        }
    }
    let picture = svg(&buffer, theme != "light");
    if std::env::var_os("REDIAL_PICTURES").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, picture).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == picture,
        "docs/{name}.svg is not what is drawn: REDIAL_PICTURES=1 cargo test --test it readme"
    );
}

#[test]
fn the_readmes_pictures_are_what_is_drawn() {
    let mut app = night::app((120, 36));
    compare("screen", &app, "dark");
    // One whose owner nobody saw end: it is asked, not merely shown.
    night::press(&mut app, "j");
    night::open_dialog(&mut app, redial::tui::data::Question::Ask);
    compare("reissue", &app, "catppuccin");
    let mut app = night::app((80, 24));
    night::press(&mut app, ":re");
    compare("palette", &app, "gruvbox");
    let readme = include_str!("../../README.md");
    for name in ["screen", "reissue", "palette"] {
        assert!(readme.contains(&format!("docs/{name}.svg")), "{name}");
    }
}
