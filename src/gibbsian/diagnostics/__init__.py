"""Whether to believe a result. Depends on models and what stands above them."""

from gibbsian.diagnostics.chains import ChainReport, chain_report, effective_sample_size, r_hat

__all__ = ["ChainReport", "chain_report", "effective_sample_size", "r_hat"]
