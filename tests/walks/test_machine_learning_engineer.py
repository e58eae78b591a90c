"""Arrays in scikit-learn's machinery: features of a restricted machine before a classifier, searched and validated."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import gibbsian as gb


def images(rng: np.random.Generator, n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Two patterns of 8 x 8 pixels, a fifth of the pixels flipped in each image."""
    kind = rng.integers(0, 2, n)
    patterns = rng.integers(0, 2, (2, 64))
    return (patterns[kind] ^ (rng.random((n, 64)) < 0.2)).astype(np.int8), kind


def test_features_of_a_restricted_machine_in_a_pipeline_and_a_search(tmp_path, rng):
    x, y = images(rng)
    machine = gb.RestrictedBoltzmannMachine(24, max_iter=60, random_state=0)
    pipeline = make_pipeline(machine, LogisticRegression(max_iter=500))
    search = GridSearchCV(pipeline, {"restrictedboltzmannmachine__n_components": [4, 24]}, cv=2).fit(x[:200], y[:200])
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.score(x[200:], y[200:]) > 0.8

    features = search.best_estimator_[0]
    features.save(tmp_path / "features.gibbs")
    np.testing.assert_array_equal(gb.load(tmp_path / "features.gibbs").transform(x), features.transform(x))


@pytest.mark.filterwarnings("ignore:log Z is estimated", "ignore:the likelihood has no finite maximum")
def test_machines_of_sixty_four_columns_are_validated_and_learn_from_chunks(tmp_path, rng):
    x, _ = images(rng)
    scores = cross_val_score(gb.BoltzmannMachine("grid:8x8", random_state=0), x, cv=2)
    assert np.isfinite(scores).all()
    dense = GridSearchCV(gb.BoltzmannMachine(random_state=0), {"l2": [0.1, 0.3]}, cv=2).fit(x)
    assert np.isfinite(dense.cv_results_["mean_test_score"]).all()

    learner = gb.BoltzmannMachine("grid:8x8", l2=0.01, random_state=0)
    for chunk in np.array_split(x, 3):
        learner.partial_fit(chunk)
    learner.save(tmp_path / "chunks.gibbs")
    assert gb.load(tmp_path / "chunks.gibbs").score(x) > -64 * np.log(2)  # better than coins
