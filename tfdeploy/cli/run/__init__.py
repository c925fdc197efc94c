"""`tfdeploy run`: a cluster for one command, without a Pulumi program."""
