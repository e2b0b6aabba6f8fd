//! Numbers and times as text.

use std::time::Duration;

/// The text for unknown values.
pub(super) const UNKNOWN: &str = "–";

/// `1,234,567`.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 column`, `1,200 columns`.
pub(super) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// `512 B`, `1.4 MiB`.
pub(super) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut amount = bytes as f64 / 1024.0;
    let mut unit = 0;
    // Amounts that would be rounded to 1024.0 use the next unit.
    while amount >= 1023.95 && unit + 1 < UNITS.len() {
        amount /= 1024.0;
        unit += 1;
    }
    format!("{amount:.1} {}", UNITS[unit])
}

/// Milliseconds without the unit, as in a table: `0.042`, `12.3`.
pub(super) fn milliseconds(time: Duration) -> String {
    let milliseconds = time.as_secs_f64() * 1e3;
    match milliseconds {
        ..0.9995 => format!("{milliseconds:.3}"),
        ..9.995 => format!("{milliseconds:.2}"),
        ..99.95 => format!("{milliseconds:.1}"),
        _ => format!("{milliseconds:.0}"),
    }
}

/// `42 µs`, `1.50 ms`, `2.3 s`, `4 min 05 s`, `3 h 02 min`.
pub(super) fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        ..0.000_999_5 => format!("{:.0} µs", seconds * 1e6),
        ..0.999_95 => format!("{} ms", milliseconds(time)),
        ..59.95 => format!("{seconds:.1} s"),
        _ => {
            let seconds = seconds.round() as u64;
            match seconds / 60 {
                minutes @ 0..60 => format!("{minutes} min {:02} s", seconds % 60),
                minutes => format!("{} h {:02} min", minutes / 60, minutes % 60),
            }
        }
    }
}

/// A time on a clock: `0:07`, `4:05`, `3:02:09`.
pub(super) fn time(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds / 3_600 {
        0 => format!("{}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}

/// A share of 1, as in a table: `7 %`.
pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// `1,234 of 2,000 (61 %)`. Rounded down, so that only finished work shows 100 %.
pub(super) fn done(done: u64, all: u64) -> String {
    let share = (u128::from(done) * 100).checked_div(all.into()).unwrap_or(100);
    format!("{} of {} ({share} %)", count(done), count(all))
}

/// `120/s, 6.4 s left`.
pub(super) fn pace(per_second: Option<f64>, left: Option<Duration>) -> String {
    let rate = per_second.map_or_else(|| UNKNOWN.to_owned(), |rate| format!("{rate:.0}"));
    match left {
        Some(left) => format!("{rate}/s, {} left", duration(left)),
        None => format!("{rate}/s"),
    }
}

/// `8, 9, 12 more`: at most eight items.
pub(super) fn list<T>(all: &[T], name: impl Fn(&T) -> String) -> String {
    const MOST: usize = 8;
    let mut names: Vec<_> = all.iter().take(MOST).map(name).collect();
    if all.len() > MOST {
        names.push(format!("{} more", all.len() - MOST));
    }
    names.join(", ")
}

/// Ticks per second: `20.0`.
pub(super) fn rate(ticks_per_second: Option<f64>) -> String {
    ticks_per_second.map_or_else(|| UNKNOWN.to_owned(), |rate| format!("{rate:.1}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped_by_thousands() {
        let expected = [(0, "0"), (999, "999"), (1_000, "1,000"), (12_345, "12,345"), (1_234_567, "1,234,567")];
        for (number, text) in expected {
            assert_eq!(count(number), text);
        }
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!([0, 1, 1_200].map(|number| counted(number, "plot", "plots")), ["0 plots", "1 plot", "1,200 plots"]);
    }

    #[test]
    fn bytes_take_the_unit_that_fits() {
        let expected = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            ((1 << 20) - 1, "1.0 MiB"),
            (3 << 30, "3.0 GiB"),
            (u64::MAX, "16.0 EiB"),
        ];
        for (number, text) in expected {
            assert_eq!(bytes(number), text);
        }
    }

    #[test]
    fn times_keep_about_three_digits() {
        let expected = [
            (0, "0 µs", "0.000"),
            (42_000, "42 µs", "0.042"),
            (999_600, "1.00 ms", "1.00"),
            (1_500_000, "1.50 ms", "1.50"),
            (12_345_678, "12.3 ms", "12.3"),
            (250_000_000, "250 ms", "250"),
            (2_340_000_000, "2.3 s", "2340"),
            (245_000_000_000, "4 min 05 s", "245000"),
            (59_990_000_000, "1 min 00 s", "59990"),
            (10_920_000_000_000, "3 h 02 min", "10920000"),
        ];
        for (nanoseconds, long, short) in expected {
            let time = Duration::from_nanos(nanoseconds);
            assert_eq!((duration(time).as_str(), milliseconds(time).as_str()), (long, short));
        }
    }

    #[test]
    fn a_clock_has_hours_when_it_needs_them() {
        for (seconds, text) in [(7, "0:07"), (245, "4:05"), (10_929, "3:02:09")] {
            assert_eq!(time(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn unfinished_work_never_shows_as_100_percent() {
        assert_eq!(done(1_151, 1_152), "1,151 of 1,152 (99 %)");
        assert_eq!(done(u64::MAX, u64::MAX), format!("{0} of {0} (100 %)", count(u64::MAX)));
        assert_eq!(done(0, 0), "0 of 0 (100 %)");
    }

    #[test]
    fn a_long_list_is_cut() {
        let all: Vec<_> = (1..=20).collect();
        assert_eq!(list(&all[..2], i32::to_string), "1, 2");
        assert_eq!(list(&all, i32::to_string), "1, 2, 3, 4, 5, 6, 7, 8, 12 more");
    }

    #[test]
    fn an_unknown_rate_is_a_dash() {
        assert_eq!(rate(Some(19.96)), "20.0");
        assert_eq!(rate(None), UNKNOWN);
    }
}
