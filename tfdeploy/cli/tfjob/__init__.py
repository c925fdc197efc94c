"""From the YAML of a TFJob to a program."""
