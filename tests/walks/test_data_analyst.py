"""Orders with categories, booleans, a time that names the row, and 10% holes; compressed CSV and Parquet."""

import json

import numpy as np
import pandas as pd

from walk_steps import in_a_shell, typed_in

N_ROWS = 20_000


def orders(rng: np.random.Generator) -> pd.DataFrame:
    """Four hidden kinds of customers."""
    kind = rng.choice(4, size=N_ROWS, p=[0.4, 0.3, 0.2, 0.1])

    def words(labels: list[str], codes: np.ndarray, kept: float) -> pd.Series:
        mixed = np.where(rng.random(N_ROWS) < kept, codes, rng.integers(0, len(labels), N_ROWS))
        return pd.Series(pd.Categorical.from_codes(mixed, labels))

    def flags(shares: list[float]) -> pd.Series:
        return pd.Series(pd.array(rng.random(N_ROWS) < np.array(shares)[kind], dtype="boolean"))

    table = pd.DataFrame(
        {
            "order": pd.date_range("2024-01-01", periods=N_ROWS, freq="7min").strftime("%Y-%m-%d %H:%M:%S"),
            "region": words(["north", "south", "east", "west"], kind, 0.6),
            "product": words(["book", "game", "tool"], kind % 3, 0.7),
            "channel": words(["web", "shop", "phone"], (kind + 1) % 3, 0.5),
            "returned": flags([0.05, 0.1, 0.3, 0.5]),
            "member": flags([0.2, 0.5, 0.6, 0.9]),
        }
    )
    for name in list(table)[1:]:
        table[name] = table[name].mask(rng.random(N_ROWS) < 0.1)
    return table


def test_orders_are_described_filled_and_searched(tmp_path, rng):
    table = orders(rng)
    table.to_csv(tmp_path / "orders.csv.gz", index=False)
    table.to_parquet(tmp_path / "orders.parquet")

    said = in_a_shell(tmp_path, "gibbsian fit orders.csv.gz")
    assert "a Potts machine" in said
    assert "left out:    order" in said
    assert "the moments of the model agree with those of the data" in said
    piped = in_a_shell(tmp_path, "gibbsian fit orders.parquet --out parquet.gibbs --json | cat")
    assert json.loads(piped)["converged"]

    typed_in(tmp_path, "gibbsian report parquet.gibbs --data orders.parquet --out report.html")
    assert "product" in (tmp_path / "report.html").read_text()

    typed_in(tmp_path, "gibbsian impute parquet.gibbs orders.parquet --out filled.parquet")
    filled = pd.read_parquet(tmp_path / "filled.parquet")
    assert filled.dtypes.to_dict() == table.dtypes.to_dict()
    assert not filled.isna().any().any()
    assert (filled["order"] == table["order"]).all()
    assert (filled["region"][table["region"].notna()] == table["region"].dropna()).all()

    typed_in(tmp_path, "gibbsian unusual orders.gibbs orders.csv.gz --top 7 --out unusual.csv")
    unusual = pd.read_csv(tmp_path / "unusual.csv")
    assert (table["order"][unusual["row"]].to_numpy() == unusual["order"]).all()
    listed = json.loads(in_a_shell(tmp_path, "gibbsian unusual orders.gibbs orders.csv.gz --top 7 --json | cat"))
    assert [row["order"] for row in listed["unusual_rows"]] == list(unusual["order"])
