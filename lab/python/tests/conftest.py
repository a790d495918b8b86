"""Settings of all tests."""

from __future__ import annotations

import os

# As in cli.py, before numpy and scikit-learn start threads: waiting threads cost time.
os.environ.setdefault("OMP_NUM_THREADS", "1")
