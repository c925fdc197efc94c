"""The page of `tfdeploy report`: one HTML document that needs nothing else."""
