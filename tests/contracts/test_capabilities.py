"""The page of capabilities is what comes out when everything is tried, and every refusal is a fact of mathematics."""

from __future__ import annotations

import re

from capabilities import PAGE, capabilities, learners, page

# Why something can be refused, whatever is built: a new reason needs a place here, and a second thought.
FACTS = (
    "does not end at a maximum of the likelihood",
    "errors are not normal",
    "unit norm ties all cells of a row together",
    "each layer learns from what the one below makes of them",
    "solves no equations",
    "what it takes to describe a function depends on their number",
    "cross-validation needs complete rows",
)


def test_the_page_says_what_was_tried():
    assert PAGE.read_text() == page(), "run `make capabilities`"


def test_every_refusal_is_a_fact():
    refused = {reason for found in (capabilities(), learners(), learners(0.1)) for reason in found.values() if reason}
    strange = [reason for reason in refused if not any(re.search(fact, reason) for fact in FACTS)]
    assert not strange
