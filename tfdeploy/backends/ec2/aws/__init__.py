"""The AWS account: settings, login, calls, errors, and IAM."""
