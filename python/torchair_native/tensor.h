// Tensors of torch, reached through Python: what npumesh is told of them, and how new ones are
// made.
#ifndef NPUMESH_PYTHON_TORCHAIR_NATIVE_TENSOR_H_
#define NPUMESH_PYTHON_TORCHAIR_NATIVE_TENSOR_H_

#include "python/torchair_native/object.h"

namespace npumesh::torchair {

// A tensor as npumesh_run takes it. `described.dims` points into `dims`, so a TensorView stays
// where it is.
struct TensorView {
  npumesh_tensor described{};
  Dims dims;
  Ref tensor;   // keeps the memory
  Ref changed;  // the tensor whose value is copied from `tensor` after the run; none: it is itself
};

// Loads what this file needs of torch, once for a process. Error set.
bool PrepareTorch();

// Whether `object` is a torch.Tensor or a Parameter.
bool IsTensor(PyObject* object);

// Describes the memory of a tensor as elements of `declared`, which matters where torch has no such
// type and holds its bits as bytes; NPUMESH_UNDEFINED: as torch's type says. One with gaps is
// copied. Error set.
bool ViewTensor(PyObject* tensor, int32_t declared, TensorView& view);

// Whether the tensor is in the memory of the host. Error set where it returns -1.
int IsOnHost(PyObject* tensor);

// The device of new outputs: for graphs of the NPU what torch makes of "npu", which may be the
// host. Error set.
Ref OutputDevice(bool npu);

// A contiguous tensor for a value of this type. Error set.
Ref NewTensor(int32_t dtype, const int64_t* dims, int32_t rank, PyObject* device);

// A tensor of torch's type `dtype` ("float32") over memory that its caller keeps. Error set.
Ref ForeignTensor(void* address, const char* dtype, const Dims& dims);

// Its memory; never null, also when there are no elements. Error set where it is null.
void* AddressOf(PyObject* tensor);

// Copies `source` into `target` by torch. Error set.
bool CopyTensor(PyObject* target, PyObject* source);

}  // namespace npumesh::torchair

#endif  // NPUMESH_PYTHON_TORCHAIR_NATIVE_TENSOR_H_
