from gibbsian import (
    answers as answers,
    cluster as cluster,
    comparison as comparison,
    data as data,
    datasets as datasets,
    diagnostics as diagnostics,
    domain as domain,
    errors as errors,
    estimators as estimators,
    expectations as expectations,
    graphs as graphs,
    inference as inference,
    learners as learners,
    models as models,
    objectives as objectives,
    optimizers as optimizers,
    plots as plots,
    report as report,
    rng as rng,
    samplers as samplers,
    storage as storage,
    structure as structure,
    uncertainty as uncertainty,
)
from gibbsian.data import Dataset as Dataset
from gibbsian.estimators import (
    BoltzmannMachine as BoltzmannMachine,
    DeepBeliefNetwork as DeepBeliefNetwork,
    DeepBoltzmannMachine as DeepBoltzmannMachine,
    FullSpan as FullSpan,
    GaussianMachine as GaussianMachine,
    GaussianMixture as GaussianMixture,
    GibbsClassifier as GibbsClassifier,
    HardKMeans as HardKMeans,
    HiddenBoltzmannMachine as HiddenBoltzmannMachine,
    HigherOrderBoltzmannMachine as HigherOrderBoltzmannMachine,
    MachineMixture as MachineMixture,
    MarkovRandomFieldMachine as MarkovRandomFieldMachine,
    OnlineKMeans as OnlineKMeans,
    OrdinalMachine as OrdinalMachine,
    PottsMachine as PottsMachine,
    RestrictedBoltzmannMachine as RestrictedBoltzmannMachine,
    SoftKMeans as SoftKMeans,
    VonMisesFisherMixture as VonMisesFisherMixture,
    fit as fit,
    load as load,
)
from gibbsian.estimate import Estimate as Estimate
from gibbsian.graphs import Graph as Graph
from gibbsian.models import (
    FullSpanModel as FullSpanModel,
    GaussianFamily as GaussianFamily,
    HigherOrderModel as HigherOrderModel,
    MarkovRandomField as MarkovRandomField,
    OrdinalModel as OrdinalModel,
    PairwiseModel as PairwiseModel,
    PotentialField as PotentialField,
    PottsModel as PottsModel,
)
from gibbsian.models.family import Model as Model

__version__: str
