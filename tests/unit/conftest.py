"""How property tests run: as long as they need, since the machine may be busy, and not too often."""

from hypothesis import settings

settings.register_profile("tfdeploy", deadline=None, max_examples=60)
settings.load_profile("tfdeploy")
