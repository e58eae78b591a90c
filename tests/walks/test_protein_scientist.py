"""An alignment: 200 sequences, 25 places, 21 letters in all, gaps as a letter or as holes; mutants of one sequence."""

import numpy as np
import pandas as pd
import pytest

from walk_steps import is_picture, typed

LETTERS = np.array(list("ACDEFGHIKLMNPQRSTVWY"))
N_SEQUENCES, N_PLACES, N_KINDS = 200, 25, 5
CONTACTS = ((2, 9), (5, 17), (11, 20))


def alignment(rng: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A family whose places accept five letters each, in three contacts together; and mutants of its first sequence."""
    accepted = np.stack([rng.permutation(LETTERS)[:N_KINDS] for _ in range(N_PLACES)])
    codes = rng.choice(N_KINDS, size=(N_SEQUENCES, N_PLACES), p=[0.4, 0.2, 0.15, 0.15, 0.1])
    for a, b in CONTACTS:
        codes[:, b] = np.where(rng.random(N_SEQUENCES) < 0.85, codes[:, a], codes[:, b])
    cells = accepted[np.arange(N_PLACES), codes]
    gaps = rng.random(cells.shape) < 0.03
    gaps[0] = False
    columns = [f"p{place + 1}" for place in range(N_PLACES)]
    family = pd.DataFrame(np.where(gaps, "-", cells), columns=columns)
    family.insert(0, "sequence", [f"SEQ{i:05d}" for i in range(N_SEQUENCES)])
    changes = [(place, letter) for place in range(N_PLACES) for letter in accepted[place, :3]]
    mutants = pd.DataFrame([cells[0]] * len(changes), columns=columns)
    for row, (place, letter) in enumerate(changes):
        mutants.iloc[row, place] = letter
    mutants.insert(
        0, "mutant", [f"{cells[0, place]}{place + 1}{letter}-{k}" for k, (place, letter) in enumerate(changes)]
    )
    return family, mutants


@pytest.mark.long
@pytest.mark.parametrize("gaps", ["letter", "hole"])
def test_an_alignment_gives_contacts_and_the_effects_of_mutations(tmp_path, rng, gaps):
    family, mutants = alignment(rng)
    (family if gaps == "letter" else family.replace("-", None)).to_csv(tmp_path / "family.csv", index=False)
    mutants.to_csv(tmp_path / "mutants.csv", index=False)
    model = tmp_path / "family.gibbs"

    said = typed("fit", tmp_path / "family.csv", "--seed", 1, "--out", model)
    assert "a Potts machine" in said
    assert "converged" in said
    listed = said.split("strongest couplings")[1].split("strongest entries")[0]
    strongest = [tuple(line.split()[:2]) for line in listed.splitlines() if line.strip().startswith("p")][:3]
    assert set(strongest) == {(f"p{a + 1}", f"p{b + 1}") for a, b in CONTACTS}

    typed("show", model, "--picture", tmp_path / "contacts.png")
    typed("show", model, "--picture", tmp_path / "norms.png", "--draw", "couplings")
    assert is_picture(tmp_path / "contacts.png")
    assert is_picture(tmp_path / "norms.png")

    typed("score", model, tmp_path / "mutants.csv", "--per-row", "--seed", 1, "--out", tmp_path / "scores.csv")
    scores = pd.read_csv(tmp_path / "scores.csv").set_index("mutant").iloc[:, 0]
    assert scores.index.tolist() == mutants["mutant"].tolist()
    typed("unusual", model, tmp_path / "mutants.csv", "--top", len(mutants), "--out", tmp_path / "effects.csv")
    effects = pd.read_csv(tmp_path / "effects.csv").set_index("mutant").loc[mutants["mutant"]]
    # one is the other up to log Z, so that names of mutants have their scores
    np.testing.assert_allclose(np.ptp(scores.to_numpy() - effects["log_weight"].to_numpy()), 0, atol=1e-8)
