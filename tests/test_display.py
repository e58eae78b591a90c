"""Short forms of machines and results."""

import numpy as np
import pytest
from sklearn.pipeline import Pipeline

import gibbsian as gb
from gibbsian.display import Shown

ROWS = np.array([[1, 1, 0], [1, 0, 0], [0, 0, 1], [0, 1, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1], [0, 1, 0]] * 5)
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def machine():
    return gb.BoltzmannMachine(l2=0.125, learner="mple").fit(ROWS)


def results(machine):
    errors = gb.uncertainty.standard_errors(machine, ROWS)
    return {
        "result": machine.result_,
        "trace": machine.result_.trace,
        "training": machine.result_.training,
        "expectation": machine.expect(),
        "comparison": gb.comparison.compare(ROWS, ["mle", "mple"], gb.BoltzmannMachine(l2=0.1), random_state=0),
        "errors": errors,
        "intervals": errors.intervals(),
        "bootstrap": gb.uncertainty.bootstrap(machine, ROWS, 3, random_state=0),
        "modes": machine.most_probable(),
        "log Z": machine.log_partition("ais", n_samples=10, betas=5),
        "structure": gb.structure.learn_structure(ROWS, l2=0.1),
    }


def test_all_results_are_a_few_lines_in_text_and_html(machine):
    for name, result in results(machine).items():
        assert isinstance(result, Shown), name
        assert len(repr(result)) < 700, name
        assert repr(result).startswith(type(result).__name__), name
        html = result._repr_html_()
        assert html.startswith("<table>"), name
        assert html.endswith("</table>"), name


def test_the_result_says_how_it_ended_and_not_every_step(machine):
    assert machine.result_.reason in repr(machine.result_)
    assert str(machine.result_.trace.rows[0]) not in repr(machine.result_)


def test_a_comparison_has_a_row_for_each_learner(machine):
    found = gb.comparison.compare(ROWS, ["mle", "mple"], gb.BoltzmannMachine(l2=0.1), random_state=0)
    assert found._repr_html_().count("<tr>") == 3
    assert repr(found).count("learner=") == 2


def test_a_machine_shows_what_was_set_and_whether_it_is_fitted(machine):
    unfitted = gb.BoltzmannMachine(l2=0.125)
    assert repr(unfitted) == "BoltzmannMachine(l2=0.125)"
    assert "not fitted" in unfitted._repr_html_()
    assert repr(machine) == f"BoltzmannMachine(l2=0.125, learner='mple')  # {machine.result_.reason}"
    assert machine.result_.reason in machine._repr_mimebundle_()["text/html"]
    assert repr(Pipeline([("machine", unfitted)])) == "Pipeline(steps=[('machine', BoltzmannMachine(l2=0.125))])"


def test_html_in_values_and_names_is_text():
    hostile = gb.BoltzmannMachine(start=HOSTILE)
    assert HOSTILE not in hostile._repr_html_()
    assert HOSTILE not in gb.comparison.Comparison(HOSTILE, None, failure=HOSTILE)._repr_html_()
    rows = gb.comparison.Comparisons([gb.comparison.Comparison(HOSTILE, None, failure=HOSTILE)])
    assert "&lt;script&gt;" in rows._repr_html_()
    assert HOSTILE not in rows._repr_html_()


def test_estimates_show_their_errors():
    assert repr(gb.Estimate(0.5, 0.01)) == "Estimate(value=0.5, standard_error=0.01)"
    assert repr(gb.Estimate(0.5, None)) == "Estimate(value=0.5, standard_error='not known')"
