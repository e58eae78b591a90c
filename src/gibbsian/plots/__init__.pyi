from gibbsian.plots.canvas import save_figure as save_figure
from gibbsian.plots.couplings import heat_map as heat_map, network as network
from gibbsian.plots.curves import (
    free_energies as free_energies,
    free_energy_trace as free_energy_trace,
    trace as trace,
    training_curves as training_curves,
)
from gibbsian.plots.directions import circle as circle, sphere as sphere
from gibbsian.plots.images import filters as filters, reconstructions as reconstructions, samples as samples
from gibbsian.plots.moments import moment_scatter as moment_scatter
