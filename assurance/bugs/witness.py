"""Seeded bugs of heads that are kept elsewhere, and of the errors of servers."""

from __future__ import annotations

from assurance.bugs.seeding import bug

WITNESS = "test_witness.py"
ERRORS = "test_unavailable.py"

WITNESSES = (
    bug(
        "ledger",
        "a head elsewhere that nothing is compared with",
        "SqlStore._last",
        "            self._hold_head(connection, before.elsewhere, last, self.witness.shown)\n",
        "            pass\n",
        f"{WITNESS}::test_153_a_ledger_that_was_put_back_is_refused_by_a_fresh_process",
    ),
    bug(
        "ledger",
        "a head elsewhere written before the commit",
        "SqlStore.charge",
        "            mark = rows.append(connection, last, correction or entry)\n",
        "            mark = rows.append(connection, last, correction or entry)\n"
        "            if self.witness is not None:\n"
        "                self.witness.advance(self.terms, mark)\n",
        f"{WITNESS}::test_153_the_head_is_written_after_the_commit_and_is_never_ahead",
    ),
    bug(
        "ledger",
        "a head elsewhere that a slow writer takes back",
        "Witness.advance",
        "return None if old == new or (stays and not anew) else new",
        "return None if old == new else new",
        f"{WITNESS}::test_153_a_slow_writer_does_not_take_the_head_back",
    ),
    bug(
        "ledger",
        "a charge that leaves the head elsewhere behind",
        "SqlStore._check_head_given",
        "if self.terms.has_head and self.witness is None:",
        "if False:",
        f"{WITNESS}::test_153_nothing_is_charged_without_the_head_and_all_can_be_read",
    ),
    bug(
        "ledger",
        "a head elsewhere that begins with any ledger",
        "SqlStore._beginning_a_head",
        "                if last.entry:\n",
        "                if False:\n",
        f"{WITNESS}::test_153_a_head_of_a_ledger_with_entries_takes_a_reason",
    ),
    bug(
        "ledger",
        "a process that forgets what was at an address",
        "witness.hold_address",
        "        if at != beginning:\n",
        "        if False:\n",
        f"{WITNESS}::test_155_a_database_that_is_made_anew_is_refused",
    ),
    bug(
        "streams",
        "a stream on a server that draws without a head",
        "SqlStore.step",
        "if self.witness is None and self.database.address.file is None:",
        "if False:",
        f"{WITNESS}::test_154_a_stream_on_a_server_needs_a_head",
    ),
    bug(
        "streams",
        "a stored period shown before the heads know it",
        "SqlStore.stream",
        "head is not None and head.mark.entry < newest",
        "False",
        f"{WITNESS}::test_195_a_period_is_shown_by_nobody_before_the_heads_know_it",
    ),
    bug(
        "streams",
        "a stored period shown without the head that is kept elsewhere",
        "SqlStore.stream",
        "            self._check_head_given()\n",
        "            pass\n",
        f"{WITNESS}::test_200_a_period_is_shown_by_nobody_who_does_not_know_the_head",
    ),
    bug(
        "streams",
        "values of a stream that is gone stored for another of its name",
        "entries.continued",
        "stream.head != known.head",
        "False",
        "test_stream_steps.py::test_a_copy_that_is_put_back_and_recovered_amid_a_call_ends_it",
    ),
    bug(
        "ledger",
        "a head written over the newest one where an entry has none",
        "heads.write_at",
        "opened.seek(0 if of_slots(opened.read()) == old else size)",
        "opened.seek(size * (mark.entry % 2))",
        "test_durable.py::test_196_a_torn_head_leaves_the_one_before_also_after_a_skipped_entry",
    ),
    bug(
        "jobs",
        "a ledger that is not held against the audit trail",
        "running.run",
        "        trail.check_ledger(whole.ledger)\n",
        "",
        "test_jobs.py::test_153_a_ledger_that_was_put_back_is_held_against_the_audit_trail",
    ),
    bug(
        "ledger",
        "no charge may stand after a commit that was lost",
        "database.refusal",
        'charged="unknown"',
        'charged="no"',
        f"{ERRORS}::test_156_only_a_commit_that_was_lost_may_stand",
    ),
    bug(
        "ledger",
        "nothing charged where an error came after the charge",
        "errors.stands",
        'charged="unknown"',
        'charged="no"',
        f"{ERRORS}::test_157_what_fails_after_a_charge_never_says_no",
    ),
    bug(
        "ledger",
        "nothing charged where the head failed",
        "SqlStore._keep_head",
        "            raise stands(error) from None",
        "            raise",
        f"{ERRORS}::test_158_a_server_that_stops_after_the_commit_says_that_the_charge_stands",
    ),
    bug(
        "ledger",
        "a head in the ledger's own database, under another name",
        "SqlStore.open",
        "                witness.check_elsewhere(address, connection)\n",
        "                pass\n",
        f"{WITNESS}::test_171_a_head_in_the_ledgers_own_database_is_refused_whatever_its_url_says",
    ),
    bug(
        "ledger",
        "a head elsewhere that stays behind where the ledger is locked",
        "SqlStore._keep_head",
        "isinstance(error, Locked) and self.witness is None",
        "isinstance(error, Locked)",
        f"{WITNESS}::test_172_a_charge_whose_head_could_not_follow_releases_nothing",
    ),
    bug(
        "ledger",
        "a head in a file that SQLite keeps next to a ledger",
        "address.BESIDE",
        ', "-wal", "-shm"',
        "",
        f"{WITNESS}::test_153_a_head_must_be_elsewhere",
    ),
    bug(
        "ledger",
        "a head elsewhere that is compared before the commit alone",
        "SqlStore._write_newest",
        "hold = None if anew else lambda head: self._hold_head(connection, head, mark, place)",
        "hold = None",
        f"{WITNESS}::test_201_of_two_copies_that_charge_at_once_one_releases_nothing",
    ),
    bug(
        "ledger",
        "an object that keeps a head is not read after it was written",
        "witness._of_object",
        "        following(read())  #",
        "        #",
        f"{WITNESS}::test_201_an_object_is_read_once_more_after_it_was_written",
    ),
    bug(
        "ledger",
        "a head in a file that two copies write at once",
        "witness._of_file",
        "            with locks.held_head(path, wait=databases.WAIT):\n                old =",
        "            if True:\n                old =",
        f"{WITNESS}::test_201_nobody_writes_a_head_in_a_file_between_a_look_and_the_writing",
    ),
    bug(
        "ledger",
        "an entry in memory that is listed before it is counted",
        "MemoryStore._append",
        """        self._last = Mark(len(self._entries) + 1, "", total, entry.limit or self._last.limit)
        self._entries.append(entry)
""",
        """        self._entries.append(entry)
        self._last = Mark(len(self._entries), "", total, entry.limit or self._last.limit)
""",
        "test_stream_steps.py::test_202_ctrl_c_leaves_no_stream_in_memory_that_was_not_charged",
    ),
    bug(
        "ledger",
        "a caller that is interrupted as the work ends waits for itself",
        "_Work.wait",
        "        if self.ended:\n            return\n",
        "",
        "test_stream_steps.py::test_203_ctrl_c_just_as_the_work_ends_waits_for_nothing",
    ),
    bug(
        "ledger",
        "a forked child that is known by its number",
        "entries._forked",
        "    _process = object()\n",
        "    pass\n",
        "test_ledger.py::test_204_a_forked_child_is_refused",
    ),
)
