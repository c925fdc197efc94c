"""The smoke test on AWS itself: `make aws-smoke`."""
