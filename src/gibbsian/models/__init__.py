"""What a distribution is: parameters, energies, statistics, conditionals.

Models are immutable, know nothing of learning, threads or devices, and import only the packages above them
(errors, domain, graphs, backends).
"""

from gibbsian.startup import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
