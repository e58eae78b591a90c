"""rbms on rows of a file, for some seconds of the processor in each of several runs, by the peers' own Python.

``python peer_digits.py ROWS OUT N_HIDDEN BATCH SECONDS RATE:SEED ...``: centred gradients and persistent chains, as
many as rows in a minibatch, one sweep a step; the parameters of each run are left in OUT.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import torch
from rbms.bernoulli_bernoulli.classes import BBRBM


def learned(rows: torch.Tensor, n_hidden: int, batch_size: int, seconds: float, run: str) -> dict[str, np.ndarray]:
    """Return the parameters after some seconds."""
    rate, seed = run.split(":")
    torch.manual_seed(int(seed))
    machine = BBRBM.init_parameters(n_hidden, rows, torch.device("cpu"), torch.float32)
    machine.init_grad()
    chains, weights = machine.init_chains(num_samples=batch_size), torch.ones(batch_size)
    moves = torch.optim.SGD(machine.parameters(), lr=float(rate), maximize=True)
    end = time.process_time() + seconds
    while time.process_time() < end:
        order = torch.randperm(len(rows))
        for first in range(0, len(rows) - batch_size + 1, batch_size):
            batch = machine.sample_hiddens({"visible": rows[order[first : first + batch_size]], "weights": weights})
            chains = machine.sample_state(chains, n_steps=1)
            moves.zero_grad(set_to_none=False)
            machine.compute_gradient(data=batch, chains=chains, centered=True)
            moves.step()
            if time.process_time() > end:
                break
    return {name: np.array(part) for name, part in machine.named_parameters().items()}


if __name__ == "__main__":
    torch.set_num_threads(1)
    rows = torch.tensor(np.load(sys.argv[1]), dtype=torch.float32)
    sizes, seconds = [int(text) for text in sys.argv[3:5]], float(sys.argv[5])
    found = {run: learned(rows, *sizes, seconds, run) for run in sys.argv[6:]}
    np.savez(sys.argv[2], **{f"{run} {name}": part for run, parts in found.items() for name, part in parts.items()})
