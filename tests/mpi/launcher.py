"""The words by which tests start ranks. Those of Open MPI, unless CMake says that it is MPICH."""

import os

_MPICH = os.environ.get("NPUMESH_TEST_MPICH")

# The launcher and its words; those below follow.
MPIRUN = [_MPICH] if _MPICH else ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
# Leaves the survivors alone when a rank is lost.
RECOVERY = ["-disable-auto-cleanup"] if _MPICH else ["--enable-recovery"]
# The variable that tells a rank its number.
RANK = "PMI_RANK" if _MPICH else "OMPI_COMM_WORLD_RANK"


def exports(environment):
    """Gives variables to all ranks."""
    if _MPICH:
        return [word for name, value in environment.items() for word in ("-genv", name, value)]
    return [word for pair in environment.items() for word in ("-x", "=".join(pair))]
