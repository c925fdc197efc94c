"""Shuts an EC2 machine down when it is no longer needed; runs on the machine, standard library only, Python >= 3.8."""
