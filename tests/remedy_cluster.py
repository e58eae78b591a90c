"""Situations with a remedy on a cluster, here one of threads in this process."""

from __future__ import annotations

import atexit
import tempfile
from functools import cache
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd

import gibbsian as gb
from gibbsian.cluster import DistributedDataset, connect
from remedies import OUT, Later, Row
from remedy_rows import BITS, HOLES, command


@cache
def client(n_workers=1):
    from distributed import Client, LocalCluster

    cluster = LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=False, dashboard_address=":0", silence_logs=50
    )
    made = Client(cluster, set_as_default=False)
    atexit.register(lambda: (made.close(), cluster.close()))
    return made


@cache
def folder():
    path = Path(tempfile.mkdtemp())
    BITS.to_parquet(path / "bits.parquet")
    BITS.assign(d=1).to_parquet(path / "more.parquet")
    BITS.assign(w=[0, 1] * 20).to_parquet(path / "weights.parquet")
    HOLES.to_parquet(path / "holes.parquet")
    BITS[BITS.any(axis=1)].to_parquet(path / "ones.parquet")
    pd.DataFrame(np.nan, BITS.index, list("abc")).to_parquet(path / "empty.parquet")
    pd.concat([BITS.astype(float), pd.DataFrame(np.nan, [99], list("abc"))]).to_parquet(path / "last.parquet")
    return path


def read(files="bits.parquet", **how):
    paths = [name if "://" in name else str(folder() / name) for name in files.split()]
    return DistributedDataset.read(paths, client=client(), partition_cells=30, **how)


def fit(files="bits.parquet", weight_column=None, data=None, model=gb.BoltzmannMachine, weights=None, **settings):
    rows = read(files, weight_column=weight_column) if data is None else data
    return model(**{"l2": 0.01, **settings}).fit(rows, sample_weight=weights)


def uniform(data):
    return gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(3), data.variables))


def loss_of(data):
    return gb.learning.objectives.Pseudolikelihood().bind(uniform(data), data)


def reach(cluster):
    with mock.patch("gibbsian.cluster.connection.PATIENCE", 0.2):
        found = connect(cluster)
    if isinstance(cluster, str):
        found.close()


def here():
    return Later(lambda: client().scheduler.address)


CLUSTER = [
    Row("a cluster by no address", reach, {"cluster": "host"}, ({"cluster": here()},), "tcp://host:8786"),
    Row("no scheduler", reach, {"cluster": "tcp://127.0.0.1:9"}, ({"cluster": here()},), "check the address"),
    Row("no workers", reach, {"cluster": Later(lambda: client(0))}, ({"cluster": here()},), "start 1 or more"),
    Row("no cluster", reach, {"cluster": None}, ({"cluster": here()},), "on this machine"),
    Row(
        "what needs the rows here",
        lambda data: gb.diagnostics.maximum_exists(uniform(data), data),
        {"data": Later(read)},
        ({"data": Later(lambda: read().collect())},),
        "its distinct rows",
    ),
    Row(
        "an estimator that needs the rows here",
        lambda data: gb.OnlineKMeans(2, normalize=False).fit(data),
        {"data": Later(lambda: read(coding="real"))},
        ({"data": Later(lambda: read(coding="real").collect())},),
        "its distinct rows",
    ),
    Row(
        "Gaussian units with missing cells on a cluster",
        lambda files: gb.RestrictedBoltzmannMachine(2, visible="gaussian").fit(read(files, coding="real")),
        {"files": "holes.parquet"},
        ({"files": "bits.parquet"},),
        "leave the rows out",
    ),
    Row(
        "classes of rows on a cluster",
        lambda data: gb.HardKMeans(2).fit_predict(data),
        {"data": Later(lambda: read(coding="real"))},
        ({"data": Later(lambda: read(coding="real").collect())},),
        "partitions of the frame",
    ),
    Row(
        "directions with missing cells",
        lambda files: gb.VonMisesFisherMixture(2, n_init=1, tol=0.01).fit(read(files, coding="real")),
        {"files": "holes.parquet"},
        ({"files": "bits.parquet"},),
        "leave the rows out",
    ),
    Row(
        "directions of norm zero",
        lambda files: gb.VonMisesFisherMixture(2, n_init=1, tol=0.01).fit(read(files, coding="real")),
        {"files": "bits.parquet"},
        ({"files": "ones.parquet"},),
        "left out",
    ),
    Row("rows of nothing", fit, {"files": "empty.parquet"}, ({"files": "bits.parquet"},), "nothing to fit"),
    Row("a row of nothing", read, {"files": "last.parquet"}, ({"files": "bits.parquet"},), "left out"),
    Row(
        "missing cells on a cluster",
        lambda learner=None: fit("holes.parquet", learner=learner) if learner else loss_of(read("holes.parquet")),
        {},
        (),
        "which sum them out",
    ),
    Row(
        "minibatches of weighted rows",
        fit,
        {"files": "weights.parquet", "weight_column": "w", "learner": "online", "max_iter": 2},
        ({"weight_column": OUT},),
        "out",
    ),
    Row("no files on a cluster", read, {"files": "no-*.parquet"}, ({"files": "bits.parquet"},), "check the path"),
    Row("a store that is none", read, {"files": "none://a.parquet"}, ({"files": "bits.parquet"},)),
    Row(
        "other columns in a partition",
        read,
        {"files": "bits.parquet more.parquet"},
        ({"files": "bits.parquet"},),
        "same columns",
    ),
    Row(
        "weights beside rows on a cluster",
        fit,
        {"files": "weights.parquet", "weights": np.ones(40)},
        ({"weights": None, "weight_column": "w"},),
        "name a column",
    ),
    Row(
        "another coding than that of the rows",
        fit,
        {"coding": gb.domain.as_coding("spin"), "data": Later(read)},
        ({"data": Later(lambda: read(coding=gb.domain.as_coding("binary"))), "coding": "binary"},),
        "read them in that coding",
    ),
    Row(
        "flips into rows of other partitions",
        lambda skip_data=False: fit(l2=0.0, learner=gb.learning.as_learner("mpf", skip_data=skip_data, l2=0.01)),
        {"skip_data": True},
        ({"skip_data": OUT},),
        "leave it out",
    ),
    Row(
        "fit: a cluster with complete rows",
        command,
        {"args": "fit|bits.csv|--cluster|local|--complete-rows|--out|new.gibbs"},
        ({"args": "fit|bits.csv|--complete-rows|--out|new.gibbs"},),
        "leave it out",
    ),
]
