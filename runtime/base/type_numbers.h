// How the formats of others name the element types: columns of the table in data_type.cc.
//
// Thread-safety: may be called by several threads.
#ifndef NPUMESH_RUNTIME_BASE_TYPE_NUMBERS_H_
#define NPUMESH_RUNTIME_BASE_TYPE_NUMBERS_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/base/data_type.h"

namespace npumesh {

// TensorProto.DataType of ONNX; 0 for a type that it has not.
int OnnxNumber(DataType dtype);
// kUndefined for a number of no type here.
DataType DataTypeFromOnnx(int64_t number);

// What a .npy file says of such elements: byte order, kind and width, as "<f4". Types that NumPy
// does not know are stored as integers of the same width: several types have one text. Empty: the
// elements have no whole bytes.
std::string_view NpyText(DataType dtype);
// The NumPy type with this kind and width ("f4"); nullopt: another one.
std::optional<DataType> DataTypeFromNpy(std::string_view kind_and_width);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_TYPE_NUMBERS_H_
