"""What the runners in Python share: checks that are counted, and the program.

`GPULEDGER_BIN` names the program; without it, `target/debug/gpuledger`.
"""

import os
import subprocess
from pathlib import Path

HOUSE = Path(__file__).resolve().parents[1]
BIN = Path(os.environ.get("GPULEDGER_BIN", HOUSE / "target/debug/gpuledger")).resolve()

# Longest time for one run of the program, which is a bound and no wish.
PROGRAM_SECONDS_MAX = 900

passed = 0
failed = 0


def check(name, good, seen=""):
    """Counts one check, and prints it where it fails."""
    global passed, failed
    if good:
        passed += 1
    else:
        failed += 1
        print(f"FAILED {name}: {str(seen)[:3000]}", flush=True)


def same(name, seen, wanted):
    """Equal in everything; of rows only those that differ are shown."""
    if isinstance(seen, list) and isinstance(wanted, list) and seen != wanted:
        only = [row for row in seen if row not in wanted][:5], [row for row in wanted if row not in seen][:5]
        check(name, False, f"{len(seen)} rows, {len(wanted)} wanted; only seen: {only[0]!r}; only wanted: {only[1]!r}")
    else:
        check(name, seen == wanted, f"{seen!r} instead of {wanted!r}" if seen != wanted else "")


def attempt(name, action):
    """Runs a step whose failure must not hide the others."""
    try:
        return action()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of a reader's native half is no Exception
        check(name, False, f"{type(error).__name__}: {error}")
        return None


def ran(*arguments, exits=(0,)):
    """A run of the program, without what the environment would tell it."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GPULEDGER_")}
    done = subprocess.run(
        [BIN, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        stdin=subprocess.DEVNULL,
        timeout=PROGRAM_SECONDS_MAX,
    )
    check(f"gpuledger {' '.join(map(str, arguments[:2]))} exits {exits}", done.returncode in exits, f"{done.returncode}: {done.stderr}")
    return done


def program(*arguments, exits=(0,)):
    return ran(*arguments, exits=exits).stdout


def summed_up(what):
    """Says how many checks there were. The exit code: none at all is a failure too."""
    print(f"{what}: {passed} passed, {failed} failed", flush=True)
    return 1 if failed or not passed else 0
