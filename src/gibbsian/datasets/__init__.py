"""The data set that comes with the package."""

from __future__ import annotations

from pathlib import Path

from gibbsian.data import Dataset

__all__ = ["house_votes_path", "load_house_votes"]


def house_votes_path() -> Path:
    """Return the path of the CSV file that `load_house_votes` reads.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.datasets.house_votes_path().name
    'house_votes_84.csv'
    """
    return Path(__file__).with_name("house_votes_84.csv")


def load_house_votes() -> Dataset:
    """Return the votes of the United States House of Representatives in 1984.

    435 members, 16 key votes (1 yea, 0 nay) and the party in the column ``republican`` (1) against democrat (0).
    Blank cells are missing: the member did not make a position known. The source is the Congressional Voting Records
    data set of the UCI Machine Learning Repository, after the Congressional Quarterly Almanac, 98th Congress, 2nd
    session.

    Examples
    --------
    >>> import gibbsian as gb
    >>> data = gb.datasets.load_house_votes()
    >>> data.n_rows, data.n_variables, data.coding.name, data.has_missing
    (435, 17, 'binary', True)
    >>> data.complete_rows().n_rows
    232
    """
    return Dataset.read(house_votes_path())
