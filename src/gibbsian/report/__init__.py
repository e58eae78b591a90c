"""Reports: one page in one file, with what was learned, whether to trust it, and how it was made.

A section is a function of a `Subject`, registered in `SECTIONS` with its place and its title. It
asks the machine for what it needs, and gives None where the machine has nothing to say to it.
"""

from gibbsian.report.page import write_report
from gibbsian.report.subject import SECTIONS, Subject

__all__ = ["SECTIONS", "Subject", "write_report"]
