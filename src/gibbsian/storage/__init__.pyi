from gibbsian.storage.checkpoints import Checkpoint as Checkpoint, pack as pack, unpack as unpack
from gibbsian.storage.container import (
    FORMAT_VERSION as FORMAT_VERSION,
    kind_of as kind_of,
    read_tensors as read_tensors,
    write_atomically as write_atomically,
    write_tensors as write_tensors,
)
from gibbsian.storage.models import StoredModel as StoredModel, read_model as read_model, write_model as write_model
