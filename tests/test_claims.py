"""The long check of all claims: it reads the page whole, and a claim that fails or is missing is named."""

import re

from claims import PAGE, broken, on_record


def test_every_claim_on_the_page_is_read():
    page = PAGE.read_text()
    assert len(on_record(page)) == page.count(": **holds** (") == int(re.search(r"(\d+) of \d+ claims hold", page)[1])


def test_claims_that_fail_or_were_not_checked_are_named():
    recorded = {("toy", "it is so"), ("toy", "it was so"), ("toy", "it is gone")}
    claims = [
        {"text": "it is so", "holds": True, "numbers": "3 of 3"},
        {"text": "it was so", "holds": False, "numbers": "0"},
    ]
    assert broken(recorded, [{"experiment": "toy", "claims": claims}]) == [
        "toy: it is gone (not checked)",
        "toy: it was so (0)",
    ]
