"""Restricted machines on the command line: fitted, scored, sampled, shown, drawn, interrupted."""

from __future__ import annotations

import signal

import numpy as np
import pandas as pd
import pytest

import gibbsian as gb
from cli_runner import answer, printed, refused, run

NAMES = ["a", "b", "c", "d"]


@pytest.fixture
def images(tmp_path):
    """Two pictures of 2 x 2 pixels in an archive, beside grey ones."""
    kinds = np.random.default_rng(0).integers(0, 2, 120)
    flat = np.array([[1, 1, 0, 0], [0, 0, 1, 1]], dtype=np.uint8)[kinds]
    np.savez(tmp_path / "images.npz", x=16 * flat, y=kinds, binary=flat)
    return tmp_path


def fit(folder, *flags, data="images.npz:binary"):
    common = ("--model", "rbm", "--seed", "0", "--out", folder / "rbm.gibbs")
    return ("fit", folder / data, *common, "--n-components", "3", "--max-iter", "60", "--learning-rate", "0.5", *flags)


class TestFit:
    def test_from_archive_to_samples(self, images):
        told = answer(*fit(images, "--validation-fraction", "0.25"))
        assert (told["kind"], told["size"]["binary hidden units"]) == ("rbm", 3)
        assert told["reason"] == "trained for 60 epochs"
        assert told["held_out"]["score"] > -1.5  # at best log 1/2
        assert len(told["strongest_hidden_units"]) == 3
        scored = answer("score", images / "rbm.gibbs", images / "images.npz:binary")
        machine = gb.load(images / "rbm.gibbs")
        assert scored["mean_log_likelihood"] == pytest.approx(machine.score(images / "images.npz:binary"))
        drawn = np.array(answer("sample", images / "rbm.gibbs", "-n", "50", "--seed", "1")["values"])
        assert (drawn[:, 0] == drawn[:, 1]).mean() > 0.9

    def test_what_is_printed(self, images):
        shown = printed(*fit(images, "--curves"))
        assert "4 binary visible units, 3 binary hidden units, 19 parameters" in shown
        assert "fit:         trained for 60 epochs" in shown
        assert "log pseudolikelihood:" in shown
        assert "strongest hidden units" in printed("show", images / "rbm.gibbs")

    def test_flags_reach_the_machine(self, images):
        flags = ("--batch-size", "7", "--negative-phase", "cd", "--n-steps", "2", "--momentum", "0.5", "--no-centred")
        answer(*fit(images, *flags, "--schedule", "constant", "--l2", "0.01", "--temperature", "2"))
        rows = np.load(images / "images.npz")["binary"]
        learner = gb.learning.Minibatch(
            max_iter=60, learning_rate=0.5, batch_size=7, negative_phase="cd", n_steps=2, momentum=0.5, centred=False,
            schedule="constant", l2=0.01,
        )  # fmt: skip
        own = gb.RestrictedBoltzmannMachine(3, learner=learner, max_iter=60, temperature=2.0, random_state=0).fit(rows)
        np.testing.assert_array_equal(gb.load(images / "rbm.gibbs").model_.theta, own.model_.theta)

    def test_numbers_that_fit_no_units_are_refused_with_the_other_array(self, images):
        flat = np.load(images / "images.npz")["binary"]
        np.savez(images / "grey.npz", x=flat * np.array([16, 16, 7, 7]), binary=flat)
        said = refused(*fit(images, data="grey.npz"))
        assert "holds 7, but visible units take two values, the same in every column" in said
        assert "grey.npz:binary" in said
        assert "--visible gaussian" in said

    def test_grey_numbers_by_threshold_or_as_numbers(self, images):
        answer(*fit(images, "--binarize", "8", data="images.npz"))
        assert answer("score", images / "rbm.gibbs", images / "images.npz")["rows"] == 120
        answer(*fit(images, "--visible", "gaussian", data="images.npz"))
        assert gb.load(images / "rbm.gibbs").coding_.name == "real"
        assert "real numbers" in printed("show", images / "rbm.gibbs")
        assert answer("show", images / "rbm.gibbs")["size"]["gaussian visible units"] == 4

    def test_mistakes(self, images):
        assert "--n-components 3,2 must be a whole number" in refused(*fit(images, "--n-components", "3,2"))
        assert "magic" in refused(*fit(images, "--negative-phase", "magic"))
        assert "holds no array 'grey'" in refused(*fit(images, data="images.npz:grey"))


class TestTable:
    @pytest.fixture
    def trained(self, folder):
        flags = (
            "--drop",
            "id",
            "--weights",
            "w",
            "--seed",
            "0",
            "--n-components",
            "2",
            "--max-iter",
            "30",
            "--learning-rate",
            "0.5",
        )
        answer("fit", folder / "data.csv", "--model", "rbm", "--out", folder / "rbm.gibbs", *flags)
        return folder / "rbm.gibbs"

    def test_weights_and_missing_cells(self, trained, folder, table):
        machine = gb.load(trained)
        assert (machine.names_, machine.coding_.name) == (tuple(NAMES), "yes/no")
        assert machine.result_.provenance["missing_cells"] == int((table[NAMES] == "?").to_numpy().sum())
        scored = answer("score", trained, folder / "data.csv", "--weights", "w")
        expected = machine.score(table[NAMES], sample_weight=table["w"].to_numpy(float))
        assert scored["mean_log_likelihood"] == pytest.approx(expected)

    def test_impute(self, trained, folder, table):
        told = answer("impute", trained, folder / "data.csv")
        assert told["filled_cells"] == int((table[NAMES] == "?").to_numpy().sum())
        filled = pd.DataFrame(told["values"], columns=told["columns"])
        known = table[NAMES] != "?"
        assert (filled[known] == table[NAMES][known]).to_numpy()[known.to_numpy()].all()
        assert set(filled.to_numpy().ravel()) == {"yes", "no"}
        shares = np.array(answer("impute", trained, folder / "data.csv", "--probabilities")["values"])
        assert shares.shape == (200, 4)

    def test_convert(self, trained, folder, table):
        plain = table[NAMES].replace({"yes": 1, "no": 0, "?": None})
        plain.to_csv(folder / "numbers.csv", index=False)
        assert "was fitted on" in refused("score", trained, folder / "numbers.csv")
        told = [
            answer("score", trained, folder / name, *flags)
            for name, *flags in (("data.csv",), ("numbers.csv", "--convert"))
        ]
        assert told[0] == told[1]

    def test_complete_rows(self, folder):
        flags = ("--drop", "id", "--drop", "w", "--n-components", "2", "--complete-rows")
        told = answer("fit", folder / "data.csv", "--model", "rbm", "--out", folder / "rbm.gibbs", *flags)
        assert told["provenance"]["missing_cells"] == 0
        assert told["provenance"]["rows"] < 200


class TestLargeMachines:
    @pytest.mark.long
    def test_scores_are_intervals(self, images):
        wide = np.tile(np.load(images / "images.npz")["binary"], (1, 7))
        np.save(images / "wide.npy", wide)
        answer(*fit(images, "--n-components", "26", "--max-iter", "1", data="wide.npy"))
        told = answer("score", images / "rbm.gibbs", images / "wide.npy", "--seed", "0")
        sides = told["mean_log_likelihood"]
        assert sides["lower"] < sides["upper"]
        assert not told["log_partition"]["exact"]
        assert "bracket log Z by --method ais" in refused("show", images / "rbm.gibbs", "--method", "exact")
        assert "mean_log_pseudolikelihood" in answer("score", images / "rbm.gibbs", images / "wide.npy", "--pseudo")
        assert "25" in refused("score", images / "rbm.gibbs", images / "wide.npy", "--method", "exact")

    def test_rows_have_estimated_scores(self, images):
        np.save(images / "wide.npy", np.random.default_rng(0).integers(0, 2, (40, 30)))
        answer(*fit(images, "--n-components", "26", "--max-iter", "1", data="wide.npy"))
        where = images / "rbm.gibbs", images / "wide.npy", "--per-row", "--seed", "0"
        each = run("score", *where)
        assert "log Z is estimated" in each.stderr
        assert each.stdout.splitlines()[0] == "log_likelihood_estimate"
        assert len(each.stdout.splitlines()) == 41
        annealed = answer("score", *where, "--method", "ais", "-n", 50, "--betas", 500)
        assert annealed["mean_log_likelihood_estimate"] == pytest.approx(np.mean(annealed["per_row"]))
        assert annealed["per_row"] == pytest.approx([float(line) for line in each.stdout.split()[1:]], abs=0.2)
        assert not annealed["log_partition"]["exact"]


class TestPictures:
    @pytest.mark.parametrize("what", ["filters", "samples", "curves", "convergence"])
    def test_every_drawing(self, images, what):
        answer(*fit(images, "--curves"))
        printed("show", images / "rbm.gibbs", "--picture", images / "p.png", "--draw", what)
        assert (images / "p.png").read_bytes()[1:4] == b"PNG"

    def test_shape(self, images):
        answer(*fit(images))
        printed("show", images / "rbm.gibbs", "--picture", images / "p.svg", "--shape", "1x4")
        show = ("show", images / "rbm.gibbs", "--picture", images / "p.png")
        assert "no image of 3 x 2" in refused(*show, "--shape", "3x2")
        assert "must be HEIGHTxWIDTH" in refused(*show, "--shape", "wide")
        assert "--draw magic is not known" in refused(*show, "--draw", "magic")
        assert "must end in one of .png" in refused("show", images / "rbm.gibbs", "--picture", images / "p.gif")
        assert "add --picture" in refused("show", images / "rbm.gibbs", "--draw", "samples")
        assert "--layout is for the network" in refused(*show, "--draw", "samples", "--layout", "circle")

    def test_couplings_of_a_pairwise_model(self, folder):
        printed("show", folder / "model.gibbs", "--picture", folder / "p.png")
        assert (folder / "p.png").read_bytes()[1:4] == b"PNG"


class TestInterrupts:
    def test_ctrl_c_ends_after_the_epoch_and_the_fit_is_resumed_to_the_same_bits(self, images, monkeypatch):
        assert run(*fit(images)).exit_code == 0
        whole = gb.load(images / "rbm.gibbs").model_.theta.tobytes()
        keeping = fit(images, "--checkpoint", images / "progress", "--every", "2")

        def press(step, info):
            if step == 5:
                signal.raise_signal(signal.SIGINT)

        with monkeypatch.context() as patched:
            patched.setattr("gibbsian.cli.fit._progress", lambda show: [press])
            result = run(*keeping)
        assert result.exit_code == 130
        assert result.stderr.startswith("stopping after this step")
        machine = gb.load(images / "rbm.gibbs")
        assert machine.result_.reason.startswith("interrupted")
        assert machine.result_.n_steps == 5
        assert run(*keeping, "--resume").exit_code == 0
        assert gb.load(images / "rbm.gibbs").model_.theta.tobytes() == whole
