"""`tfdeploy cp`: where files come from, where they are written, and how they are copied."""
