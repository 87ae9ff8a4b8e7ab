// _torchair: the native module of TorchAir, on npumesh (docs/python.md). Stands on npumesh.h and
// Python's stable ABI alone; of torch it uses what Python sees.
#include <dlfcn.h>

#include <cstdio>

#include "python/torchair_native/engine.h"
#include "python/torchair_native/graph_type.h"
#include "python/torchair_native/log.h"
#include "python/torchair_native/questions.h"
#include "python/torchair_native/tensor.h"

namespace npumesh::torchair {
namespace {

// What the vendor's chip of the simulated NPU is called; the same as aclrtGetSocName of
// libacl_rt.so.
constexpr char kSocName[] = "Ascend910B1";

struct EnumValue {
  const char* name;
  long value;
  const char* torch;  // the same of torch
};

constexpr EnumValue kTorchDataTypes[] = {{"BOOL", 0, "bool"},
                                         {"INT8", 1, "int8"},
                                         {"UINT8", 2, "uint8"},
                                         {"INT16", 3, "int16"},
                                         {"INT32", 4, "int32"},
                                         {"INT64", 5, "int64"},
                                         {"FLOAT16", 6, "float16"},
                                         {"BF16", 7, "bfloat16"},
                                         {"FLOAT32", 8, "float32"},
                                         {"FLOAT64", 9, "float64"},
                                         {"COMPLEX32", 10, "complex32"},
                                         {"COMPLEX64", 11, "complex64"},
                                         {"COMPLEX128", 12, "complex128"},
                                         {"UINT16", 13, "uint16"},
                                         {"UINT32", 14, "uint32"},
                                         {"UINT64", 15, "uint64"}};

// Torch's name of a type; null: there is no such number.
const char* NameOfTorchDataType(int number) {
  for (const EnumValue& each : kTorchDataTypes) {
    if (each.value == number) return each.torch;
  }
  return nullptr;
}

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

PyObject* SetDebugLogPath(PyObject*, PyObject* args) {
  const char* path = nullptr;
  if (PyArg_ParseTuple(args, "s", &path) == 0) return nullptr;
  SetDebugLog(path);
  Py_RETURN_NONE;
}

// The kind of dump that TorchAir asks for: arguments of operators, for the compiler of CANN.
constexpr unsigned int kDumpArguments = 1;

bool CheckKind(const char* function, unsigned int kind) {
  if (kind == kDumpArguments) return true;
  Fail(std::string(function) + ": expected the kind 1, seen " + std::to_string(kind));
  return false;
}

// TorchAir asks for static kernels so: CANN's compiler is to read the arguments of operators that
// run now. Here graphs that torch_npu captures get the static kernels of npumesh, which their plans
// make themselves (docs/static_kernels.md); TorchAir finds the folder empty and compiles nothing.
PyObject* AclopStartDumpArgs(PyObject*, PyObject* args) {
  unsigned int kind = 0;
  const char* folder = nullptr;
  if (PyArg_ParseTuple(args, "Is", &kind, &folder) == 0 || !CheckKind("AclopStartDumpArgs", kind)) {
    return nullptr;
  }
  if (ImportedModule("torch_npu.npu.lowering") == nullptr) Py_RETURN_NONE;
  const Ref use = Import("torch_npu.npu.lowering", "use_static_kernels");
  const Ref used(use ? PyObject_CallFunction(use.get(), "s", folder) : nullptr);
  if (!used) return nullptr;
  Py_RETURN_NONE;
}

PyObject* AclopStopDumpArgs(PyObject*, PyObject* args) {
  unsigned int kind = 0;
  if (PyArg_ParseTuple(args, "I", &kind) == 0 || !CheckKind("AclopStopDumpArgs", kind)) {
    return nullptr;
  }
  Py_RETURN_NONE;
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

// as_torch_tensors(dims, TorchDataType, addresses): (0, tensors over foreign memory), or (1, [])
// for a type without a number.
PyObject* AsTorchTensors(PyObject*, PyObject* args) {
  PyObject *shape = nullptr, *places = nullptr;
  int type = 0;
  Dims dims, addresses;
  if (PyArg_ParseTuple(args, "OiO", &shape, &type, &places) == 0 ||
      !ReadInts(shape, "dims", dims) || !ReadInts(places, "addresses", addresses) ||
      !PrepareTorch()) {
    return nullptr;
  }
  Ref tensors(PyList_New(0));
  if (!tensors) return nullptr;
  const char* const name = NameOfTorchDataType(type);
  if (name == nullptr) return Py_BuildValue("(iN)", 1, tensors.release());
  for (const int64_t address : addresses) {
    const Ref tensor = ForeignTensor(reinterpret_cast<void*>(address), name, dims);
    if (!tensor || PyList_Append(tensors.get(), tensor.get()) != 0) return nullptr;
  }
  return Py_BuildValue("(iN)", 0, tensors.release());
}

PyMethodDef functions[] = {
    {"StupidRepeat", StupidRepeat, METH_VARARGS, "Prints a word so often."},
    {"InitializeGraphEngine", InitializeGraphEngine, METH_VARARGS, "Options of all graphs."},
    {"FinalizeGraphEngine", FinalizeGraphEngine, METH_NOARGS, "Closes all graphs."},
    {"InitDeviceStdoutChannel", InitDeviceStdoutChannel, METH_VARARGS, "Nothing to start here."},
    {"AclmdlSetDump", AclmdlSetDump, METH_VARARGS, "Dumps as a JSON file says."},
    {"GetSocName", GetSocName, METH_NOARGS, "The name of the simulated chip."},
    {"SetDebugLogPath", SetDebugLogPath, METH_VARARGS, "Lines of the log go there, too."},
    {"AclopStartDumpArgs", AclopStartDumpArgs, METH_VARARGS, "Captured graphs get static kernels."},
    {"AclopStopDumpArgs", AclopStopDumpArgs, METH_VARARGS, "Ends AclopStartDumpArgs."},
    {"as_torch_tensors", AsTorchTensors, METH_VARARGS, "Tensors over foreign memory."},
    {"CheckAclnnAvaliable", CheckAclnnAvaliable, METH_VARARGS, "Whether libopapi.so has it."},
    {"export", Export, METH_VARARGS, "Writes a graph as an .air file."},
    {"get_registered_ir_def", RegisteredIrDef, METH_VARARGS, "The interface of an operator."},
    {"check_cann_compat", CheckCannCompat, METH_VARARGS, "Which optional parts are unknown."},
    {"declare_operator", DeclareOperator, METH_VARARGS, "The interface of a foreign operator."},
    {nullptr, nullptr, 0, nullptr}};

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
