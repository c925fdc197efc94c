"""What ends a machine of EC2's when it is no longer needed; runs on the machine itself, standard library only, Python >= 3.8."""
