"""Machines of Amazon EC2: what there is to choose from, which of it a cluster gets, and how a machine begins."""
