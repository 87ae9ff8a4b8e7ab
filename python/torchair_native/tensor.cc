#include "python/torchair_native/tensor.h"

#include <algorithm>

namespace npumesh::torchair {
namespace {

struct TypeName {
  const char* torch;
  int32_t dtype;
};

// Torch's types, by name because no version has all of them. Of several for one number the first
// that there is holds values.
constexpr TypeName kTypeNames[] = {
    {"float32", NPUMESH_FLOAT32},
    {"float16", NPUMESH_FLOAT16},
    {"int8", NPUMESH_INT8},
    {"int32", NPUMESH_INT32},
    {"uint8", NPUMESH_UINT8},
    {"int16", NPUMESH_INT16},
    {"uint16", NPUMESH_UINT16},
    {"uint32", NPUMESH_UINT32},
    {"int64", NPUMESH_INT64},
    {"uint64", NPUMESH_UINT64},
    {"float64", NPUMESH_FLOAT64},
    {"bool", NPUMESH_BOOL},
    {"complex64", NPUMESH_COMPLEX64},
    {"complex128", NPUMESH_COMPLEX128},
    {"bfloat16", NPUMESH_BFLOAT16},
    {"complex32", NPUMESH_COMPLEX32},
    {"float8_e5m2", NPUMESH_FLOAT8_E5M2},
    {"float8_e4m3fn", NPUMESH_FLOAT8_E4M3FN},
    {"float8_e8m0fnu", NPUMESH_FLOAT8_E8M0},
    {"float4_e2m1fn_x2", NPUMESH_FLOAT4_E2M1},
    {"qint8", NPUMESH_INT8},
    {"quint8", NPUMESH_UINT8},
    {"qint32", NPUMESH_INT32},
};

struct KnownType {
  PyObject* object;  // torch.float32, ...; torch keeps it
  int32_t dtype;
};

// What is used of torch; objects that stay until the process ends.
struct Torch {
  PyObject* tensor = nullptr;
  PyObject* parameter = nullptr;
  PyObject* empty = nullptr;
  PyObject* device = nullptr;
  std::vector<KnownType> types;
  // Names of attributes and methods, as Python wants them.
  PyObject *data_ptr = nullptr, *is_contiguous = nullptr, *contiguous = nullptr, *shape = nullptr,
           *dtype = nullptr, *is_cpu = nullptr, *copy = nullptr, *detach = nullptr;
  PyObject *dtype_name = nullptr, *device_name = nullptr;
};

Torch torch;
char no_elements;  // an address for tensors that have none

bool InternNames() {
  const std::pair<PyObject**, const char*> names[] = {{&torch.data_ptr, "data_ptr"},
                                                      {&torch.is_contiguous, "is_contiguous"},
                                                      {&torch.contiguous, "contiguous"},
                                                      {&torch.shape, "shape"},
                                                      {&torch.dtype, "dtype"},
                                                      {&torch.is_cpu, "is_cpu"},
                                                      {&torch.copy, "copy_"},
                                                      {&torch.detach, "detach"}};
  for (const auto& [place, name] : names) {
    *place = PyUnicode_InternFromString(name);
    if (*place == nullptr) return false;
  }
  return true;
}

bool FindTypes() {
  const Ref module(PyImport_ImportModule("torch"));
  if (!module) return false;
  for (const TypeName& type : kTypeNames) {
    PyObject* const object = PyObject_GetAttrString(module.get(), type.torch);
    if (object == nullptr) {
      PyErr_Clear();
    } else {
      torch.types.push_back({object, type.dtype});
    }
  }
  return true;
}

int32_t NumberOf(PyObject* dtype) {
  for (const KnownType& type : torch.types) {
    if (type.object == dtype) return type.dtype;
  }
  return NPUMESH_UNDEFINED;
}

// How torch holds values of a type that it may lack.
struct Holder {
  PyObject* dtype = nullptr;
  int64_t packed = 1;  // elements in one of torch's, along the last axis
};

Holder HolderOf(int32_t dtype) {
  Holder holder;
  const int32_t bits = npumesh_dtype_bits(dtype);
  holder.packed = bits > 0 && bits < 8 && 8 % bits == 0 ? 8 / bits : 1;
  for (const KnownType& type : torch.types) {
    if (type.dtype != dtype) continue;
    holder.dtype = type.object;
    return holder;
  }
  if (bits > 8 || bits == 0) return holder;
  for (const KnownType& type : torch.types) {
    if (type.dtype == NPUMESH_UINT8) holder.dtype = type.object;
  }
  return holder;
}

bool ReadDims(PyObject* tensor, Dims& dims) {
  const Ref shape(PyObject_GetAttr(tensor, torch.shape));
  if (!shape) return false;
  const Py_ssize_t rank = PyTuple_Size(shape.get());
  if (rank < 0) return false;
  dims.resize(static_cast<size_t>(rank));
  for (Py_ssize_t i = 0; i < rank; ++i) {
    dims[static_cast<size_t>(i)] = PyLong_AsLongLong(PyTuple_GetItem(shape.get(), i));
  }
  return PyErr_Occurred() == nullptr;
}

// Bytes of a tensor without gaps.
uint64_t BytesOf(const Dims& dims, int32_t dtype) {
  uint64_t elements = 1;
  for (const int64_t dim : dims) elements *= static_cast<uint64_t>(dim);
  return (elements * static_cast<uint64_t>(npumesh_dtype_bits(dtype)) + 7) / 8;
}

// Bytes that hold another type: the last axis counts bytes, not elements.
void TakeAs(int32_t declared, TensorView& view) {
  npumesh_tensor& tensor = view.described;
  if (declared == NPUMESH_UNDEFINED || declared == tensor.dtype) return;
  if (tensor.dtype != NPUMESH_UINT8 && tensor.dtype != NPUMESH_INT8) return;
  const Holder holder = HolderOf(declared);
  if (NumberOf(holder.dtype) == declared || holder.dtype == nullptr) return;
  tensor.dtype = declared;
  if (!view.dims.empty()) view.dims.back() *= holder.packed;
}

// `view.tensor` becomes one without gaps.
bool CloseGaps(TensorView& view) {
  const Ref answer(PyObject_CallMethodObjArgs(view.tensor.get(), torch.is_contiguous, nullptr));
  if (!answer) return false;
  if (answer.get() == Py_True) return true;
  const Ref detached(PyObject_CallMethodObjArgs(view.tensor.get(), torch.detach, nullptr));
  if (!detached) return false;
  Ref whole(PyObject_CallMethodObjArgs(detached.get(), torch.contiguous, nullptr));
  if (!whole) return false;
  view.changed = std::move(view.tensor);
  view.tensor = std::move(whole);
  return true;
}

}  // namespace

bool PrepareTorch() {
  if (torch.empty != nullptr) return true;
  if (!InternNames()) return false;
  torch.types.clear();
  if (!FindTypes()) return false;
  // The function of torch itself: a device module may have replaced torch.empty.
  Ref functions = Import("torch._C", "_VariableFunctions");
  if (!functions) return false;
  torch.dtype_name = PyUnicode_InternFromString("dtype");
  torch.device_name = PyUnicode_InternFromString("device");
  torch.tensor = Import("torch", "Tensor").release();
  torch.parameter = Import("torch.nn", "Parameter").release();
  torch.device = Import("torch", "device").release();
  torch.empty = PyObject_GetAttrString(functions.get(), "empty");
  return PyErr_Occurred() == nullptr;
}

bool IsTensor(PyObject* object) {
  PyObject* const type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  return type == torch.tensor || type == torch.parameter;
}

bool ViewTensor(PyObject* tensor, int32_t declared, TensorView& view) {
  view.tensor = Ref::Share(tensor);
  if (!CloseGaps(view) || !ReadDims(view.tensor.get(), view.dims)) return false;
  const Ref dtype(PyObject_GetAttr(view.tensor.get(), torch.dtype));
  if (!dtype) return false;
  view.described.dtype = NumberOf(dtype.get());
  if (view.described.dtype == NPUMESH_UNDEFINED) {
    PyErr_Format(PyExc_RuntimeError, "npumesh has no type for tensors of %S", dtype.get());
    return false;
  }
  TakeAs(declared, view);
  view.described.data = AddressOf(view.tensor.get());
  view.described.bytes = BytesOf(view.dims, view.described.dtype);
  view.described.dims = view.dims.data();
  view.described.rank = static_cast<int32_t>(view.dims.size());
  return view.described.data != nullptr;
}

int IsOnHost(PyObject* tensor) {
  const Ref answer(PyObject_GetAttr(tensor, torch.is_cpu));
  return answer ? PyObject_IsTrue(answer.get()) : -1;
}

Ref OutputDevice(bool npu) {
  Ref host(PyObject_CallFunction(torch.device, "s", "cpu"));
  if (!npu || !host) return host;
  // What makes "npu" the memory of the host has replaced torch.empty.
  const Ref empty = Import("torch", "empty");
  const Ref none(Py_BuildValue("(i)", 0));
  const Ref named(Py_BuildValue("{s:s}", "device", "npu"));
  if (!empty || !none || !named) return Ref();
  const Ref sizes(PyTuple_Pack(1, none.get()));
  const Ref made(sizes ? PyObject_Call(empty.get(), sizes.get(), named.get()) : nullptr);
  if (!made) {
    PyErr_Clear();
    return host;
  }
  return Ref(PyObject_GetAttr(made.get(), torch.device_name));
}

Ref NewTensor(int32_t dtype, const int64_t* dims, int32_t rank, PyObject* device) {
  const Holder holder = HolderOf(dtype);
  if (holder.dtype == nullptr) {
    Fail(std::string("torch has no type for an output of ") + npumesh_dtype_name(dtype));
    return Ref();
  }
  const Ref shape(PyTuple_New(rank));
  if (!shape) return Ref();
  for (int32_t i = 0; i < rank; ++i) {
    const bool last = i + 1 == rank;
    const int64_t size = last ? (dims[i] + holder.packed - 1) / holder.packed : dims[i];
    if (PyTuple_SetItem(shape.get(), i, PyLong_FromLongLong(size)) != 0) return Ref();
  }
  const Ref sizes(PyTuple_Pack(1, shape.get()));
  const Ref how(PyDict_New());
  if (!sizes || !how || PyDict_SetItem(how.get(), torch.dtype_name, holder.dtype) != 0 ||
      PyDict_SetItem(how.get(), torch.device_name, device) != 0) {
    return Ref();
  }
  return Ref(PyObject_Call(torch.empty, sizes.get(), how.get()));
}

Ref ForeignTensor(void* address, const char* dtype, const Dims& dims) {
  const Ref type = Import("torch", dtype);
  const Ref size(type ? PyObject_GetAttrString(type.get(), "itemsize") : nullptr);
  int64_t elements = 1;
  for (const int64_t dim : dims) elements *= dim;
  int64_t bytes = 0;
  if (!size || !ReadInt(size.get(), "itemsize", bytes)) return Ref();
  bytes *= elements;
  if (bytes < 0 || (bytes > 0 && address == nullptr)) {
    Fail("as_torch_tensors: expected memory, seen " + std::to_string(bytes) + " bytes at " +
         std::to_string(reinterpret_cast<uintptr_t>(address)));
    return Ref();
  }
  if (bytes == 0) {
    const Ref host = OutputDevice(false);
    return host ? NewTensor(NumberOf(type.get()), dims.data(), static_cast<int32_t>(dims.size()),
                            host.get())
                : Ref();
  }
  constexpr int kWritable = 0x200;  // PyBUF_WRITE, which the stable ABI of Python 3.9 does not name
  const Ref memory(PyMemoryView_FromMemory(static_cast<char*>(address), bytes, kWritable));
  const Ref view = Import("torch", "frombuffer");
  const Ref how(type ? Py_BuildValue("{s:O}", "dtype", type.get()) : nullptr);
  const Ref words(memory ? PyTuple_Pack(1, memory.get()) : nullptr);
  if (!view || !how || !words) return Ref();
  const Ref flat(PyObject_Call(view.get(), words.get(), how.get()));
  const Ref shape(PyTuple_New(static_cast<Py_ssize_t>(dims.size())));
  if (!flat || !shape) return Ref();
  for (size_t i = 0; i < dims.size(); ++i) {
    PyObject* const dim = PyLong_FromLongLong(dims[i]);
    if (PyTuple_SetItem(shape.get(), static_cast<Py_ssize_t>(i), dim) != 0) return Ref();
  }
  return Ref(PyObject_CallMethod(flat.get(), "reshape", "(O)", shape.get()));
}

void* AddressOf(PyObject* tensor) {
  const Ref address(PyObject_CallMethodObjArgs(tensor, torch.data_ptr, nullptr));
  if (!address) return nullptr;
  void* const found = PyLong_AsVoidPtr(address.get());
  if (found == nullptr && PyErr_Occurred() == nullptr) return &no_elements;
  return found;
}

bool CopyTensor(PyObject* target, PyObject* source) {
  const Ref detached(PyObject_CallMethodObjArgs(target, torch.detach, nullptr));
  if (!detached) return false;
  const Ref done(PyObject_CallMethodObjArgs(detached.get(), torch.copy, source, nullptr));
  return static_cast<bool>(done);
}

}  // namespace npumesh::torchair
