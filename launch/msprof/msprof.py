"""msprof where readers of profiles look for its script: runs the program msprof of this installation."""

import os
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
PROGRAM = os.path.join(HERE, "..", "..", "..", "bin", "msprof")
os.execv(PROGRAM, [PROGRAM, *sys.argv[1:]])
