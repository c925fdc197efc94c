"""The code that runs in each task, as one zip application: standard library only, Python >= 3.8, no import of the rest of tfdeploy."""
