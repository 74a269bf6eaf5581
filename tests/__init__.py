"""Engines are made by the thousand here, so the check of a draft at load is off unless a test asks for it."""

import os

os.environ.setdefault("SPECCTL_DRAFT_CHECK", "0")
