"""Damaged ledgers: whatever they contain, dpframe raises a typed error or returns an intact ledger."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import sqlite3
from contextlib import closing, suppress
from importlib.util import find_spec

import polars as pl
import pytest

import dpframe as dpf
from dpframe.cli.main import main
from dpframe.ledger import heads, reading, witness

PEOPLE = pl.DataFrame({"age": [31, 45, 62], "ward": ["A", "B", "A"]})
NAMED = {"label": "wards", "snapshot": "2026-W47"}
DEEP = "[" * 100_000 + "]" * 100_000
HOSTILE = (
    *("null", "true", "-1", "0", "1", "1e309", "-1e309", "NaN", "Infinity", "1" * 4_000, "1" * 5_000, str(2**63)),
    *('""', '"x"', '"1/0"', '"0/1"', '"-1/2"', '"1/2"', '"2/4"', '"1_0/1"', '" 1/1"', '"nan"', '"inf/1"', '"1e9/1"'),
    *(f'"{"9" * 4_000}/1"', f'"{"9" * 5_000}/1"', f'"0x{"f" * 90_000}/1"', f'"0x{"f" * 200_000}/1"', '"1/0x0"'),
    *("[]", "{}", "[1]", '["1/2"]', '["1/2","0/1"]', '["1/2","0/1","0/1"]', '[["1/2"]]', '{"a":1}', DEEP),
    *(
        '"\\ud800"',
        '"\\u0000"',
        '"\\u202e"',
        '"charge"',
        '"limit"',
        '"recovery"',
        '"answer"',
        '"gdp"',
        '"rdp"',
        '"pld"',
    ),
    *('"dpframe.ledger/1"', '"dpframe.ledger/2"', '"dpframe.ledger/3"', "1.5", '"0123456789abcdef0123456789abcdef"'),
)
PLACE = "\x00place\x00"  # a placeholder for the hostile text until the JSON is written


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """An intact ledger of five entries, with a stored answer, and the record of its first release."""
    path = tmp_path_factory.mktemp("sound") / "clinic.ledger"
    ledger = dpf.Ledger(epsilon=1, path=path, dataset="clinic")
    first = PEOPLE.dp.count(epsilon=0.125, ledger=ledger, label="first")
    wards(ledger)
    ledger.raise_limit(epsilon=2, reason="the board agreed")
    PEOPLE.dp.count(epsilon=0.125, ledger=ledger)
    return path, first.dp.provenance


@pytest.fixture(scope="module")
def rdp(tmp_path_factory):
    """An intact ledger under rdp, the accounting that stores the most numbers, and the record of a release."""
    path = tmp_path_factory.mktemp("rdp") / "clinic.ledger"
    ledger = dpf.Ledger(epsilon=1, delta=1e-6, accounting="rdp", path=path)
    first = PEOPLE.dp.count(epsilon=0.125, ledger=ledger)
    PEOPLE.dp.count(epsilon=0.125, ledger=ledger)
    return path, first.dp.provenance


def wards(ledger):
    return PEOPLE.dp.group_by("ward", keys=["A", "B"]).count(epsilon=0.25, ledger=ledger, **NAMED)


def copied(path, folder):
    """Copy the ledger and its head into a folder where a test may damage them."""
    folder.mkdir(exist_ok=True)
    for file in folder.iterdir():
        file.unlink()
    for ending in ("", ".head"):
        shutil.copy(f"{path}{ending}", folder)
    return folder / path.name


def all_uses(path, provenance):
    """Use the ledger in every way; the test fails if anything except a typed error is raised."""
    for use in (
        lambda: dpf.Ledger.open(path),
        lambda: dpf.Ledger(epsilon=1, path=path, dataset="clinic"),
        lambda: used(dpf.Ledger.open(path), provenance),
    ):
        with suppress(dpf.LedgerError):
            use()
    for command in ("show", "verify", "export") if find_spec("typer") else ():
        assert main(["ledger", command, str(path)]) in (0, 1)


def used(ledger, provenance):
    for use in (
        lambda: (ledger.spent, ledger.remaining, ledger.limit),
        lambda: (repr(ledger).encode(), ledger._repr_html_().encode()),
        ledger.verify,
        lambda: ledger.verify(provenance),
        ledger.to_frame,
        lambda: wards(ledger),
        lambda: PEOPLE.dp.count(epsilon=0.01, ledger=ledger),
    ):
        with suppress(dpf.LedgerError):
            use()


def link(previous, body):
    return hashlib.sha256(f"{previous}\n{body}".encode()).hexdigest()


def leaves(value, at=()):
    """Yield the path of every value inside a JSON value."""
    yield at
    if isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from leaves(value[key], (*at, key))


def with_hostile(text, chance):
    """Return the JSON text with one value replaced, removed or added."""
    value = json.loads(text)
    place = chance.choice(list(leaves(value)))
    what = chance.choice(HOSTILE)
    if not place:
        return what
    inner = value
    for key in place[:-1]:
        inner = inner[key]
    kind = chance.random()
    if kind < 0.1:
        del inner[place[-1]]
    elif kind < 0.2 and isinstance(inner, dict):
        inner["more"] = PLACE
    else:
        inner[place[-1]] = PLACE
    written = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return written.replace(json.dumps(PLACE), what)


def flipped(text, chance):
    """Return the text with one character replaced."""
    place = chance.randrange(len(text))
    return text[:place] + chr(chance.randrange(1, 128)) + text[place + 1 :]


def rewrite(path, change, *, rehash):
    """Change the terms and entries with `change`; with `rehash`, compute the hashes of chain and head again."""
    with closing(sqlite3.connect(path)) as connection, connection:
        (terms,) = connection.execute("select terms from dpframe_ledger").fetchone()
        rows = connection.execute("select entry, body, head from dpframe_entries order by entry").fetchall()
        terms, bodies = change(terms, [body for _, body, _ in rows])
        connection.execute("update dpframe_ledger set terms = ?", (terms,))
        previous = began = hashlib.sha256(terms.encode()).hexdigest()
        for (entry, _, kept), body in zip(rows, bodies, strict=True):
            previous = link(previous, body) if rehash else kept
            connection.execute("update dpframe_entries set body = ?, head = ? where entry = ?", (body, previous, entry))
    if rehash:
        last = {"ledger": began, "entry": len(rows), "head": previous}
        with suppress(ValueError, RecursionError, KeyError, TypeError):
            found = json.loads(bodies[-1])
            facts = json.dumps(last | {"total": found["total"], "limit": found["limit"]})
            slot = f"{hashlib.sha256(facts.encode()).hexdigest()} {facts}\n".encode()
            head_of(path).write_bytes(slot)


def head_of(path):
    return path.with_name(path.name + ".head")


def one_of(terms, bodies, changed):
    """Return the terms and bodies, with one of them changed."""
    place = changed.chance.randrange(len(bodies) + 1)
    if place == len(bodies):
        return changed(terms), bodies
    return terms, [changed(body) if number == place else body for number, body in enumerate(bodies)]


class Changed:
    """A function that changes a text, with its random generator."""

    def __init__(self, way, chance):
        self.way, self.chance = way, chance

    def __call__(self, text):
        return self.way(text, self.chance)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", ["sound", "rdp"])
def test_19_hostile_values_are_refused_by_typed_errors(kind, seed, request, tmp_path):
    """A hostile value replaces one of the terms or of an entry, and every hash is computed again to fit."""
    path, provenance = request.getfixturevalue(kind)
    chance = random.Random(seed)
    for _ in range(8):
        damaged = copied(path, tmp_path / "damaged")
        rewrite(damaged, lambda *found: one_of(*found, Changed(with_hostile, chance)), rehash=True)
        all_uses(damaged, provenance)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_19_every_changed_character_is_noticed(sound, seed, tmp_path):
    path, provenance = sound
    chance = random.Random(seed)
    for _ in range(8):
        damaged = copied(path, tmp_path / "damaged")
        was = damaged.read_bytes()
        rewrite(damaged, lambda *found: one_of(*found, Changed(flipped, chance)), rehash=False)
        if damaged.read_bytes() == was:
            continue
        with suppress(AssertionError):
            same = texts(damaged) == texts(path)
        if not same:
            with pytest.raises(dpf.LedgerError):
                dpf.Ledger.open(damaged)
        all_uses(damaged, provenance)


def texts(path):
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("select body, head, name from dpframe_entries order by entry").fetchall()
        return rows, connection.execute("select terms from dpframe_ledger").fetchall()


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["", ".head"])
@pytest.mark.parametrize("seed", range(6))
def test_19_bytes_changed_on_the_disk(sound, ending, seed, tmp_path):
    path, provenance = sound
    chance = random.Random(seed)
    for _ in range(8):
        damaged = copied(path, tmp_path / "damaged")
        file = damaged.with_name(damaged.name + ending)
        content = bytearray(file.read_bytes())
        for _ in range(chance.choice((1, 8, 64))):
            content[chance.randrange(len(content))] = chance.randrange(256)
        file.write_bytes(content[: chance.choice((len(content), chance.randrange(len(content))))])
        all_uses(damaged, provenance)


@pytest.mark.parametrize(
    "statement",
    [
        "update dpframe_entries set body = x'ff00' where entry = 2",
        "update dpframe_entries set body = cast(x'ff00' as text) where entry = 2",
        "update dpframe_entries set head = 5 where entry = 2",
        "update dpframe_entries set name = 5 where entry = 2",
        "update dpframe_entries set name = 'x'",
        "update dpframe_entries set entry = entry + 9000000000000",
        "update dpframe_ledger set terms = x'ff00'",
        "update dpframe_ledger set terms = 5",
        "update dpframe_ledger set terms = ''",
        "update dpframe_answers set content = 5",
        "update dpframe_answers set content = 'x'",
        "update dpframe_answers set entry = 9000000000000",
        "delete from dpframe_answers",
        "alter table dpframe_entries drop column name",
        "alter table dpframe_entries rename to other",
    ],
)
def test_19_other_types_in_the_tables(sound, statement, tmp_path):
    path, provenance = sound
    damaged = copied(path, tmp_path / "damaged")
    with closing(sqlite3.connect(damaged)) as connection, connection:
        if "drop column" in statement:
            connection.execute("drop index dpframe_names")
        connection.execute(statement)
    with pytest.raises(dpf.LedgerError):
        dpf.Ledger.open(damaged).verify()
    all_uses(damaged, provenance)


@pytest.mark.slow
@pytest.mark.parametrize("what", [*HOSTILE, '"' + "0" * 64 + '"'], ids=lambda what: what[:24])
@pytest.mark.parametrize("fact", ["ledger", "entry", "head", "total", "limit"])
def test_19_hostile_heads(sound, fact, what, tmp_path):
    """A slot of the head holds a hostile value, with a hash that fits."""
    path, _ = sound
    damaged = copied(path, tmp_path / "damaged")
    slot = head_of(damaged).read_bytes().split(b"\n")[0].rstrip().partition(b" ")[2]
    facts = json.dumps(json.loads(slot) | {fact: PLACE}).replace(json.dumps(PLACE), what)
    head_of(damaged).write_bytes(f"{hashlib.sha256(facts.encode()).hexdigest()} {facts}\n".encode())
    with suppress(dpf.LedgerError):
        dpf.Ledger.open(damaged)
    with suppress(dpf.LedgerError):
        dpf.Ledger.recover(damaged, reason="a test")


def test_19_a_bottomless_text_is_no_facts():
    with pytest.raises(ValueError, match="too deep"):
        reading.facts_of("[" * 10**6)


@pytest.mark.parametrize("bound", [True, 1.0])
def test_19_a_bound_that_only_equals_a_whole_number_is_no_unit(bound):
    """Units that were read are kept, and True is equal to 1."""
    facts = dpf.PrivacyUnit("patient", max_rows=1).facts()
    assert reading.unit(facts).max_rows == 1
    with pytest.raises(ValueError, match="no unit"):
        reading.unit({**facts, "max_rows": bound})


def test_19_a_head_that_may_not_be_read_is_not_to_be_removed(sound, tmp_path, monkeypatch):
    """The head may be intact, so the message must not advise to remove it."""
    damaged = copied(sound[0], tmp_path / "damaged")

    def refused(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(heads, "open", refused, raising=False)
    with pytest.raises(dpf.LedgerError, match="Let this user read it") as caught:
        dpf.Ledger.open(damaged)
    assert "recover" not in str(caught.value)
    assert "remove" not in str(caught.value)


def test_19_where_both_went_on_nothing_that_is_known_is_lost(sound, tmp_path):
    """A copy was recovered without its head and charged; then the head of the lost file turned up."""
    damaged = copied(sound[0], tmp_path / "damaged")
    kept = head_of(damaged).read_bytes()
    with closing(sqlite3.connect(damaged)) as connection, connection:
        connection.execute("delete from dpframe_entries where entry > 1")
        connection.execute("delete from dpframe_answers")
    head_of(damaged).unlink()
    ledger = dpf.Ledger.recover(damaged, reason="the head was lost too")
    for _ in range(4):
        PEOPLE.dp.count(epsilon=0.125, ledger=ledger)
    head_of(damaged).write_bytes(kept)
    with pytest.raises(dpf.LedgerError, match=r"continued from an older copy: its entry 5 .*recover"):
        dpf.Ledger.open(damaged)
    ledger = dpf.Ledger.recover(damaged, reason="the head turned up")
    assert ledger.spent.epsilon == 0.625 + 0.5  # spent in the copy, plus the whole total in the head
    assert ledger.limit.epsilon == 2
    ledger = dpf.Ledger.open(damaged)
    assert ledger.remaining.epsilon == 0.875


def test_19_a_recovery_may_pass_the_limit_and_then_nothing_is_left(tmp_path):
    path = tmp_path / "clinic.ledger"
    ledger = dpf.Ledger(epsilon=1, path=path)
    shutil.copy(path, tmp_path / "older")
    PEOPLE.dp.count(epsilon=0.75, ledger=ledger)
    kept = head_of(path).read_bytes()
    shutil.copy(tmp_path / "older", path)
    head_of(path).unlink()
    witness._newest.clear()  # from here on as in another process
    PEOPLE.dp.count(epsilon=0.75, ledger=dpf.Ledger.open(path))
    head_of(path).write_bytes(kept)
    ledger = dpf.Ledger.recover(path, reason="two histories")
    assert (ledger.spent.epsilon, ledger.remaining.epsilon) == (1.5, 0.0)
    assert "100% of the limit" in repr(ledger)
    with pytest.raises(dpf.BudgetExceeded):
        PEOPLE.dp.count(epsilon=0.001, ledger=ledger)
    assert ledger.verify()["entry"] == 2
