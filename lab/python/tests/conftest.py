"""Settings of all tests."""

from __future__ import annotations

import os

# As in cli.py, before numpy and scikit-learn start theirs: threads that wait take more than work.
os.environ.setdefault("OMP_NUM_THREADS", "1")
