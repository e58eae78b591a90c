"""Model files and checkpoints: safetensors with a JSON header, versioned, written whole or not at all, never pickle.

A model says itself what a file keeps of it (`to_parts`, `from_parts`).
"""

from gibbsian.storage.checkpoints import Checkpoint, pack, unpack
from gibbsian.storage.container import FORMAT_VERSION, kind_of, read_tensors, write_atomically, write_tensors
from gibbsian.storage.models import StoredModel, read_model, write_model

__all__ = [
    "FORMAT_VERSION",
    "Checkpoint",
    "StoredModel",
    "kind_of",
    "pack",
    "read_model",
    "read_tensors",
    "unpack",
    "write_atomically",
    "write_model",
    "write_tensors",
]
