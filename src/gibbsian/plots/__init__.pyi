from gibbsian.plots.canvas import save_figure as save_figure
from gibbsian.plots.curves import (
    convergence as convergence,
    free_energies as free_energies,
    free_energy_trace as free_energy_trace,
    training_curves as training_curves,
)
from gibbsian.plots.directions import circle as circle, sphere as sphere
from gibbsian.plots.forests import intervals as intervals, stability as stability
from gibbsian.plots.images import filters as filters, reconstructions as reconstructions, samples as samples
from gibbsian.plots.matrices import couplings as couplings
from gibbsian.plots.moments import moment_scatter as moment_scatter
from gibbsian.plots.networks import network as network
