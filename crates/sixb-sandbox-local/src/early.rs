//! Installs the helper hook before `main`, for tests and doctests: they do not own their `main`.

/// The C library calls what this section lists, with the process's arguments, before `main` and before any thread.
#[used]
#[unsafe(link_section = ".init_array")]
static HOOK: extern "C" fn() = hook;

extern "C" fn hook() {
    crate::init();
}
