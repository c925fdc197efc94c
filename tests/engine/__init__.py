"""A real Docker engine for the tests: one of their own where none runs, its images, a registry, nested machines."""
