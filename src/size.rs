//! Byte counts in words, in one spelling wherever a limit or a size is told.

/// `5 bytes`, `64 KiB`, `1.5 MiB`: whole numbers where they are exact, else one digit after the point.
pub fn size(bytes: u64) -> String {
    let (unit, word) = match bytes {
        0..1024 => return if bytes == 1 { "1 byte".into() } else { format!("{bytes} bytes") },
        0x400..0x10_0000 => (1u64 << 10, "KiB"),
        0x10_0000..0x4000_0000 => (1 << 20, "MiB"),
        _ => (1 << 30, "GiB"),
    };
    match bytes % unit {
        0 => format!("{} {word}", bytes / unit),
        _ => format!("{:.1} {word}", bytes as f64 / unit as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn limits_are_whole_and_everything_else_has_one_digit() {
        for (bytes, want) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (1023, "1023 bytes"),
            (1024, "1 KiB"),
            (64 << 10, "64 KiB"),
            ((64 << 20) + 5, "64.0 MiB"),
            (64 << 20, "64 MiB"),
            (1536 << 10, "1.5 MiB"),
            (1 << 30, "1 GiB"),
        ] {
            assert_eq!(size(bytes), want);
        }
    }
}
