"""Seeded bugs of the room "locks"."""

from __future__ import annotations

from assurance.bugs.seeding import bug

LOCKS = (
    bug(
        "ledger",
        "SQLite's own locks alone, which reading the file drops",
        "_try",
        "fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "pass",
        "test_locks.py::test_92_a_file_that_is_read_amid_a_charge_stays_locked",
    ),
    bug(
        "ledger",
        "a lock that POSIX drops like SQLite's",
        "_try",
        "fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "fcntl.lockf(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)",
        "test_locks.py::test_92_a_file_that_is_read_amid_a_charge_stays_locked",
    ),
    bug(
        "ledger",
        "a charge committed under a lock that others no longer take",
        "Database._check_lock",
        "        if write and file is not None and (self._lock is None or not locks.is_held(file, self._lock)):",
        "        if False:",
        "test_locks.py::test_92_a_lock_that_is_removed_amid_a_charge_ends_it",
    ),
    bug(
        "ledger",
        "a forked child that keeps its parent's locks",
        "forget",
        "    for opened in tuple(open_ones):\n        os.close(opened)",
        "    for _ in tuple(open_ones):\n        pass",
        "test_locks.py::test_92_a_forked_child_holds_no_lock_of_its_parent",
    ),
    bug(
        "ledger",
        "a transaction that Ctrl-C breaks off",
        "unbroken",
        "        if _here.work is not None:\n            return call(*arguments, **named)",
        "        if True:\n            return call(*arguments, **named)",
        "test_locks.py::test_93_ctrl_c_amid_a_transaction_leaves_it_whole_and_the_file_free",
        "test_drills.py::test_93_charges_that_are_broken_off_by_a_signal",
    ),
    bug(
        "ledger",
        "a process that forgets the newest entry it saw",
        "seen.note",
        "if known is None or known.entry < mark.entry:",
        "if True:",
        "test_locks.py::test_96_what_was_seen_only_grows",
    ),
    bug(
        "ledger",
        "a rolled-back database that a process goes on with",
        "SqlStore._hold_seen",
        "        if newest is not None and newest != last:",
        "        if False:",
        "test_locks.py::test_96_a_file_that_is_put_back_with_its_head_does_not_go_on",
    ),
    bug(
        "ledger",
        "a recovery that forgets what the process saw",
        "SqlStore.recover",
        "(None if head is None else head.mark, known.seen)",
        "(None if head is None else head.mark,)",
        "test_locks.py::test_96_a_recovery_charges_what_the_process_saw",
    ),
    bug(
        "ledger",
        "any recovery taken for one that charged what was seen",
        "SqlStore._hold_seen",
        "if not any(all(map(ge, total, newest.total)) for total in totals if total):",
        "if not any(True for total in totals if total):",
        "test_locks.py::test_96_a_recovery_of_another_process_that_knew_less_is_refused",
    ),
    bug(
        "ledger",
        "a reading of all entries that holds charges up",
        "SqlStore._rows",
        "        while at < until and (batch := self._part(at, until)):",
        "        rows.BATCH = until\n        while at < until and (batch := self._part(at, until)):",
        "test_locks.py::test_115_a_charge_goes_on_between_the_parts_of_a_reading",
    ),
    bug(
        "ledger",
        "a password in an address that is shown",
        "Address",
        "field(default=None, repr=False)",
        "field(default=None)",
        "test_locks.py::test_117_a_password_is_never_shown",
    ),
)
