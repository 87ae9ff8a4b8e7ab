// _torchair: the native module of TorchAir, on npumesh (docs/python.md). Stands on npumesh.h and
// Python's stable ABI alone; of torch it uses what Python sees.
#include <dlfcn.h>

#include <cstdio>

#include "python/torchair_native/engine.h"
#include "python/torchair_native/graph_type.h"
#include "python/torchair_native/questions.h"
#include "python/torchair_native/tensor.h"

namespace npumesh::torchair {
namespace {

// What the vendor's chip of the simulated NPU is called; the same as aclrtGetSocName of
// libacl_rt.so.
constexpr char kSocName[] = "Ascend910B1";

PyObject* StupidRepeat(PyObject*, PyObject* args) {
  const char* word = nullptr;
  int times = 0;
  if (PyArg_ParseTuple(args, "si", &word, &times) == 0) return nullptr;
  for (int i = 0; i < times; ++i) std::fputs(word, stderr);
  Py_RETURN_NONE;
}

PyObject* InitializeGraphEngine(PyObject*, PyObject* args) {
  PyObject* given = nullptr;
  Texts options;
  if (PyArg_ParseTuple(args, "O", &given) == 0 || !ReadTexts(given, "options", options) ||
      !Engine::Get().Initialize(options)) {
    return nullptr;
  }
  Py_RETURN_NONE;
}

PyObject* FinalizeGraphEngine(PyObject*, PyObject*) {
  if (!Engine::Get().Finalize()) return nullptr;
  Py_RETURN_NONE;
}

// Strings of PrintV2 go to standard error when the operator runs.
PyObject* InitDeviceStdoutChannel(PyObject*, PyObject* args) {
  int device = 0;
  if (PyArg_ParseTuple(args, "i", &device) == 0) return nullptr;
  Py_RETURN_NONE;
}

PyObject* AclmdlSetDump(PyObject*, PyObject* args) {
  const char* path = nullptr;
  if (PyArg_ParseTuple(args, "s", &path) == 0 || !Engine::Get().SetDump(path)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* GetSocName(PyObject*, PyObject*) {
  return PyUnicode_FromString(kSocName);
}

// Static kernels of npumesh are made by the session (docs/static_kernels.md), not by the vendor's
// compiler, for which operators write their arguments.
PyObject* NoOperatorArguments() {
  return Fail(
      "operators of npumesh do not write their arguments for the compiler of CANN; npumesh makes "
      "static kernels itself (docs/static_kernels.md)");
}

PyObject* AclopStartDumpArgs(PyObject*, PyObject* args) {
  unsigned int kind = 0;
  const char* folder = nullptr;
  if (PyArg_ParseTuple(args, "Is", &kind, &folder) == 0) return nullptr;
  return NoOperatorArguments();
}

PyObject* AclopStopDumpArgs(PyObject*, PyObject* args) {
  unsigned int kind = 0;
  if (PyArg_ParseTuple(args, "I", &kind) == 0) return nullptr;
  return NoOperatorArguments();
}

PyObject* CheckAclnnAvaliable(PyObject*, PyObject* args) {
  const char* name = nullptr;
  if (PyArg_ParseTuple(args, "s", &name) == 0) return nullptr;
  void* const library = dlopen("libopapi.so", RTLD_LAZY);
  const bool found = library != nullptr && dlsym(library, name) != nullptr;
  if (library != nullptr) dlclose(library);
  return PyBool_FromLong(found ? 1 : 0);
}

PyObject* Export(PyObject*, PyObject* args) {
  PyObject *bytes = nullptr, *given = nullptr;
  Texts options;
  if (PyArg_ParseTuple(args, "SO", &bytes, &given) == 0 || !ReadTexts(given, "options", options)) {
    return nullptr;
  }
  for (const char* key : {"export_path_dir", "export_name"}) {
    if (options.count(key) == 0) return Fail(std::string("export: option ") + key + " is missing");
  }
  const std::string path = options["export_path_dir"] + "/" + options["export_name"];
  const char* const data = PyBytes_AsString(bytes);
  const auto size = static_cast<size_t>(PyBytes_Size(bytes));
  npumesh_code code = NPUMESH_OK;
  {
    const Unlocked unlocked;
    code = npumesh_save_air(data, size, path.c_str());
  }
  if (code != NPUMESH_OK) return FailOf("export");
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"StupidRepeat", StupidRepeat, METH_VARARGS, "Prints a word so often."},
    {"InitializeGraphEngine", InitializeGraphEngine, METH_VARARGS, "Options of all graphs."},
    {"FinalizeGraphEngine", FinalizeGraphEngine, METH_NOARGS, "Closes all graphs."},
    {"InitDeviceStdoutChannel", InitDeviceStdoutChannel, METH_VARARGS, "Nothing to start here."},
    {"AclmdlSetDump", AclmdlSetDump, METH_VARARGS, "Dumps as a JSON file says."},
    {"GetSocName", GetSocName, METH_NOARGS, "The name of the simulated chip."},
    {"AclopStartDumpArgs", AclopStartDumpArgs, METH_VARARGS, "Not supported."},
    {"AclopStopDumpArgs", AclopStopDumpArgs, METH_VARARGS, "Not supported."},
    {"CheckAclnnAvaliable", CheckAclnnAvaliable, METH_VARARGS, "Whether libopapi.so has it."},
    {"export", Export, METH_VARARGS, "Writes a graph as an .air file."},
    {"get_registered_ir_def", RegisteredIrDef, METH_VARARGS, "The interface of an operator."},
    {"check_cann_compat", CheckCannCompat, METH_VARARGS, "Which optional parts are unknown."},
    {nullptr, nullptr, 0, nullptr}};

struct EnumValue {
  const char* name;
  long value;
};

constexpr EnumValue kTorchDataTypes[] = {
    {"BOOL", 0},       {"INT8", 1},       {"UINT8", 2},      {"INT16", 3},   {"INT32", 4},
    {"INT64", 5},      {"FLOAT16", 6},    {"BF16", 7},       {"FLOAT32", 8}, {"FLOAT64", 9},
    {"COMPLEX32", 10}, {"COMPLEX64", 11}, {"COMPLEX128", 12}};

// TorchDataType, also as attributes of the module.
bool AddDataTypes(PyObject* module) {
  const Ref members(PyDict_New());
  if (!members) return false;
  for (const EnumValue& each : kTorchDataTypes) {
    const Ref value(PyLong_FromLong(each.value));
    if (!value || PyDict_SetItemString(members.get(), each.name, value.get()) != 0) return false;
  }
  const Ref make = Import("enum", "IntEnum");
  Ref type(make ? PyObject_CallFunction(make.get(), "sO", "TorchDataType", members.get())
                : nullptr);
  if (!type) return false;
  for (const EnumValue& each : kTorchDataTypes) {
    PyObject* const member = PyObject_GetAttrString(type.get(), each.name);
    if (member == nullptr || PyModule_AddObject(module, each.name, member) != 0) return false;
  }
  return PyModule_AddObject(module, "TorchDataType", type.release()) == 0;
}

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "_torchair",
                          "TorchAir's native module, on npumesh.",
                          -1,
                          functions,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace
}  // namespace npumesh::torchair

PyMODINIT_FUNC PyInit__torchair() {
  using npumesh::torchair::Ref;
  // At exit Python undoes imports in turn: npumesh closes its world after TorchAir's graphs.
  const Ref package(PyImport_ImportModule("npumesh"));
  Ref module(package ? PyModule_Create(&npumesh::torchair::definition) : nullptr);
  if (!module || !npumesh::torchair::AddDataTypes(module.get())) return nullptr;
  Ref type = npumesh::torchair::MakeGraphType();
  if (!type || PyModule_AddObject(module.get(), "TorchNpuGraphBase", type.release()) != 0) {
    return nullptr;
  }
  return module.release();
}
