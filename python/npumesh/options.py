"""Options as Python writes them, and as the C interface takes them: pairs of texts."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

__all__ = ["dump_options"]

Options = Mapping[str, Any]
Pairs = List[Tuple[str, str]]


def text_of(value: Any) -> str:
    """None, booleans, numbers, texts, paths, and sequences of them with commas between."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return ",".join(str(int(each)) if isinstance(each, bool) else text_of(each)
                        for each in value)
    if isinstance(value, (int, float)):
        return str(value)
    raise TypeError(
        f"option: expected a text, number, boolean, None or a list of them, seen {value!r}"
    )


def flatten(options: Optional[Options], prefix: str = "") -> Pairs:
    """Nested mappings become names with points between: {"debug": {"run_eagerly": True}}."""
    pairs: Pairs = []
    for key, value in (options or {}).items():
        if not isinstance(key, str):
            raise TypeError(f"option: expected a name, seen {key!r}")
        if isinstance(value, Mapping):
            pairs += flatten(value, f"{prefix}{key}.")
        else:
            pairs.append((prefix + key, text_of(value)))
    return pairs


def of_keywords(keywords: Mapping[str, Any]) -> Pairs:
    """Keyword arguments: two underscores stand for a point, as in `ge_config__oo_level="O1"`."""
    return flatten({key.replace("__", "."): value for key, value in keywords.items()})


def dump_options(folder: Any = ".", mode: str = "all", data: str = "tensor",
                 steps: str = "", layers: Sequence[str] = ()) -> Dict[str, Any]:
    """Options of a session that dumps its operators (docs/dump.md).

    `folder` exists. `mode`: "input", "output" or "all"; `data`: "tensor" or "stats"; `steps`: as in
    "0|3-5", empty: all; `layers`: names of operators, empty: all.
    """
    return {
        "dump_config.enable_dump": True,
        "dump_config.dump_path": folder,
        "dump_config.dump_mode": mode,
        "dump_config.dump_data": data,
        "dump_config.dump_step": steps,
        "dump_config.dump_layer": " ".join(layers),
    }


def make_dump_folder(path: str) -> None:
    """Makes the folder that the vendor's JSON of a dump at `path` names, which npumesh_set_dump wants
    to be there. A file that says no folder is left to npumesh_set_dump. Errors: OSError."""
    try:
        with open(path, encoding="utf-8") as file:
            folder = json.load(file)["dump"]["dump_path"]
    except (OSError, ValueError, KeyError, TypeError):
        return
    if isinstance(folder, str) and folder:
        os.makedirs(folder, exist_ok=True)
