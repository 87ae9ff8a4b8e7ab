// NumPy .npy files, version 1.0 to 3.0, little endian, C order.
//
// bfloat16 has no NumPy type: it is stored as uint16 bit patterns, and the reader needs to be told.
#ifndef NPUMESH_GRAPH_IO_NPY_H_
#define NPUMESH_GRAPH_IO_NPY_H_

#include <string>

#include "graph/ir/tensor.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/status.h"

namespace npumesh {

// Errors name the file: kNotFound, kCorrupt (header, size), kUnsupported (Fortran order, big
// endian, objects).
Result<Tensor> ReadNpy(const std::string& path);

// Appears whole or not at all; overwrites.
Status WriteNpy(const std::string& path, const Tensor& tensor, FileKind kind = FileKind::kData,
                FileSystem& fs = RealFileSystem());

// What stands before the elements in a .npy file of this type; a writer of streams adds them. Error
// (kUnsupported): NumPy cannot store the dtype in whole bytes.
Result<std::string> NpyHead(const TensorType& type);

// The tensor as `wanted` when only the storage type differs (uint16 as bfloat16, uint8 or int8 as
// bool); otherwise kInvalidArgument with both dtypes.
Result<Tensor> ReinterpretAs(const Tensor& tensor, DataType wanted);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_IO_NPY_H_
