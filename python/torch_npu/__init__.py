"""torch_npu on npumesh (docs/python.md): the vendor's wheel, over the libraries of npumesh, where one
is installed, else npumesh's own package. NPUMESH_TORCH_NPU=wheel or own decides.
"""

from npumesh import spawned_ranks

from . import _wheel

_folder = _wheel.find()
if _folder is None:
    from ._own import *  # noqa: F401, F403
    from ._own import __getattr__, __version__  # noqa: F401
else:
    _wheel.enter(_folder)

spawned_ranks.install()
