//! A screen buffer as an SVG picture: one `text` a run of cells, each forced to its cells' width, so that
//! wide characters keep every column.

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};
use std::fmt::Write;

const CELL: (u32, u32) = (9, 18);

fn hex(color: Color, default: &str) -> String {
    let named = match color {
        Color::Black => "#1d1f21",
        Color::Red => "#e06c75",
        Color::Green => "#8cc265",
        Color::Yellow => "#e5c07b",
        Color::Blue => "#3a66a8",
        Color::Magenta => "#c678dd",
        Color::Cyan => "#56b6c2",
        Color::White => "#f2f2f2",
        Color::Gray => "#c8ccd4",
        Color::DarkGray => "#6b717d",
        Color::Rgb(r, g, b) => return format!("#{r:02x}{g:02x}{b:02x}"),
        _ => default,
    };
    named.into()
}

/// The picture; `dark` chooses the terminal's own colours.
pub fn svg(buffer: &Buffer, dark: bool) -> String {
    let (fg0, bg0) = if dark { ("#c8ccd4", "#16181d") } else { ("#24292f", "#ffffff") };
    let area = buffer.area;
    let (cw, ch) = CELL;
    let (w, h) = (u32::from(area.width) * cw, u32::from(area.height) * ch);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" font-family=\"DejaVu Sans Mono, Noto Sans CJK JP, monospace\" font-size=\"15\" xml:space=\"preserve\">\n<rect width=\"{w}\" height=\"{h}\" fill=\"{bg0}\"/>\n"
    );
    for y in 0..area.height {
        let mut x = 0;
        while x < area.width {
            let cell = &buffer[(x, y)];
            let symbol = cell.symbol();
            let cells = redial::text::width(symbol).max(1) as u16;
            let m = cell.modifier;
            let (mut fg, mut bg) = (hex(cell.fg, fg0), hex(cell.bg, bg0));
            if m.contains(Modifier::REVERSED) {
                std::mem::swap(&mut fg, &mut bg);
            }
            let (px, py) = (u32::from(x) * cw, u32::from(y) * ch);
            let pw = u32::from(cells) * cw;
            if bg != bg0 {
                let _ = writeln!(
                    out,
                    "<rect x=\"{px}\" y=\"{py}\" width=\"{pw}\" height=\"{ch}\" fill=\"{bg}\"/>"
                );
            }
            if symbol != " " {
                let text = symbol.replace('&', "&amp;").replace('<', "&lt;");
                let mut style = String::new();
                if m.contains(Modifier::BOLD) {
                    style += " font-weight=\"bold\"";
                }
                if m.contains(Modifier::DIM) {
                    style += " opacity=\"0.6\"";
                }
                if m.contains(Modifier::UNDERLINED) {
                    style += " text-decoration=\"underline\"";
                }
                let base = py + 14;
                let _ = writeln!(
                    out,
                    "<text x=\"{px}\" y=\"{base}\" fill=\"{fg}\" textLength=\"{pw}\" lengthAdjust=\"spacingAndGlyphs\"{style}>{text}</text>"
                );
            }
            x += cells;
        }
    }
    out + "</svg>\n"
}
