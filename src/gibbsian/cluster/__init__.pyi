from gibbsian.cluster.connection import connect as connect
from gibbsian.cluster.dataset import DistributedDataset as DistributedDataset
