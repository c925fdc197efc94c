"""The `tfdeploy` command: one file a verb."""
