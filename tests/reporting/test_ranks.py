"""Average ranks against Demšar's worked example and by hand; the diagram; the page."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from fabricated import Results

from feddep.reporting import ranks
from feddep.reporting.results import collect

# Demšar 2006, Table 6: AUC of C4.5, C4.5+m, C4.5+cf and C4.5+m+cf on 14 datasets.
AUC = """
0.763 0.768 0.771 0.798 | 0.599 0.591 0.590 0.569 | 0.954 0.971 0.968 0.967 | 0.628 0.661 0.654 0.657 | 0.882 0.888 0.886 0.898
0.936 0.931 0.916 0.931 | 0.661 0.668 0.609 0.685 | 0.583 0.583 0.563 0.625 | 0.775 0.838 0.866 0.875 | 1.000 1.000 1.000 1.000
0.940 0.962 0.965 0.962 | 0.619 0.666 0.614 0.669 | 0.972 0.981 0.9751 0.975 | 0.957 0.978 0.946 0.970
"""
NAMES = ["local", "fedavg", "fedsage_plus", "feddep"]


def summary(values: np.ndarray, names: list[str], clients: int | None = 3) -> pd.DataFrame:
    """A summary with one number of clients: shape of values (datasets, methods)."""
    rows = [
        {"setting": "feddep", "dataset": f"graph{k:02}", "clients": clients, "method": name, "mean": value}
        for k, line in enumerate(values)
        for name, value in zip(names, line, strict=True)
    ]
    return pd.DataFrame(rows).astype({"clients": "Int64"})


def demsar() -> ranks.Ranking:
    values = np.array([[float(number) for number in row.split()] for row in AUC.replace("\n", "|").split("|") if row.strip()])
    assert values.shape == (14, 4)
    (one,) = ranks.rank(summary(values, NAMES))
    return one


def test_demsars_example() -> None:
    one = demsar()
    # His Table 6 prints 3.143, 2.000, 2.893, 1.964, χ² = 9.28, F = 3.69 with 3 and 39 degrees of freedom, CD = 1.25.
    assert one.average.round(3).to_dict() == {"feddep": 1.964, "fedavg": 2.0, "fedsage_plus": 2.893, "local": 3.143}
    assert one.critical_difference == pytest.approx(1.25, abs=0.005)
    n, k = 14, 4
    plain = 12 * n / (k * (k + 1)) * ((one.average**2).sum() - k * (k + 1) ** 2 / 4)  # without a correction for ties
    assert plain == pytest.approx(9.28, abs=0.02)
    ties = 3 * (2**3 - 2) + (4**3 - 4)  # on iris, lung cancer and primary tumor two are equal, on mushroom all four
    assert one.chi2 == pytest.approx(plain / (1 - ties / (n * k * (k * k - 1))))
    assert 0 < one.f_p < one.p < 0.05
    assert ranks._different(one) == []  # he finds C4.5 and C4.5+m+cf 1.179 apart, less than a CD


def test_nemenyis_p_is_that_of_the_critical_difference() -> None:
    values = np.array([[0.9, 0.8, 0.7, 0.6, 0.5]] * 8)
    (one,) = ranks.rank(summary(values, ["fedavg", "feddep", "fedgnn", "fedgsl", "local"]))
    assert (one.f_p, one.chi2) == (0.0, pytest.approx(32.0))
    gaps = one.average.to_numpy()[:, None] - one.average.to_numpy()[None, :]
    assert (np.abs(gaps) > one.critical_difference).tolist() == (one.pairs.to_numpy() < 0.05).tolist()
    assert [pair[:2] for pair in ranks._different(one)] == [("fedavg", "fedgsl"), ("fedavg", "local"), ("feddep", "local")]
    assert "FedAvg and FedGSL (p = " in ranks.markdown([one])


def test_one_value_a_dataset() -> None:
    few, many = summary(np.array([[0.8, 0.9]]), ["fedavg", "feddep"]), summary(np.array([[0.8, 0.5]]), ["fedavg", "feddep"], 10)
    whole = summary(np.array([[0.99]]), ["global"], None)
    oracle = summary(np.array([[0.99]]), ["halo"])
    alone = summary(np.array([[0.1]]), ["fedavg"], 5)  # a cell that not all have
    (one,) = ranks.rank(pd.concat([few, many, whole, oracle, alone], ignore_index=True))
    assert one.ranks.to_dict() == {"fedavg": {"graph00": 1.0}, "feddep": {"graph00": 2.0}}  # means 0.8 and 0.7
    assert one.over_cells.to_dict() == {"fedavg": 1.5, "feddep": 1.5}
    assert one.cells == 2
    assert math.isnan(one.p)
    assert (one.pairs == 1).all(axis=None)


def test_what_differs_by_rounding_alone_shares_a_rank() -> None:
    (one,) = ranks.rank(summary(np.array([[0.1 + 0.2, 0.3, 0.2]]), ["fedavg", "feddep", "local"]))
    assert one.average.to_dict() == {"fedavg": 1.5, "feddep": 1.5, "local": 3.0}


@pytest.mark.parametrize("names", [["global"], ["fedavg"], ["fedavg", "feddep"]])
def test_where_there_is_nothing_to_test(names: list[str]) -> None:
    (one,) = ranks.rank(summary(np.array([[0.8, 0.7][: len(names)]]), names, None if names == ["global"] else 3))
    assert "No test" in ranks.markdown([one])
    assert len(ranks.table([one])) == len(names) - names.count("global")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "No test" in ranks.figure(one).get_supxlabel()


def test_the_diagram() -> None:
    one = demsar()
    figure = ranks.figure(one)
    (ax,) = figure.axes
    texts = {text.get_text() for text in ax.texts}
    assert {"FedDEP (1.96)", "FedAvg (2.00)", "(2.89) FedSage+", "(3.14) Local", f"CD = {one.critical_difference:.2f}"} <= texts
    bars = [line for line in ax.lines if line.get_color() == "#0072B2" and len(set(line.get_ydata())) == 1]
    assert [(min(bar.get_xdata()), max(bar.get_xdata())) for bar in bars] == [pytest.approx((1.964, 3.143), abs=1e-3)]
    assert "not independent" in figure.get_supxlabel()


def test_tables_of_the_configuration(results: Results) -> None:
    tables = collect(results.config).tables()
    assert tables["ranks.csv"][["method", "average_rank", "rank_cora"]].to_dict("list") == {
        "method": ["fedavg", "local"],
        "average_rank": [1.0, 2.0],
        "rank_cora": [1.0, 2.0],
    }
    assert "| FedAvg | 1.00" in tables["ranks.md"]
