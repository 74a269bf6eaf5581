"""What all tests share: nothing is asserted about how long an example takes, so that a busy machine fails nothing."""

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
