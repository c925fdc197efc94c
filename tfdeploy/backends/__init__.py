"""Where a cluster can stand, one package for each kind of place."""
