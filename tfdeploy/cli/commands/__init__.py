"""One file for each command of `tfdeploy`."""
