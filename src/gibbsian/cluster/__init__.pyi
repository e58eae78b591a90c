from gibbsian.cluster.connection import connect as connect
from gibbsian.cluster.connection import fits_on as fits_on
from gibbsian.cluster.dataset import DistributedDataset as DistributedDataset
