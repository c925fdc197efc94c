"""What tfdeploy is measured against. Imports nothing of it."""
