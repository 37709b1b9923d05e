"""``python -m feddep``: the command line (:mod:`feddep.cli`)."""

import sys

from feddep.cli import main

if __name__ == "__main__":
    sys.exit(main())
