//! `sixb demo`: the first command of the README.

use std::fs;

use crate::place::Place;

#[test]
fn the_demo_computes_its_report() {
    let place = Place::new();
    let ended = place.sixb(&["demo"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for part in [
        "scripted",
        "percentiles",
        "read orders.csv",
        "saved sixb-out/",
        "done: 7 steps, 11 tool calls, 1 file",
    ] {
        assert!(
            ended.stderr.contains(part),
            "{part:?} is missing: {}",
            ended.stderr
        );
    }
    assert!(
        ended.stdout.contains("scripted")
            && ended.stdout.contains("order 11261, 40 × desk for the east"),
        "{ended:?}"
    );
    let run = fs::read_dir(place.work().join("sixb-out"))
        .expect("outputs")
        .flatten()
        .next()
        .expect("run");
    let report = fs::read_to_string(run.path().join("report.md")).expect("report");
    for line in report_lines() {
        assert!(
            report.lines().any(|have| have == line),
            "{line:?} is missing in\n{report}"
        );
    }
    assert!(!report.contains("${"), "{report}");
    place.assert_nothing_left();
}

/// The figures once more, computed here from the same data.
fn report_lines() -> Vec<String> {
    let orders = include_str!("../../demo/orders.csv");
    let rows: Vec<Vec<&str>> = orders
        .lines()
        .skip(1)
        .map(|line| line.split(',').collect())
        .collect();
    let cents = |row: &[&str]| row[6].replace('.', "").parse::<u64>().expect("cents");
    let money = |cents: u64| format!("{}.{:02}", cents / 100, cents % 100);
    let total: u64 = rows.iter().map(|row| cents(row)).sum();
    let mut lines = vec![format!(
        "{} orders from 2025-01-01 to 2025-12-31, revenue {}.",
        rows.len(),
        money(total)
    )];
    for region in ["east", "north", "south", "west"] {
        let of: Vec<_> = rows.iter().filter(|row| row[2] == region).collect();
        lines.push(format!(
            "| {region} | {} | {} |",
            of.len(),
            money(of.iter().map(|row| cents(row)).sum())
        ));
    }
    lines
}
