"""Checkpoints: packed to the bit, refused for another fit, the same fit in every process."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import gibbsian as gb
from gibbsian.errors import ArgumentError, FileFormatError
from gibbsian.learning import LEARNERS
from gibbsian.storage import Checkpoint, pack, unpack
from systems import random_model, sampled_data


def test_fingerprint_of_a_fit_is_the_same_in_every_process():
    """A function's address in a repr kept checkpoints from being resumed by the next process."""
    code = (
        "import numpy as np, gibbsian as gb\n"
        "from gibbsian.storage.checkpoints import fingerprint\n"
        "from gibbsian.learning import LEARNERS\n"
        "data = gb.Dataset.read([[0, 1], [1, 1], [1, 0]])\n"
        "model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2), gb.Variables.binary(2)))\n"
        "print([fingerprint(LEARNERS.create(name), model, data) for name in LEARNERS])\n"
    )
    seen = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout for _ in "ab"
    }
    assert len(seen) == 1
    assert not any(" at 0x" in repr(LEARNERS.create(name)) for name in LEARNERS)


leaves = st.one_of(
    st.floats(allow_nan=False),
    st.integers(-(2**60), 2**60),
    st.booleans(),
    hnp.arrays(st.sampled_from([np.float64, np.int8, np.uint64, np.bool_]), hnp.array_shapes(min_side=0, max_dims=2)),
)


@given(st.recursive(leaves, lambda parts: st.tuples(parts, parts)))
def test_packing_is_undone_by_unpacking(progress):
    def same(a, b):
        if isinstance(a, tuple):
            return all(same(*pair) for pair in zip(a, b, strict=True))
        return np.array_equal(a, b, equal_nan=np.asarray(a).dtype.kind == "f") and type(a) is type(b)

    assert same(unpack(progress, pack(progress)), progress)


def test_checkpoint_of_another_fit_is_refused(tmp_path, rng):
    path = tmp_path / "fit.checkpoint"
    data = sampled_data(random_model(gb.graphs.complete(4), rng), 200, rng)
    gb.BoltzmannMachine(learner="mple", checkpoint=Checkpoint(path, every=1)).fit(data)
    resume = Checkpoint(path, resume=True)
    with pytest.raises(FileFormatError, match=r"fit\.checkpoint is the checkpoint of another fit"):
        gb.BoltzmannMachine(learner="mple", l2=0.1, checkpoint=resume).fit(data)
    with pytest.raises(FileFormatError, match="another fit"):
        gb.BoltzmannMachine(learner="mple", checkpoint=resume).fit(data.take(range(100)))
    gb.BoltzmannMachine(learner="mple").fit(data).save(path)
    with pytest.raises(FileFormatError, match="holds a pairwise, not one of checkpoint"):
        gb.BoltzmannMachine(learner="mple", checkpoint=resume).fit(data)


def test_resuming_without_a_file_starts_afresh(tmp_path, rng):
    data = sampled_data(random_model(gb.graphs.complete(3), rng, scale=0.2), 200, rng)
    machine = gb.BoltzmannMachine(learner="mple", checkpoint=Checkpoint(tmp_path / "none", resume=True)).fit(data)
    assert "resumed_at_step" not in machine.result_.provenance


def test_bad_interval_is_named():
    with pytest.raises(ArgumentError, match="every=0"):
        Checkpoint("x", every=0)
