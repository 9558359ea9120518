"""Ledgers of dpframe 0.2 that charged too little for local reports: one correction makes the limit hold again."""

from __future__ import annotations

import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import threading
import warnings
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import mpmath
import polars as pl
import pytest

import dpframe as dpf
from dpframe.accounting import PureLoss
from dpframe.cli.main import main
from dpframe.ledger import corrections
from dpframe.ledger.address import Address
from dpframe.ledger.database import Database, tables
from dpframe.privacy import Price

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data" / "0.2"
NAMES = ("local_gdp", "local_rdp")
PEOPLE = pl.DataFrame(
    {"person": [1, 1, 2, 3] * 5, "ward": ["A", "B", "A", "C"] * 5, "age": [31.0, 31.0, 45.0, 62.0] * 5}
)
# The entry of each charge of local reports, and the epsilon of all reports of one person; under rdp, two are doubled.
REPORTS = {
    "local_gdp": {1: "0.05", 4: "0.2", 5: "0.2", 10: "0.05"},
    "local_rdp": {1: "0.05", 4: "0.4", 5: "0.4", 10: "0.05"},
}
METHOD = dpf.local.SubsetSelection(["A", "B", "C"], epsilon=0.05)
OF_0_2 = "b0bc00b"


@pytest.fixture(autouse=True)
def unseen(monkeypatch):
    monkeypatch.setattr(corrections, "_scanned", {})


@pytest.fixture(params=NAMES)
def path(request, tmp_path):
    return copied(request.param, tmp_path)


def copied(name, folder):
    for ending in ("", ".head"):
        shutil.copy(DATA / f"{name}.ledger{ending}", folder)
    return folder / f"{name}.ledger"


def opened(path):
    """Open the ledger without the warning about what it understates."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return dpf.Ledger.open(path)


def roomy(path):
    """Open the ledger and raise its limit, so that a correction fits."""
    ledger = opened(path)
    ledger.raise_limit(epsilon=6, reason="room for the correction")
    return ledger


def bodies(path):
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("select entry, body, head from dpframe_entries order by entry").fetchall()
    return {entry: json.loads(body) | {"head": head} for entry, body, head in rows}


def corrections_in(path):
    return [facts for facts in bodies(path).values() if facts["query"].startswith("correction: ")]


def missing_in(path, ledger):
    """Return the amount that the entries understate, from the epsilon of each report."""
    written, limit = bodies(path), ledger.limit_amount
    whole = [Fraction(0)] * len(limit)
    for number, epsilon in REPORTS[path.stem].items():
        curve = PureLoss(Fraction(epsilon))
        right = ledger.accounting.charge(Price(curve.budget), limit, (curve,))
        charged = map(Fraction, written[number]["amount"])
        whole = [known + more - less for known, more, less in zip(whole, right, charged, strict=True)]
    return whole


def exact_mu_squared(path):
    """Return the missing mu^2 under gdp, to 50 digits: pure noise has mu = 2 sqrt(2) erfinv(tanh(epsilon / 2))."""
    with mpmath.workdps(50):
        mus = [mpmath.sqrt(8) * mpmath.erfinv(mpmath.tanh(mpmath.mpf(one) / 2)) for one in REPORTS[path.stem].values()]
        mantissa, exponent = sum(mu**2 for mu in mus).man_exp
    charged = sum(Fraction(bodies(path)[number]["amount"][0]) for number in REPORTS[path.stem])
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent) - charged


def charged(ledger, epsilon=0.01):
    return PEOPLE.dp.count(epsilon=epsilon, max_rows=1, ledger=ledger)


def test_167_reports_are_told_from_all_else(path):
    ledger = opened(path)
    due = ledger._store.last().due
    written = bodies(path)
    assert due.entries == {number: written[number]["head"] for number in REPORTS[path.stem]}
    charges = missing_in(path, ledger)
    for is_, right in zip(due.amount, charges, strict=True):
        assert abs(is_ - right) <= right / 10**12, "what this version would have charged"
    if path.stem == "local_gdp":
        assert exact_mu_squared(path) <= due.amount[0], "never too little"
    amounts = [Fraction(written[number]["amount"][0]) for number in REPORTS[path.stem]]
    assert due.amount[0] > (2.9 if path.stem == "local_gdp" else 1.5) * sum(amounts), "most of it is missing"


def test_167_the_first_charge_appends_one_correction_and_the_second_none(path):
    ledger = roomy(path)
    before, due, numbers = ledger.spent, ledger._store.last().due, list(bodies(path))
    charged(ledger)
    (correction,) = corrections_in(path)
    assert correction["kind"] == "limit"
    assert correction["entry"] == numbers[-1] + 1, "before the charge"
    assert correction["asked"] == {str(number): head for number, head in due.entries.items()}
    assert [Fraction(part) for part in correction["amount"]] == list(due.amount)
    assert correction["limit"] == bodies(path)[numbers[-1]]["limit"]
    assert correction["epsilon"] > 0
    charged(ledger)
    charged(opened(path))
    assert len(corrections_in(path)) == 1
    assert bodies(path).keys() == {*range(1, numbers[-1] + 5)}
    assert ledger.spent.epsilon > before.epsilon
    assert "understated" not in ledger.verify()
    assert dpf.Ledger.open(path).to_frame().filter(pl.col("kind") == "correction").height == 1


def test_167_what_was_spent_is_the_same_before_and_after(path):
    ledger = roomy(path)
    before, left = ledger.spent, ledger.remaining
    ledger._store.correct(None)
    assert (ledger.spent, ledger.remaining) == (before, left)
    assert ledger._store.last().due is None


def test_167_recover_appends_it_with_its_reason(path):
    ledger = dpf.Ledger.recover(path, reason="reports of 0.2 were charged too little")
    (correction,) = corrections_in(path)
    assert correction["label"] == "reports of 0.2 were charged too little"
    count = len(bodies(path))
    dpf.Ledger.recover(path, reason="again")
    assert len(bodies(path)) == count
    assert ledger.verify()["entry"] == count


def test_167_a_limit_that_is_exceeded_lets_nothing_pass(tmp_path):
    path = copied("local_gdp", tmp_path)
    ledger = opened(path)
    assert ledger.remaining == dpf.PrivacyLoss(0.0)
    for _ in range(2):
        with pytest.raises(dpf.BudgetExceeded, match="epsilon 0 of epsilon 1, delta 1e-05 remains"):
            charged(ledger, 1e-6)
        assert len(corrections_in(path)) == 1, "it stands though the charge was refused"
    assert (ledger.remaining, ledger.limit) == (dpf.PrivacyLoss(0.0), dpf.PrivacyLoss(1.0, 1e-5))
    assert ledger.spent.epsilon > 1.5
    assert opened(path).verify()["entry"] == 11
    ledger.raise_limit(epsilon=2, reason="the board agreed")
    charged(ledger)


def test_167_a_question_that_was_answered_costs_nothing_and_corrects_nothing(tmp_path):
    path = copied("local_gdp", tmp_path)
    PEOPLE.dp.count(epsilon=0.05, ledger=(ledger := opened(path)), label="named", snapshot="2026-W47")
    assert not corrections_in(path)
    assert ledger._store.last().due is not None


def test_167_a_stream_is_begun_after_the_correction(path):
    words = {"time": "ward", "periods": ["A", "B", "C"], "epsilon": 0.01, "max_rows": 1, "ledger": roomy(path)}
    stream = dpf.Stream("wards", statistic=dpf.count(), **words)
    for period in ("A", "B"):
        stream.release(PEOPLE, period)
    assert [facts["kind"] for facts in bodies(path).values()][11:] == ["limit", "charge", *["intent", "values"] * 2]
    assert len(corrections_in(path)) == 1


def test_167_entries_of_this_version_are_never_corrected(path):
    ledger = roomy(path)
    for max_rows in (1, 2):
        PEOPLE.dp.local.randomize("ward", method=METHOD, ledger=ledger, max_rows=max_rows)
    last = bodies(path)[max(bodies(path))]
    assert last["asked"] == {"pure_epsilon": "1/10"}
    assert opened(path)._store.last().due is None
    charged(ledger)
    assert len(corrections_in(path)) == 1


def test_167_what_mimics_local_reports_is_known_by_its_amount(path):
    """Entry 9 is named like local reports, and entry 3 is labeled like them, but both were charged correctly."""
    written = bodies(path)
    assert written[9]["query"].startswith("reports of age by ward: ")
    assert written[3]["label"] == "reports of ward by nobody"
    assert not {3, 9} & opened(path)._store.last().due.entries.keys()


def test_167_it_is_said_wherever_the_ledger_is_read(path, capsys):
    pytest.importorskip("typer")
    with pytest.warns(UserWarning, match="correction due for 4 charges of local reports by dpframe 0.2, which underst"):
        ledger = dpf.Ledger.open(path)
    assert ledger.verify()["understated"] == [1, 4, 5, 10]
    assert f"and {ledger.spent} was spent. The next charge appends it." in str(ledger)
    assert "correction due" in ledger._repr_html_()
    for command in ("show", "verify"):
        assert main(["ledger", command, str(path)]) == 0
        assert capsys.readouterr().out.count("correction due for 4 charges") == 1
    main(["ledger", "check", str(path), "--min-remaining", "0.1"])
    assert "correction due" in capsys.readouterr().out
    main(["ledger", "show", str(path), "--json"])
    assert json.loads(capsys.readouterr().out)["understated"] == [1, 4, 5, 10]
    main(["ledger", "verify", str(path), "--quiet"])
    assert capsys.readouterr() == ("", "")
    assert not corrections_in(path)


def test_167_a_preview_says_it_and_counts_it(tmp_path, capsys):
    pytest.importorskip("typer")
    path = copied("local_rdp", tmp_path)
    roomy(path)
    PEOPLE.write_parquet(tmp_path / "people.parquet")
    (tmp_path / "job.toml").write_text(
        f"""
engine = "polars"
snapshot = "2026-W48"

[source]
path = "people.parquet"

[ledger]
path = {json.dumps(str(path))}
epsilon = 6
delta = 1e-5
accounting = "rdp"
keys_delta = 1e-6
dataset = "clinic"
unit = "person"
neighbors = "replace"

[[release]]
label = "heads"
verb = "count"
epsilon = 0.01
max_rows = 1
""",
        encoding="utf-8",
    )
    code = main(["preview", str(tmp_path / "job.toml")])
    said = capsys.readouterr()
    assert code == 0, said
    assert "correction due for 4 charges" in said.out
    assert not corrections_in(path)


def test_167_a_correction_is_held_to_the_hashes_that_it_names(tmp_path):
    """A correction with the number of an entry but another hash corrects nothing."""
    ledger = roomy(copied("local_gdp", tmp_path))
    due = ledger._store.last().due
    last = ledger._store.last()
    scanned = corrections.known(ledger._store.identity)
    other = type(due)(dict.fromkeys(due.entries, "0" * 64), due.amount)
    false = corrections.correction(other, ledger._terms, last, ledger.accounting, None)
    assert scanned.after(last, [(99, "f", false)], ledger.accounting).due == due
    true = corrections.correction(due, ledger._terms, last, ledger.accounting, None)
    assert scanned.after(last, [(99, "f", true)], ledger.accounting).due is None


def test_167_threads_append_one_correction(path):
    roomy(path)
    ledgers, errors = [opened(path) for _ in range(6)], []

    def charge(ledger):
        try:
            charged(ledger)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=charge, args=(ledger,)) for ledger in ledgers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert len(corrections_in(path)) == 1


CHARGE = """
import sys, warnings, polars as pl, dpframe as dpf
warnings.simplefilter("ignore")
ledger = dpf.Ledger.open(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
pl.DataFrame({"person": [1, 2]}).dp.count(epsilon=0.01, max_rows=1, ledger=ledger)
"""


@pytest.mark.slow
def test_167_processes_that_race_append_one_correction(path):
    roomy(path)
    words = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": ROOT}
    running = [subprocess.Popen([sys.executable, "-c", CHARGE, str(path)], **words) for _ in range(2)]
    for process in running:
        assert process.stdout.readline() == "ready\n"
    for process in running:
        process.stdin.write("\n")
        process.stdin.flush()
    for process in running:
        process.communicate(timeout=120)
        assert process.returncode == 0
    assert len(corrections_in(path)) == 1
    assert opened(path).verify()["entry"] == len(bodies(path))


READ_BY_0_2 = """
import json, sys, polars as pl, dpframe as dpf
from dpframe._version import VERSION
assert VERSION == "0.2.0", VERSION
ledger = dpf.Ledger.open(sys.argv[1])
receipt = ledger.verify()
method = dpf.local.SubsetSelection(["A", "B", "C"], epsilon=0.05)
if len(sys.argv) > 2:
    pl.DataFrame({"ward": ["A"], "person": [1]}).dp.local.randomize("ward", method=method, max_rows=1, ledger=ledger)
print(json.dumps({**receipt, "spent": ledger.spent.epsilon, "kinds": ledger.to_frame()["kind"].to_list()}))
"""


@pytest.fixture(scope="module")
def version_0_2(tmp_path_factory):
    """Extract dpframe 0.2.0 from the history of the repository; skip if the history does not reach that far back."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed, which has dpframe 0.2.0 in its history")
    made = subprocess.run(["git", "archive", OF_0_2, "dpframe"], check=False, cwd=ROOT, capture_output=True)
    if made.returncode:
        pytest.skip("the history of this copy does not reach back to dpframe 0.2.0")
    folder = tmp_path_factory.mktemp("0.2.0")
    with tarfile.open(fileobj=io.BytesIO(made.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def by_0_2(folder, path, *more):
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, "-c", READ_BY_0_2, str(path), *more]
    words = {"capture_output": True, "text": True, "timeout": 300}
    done = subprocess.run(command, check=False, cwd=folder, env=environment, **words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_167_dpframe_0_2_verifies_the_corrected_chain_and_its_later_entries_are_corrected_too(path, version_0_2):
    ledger = roomy(path)
    charged(ledger)
    assert len(corrections_in(path)) == 1
    before = by_0_2(version_0_2, path, "and charge")
    assert before["head"] == ledger._store.verify().heads[before["entry"]]
    assert before["kinds"].count("limit") == 2
    (late,) = opened(path).verify()["understated"]
    assert late == before["entry"] + 1, "dpframe 0.2 charged too little once more"
    charged(ledger)
    first, second = corrections_in(path)
    assert set(second["asked"]) == {str(late)}
    assert not set(second["asked"]) & set(first["asked"])
    assert by_0_2(version_0_2, path)["spent"] == ledger.spent.epsilon


def test_167_on_a_server(server):
    pytest.importorskip("psycopg")
    url = server.url("corrections")
    database = Database(Address.of(url), create=True)
    with closing(sqlite3.connect(DATA / "local_rdp.ledger")) as old, database.transaction(write=True) as connection:
        database.create(connection)
        for table in (tables().terms, tables().entries, tables().answers):
            names = [column.name for column in table.columns]
            for row in old.execute(f"select {', '.join(names)} from {table.name}"):
                connection.execute(table.insert().values(**dict(zip(names, row, strict=True))))
    database.close()
    ledger = opened(url)
    assert sorted(ledger._store.last().due.entries) == [1, 4, 5, 10]
    for _ in range(2):
        charged(ledger)
    assert opened(url).to_frame()["kind"].to_list().count("correction") == 1
    assert "understated" not in ledger.verify()


def test_167_only_ledgers_that_may_hold_such_entries_are_searched(tmp_path, monkeypatch):
    def refused(*_):
        raise AssertionError("searched")

    monkeypatch.setattr("dpframe.ledger.rows.local_reports", refused)
    replaced = dpf.PrivacyUnit(neighbors="replace")
    for name, words in {"basic": {"unit": replaced}, "rows": {"delta": 1e-6}}.items():
        ledger = dpf.Ledger(epsilon=1, path=tmp_path / name, **words)
        PEOPLE.dp.count(epsilon=0.1, ledger=ledger)


def test_167_only_new_entries_are_searched(path, monkeypatch):
    ledger = roomy(path)
    charged(ledger)
    asked = []
    monkeypatch.setattr(
        "dpframe.ledger.rows.local_reports", lambda connection, after, until: asked.append((after, until)) or []
    )
    charged(ledger)
    assert asked
    assert all(after >= 12 for after, _ in asked), asked
