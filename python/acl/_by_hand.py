"""Functions of pyACL that a row of _functions.py does not say: callbacks, unions, several calls.

`BY_HAND` has them by module and name.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import _library
from ._kinds import Text, kind_of
from ._structs import (
    MallocAttribute,
    MallocConfig,
    MallocValue,
    MemUceInfo,
    StreamAttribute,
)

BY_HAND: Dict[str, Dict[str, Callable[..., Any]]] = {
    "": {}, "rt": {}, "mdl": {}, "prof": {}, "media": {},
}

_Function = Callable[..., Any]


def _of(module: str) -> Callable[[_Function], _Function]:
    def keep(function: _Function) -> _Function:
        BY_HAND[module][function.__name__] = function
        return function

    return keep


def _call(python_name: str, c_name: str, *words: Any) -> int:
    """The code of a C function; of one that npumesh lacks, the refusal."""
    function = _library.symbol(c_name)
    if function is None:
        return _library.refuse(python_name, c_name)
    function.restype = ctypes.c_int
    return function(*words)


def _number(kind: str, value: Any, what: str) -> Any:
    return kind_of(kind).give(value, what)[0]


def _need_function(function: Any, name: str) -> None:
    if not callable(function):
        raise TypeError(f"{name}: expected a function, seen {function!r}")


# --- callbacks: the objects that C may still call are kept here ---

_TASK = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_waiting: Dict[int, Tuple[_Function, Any]] = {}
_waiting_lock = threading.Lock()
_next_ticket = [1]


@_TASK
def _run_task(ticket: int) -> None:
    with _waiting_lock:
        function, argument = _waiting.pop(ticket)
    try:
        function(argument)
    except Exception:  # C has no place for it
        sys.excepthook(*sys.exc_info())


@_of("rt")
def launch_callback(function: _Function, argument: Any, block_type: int, stream: int) -> int:
    """function(argument) in the thread that is subscribed to the stream, in the stream's order."""
    name = "acl.rt.launch_callback"
    _need_function(function, name)
    with _waiting_lock:
        ticket = _next_ticket[0]
        _next_ticket[0] += 1
        _waiting[ticket] = (function, argument)
    code = _call(name, "aclrtLaunchCallback", _run_task, ctypes.c_void_p(ticket),
                 _number("i32", block_type, f"{name}: block_type"),
                 _number("ptr", stream, f"{name}: stream"))
    if code != 0:
        with _waiting_lock:
            _waiting.pop(ticket, None)
    return code


_EXCEPTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_DUMP = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32)
_kept: Dict[str, Any] = {}


@_of("rt")
def set_exception_info_callback(function: Optional[_Function] = None) -> int:
    """function(info) when a task fails; the get_..._from_exception_info functions read `info`.
    None ends it."""
    name = "acl.rt.set_exception_info_callback"
    if function is None:
        code = _call(name, "aclrtSetExceptionInfoCallback", ctypes.c_void_p(None))
        _kept.pop("exception", None)
        return code
    _need_function(function, name)
    made = _EXCEPTION(lambda info: function(info or 0))
    code = _call(name, "aclrtSetExceptionInfoCallback", made)
    if code == 0:
        _kept["exception"] = made
    return code


class _DumpChunk(ctypes.Structure):
    """The head of acldumpChunk; the data follow."""

    _fields_ = [("file_name", ctypes.c_char * 4096), ("buf_len", ctypes.c_uint32),
                ("is_last_chunk", ctypes.c_uint32), ("offset", ctypes.c_int64),
                ("flag", ctypes.c_int32)]


def _chunk_dict(address: int) -> Dict[str, Any]:
    chunk = _DumpChunk.from_address(address)
    data = address + _DumpChunk.flag.offset + _DumpChunk.flag.size
    return {"file_name": chunk.file_name.decode(errors="replace"), "data_buf": data,
            "buf_len": chunk.buf_len, "is_last_chunk": chunk.is_last_chunk,
            "offset": chunk.offset, "flag": chunk.flag}


@_of("mdl")
def dump_reg_callback(function: _Function, flag: int) -> int:
    """function(chunk) for each piece of a dump, a dict with file_name, data_buf, buf_len, ..."""
    name = "acl.mdl.dump_reg_callback"
    _need_function(function, name)

    def take(address: int, _length: int) -> int:
        function(_chunk_dict(address))
        return 0

    made = _DUMP(take)
    code = _call(name, "acldumpRegCallback", made, _number("i32", flag, f"{name}: flag"))
    if code == 0:
        _kept["dump"] = made
    return code


@_of("mdl")
def dump_unreg_callback() -> None:
    """Ends dump_reg_callback."""
    _call("acl.mdl.dump_unreg_callback", "acldumpUnregCallback")
    _kept.pop("dump", None)


# --- unions ---

_STREAM_KEYS = {1: "failureMode", 2: "overflowSwitch", 3: "userCustomTag"}


@_of("rt")
def set_stream_attribute(stream: int, kind: int, value: Dict[str, Any]) -> int:
    """`value`: a dict with the key of `kind`: failureMode, overflowSwitch or userCustomTag."""
    name = "acl.rt.set_stream_attribute"
    key = _STREAM_KEYS.get(kind, "reserved")
    if not isinstance(value, dict) or key not in value:
        raise KeyError(f"{name}: expected a dict with the key {key}, seen {value!r}")
    union = StreamAttribute()
    if key == "reserved":
        union.reserved[:] = list(value[key])
    else:
        setattr(union, key, value[key])
    return _call(name, "aclrtSetStreamAttribute", _number("ptr", stream, f"{name}: stream"),
                 _number("i32", kind, f"{name}: kind"), ctypes.byref(union))


@_of("rt")
def get_stream_attribute(stream: int, kind: int) -> Tuple[Dict[str, Any], int]:
    """The value as set_stream_attribute takes it, and the code."""
    name = "acl.rt.get_stream_attribute"
    union = StreamAttribute()
    code = _call(name, "aclrtGetStreamAttribute", _number("ptr", stream, f"{name}: stream"),
                 _number("i32", kind, f"{name}: kind"), ctypes.byref(union))
    key = _STREAM_KEYS.get(kind, "reserved")
    value = getattr(union, key)
    return {key: list(value) if key == "reserved" else value}, code


def _malloc_config(given: Any, name: str) -> Any:
    """A MallocConfig of {"numAttrs": n, "attrs": [{"attr": a, "value": {key: number}}]}; null of an
    empty one."""
    if not isinstance(given, dict):
        raise TypeError(f"{name}: cfg: expected a dict, seen {given!r}")
    if not given:
        return ctypes.c_void_p(None)
    attributes: List[Any] = given["attrs"]
    if given.get("numAttrs", len(attributes)) != len(attributes):
        raise KeyError(f"{name}: cfg: numAttrs is {given['numAttrs']}, "
                       f"but attrs has {len(attributes)}")
    made = (MallocAttribute * max(len(attributes), 1))()
    for at, attribute in enumerate(attributes):
        made[at].attr = attribute["attr"]
        known = {field for field, _ in MallocValue._fields_}
        keys = [key for key in attribute["value"] if key in known]
        if len(keys) != 1:
            raise KeyError(f"{name}: cfg['attrs'][{at}]['value']: expected one of "
                           f"{', '.join(sorted(known))}, seen {attribute['value']!r}")
        if keys[0] == "rsv":
            made[at].value.rsv[:] = list(attribute["value"]["rsv"])
        else:
            setattr(made[at].value, keys[0], attribute["value"][keys[0]])
    return ctypes.byref(MallocConfig(made, len(attributes)))


def _malloc(python_name: str, c_name: str, *words: Any) -> Tuple[int, int]:
    address = ctypes.c_void_p()
    code = _call(python_name, c_name, ctypes.byref(address), *words)
    return address.value or 0, code


@_of("rt")
def malloc_with_cfg(size: int, policy: int, cfg: Dict[str, Any]) -> Tuple[int, int]:
    """Device memory; no configuration where `cfg` is empty."""
    name = "acl.rt.malloc_with_cfg"
    return _malloc(name, "aclrtMallocWithCfg", _number("size", size, f"{name}: size"),
                   _number("i32", policy, f"{name}: policy"), _malloc_config(cfg, name))


@_of("rt")
def malloc_for_task_scheduler(size: int, policy: int, cfg: Dict[str, Any]) -> Tuple[int, int]:
    """As malloc_with_cfg."""
    name = "acl.rt.malloc_for_task_scheduler"
    return _malloc(name, "aclrtMallocForTaskScheduler", _number("size", size, f"{name}: size"),
                   _number("i32", policy, f"{name}: policy"), _malloc_config(cfg, name))


@_of("rt")
def malloc_host_with_cfg(size: int, cfg: Dict[str, Any]) -> Tuple[int, int]:
    """Host memory; no configuration where `cfg` is empty."""
    name = "acl.rt.malloc_host_with_cfg"
    return _malloc(name, "aclrtMallocHostWithCfg", _number("u64", size, f"{name}: size"),
                   _malloc_config(cfg, name))


# aclmdlConfigAttr: what `value` is. The others are 64-bit numbers.
_PRIORITY = 0
_ADDRESSES = (2, 3, 5, 7, 10, 12, 14)  # 2 and 14 are paths: a str, or its address


@_of("mdl")
def set_config_opt(handle: int, attr: int, value: Any) -> int:
    """One option of loading: a str for the path, an address, or a number."""
    name = "acl.mdl.set_config_opt"
    what = f"{name}: value"
    if attr in _ADDRESSES:
        held = (Text().give(value, what)[0] if isinstance(value, str)
                else _number("ptr", value, what))
    else:
        held = _number("i32" if attr == _PRIORITY else "u64", value, what)
    return _call(name, "aclmdlSetConfigOpt", _number("ptr", handle, f"{name}: handle"),
                 _number("i32", attr, f"{name}: attr"), ctypes.byref(held),
                 ctypes.c_size_t(ctypes.sizeof(held)))


@_of("mdl")
def set_exec_config_opt(handle: int, attr: int, value: int) -> int:
    """One option of execute_v2."""
    name = "acl.mdl.set_exec_config_opt"
    held = _number("u32", value, f"{name}: value")
    return _call(name, "aclmdlSetExecConfigOpt", _number("ptr", handle, f"{name}: handle"),
                 _number("i32", attr, f"{name}: attr"), ctypes.byref(held), ctypes.c_size_t(4))


@_of("mdl")
def get_first_aipp_info(model_id: int, index: int) -> Tuple[None, int]:
    """No model of npumesh has an AIPP: None and the code that says so."""
    name = "acl.mdl.get_first_aipp_info"
    room = ctypes.create_string_buffer(1 << 20)  # the struct is large, and is not read
    code = _call(name, "aclmdlGetFirstAippInfo", _number("u32", model_id, f"{name}: model_id"),
                 _number("size", index, f"{name}: index"), room)
    return None, code


# --- several calls, or another order ---


@_of("")
def get_recent_err_msg() -> Optional[str]:
    """The messages of this thread's failed calls since the last time; None: there are none."""
    refusal = _library.take_refusal()
    function = _library.symbol("aclGetRecentErrMsg")
    function.restype = ctypes.c_char_p
    said = function()
    words = [refusal] if refusal else []
    words += [said.decode(errors="replace")] if said else []
    return "\n".join(words) or None


@_of("")
def get_cann_attribute_list() -> Tuple[List[int], int, int]:
    """The attributes of this installation, their number, the code."""
    first = ctypes.POINTER(ctypes.c_int32)()
    count = ctypes.c_size_t()
    code = _call("acl.get_cann_attribute_list", "aclGetCannAttributeList", ctypes.byref(first),
                 ctypes.byref(count))
    return [first[at] for at in range(count.value)], count.value, code


@_of("")
def app_log(level: int, text: str) -> None:
    """One line into the log."""
    _call("acl.app_log", "aclAppLog", _number("i32", level, "acl.app_log: level"),
          ctypes.c_char_p(b"python"), ctypes.c_char_p(b"python"), ctypes.c_uint32(0),
          ctypes.c_char_p(b"%s"), Text().give(text, "acl.app_log: text")[0])


@_of("rt")
def get_primary_ctx_state(device_id: int) -> Tuple[int, int, int]:
    """Whether the device's default context is active, flags, the code."""
    name = "acl.rt.get_primary_ctx_state"
    active = ctypes.c_int32()
    code = _call(name, "aclrtGetPrimaryCtxState", _number("i32", device_id, f"{name}: device_id"),
                 ctypes.c_void_p(None), ctypes.byref(active))
    return active.value, 0, code


@_of("rt")
def get_mem_uce_info(device_id: int, array_size: int) -> Tuple[List[Dict[str, Any]], int]:
    """Broken memory, at most `array_size` places."""
    name = "acl.rt.get_mem_uce_info"
    size = _number("u32", array_size, f"{name}: array_size").value
    found = (MemUceInfo * max(size, 1))()
    count = ctypes.c_size_t()
    code = _call(name, "aclrtGetMemUceInfo", _number("i32", device_id, f"{name}: device_id"),
                 found, ctypes.c_size_t(size), ctypes.byref(count))
    return [each.to_dict() for each in found[:min(count.value, size)]], code


@_of("rt")
def mem_uce_repair(device_id: int, places: List[Dict[str, Any]]) -> int:
    """`places`: as get_mem_uce_info returns them."""
    name = "acl.rt.mem_uce_repair"
    given = [MemUceInfo.from_dict(place, f"{name}: places[{at}]")
             for at, place in enumerate(places)]
    array = (MemUceInfo * max(len(given), 1))(*given)
    return _call(name, "aclrtMemUceRepair", _number("i32", device_id, f"{name}: device_id"), array,
                 ctypes.c_size_t(len(given)))


_files: List[Any] = []  # C keeps the address of the file's number


@_of("prof")
def create_subscribe_config(time_info: int, metrics: int, file: int) -> int:
    """A configuration for model_subscribe; records go to the file of that number. 0: it failed."""
    name = "acl.prof.create_subscribe_config"
    held = _number("i32", file, f"{name}: file")
    function = _library.symbol("aclprofCreateSubscribeConfig")
    if function is None:
        _library.refuse(name, "aclprofCreateSubscribeConfig")
        return 0
    _files.append(held)
    function.restype = ctypes.c_void_p
    return function(_number("i8", time_info, f"{name}: time_info"),
                    _number("i32", metrics, f"{name}: metrics"), ctypes.byref(held)) or 0


def _op_words(which: str, info: int, length: int, index: int) -> Tuple[Optional[str], int]:
    name = f"acl.prof.get_op_{which.lower()}_v2"
    words = [_number("ptr", info, f"{name}: info"), _number("size", length, f"{name}: length"),
             _number("u32", index, f"{name}: index")]
    size = ctypes.c_size_t()
    code = _call(name, f"aclprofGetOp{which}Len", *words, ctypes.byref(size))
    if code != 0:
        return None, code
    text = ctypes.create_string_buffer(size.value + 1)
    code = _call(name, f"aclprofGetOp{which}", *words, text, size)
    return text.value.decode(errors="replace"), code


@_of("prof")
def get_op_type_v2(info: int, length: int, index: int) -> Tuple[Optional[str], int]:
    """The type of a subscribed record, and the code."""
    return _op_words("Type", info, length, index)


@_of("prof")
def get_op_name_v2(info: int, length: int, index: int) -> Tuple[Optional[str], int]:
    """The name of a subscribed record, and the code."""
    return _op_words("Name", info, length, index)


# --- memory of the media processor: programs that never start it take their buffers there ---

_HUGE_FIRST = 0


@_of("media")
def dvpp_malloc(size: int) -> Tuple[int, int]:
    """Device memory, as acl.rt.malloc gives it."""
    name = "acl.media.dvpp_malloc"
    return _malloc(name, "aclrtMalloc", _number("size", size, f"{name}: size"),
                   ctypes.c_int32(_HUGE_FIRST))


@_of("media")
def dvpp_free(address: int) -> int:
    """Of dvpp_malloc."""
    name = "acl.media.dvpp_free"
    return _call(name, "aclrtFree", _number("ptr", address, f"{name}: address"))
