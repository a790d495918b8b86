"""python -m streamfs_lab."""

import sys

from streamfs_lab.cli import main

sys.exit(main())
