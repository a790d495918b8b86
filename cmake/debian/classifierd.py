#!/usr/bin/python3 -I
"""The learning daemon with the libraries it was tested with, beside it in lib/streamfs."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib/streamfs/classifierd"))
from classifierd.cli import main

sys.exit(main())
