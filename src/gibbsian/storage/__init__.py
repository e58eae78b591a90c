"""Model files and checkpoints: safetensors with a JSON header, versioned, written whole or not at all, never pickle.

A model says itself what a file keeps of it (`to_parts`, `from_parts`).
"""

from gibbsian.startup import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
