"""The experiments of the five papers, one module for each paper or more, one function for each figure or table."""
