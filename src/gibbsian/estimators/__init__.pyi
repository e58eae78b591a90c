from gibbsian.estimators.base import Estimator as Estimator
from gibbsian.estimators.boltzmann_machine import BoltzmannMachine as BoltzmannMachine
from gibbsian.estimators.choice import choose_model as choose_model, fit as fit
from gibbsian.estimators.classifier import GibbsClassifier as GibbsClassifier
from gibbsian.estimators.clustering import HardKMeans as HardKMeans, OnlineKMeans as OnlineKMeans
from gibbsian.estimators.deep import (
    DeepBeliefNetwork as DeepBeliefNetwork,
    DeepBoltzmannMachine as DeepBoltzmannMachine,
)
from gibbsian.estimators.files import load as load
from gibbsian.estimators.full_span import FullSpan as FullSpan
from gibbsian.estimators.gaussian import GaussianMachine as GaussianMachine
from gibbsian.estimators.hidden import HiddenBoltzmannMachine as HiddenBoltzmannMachine
from gibbsian.estimators.higher_order import HigherOrderBoltzmannMachine as HigherOrderBoltzmannMachine
from gibbsian.estimators.known import ESTIMATORS as ESTIMATORS
from gibbsian.estimators.machine_mixture import MachineMixture as MachineMixture
from gibbsian.estimators.mixtures import (
    GaussianMixture as GaussianMixture,
    SoftKMeans as SoftKMeans,
    VonMisesFisherMixture as VonMisesFisherMixture,
)
from gibbsian.estimators.ordinal import OrdinalMachine as OrdinalMachine
from gibbsian.estimators.potts import PottsMachine as PottsMachine
from gibbsian.estimators.random_field import MarkovRandomFieldMachine as MarkovRandomFieldMachine
from gibbsian.estimators.restricted import RestrictedBoltzmannMachine as RestrictedBoltzmannMachine
