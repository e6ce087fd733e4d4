//! `docs/security.md` names the rows that show what it promises: each name must be one.

const PAGE: &str = include_str!("../../docs/security.md");
const TABLE: &str = include_str!("table.rs");

#[test]
fn the_page_on_security_names_rows_that_are_there() {
    let rows: Vec<&str> = TABLE
        .lines()
        .filter_map(|line| line.strip_prefix("    ")?.split_once(": "))
        .map(|(name, _)| name)
        .collect();
    let named: Vec<&str> = PAGE
        .split('`')
        .filter_map(|word| word.strip_prefix("escape:"))
        .filter(|name| *name != "NAME")
        .collect();
    assert!(named.len() > 50, "{named:?}");
    for name in named {
        let found = rows.iter().any(|row| match name.split_once('*') {
            Some((start, end)) => row.starts_with(start) && row.ends_with(end),
            None => *row == name,
        });
        assert!(found, "no row is called {name}");
    }
}
