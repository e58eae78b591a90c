"""Model files and checkpoints: safetensors with a JSON header, versioned, written whole or not at all, never pickle.

A model says itself what a file keeps of it (`to_parts`, `from_parts`).
"""

from gibbsian.lazy import attach

_MODULES = {
    "gibbsian.storage.checkpoints": (
        "Checkpoint",
        "pack",
        "unpack",
    ),
    "gibbsian.storage.container": (
        "FORMAT_VERSION",
        "kind_of",
        "read_tensors",
        "write_atomically",
        "write_tensors",
    ),
    "gibbsian.storage.models": (
        "StoredModel",
        "read_model",
        "write_model",
    ),
}
__getattr__, __dir__, __all__ = attach(__name__, {name: module for module, names in _MODULES.items() for name in names})
