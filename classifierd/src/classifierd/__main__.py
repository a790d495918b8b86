"""python -m classifierd."""

import sys

from classifierd.cli import main

sys.exit(main())
