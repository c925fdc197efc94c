"""A task's files, for `tfdeploy cp`."""
