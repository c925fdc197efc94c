"""A specification and an inventory become tasks, their machines and the run. Pure."""
