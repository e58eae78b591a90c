"""The experiments of the papers, one module for each paper, one function for each figure or table."""
