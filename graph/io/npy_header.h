// The header of a .npy file: a Python dictionary of three keys. Internal to graph/io.
#ifndef NPUMESH_GRAPH_IO_NPY_HEADER_H_
#define NPUMESH_GRAPH_IO_NPY_HEADER_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "graph/ir/shape.h"
#include "runtime/base/status.h"

namespace npumesh {

// Where FormatNpyHeader lets the elements start, and what makes them usable where they are mapped.
inline constexpr uint64_t kNpyAlignment = 64;

struct NpyHeader {
  TensorType type;
  uint64_t data_offset = 0;  // where the elements start in the file
};

// Parses the front of `file`. Errors: kCorrupt, kUnsupported (Fortran order, big endian, dtypes
// other than bool, integers, floats and complex).
Result<NpyHeader> ParseNpyHeader(std::string_view file);

// Magic, version, dictionary and padding to a multiple of kNpyAlignment bytes. Error: kUnsupported
// for a dtype that NumPy cannot store in whole bytes.
Result<std::string> FormatNpyHeader(const TensorType& type);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_IO_NPY_HEADER_H_
