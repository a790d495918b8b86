#!/usr/bin/python3 -I
"""Starts the learning daemon; its modules are in lib/streamfs beside this folder."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib/streamfs/classifierd"))
from classifierd.cli import main

sys.exit(main())
