"""``df.dp.local.randomize`` checks the call, charges it and then reads rows; only randomized reports leave it."""

from __future__ import annotations

import importlib.util
import json
import warnings
from pathlib import Path

import polars as pl
import pytest
from seen import seen

import dpframe as dpf
from dpframe.display.pages import at_least
from dpframe.release import randomizing

SCHEMA = json.loads((Path(dpf.__file__).parent.parent / "docs" / "provenance.schema.json").read_text(encoding="utf-8"))
jsonschema = pytest.importorskip("jsonschema")

REPLACE = dpf.PrivacyUnit(neighbors="replace")
PEOPLE = dpf.PrivacyUnit("person", neighbors="replace", max_rows=2)
METHOD = dpf.local.SubsetSelection(["A", "B", "C", "D"], epsilon=0.5)
ROWS = {"drug": ["A", "B", None, "other"] * 250, "age": [31.0, 45.0, None, 62.0] * 250, "person": [*range(500)] * 2}
FRAMES = ["polars", "lazy"] + (["pandas"] if importlib.util.find_spec("pandas") else [])


def test_reports_have_no_checks():
    ledger = dpf.Ledger(9, unit=REPLACE)
    asked = {"method": METHOD, "ledger": ledger}
    for nothing in ("auto", False):
        assert len(pl.DataFrame(ROWS).dp.local.randomize("drug", checks=nothing, **asked)) == 1_000
    spent = ledger.spent
    for some in (True, 0.1):
        with pytest.raises(dpf.InvalidArgument, match="checks must be left out of randomize"):
            pl.DataFrame(ROWS).dp.local.randomize("drug", checks=some, **asked)
    with pytest.raises(dpf.InvalidType, match="checks must be"):
        pl.DataFrame(ROWS).dp.local.randomize("drug", checks="x", **asked)
    assert ledger.spent == spent


def frame_of(library):
    if library == "pandas":
        import pandas

        return pandas.DataFrame(ROWS)
    return pl.LazyFrame(ROWS) if library == "lazy" else pl.DataFrame(ROWS)


def paid(epsilon=10.0, unit=REPLACE, **more):
    return dpf.Ledger(epsilon=epsilon, unit=unit, **more)


def asked(frame=None, column="drug", method=METHOD, **more):
    frame = pl.DataFrame(ROWS) if frame is None else frame
    return frame.dp.local.randomize(column, method=method, **{"ledger": paid(), **more})


@pytest.mark.slow
@pytest.mark.parametrize("library", FRAMES)
@pytest.mark.parametrize(("column", "method"), [("drug", METHOD), ("age", dpf.local.Mean((0, 100), epsilon=0.5))])
def test_only_reports_come_out(library, column, method):
    ledger = paid()
    reports = asked(frame_of(library), column, method, ledger=ledger, label="first")
    assert list(reports.columns) == [column]
    assert len(reports) == 1_000
    assert type(reports).__module__.startswith("pandas" if library == "pandas" else "polars")
    assert ledger.spent == dpf.PrivacyLoss(0.5)
    facts = reports.dp.provenance
    jsonschema.validate(facts, SCHEMA)
    assert (facts["model"], facts["per_report"], facts["label"]) == ("local", 0.5, "first")
    assert not facts["altered"]
    found = dpf.local.estimate(reports)
    assert type(found) is type(reports)
    jsonschema.validate(found.dp.provenance, SCHEMA)
    assert found.dp.provenance["label"] == "first"
    assert found.dp.errors().shape[0] == 1


def test_a_ledger_that_hides_who_takes_part_refuses():
    for ledger in (dpf.Ledger(epsilon=1), dpf.Ledger(epsilon=1, unit=dpf.PrivacyUnit("person", max_rows=1))):
        with pytest.raises(dpf.InvalidArgument, match="one person's value is replaced, and that the person takes part"):
            asked(ledger=ledger)
        assert ledger.spent.epsilon == 0


def test_197_the_statement_counts_all_reports_of_a_person():
    found = dpf.local.estimate(asked(ledger=paid(unit=PEOPLE)))
    said = found.dp.statement()
    assert "no outcome is more than 2.72 times as likely as if one person had another value" in said
    assert "(differential privacy, epsilon 1)" in said  # two reports of epsilon 0.5 each
    assert "rows of a person beyond the first 2 count as missing" in found.dp.provenance["notes"]
    assert "epsilon 0.5)" in dpf.local.estimate(asked()).dp.statement()


@pytest.mark.parametrize(("most", "first"), [(1, "first"), (2, "first 2")])
def test_notes_name_the_rows_of_a_unit_that_count_as_missing(most, first):
    unit = dpf.PrivacyUnit("hour", neighbors="replace", max_rows=most)
    reports = asked(pl.DataFrame(ROWS).rename({"person": "hour"}), ledger=paid(unit=unit))
    assert reports.dp.provenance["notes"][1:] == [
        "a value of drug that is missing or not declared makes the report of a random one",
        f"so does each row of an hour beyond the {first}",
    ]
    notes = dpf.local.estimate(reports).dp.provenance["notes"]
    assert f"rows of an hour beyond the {first} count as missing" in notes


def test_reports_that_another_method_made_are_refused():
    reports = asked()
    other = dpf.local.RandomizedResponse(METHOD.categories, epsilon=4)
    with pytest.raises(dpf.InvalidArgument, match="by their record another one made them"):
        other.estimate(reports)
    same = type(METHOD).from_json(METHOD.to_json())
    assert same.estimate(reports).equals(METHOD.estimate(reports))
    rappor = dpf.local.Rappor.for_epsilon(METHOD.categories, epsilon=2)
    kept = asked(method=rappor.permanent, ledger=paid(epsilon=2))
    with pytest.raises(dpf.InvalidArgument, match="by their record another one made them"):
        rappor.estimate(kept)  # the permanent bits, before report()


def test_reports_of_one_person_add_up():
    ledger = paid(unit=PEOPLE)
    reports = asked(ledger=ledger)
    assert ledger.spent == dpf.PrivacyLoss(1.0)
    assert reports.dp.provenance["unit"]["max_rows"] == 2
    asked(ledger=ledger, max_rows=1)
    assert ledger.spent == dpf.PrivacyLoss(1.5)
    words = r"max_rows must be given, because the ledger protects each person, .* Write for instance max_rows=3"
    with pytest.raises(dpf.MissingArgument, match=words):
        asked(ledger=paid(unit=dpf.PrivacyUnit("person", neighbors="replace")))


def test_rows_beyond_the_bound_say_nothing():
    sure = dpf.local.RandomizedResponse(["A", "B"], epsilon=60)
    frame = pl.DataFrame({"drug": ["A"] * 4_000, "person": [1] * 2_000 + list(range(2, 2_001)) + [None]})
    unit = dpf.PrivacyUnit("person", neighbors="replace", max_rows=1_000)
    with randomizing.noise.insecure_bits(1):
        found = asked(frame, method=sure, ledger=paid(1e6, unit))["drug"].to_list()
    assert set(found[:1_000]) == {"A"}
    assert 400 < found[1_000:2_000].count("B") < 600
    assert set(found[2_000:-1]) == {"A"}


@pytest.mark.parametrize("nulls", ["drop", "one-unit"])
def test_rows_without_a_unit_say_nothing_if_they_are_left_out(nulls):
    """The chance of a false alarm is below 10^-22: reports of nothing are random, and all others are sure."""
    sure = dpf.local.RandomizedResponse(["A", "B"], epsilon=60)
    frame = pl.DataFrame({"drug": ["A"] * 400, "person": pl.Series([None] * 400, dtype=pl.Int64)})
    unit = dpf.PrivacyUnit("person", neighbors="replace", max_rows=400, nulls=nulls)
    found = asked(frame, method=sure, ledger=paid(1e6, unit))["drug"].to_list()
    assert ("B" in found) == (nulls == "drop")


def test_nothing_is_read_before_the_charge(monkeypatch):
    def looked(*_):
        raise AssertionError("rows were read")

    ledger = paid(0.4)
    monkeypatch.setattr(randomizing, "looked", looked)
    with pytest.raises(dpf.BudgetExceeded):
        asked(ledger=ledger)
    assert ledger.spent.epsilon == 0
    with pytest.raises(AssertionError):
        asked(ledger=(ledger := paid()))
    assert ledger.spent.epsilon == 0.5, "the charge stands"


def test_a_failing_engine_keeps_the_charge_and_says_nothing(monkeypatch):
    real = randomizing.categories_of_rows

    def failing(frame, *rest):
        if not isinstance(frame, pl.DataFrame) or frame.height:
            raise ValueError("secret")
        return real(frame, *rest)

    monkeypatch.setattr(randomizing, "categories_of_rows", failing)
    ledger = paid()
    with pytest.raises(dpf.ReleaseFailed) as caught:
        asked(ledger=ledger)
    assert ledger.spent.epsilon == 0.5
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_a_method_that_fails_says_nothing_either():
    class Failing(dpf.local.RandomizedResponse):
        def reports(self, rows):
            if len(rows):
                raise ValueError("secret")
            return super().reports(rows)

    with pytest.raises(dpf.ReleaseFailed) as caught:
        asked(method=Failing(["A", "B"], epsilon=1))
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"column": "drugg"}, dpf.UnknownColumn),
        ({"column": 3}, dpf.InvalidArgument),
        ({"column": "age"}, dpf.WrongDtype),
        ({"column": "drug", "method": dpf.local.Mean((0, 1), epsilon=1)}, dpf.WrongDtype),
        ({"method": None}, dpf.MissingArgument),
        ({"method": dpf.local.SubsetSelection}, dpf.InvalidType),
        ({"method": 3}, dpf.InvalidType),
        ({"max_rows": 3}, dpf.InvalidArgument),
        ({"label": "a\tb"}, dpf.InvalidArgument),
    ],
)
def test_refusals_cost_nothing(arguments, error):
    ledger = paid()
    with pytest.raises(error, match=r"must|is not in"):
        asked(ledger=ledger, **arguments)
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize("accounting", ["basic", "gdp", "rdp"])
def test_every_accounting_charges(accounting):
    ledger = dpf.Ledger(epsilon=5, delta=1e-6, unit=REPLACE, accounting=accounting)
    asked(ledger=ledger)
    assert 0.5 <= ledger.spent.epsilon <= 3.0


@pytest.mark.parametrize("accounting", ["basic", "gdp", "rdp"])
@pytest.mark.parametrize(("unit", "epsilon"), [(REPLACE, "0.5"), (PEOPLE, "1")])
def test_an_estimate_names_the_epsilon_that_its_reports_keep_under_every_accounting(unit, epsilon, accounting):
    """A ledger may charge more than the epsilon of the reports, and a delta; that the reports keep it stays true."""
    ledger = dpf.Ledger(epsilon=9, delta=1e-6, unit=unit, accounting=accounting)
    found = dpf.local.estimate(asked(ledger=ledger))
    words, cost = found.dp.statement(), found.dp.provenance["cost"]
    charged = f"charged epsilon {at_least(cost['epsilon'], 4):.4g} and delta 1e-06, since {accounting} accounting"
    assert f"had another value (differential privacy, epsilon {epsilon})." in words
    assert "plus a probability" not in words
    assert (charged in words) is ("charged" in words) is (accounting != "basic")
    assert f"differentially private: epsilon {epsilon};" in found.dp.table("markdown")
    if importlib.util.find_spec("altair"):
        assert f"ε = {epsilon} · " in seen(found.dp.plot())["title"]["subtitle"]


def test_a_durable_ledger_vouches_for_reports(tmp_path):
    ledger = dpf.Ledger(epsilon=1, unit=REPLACE, path=tmp_path / "clinic.ledger")
    reports = asked(ledger=ledger)
    assert ledger.verify(reports)["releases"][0]["record"] == "as charged"
    forged = {**reports.dp.provenance, "method": {**METHOD.facts(), "epsilon": 0.1}}
    with pytest.raises(dpf.LedgerError):
        ledger.verify(forged)


@pytest.mark.parametrize("like", ["polars", "pandas"])
def test_files_carry_reports_and_estimates(tmp_path, like):
    if like == "pandas":
        pytest.importorskip("pandas")
    reports = asked()
    reports.dp.write_parquet(tmp_path / "reports.parquet")
    again = dpf.read_parquet(tmp_path / "reports.parquet", like=like)
    assert not again.dp.provenance["altered"]
    found = dpf.local.estimate(again)
    found.dp.write_parquet(tmp_path / "found.parquet")
    assert dpf.read_parquet(tmp_path / "found.parquet", like=like).dp.provenance == found.dp.provenance


def test_reports_are_public_and_cannot_be_asked_again():
    reports = asked()
    with pytest.raises(dpf.AlreadyReleased):
        reports.dp.count(epsilon=1)
    with pytest.raises(dpf.InvalidArgument, match=r"Ask dpf\.local\.estimate"):
        reports.dp.plot()
    changed = reports.with_columns(pl.lit("00").alias("drug"))
    changed.__dict__["_dpframe_record"] = reports.__dict__["_dpframe_record"]
    assert changed.dp.provenance["altered"]


def test_local_follows_the_frame_itself():
    private = dpf.of(pl.DataFrame(ROWS))
    for other in (private.preview, private.group_by("drug", keys=["A"])):
        with pytest.raises(dpf.InvalidArgument, match="local must follow"):
            _ = other.local
    with pytest.raises(dpf.AlreadyReleased):
        _ = asked().dp.local


def test_plain_reports_have_no_method():
    with pytest.raises(dpf.NoProvenance, match=r"method\.estimate"):
        dpf.local.estimate(METHOD.randomize(pl.Series("drug", ["A"])))


def test_seeded_reports_say_so():
    with randomizing.noise.insecure_bits(3):
        reports = asked()
    assert "NOT PRIVATE" in reports.dp.provenance["warning"]
    assert "NOT PRIVATE" in dpf.local.estimate(reports).dp.provenance["warning"]


def test_records_from_files_are_checked():
    from dpframe.frames.foreign import problem_of

    facts = asked().dp.provenance
    assert problem_of(facts) == ""
    for change in ({"method": 3}, {"model": "central"}, {"columns": ["a", "b"]}, {"per_report": -1}, {"method": {}}):
        assert problem_of({**facts, **change})
    for name in ("method", "per_report", "model"):
        assert problem_of({key: fact for key, fact in facts.items() if key != name})


def test_the_default_ledger_takes_the_unit_of_the_call():
    ledger = dpf.default_ledger()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpf.UnlimitedBudgetWarning)
        assert len(asked(ledger=ledger, unit=REPLACE)) == 1_000
    with pytest.raises(dpf.InvalidArgument, match="replaced"):
        asked(ledger=ledger)


def test_types_never_depend_on_values():
    for values in (["A", "B"], [None, None], ["other", "A"]):
        frame = pl.DataFrame({"drug": pl.Series(values, dtype=pl.String)})
        assert asked(frame).schema == {"drug": pl.String}
    ages = pl.DataFrame({"age": pl.Series([None, None], dtype=pl.Float64)})
    assert asked(ages, "age", dpf.local.Mean((0, 1), epsilon=1)).schema == {"age": pl.Int64}
