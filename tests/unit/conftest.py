"""How property tests run: as long as they need, since the machine may be busy."""

from hypothesis import settings

settings.register_profile("tfdeploy", deadline=None)
settings.load_profile("tfdeploy")
