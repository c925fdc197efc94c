"""The backends: one package for each kind of place where a cluster can run."""
