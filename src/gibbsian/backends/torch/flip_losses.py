"""Losses of flip costs and their gradients, the rows kept on the device."""
