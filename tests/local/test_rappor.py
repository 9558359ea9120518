"""RAPPOR's memoized bits: the bits of a period are made once, and no report shows that a value changed."""

from __future__ import annotations

import enum
import hashlib
import hmac
import importlib.util
import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import beta

import dpframe as dpf
from dpframe.local import rappor
from dpframe.noise import insecure_bits

PAGES = ["news", "mail", "maps", "films"]
SECRET = hashlib.sha256(b"a test's secret").digest()
METHOD = dpf.local.Rappor(PAGES, f=0.5, p=0.5, q=0.75)
WIDE = dpf.local.Rappor(PAGES, f=0.5, p=0.25, q=0.75, hashes=2, bits=16, cohorts=4)


def memoized(values, people, period="2026-11", method=METHOD, secret=SECRET, name="page"):
    return method.memoize(pl.Series(name, values), secret=secret, people=people, period=period)


def bits_of(column):
    return np.array([[int(bit) for bit in f"{int(text, 16):0{4 * len(text)}b}"] for text in column.to_list()])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"f": 0.5}, {"f": Fraction(1, 2)}),
        ({"f": 0.1}, {"f": Decimal("0.1")}),
        ({"f": 0.25}, {"f": np.float32(0.25)}),
        ({"categories": [1, 2, 3]}, {"categories": [1.0, 2.0, 3.0]}),
        ({"categories": [0, 1]}, {"categories": [False, True]}),
        ({"categories": ["a", None]}, {"categories": ("a", None)}),
    ],
    ids=str,
)
def test_215_one_method_keeps_one_set_of_bits_however_it_is_spelled(one, other):
    """Otherwise a client with another spelling draws a second set of bits, and the loss is twice the stated one."""
    methods = [dpf.local.Rappor(**{"categories": PAGES, "f": 0.5, "p": 0, "q": 1, **given}) for given in (one, other)]
    methods += [dpf.local.Rappor.from_json(method.to_json()) for method in methods]
    people, value = [f"p{place}" for place in range(100)], methods[0].categories[0]
    first, *others = (memoized([value] * 100, people, method=method).to_list() for method in methods)
    assert others == [first] * 3


class Text(str, enum.Enum):  # noqa: UP042  (its text in f-strings is not its value)
    ME = "me"


class Other(str):
    def __str__(self):
        return "another text"

    __repr__ = __format__ = __str__


class Whole(enum.IntEnum):
    ME = 7


def test_224_a_person_is_one_whatever_class_holds_the_id():
    """Otherwise a client with another class of id draws a second set of bits, and the loss is twice the stated one."""
    for plain, others in (("me", (np.str_("me"), Text.ME, Other("me"))), (7, (Whole.ME,))):
        kept = memoized(["news"], [plain], method=WIDE).to_list()
        for other in others:
            assert memoized(["news"], [other], method=WIDE).to_list() == kept
    pandas = pytest.importorskip("pandas")
    column = pandas.Series([np.str_("me"), Whole.ME], dtype=object)
    assert rappor.checked_people(column) == rappor.checked_people(["me", 7]) == ("str:me", "int:7")


def test_an_id_may_hold_half_of_a_pair():
    """JSON text and file names may hold lone surrogates: they must raise no error and stay distinct ids."""
    kept = {tuple(memoized(["news"] * 9, [one] * 9, method=WIDE).to_list()) for one in ("\ud800", "\udc00", "?", "")}
    assert len(kept) == 4
    assert memoized(["news"], ["p"], period="\ud800", method=WIDE).len() == 1


def test_224_a_key_is_its_text_whatever_class_holds_it():
    methods = [
        dpf.local.Rappor(PAGES, f=0.5, p=0, q=1, bits=16, hashes=2, key=key) for key in ("me", Text.ME, Other("me"))
    ]
    assert len({tuple(memoized(PAGES, list("abcd"), method=method).to_list()) for method in methods}) == 1
    sketches = [dpf.local.CountMeanSketch(PAGES, epsilon=1, key=key) for key in ("me", Text.ME)]
    assert (sketches[0].places == sketches[1].places).all()


def test_whole_numbers_of_numpy_are_refused_with_a_way_out():
    people = np.array([7])
    with pytest.raises(dpf.InvalidType, match=r"not an? int64. Write people=\[int\(one\) for one in people\]"):
        memoized(["news"], list(people))
    assert memoized(["news"], [int(one) for one in people]).to_list() == memoized(["news"], [7]).to_list()


def test_bits_stay_and_belong_to_person_period_column_and_parameters():
    people = [f"p{place}" for place in range(200)]
    first = memoized(["news"] * 200, people).to_list()
    assert memoized(["news"] * 200, people).to_list() == first
    assert memoized(["news"] * 200, people, secret=b"x" * 32).to_list() != first
    assert memoized(["news"] * 200, people, period="2026-12").to_list() != first
    assert memoized(["news"] * 200, people[::-1]).to_list() == first[::-1]
    other = dpf.local.Rappor(PAGES, f=0.25, p=0.5, q=0.75)
    assert memoized(["news"] * 200, people, method=other).to_list() != first
    assert len(set(first)) > 5, "people of equal values do not share bits"
    assert (
        METHOD.permanent.memoize(pl.Series("page", ["news"]), secret=SECRET, people=["p0"], period="2026-11")[0]
        == (first[0])
    ), "p and q are of the reports alone"


def test_columns_do_not_share_bits():
    people = [f"p{place}" for place in range(100)]
    assert memoized(["news"] * 100, people, name="home").to_list() != memoized(["news"] * 100, people).to_list()


@pytest.mark.parametrize("library", ["polars", "pandas", "arrow"])
def test_238_a_column_without_a_name_has_no_bits(library):
    """The bits of two such columns would be random in the same places, and so show whether their answers differ."""
    if library == "polars":
        unnamed, named = pl.Series(["news"]), pl.Series("category", ["news"])
    elif library == "pandas":
        pandas = pytest.importorskip("pandas")
        unnamed, named = pandas.Series(["news"], name=0), pandas.Series(["news"], name="category")
    else:
        pyarrow = pytest.importorskip("pyarrow")
        unnamed, named = pyarrow.array(["news"]), pyarrow.table({"category": ["news"]})
    asked = {"secret": SECRET, "people": ["me"]}
    for call in (METHOD.memoize, METHOD.randomize):
        with pytest.raises(dpf.InvalidArgument, match="series must have a name"):
            call(unnamed, **asked)
        assert len(call(named, **asked)) == 1
    assert len(METHOD.randomize(unnamed)) == 1, "bits that are drawn anew need no name"


FRAMES = {
    "polars": lambda name: pl.DataFrame({name: ["news"]}),
    "lazy": lambda name: pl.LazyFrame({name: ["news"]}),
    "series": lambda name: pl.Series(name, ["news"]),
    "pandas": lambda name: pytest.importorskip("pandas").DataFrame({name: ["news"]}),
    "pandas series": lambda name: pytest.importorskip("pandas").Series(["news"], name=name),
    "arrow": lambda name: pytest.importorskip("pyarrow").table({name: ["news"]}),
}


@pytest.mark.parametrize(
    "name", ["", " ", "0", "column_0", "column_12", "literal", "f0", "column0", "_c0", "Unnamed: 0"]
)
@pytest.mark.parametrize("library", FRAMES)
def test_255_a_name_that_a_library_generates_is_none(library, name):
    """Two such questions would share their random bits, as two columns without names would."""
    with pytest.raises(dpf.InvalidArgument, match="series must have a name that you chose, not"):
        METHOD.memoize(FRAMES[library](name), secret=SECRET, people=["me"])


@pytest.mark.parametrize("library", FRAMES)
def test_a_name_that_somebody_chose_is_one_in_any_library(library):
    for name in ("category", "q1", "column", "column_a", "wave 2"):
        found = METHOD.memoize(FRAMES[library](name), secret=SECRET, people=["me"])
        assert list(found) == memoized(["news"], ["me"], period=None, name=name).to_list()


@pytest.mark.parametrize(
    "make",
    [
        lambda: pl.Series(["news"]).to_frame(),
        lambda: pl.DataFrame([["news"]]),
        lambda: pl.DataFrame([["news"]]).to_series(),
        lambda: pl.select(pl.lit("news")),
        lambda: pl.from_pandas(pytest.importorskip("pandas").DataFrame(["news"])),
        lambda: pytest.importorskip("pyarrow").Table.from_pandas(pytest.importorskip("pandas").DataFrame(["news"])),
    ],
)
def test_255_frames_that_libraries_make_of_values_alone_have_no_name(make):
    with pytest.raises(dpf.InvalidArgument, match="series must have a name that you chose, not"):
        METHOD.memoize(make(), secret=SECRET, people=["me"])


def test_a_number_is_no_name_of_a_column():
    frame = pytest.importorskip("pandas").Series(["news"]).to_frame()
    with pytest.raises(dpf.InvalidType, match=r"series must have text as its name, not 0 \(int\). Rename it"):
        METHOD.memoize(frame, secret=SECRET, people=["me"])


def test_which_bits_are_random_does_not_depend_on_the_value():
    """If the value were hashed too, a change would redraw bits, and two reports would show the change."""
    people = [f"p{place}" for place in range(2_000)]
    home, away = bits_of(memoized(["news"] * 2_000, people)), bits_of(memoized(["films"] * 2_000, people))
    assert (home[:, 1:3] == away[:, 1:3]).all(), "bits that neither value sets"
    assert (home[:, 0] >= away[:, 0]).all()
    assert (home[:, 3] <= away[:, 3]).all()


def test_the_first_value_of_a_person_counts():
    people = [f"p{place % 50}" for place in range(500)]
    values = ["news"] * 50 + [PAGES[place % 4] for place in range(450)]
    found = memoized(values, people).to_list()
    assert found == memoized(["news"] * 50, people[:50]).to_list() * 10


def test_reports_of_a_period_come_from_its_permanent_bits():
    """Averaged over many reports, a bit shows q or p, and thus no more than the permanent bit."""
    kept = memoized(["maps"], ["me"])
    with insecure_bits(5):
        mean = np.mean([bits_of(METHOD.report(kept))[0][:4] for _ in range(2_000)], axis=0)
    expected = np.where(bits_of(kept)[0][:4], 0.75, 0.5)
    assert np.abs(mean - expected).max() < 0.06


def test_fresh_bits_without_people():
    with insecure_bits(6):
        found = METHOD.permanent.randomize(pl.Series("page", ["news"] * 1_000)).to_list()
    assert len(set(found)) > 5


@pytest.mark.parametrize("method", [METHOD, WIDE], ids=["unary", "Bloom"])
def test_memoized_reports_estimate_as_fresh_ones(method):
    people, values = list(range(3_000)), ["news"] * 2_000 + ["mail"] * 1_000
    series = pl.Series("page", values)
    found = method.estimate(method.randomize(series, secret=SECRET, people=people, period="a"), denoise=None)
    misses = np.abs(found["count"].to_numpy() - [2_000, 1_000, 0, 0]) / found["count_error"].to_numpy() * 1.96
    assert misses.max() < 5.5


def test_few_reports_by_filters_have_an_error_where_no_estimate_is_above_zero():
    reports = pl.Series("page", ["00000000", "00010000", "00020000", "00030000"] * 5)  # no bit is set
    found = WIDE.estimate(reports, denoise=None)
    assert found["count"].max() < 0.0
    low, high = map(float, WIDE.seen)
    unset = np.sqrt(20 * low * (1.0 - low)) / (high - low)  # the error of one bit; a category has two bits
    assert found["count_error"].min() > 1.96 * unset / np.sqrt(2.0)


def test_all_256_bits_are_compared_with_f():
    one = hmac.digest(SECRET, b"x", "sha256")
    number = rappor.number(SECRET, b"x")
    assert number == int.from_bytes(one, "big")
    assert rappor.below([[number]], Fraction(number + 1, 2**256)).all()
    assert not rappor.below([[number]], Fraction(number, 2**256)).any()


def test_messages_of_parts_are_different():
    assert rappor.joined(b"ab", b"c") != rappor.joined(b"a", b"bc") != rappor.joined(b"", b"abc")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"secret": b"short"}, "16 random bytes"),
        ({"secret": "text" * 8}, "bytes"),
        ({"people": ["a", "b"]}, "one person a row"),
        ({"people": [None]}, "text or Python's whole numbers"),
        ({"people": [1.5]}, "text or Python's whole numbers"),
        ({"people": [True]}, "text or Python's whole numbers"),
        ({"people": [np.True_]}, "text or Python's whole numbers"),
        ({"period": 3}, "period must be text"),
    ],
)
def test_refusals_in_words(more, words):
    asked = {"secret": SECRET, "people": ["a"], "period": "a", **more}
    with pytest.raises(dpf.InvalidArgument, match=words):
        METHOD.memoize(pl.Series("page", ["news"]), **asked)


@pytest.mark.parametrize("hashes", [0, "2", None, 17])
def test_hashes_are_checked_before_f_follows_from_them(hashes):
    with pytest.raises(dpf.InvalidArgument, match="hashes must be a whole number from 1 to 16"):
        dpf.local.Rappor.for_epsilon(PAGES, 1, hashes=hashes, bits=16)


def test_people_need_a_secret():
    with pytest.raises(dpf.InvalidArgument, match="secret must be given"):
        METHOD.randomize(pl.Series("page", ["news"]), people=["me"])


@pytest.mark.parametrize("given", [{"secret": SECRET}, {"period": "2026-11"}, {"secret": SECRET, "period": "2026-11"}])
def test_254_a_secret_or_a_period_without_people_is_refused(given):
    """Each such report once came from new permanent bits, although only memoized bits need a secret and a period."""
    with pytest.raises(dpf.InvalidArgument, match=r'people must be given with secret or period: .* people=\["me"\]'):
        METHOD.randomize(pl.Series("page", ["news"]), **given)
    assert len(METHOD.randomize(pl.Series("page", ["news"]), people=["me"], **{"secret": SECRET, **given})) == 1


def test_people_are_told_apart_by_type():
    assert rappor.checked_people([1, "1"]) == ("int:1", "str:1")


def test_a_period_is_charged_once_whatever_changes():
    """The permanent bits of a period are one release; the reports of its days are post-processing of them."""
    ledger = dpf.Ledger(epsilon=10, unit=dpf.PrivacyUnit(neighbors="replace"))
    rows = pl.DataFrame({"page": PAGES * 100})
    kept = rows.dp.local.randomize("page", method=METHOD.permanent, ledger=ledger, label="November")
    for _ in range(3):
        assert len(METHOD.report(kept)) == 400
    assert ledger.spent.epsilon == METHOD.epsilon_forever
    changed = rows.with_columns(pl.col("page").reverse())
    changed.dp.local.randomize("page", method=METHOD.permanent, ledger=ledger, label="December")
    assert ledger.spent.epsilon == pytest.approx(2 * METHOD.epsilon_forever)
    rows.dp.local.randomize("page", method=METHOD, ledger=ledger)
    assert ledger.spent.epsilon == pytest.approx(3 * METHOD.epsilon_forever), "and not what one report tells"


def best_guess(days):
    """Return whether all reports of a person point to the first value, whose bit is then 1 far more often."""
    return days[:, :, 0].sum(axis=0) > days[:, :, 3].sum(axis=0) + 7


def least_epsilon(first, second, confidence=1 - 1e-6):
    """Return the lower bound on epsilon that two rates of guesses prove, by Clopper and Pearson."""
    low = beta.ppf((1 - confidence) / 2, first.sum(), first.size - first.sum() + 1)
    high = beta.ppf(1 - (1 - confidence) / 2, second.sum() + 1, second.size - second.sum())
    return np.log(low / high)


def month(method, values, keep=True):
    """Return reports of many people on 30 days, from permanent bits that are kept or drawn anew each day."""
    with insecure_bits(21):
        kept = method.permanent.randomize(values)
        drawn = (kept if keep else method.permanent.randomize(values) for _ in range(30))
        return np.array([bits_of(method.report(bits))[:, :4] for bits in drawn])


@pytest.mark.slow
def test_who_sees_every_day_learns_no_more_than_epsilon_forever():
    method = dpf.local.Rappor(PAGES, f=0.75, p=0.25, q=0.75)
    values = [pl.Series("page", [page] * 4_000) for page in ("news", "films")]
    guesses = [best_guess(month(method, one)) for one in values]
    proven = least_epsilon(*guesses)
    assert 0.5 * method.epsilon_forever < proven <= method.epsilon_forever
    leaking = [best_guess(month(method, one, keep=False)) for one in values]
    assert least_epsilon(*leaking) > 2 * method.epsilon_forever, "bits drawn every day are averaged away"


def test_the_client_reports_a_month_and_keeps_its_bits(tmp_path, monkeypatch):
    path = Path(__file__).parents[2] / "examples" / "rappor_client.py"
    spec = importlib.util.spec_from_file_location("rappor_client", path)
    client = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(client)
    one = client.Client(tmp_path / "state.json")
    method = client.METHOD
    pages = list(method.categories)
    reports = [one.report(pages[day % 3], month="2026-11") for day in range(30)]
    state = json.loads((tmp_path / "state.json").read_text())
    assert list(state["kept"]) == ["2026-11"], "the value changed, and the bits did not"
    kept = method.memoize(
        pl.Series("home", [pages[0]]), secret=bytes.fromhex(state["secret"]), people=["me"], period="2026-11"
    )
    assert state["kept"]["2026-11"] == kept[0]
    assert pages[0] not in (tmp_path / "state.json").read_text()
    assert len(set(reports)) > 1
    assert client.Client(tmp_path / "state.json").report(pages[1], month="2026-12")
    assert state["secret"] not in "".join(reports)
