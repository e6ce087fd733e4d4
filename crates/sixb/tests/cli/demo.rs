//! `sixb demo`: the first command of the README.

use std::fs;

use crate::place::Place;

#[test]
fn the_demo_computes_its_report() {
    let place = Place::new();
    let ended = place.sixb(&["demo", "--dump-requests", "requests"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for part in [
        "scripted",
        "percentiles",
        "read orders.csv",
        "saved sixb-out/",
        "bar_chart",
        "view_file /workspace/.sixb/agent/artifacts/",
        "done: 9 steps, 16 tool calls, 4 files",
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
    let read = |name: &str| fs::read(run.path().join(name)).expect(name);
    assert!(read("summary.pdf").starts_with(b"%PDF-1.4\n"));
    assert_eq!(
        read("revenue-by-month.csv")
            .iter()
            .filter(|byte| **byte == b'\n')
            .count(),
        13
    );
    let chart = read("revenue-by-month.png");
    assert!(chart.starts_with(b"\x89PNG"));
    the_image_is_asked_about_once(&place);
    let blobs = fs::read_dir(place.state().join("sixb/blobs/sha256")).expect("blobs");
    assert_eq!(
        blobs.count(),
        4,
        "the chart is kept once, though it was made once and viewed twice"
    );
    place.assert_nothing_left();
}

/// Of all requests one holds the chart, in one user message.
fn the_image_is_asked_about_once(place: &Place) {
    let mut shown = Vec::new();
    for number in 1..=9 {
        let request = place.read(format!("requests/request-{number:03}.json"));
        let request: serde_json::Value = serde_json::from_str(&request).expect("JSON");
        for message in request["messages"].as_array().expect("messages") {
            let parts = message["content"].as_array().into_iter().flatten();
            let images = parts.filter(|part| part["type"] == "image_url").count();
            if images > 0 {
                assert_eq!(message["role"], "user");
                shown.push((number, images));
            }
        }
    }
    assert_eq!(
        shown,
        [(8, 1)],
        "in the request after the step that looked at it"
    );
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
