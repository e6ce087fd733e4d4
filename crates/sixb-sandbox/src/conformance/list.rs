//! The one list of checks, and its two runners: a test for each, or one after the other.

use std::{panic::AssertUnwindSafe, path::PathBuf, time::Instant};

use futures::{FutureExt, future::BoxFuture};

use super::{OwnerCommand, Suite, owner};

/// A check: panics with a message for a person where the backend is wrong.
pub type CheckFn = for<'a> fn(&'a Suite) -> BoxFuture<'a, ()>;

/// One entry of [`Suite::checks`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Check {
    /// `theme::what_holds`.
    pub name: &'static str,
    /// Runs it.
    pub run: CheckFn,
}

/// What came of [`Suite::run`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// How many checks held.
    pub passed: usize,
    /// The names of those that did not, and their messages.
    pub failed: Vec<(String, String)>,
}

/// The list. Hands it to a macro, since tests and table must be made from the same names.
#[doc(hidden)]
#[macro_export]
macro_rules! __for_each_conformance_check {
    ($callback:path, $($argument:tt)*) => {
        $callback! {
            [$($argument)*]
            lifecycle {
                a_new_sandbox_describes_itself
                capabilities_are_as_expected
                ids_are_unique
                a_sandbox_is_made_as_asked
                stop_ends_everything
                case_32_destroy_ends_everything
                destroy_during_boot_leaves_nothing
                a_cancelled_create_leaves_nothing
                a_dropped_create_leaves_nothing
                dropping_the_sandbox_ends_it
            }
            workspace {
                a_host_folder_is_shared_and_kept
                a_read_only_folder_cannot_be_changed
            }
            streams {
                streams_are_kept_apart
                exit_codes_are_kept
                signals_are_no_exit_codes
                a_missing_program_is_127
                no_arguments_are_refused
                arguments_are_not_a_shell
                case_04_no_output_is_a_result
                case_28_one_file_system_for_all_ways
                live_output_arrives_while_it_runs
            }
            environment {
                values_arrive_exactly
                case_19_host_secrets_are_absent
                case_20_host_secrets_are_absent_from_proc
                working_directories
                a_missing_working_directory_is_not_found
            }
            stdin {
                case_07_stdin_is_empty_by_default
                case_07_stdin_bytes_and_stream
                a_mebibyte_of_stdin_comes_back
                stdin_that_nobody_reads
                a_failing_stdin_stream_ends_the_input
            }
            processes {
                case_17_a_deadline_ends_all_descendants
                cancelling_ends_all_descendants
                dropping_the_call_ends_all_descendants
                a_command_cancelled_before_it_starts
                a_deadline_spares_earlier_background_processes
                case_01_a_silent_background_child_holds_no_call
                case_03_a_writing_background_child_holds_no_call
                case_05_there_is_no_terminal
                case_18_zombies_are_reaped
                case_30_commands_run_in_parallel
            }
            output {
                sizes_are_exact
                sizes_are_exact_on_stderr
                long_output_keeps_both_ends
                case_12_the_last_error_survives
                case_10_memory_is_bounded
                binary_output_is_exact
            }
            spool {
                the_whole_output_can_be_read_back
                case_13_the_middle_is_found_by_line
                a_spool_ends_at_its_cap
                short_output_is_not_spooled
                a_reused_name_is_replaced
                an_unknown_output_is_not_found
            }
            background {
                case_01_a_server_left_behind_is_reached_later
                start_wait_and_kill
                unknown_processes_and_directories
                output_is_readable_while_it_runs
                waiting_can_be_cancelled
            }
            files {
                written_files_are_read_back
                nested_paths_make_their_parents
                odd_names
                names_that_are_not_utf8
                modes
                a_large_file_is_exact
                overwriting_replaces_all
                a_streamed_file
                a_failing_stream_leaves_the_old_file
                a_dropped_write_leaves_the_old_file
                ranges_at_the_ends
                missing_and_wrong_kinds
                seeking_a_line
            }
            listing {
                flat_and_recursive
                removing
                every_kind_has_a_name
                links_that_stay_inside_are_followed
                snapshots_and_changes
            }
            escapes {
                case_44_lexical
                case_42_a_link_to_the_outside
                case_42_a_folder_link_to_the_outside
                links_that_climb
                magic_links_of_proc
                link_loops_end
                a_folder_swapped_for_a_link_while_in_use
            }
            network {
                loopback_works_inside
                none_reaches_nothing
                none_resolves_nothing
                none_does_not_reach_the_hosts_loopback
                restricted_is_enforced_or_refused
                all_works_or_is_refused
            }
            limits {
                memory
                case_23_processes
                disk
            }
            owner {
                case_26_a_killed_owner_leaves_nothing_after_a_sweep
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_table {
    ([] $($theme:ident { $($check:ident)* })*) => {
        pub(super) const CHECKS: &[Check] = &[$($(
            Check { name: concat!(stringify!($theme), "::", stringify!($check)), run: |suite| Box::pin(super::$theme::$check(suite)) },
        )*)*];
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_test {
    ([$suite:ident] $($theme:ident { $($check:ident)* })*) => { $(
        mod $theme {
            $(
                #[::tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $check() {
                    let name = concat!(stringify!($theme), "::", stringify!($check));
                    $crate::conformance::run_in_test(name, module_path!(), super::$suite).await;
                }
            )*
        }
    )* };
}

/// One `#[tokio::test]` for each check of [`conformance`](crate::conformance), from the name of an
/// `async fn(state: PathBuf) -> Suite`.
#[macro_export]
macro_rules! conformance_tests {
    ($suite:ident) => {
        $crate::__for_each_conformance_check!($crate::__conformance_test, $suite);
    };
}

crate::__for_each_conformance_check!(crate::__conformance_table,);

/// Runs one check as the test `<module>::<check>` of this process.
pub async fn run_in_test<F: Future<Output = Suite>>(
    name: &str,
    module: &str,
    suite: fn(PathBuf) -> F,
) {
    let check = CHECKS
        .iter()
        .find(|check| check.name == name)
        .expect("made from the same list");
    if let Some(state) = owner::asked_to_own() {
        owner::own(suite(state).await.factory).await
    }
    let state = tempfile::tempdir().expect("a folder for the state of the backend");
    let mut suite = suite(state.path().to_owned()).await;
    if suite.owner.is_none() {
        let test = format!(
            "{}::{}",
            module.split_once("::").map_or("", |(_, path)| path),
            name.rsplit("::").next().unwrap_or(name)
        );
        suite.owner = Some(OwnerCommand::this_test(test, state.path()));
    }
    if suite.scale != super::Scale::FULL {
        eprintln!("{name}: {}", suite.scale);
    }
    (check.run)(&suite).await;
    suite.end().await;
}

pub(super) async fn run(suite: Suite, chosen: impl Fn(&str) -> bool) -> Outcome {
    eprintln!("conformance of {}: {}", suite.factory, suite.scale);
    let mut outcome = Outcome::default();
    for check in CHECKS.iter().filter(|check| chosen(check.name)) {
        let begun = Instant::now();
        let held = AssertUnwindSafe((check.run)(&suite)).catch_unwind().await;
        let took = begun.elapsed().as_secs_f64();
        match held {
            Ok(()) => {
                outcome.passed += 1;
                eprintln!("ok   {took:7.2} s  {}", check.name);
            }
            Err(panic) => {
                let message = panic
                    .downcast_ref::<String>()
                    .cloned()
                    .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
                    .unwrap_or_default();
                eprintln!("FAIL {took:7.2} s  {}: {message}", check.name);
                outcome.failed.push((check.name.to_owned(), message));
            }
        }
    }
    suite.end().await;
    outcome
}

impl Suite {
    /// Destroys the shared sandbox.
    async fn end(&self) {
        if let Some(sandbox) = self.shared.get() {
            sandbox
                .destroy()
                .await
                .expect("destroying the shared sandbox");
        }
    }
}
