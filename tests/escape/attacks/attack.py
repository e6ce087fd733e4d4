# What every Python attack shares: the last line on stdout tells what came of it, `reached …` or the name of the error.
import errno, os, sys


def verdict(text):
    print(text, flush=True)
    os._exit(0)


def name(error):
    return errno.errorcode.get(error.errno, str(error)) if getattr(error, "errno", None) else repr(error)


def attempt(what):
    """Does `what`; its error is the verdict."""
    try:
        got = what()
    except OSError as error:
        verdict(name(error))
    verdict(f"reached {got}" if got is not None else "reached")


BAIT = {key[5:].lower(): value for key, value in os.environ.items() if key.startswith("BAIT_")}
