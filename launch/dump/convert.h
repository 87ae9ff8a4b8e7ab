// Dump files to .npy files, under the names and with the conversions of msaccucmp.
#ifndef NPUMESH_LAUNCH_DUMP_CONVERT_H_
#define NPUMESH_LAUNCH_DUMP_CONVERT_H_

#include <string>
#include <vector>

#include "graph/compare/sources/dump_folder.h"

namespace npumesh {

struct ConvertOptions {
  // FRACTAL_NZ tensors become ND of their original shape; others stay as they are stored.
  bool to_nd = false;
};

struct Converted {
  size_t files = 0;                 // .npy, .bin and .json files written
  std::vector<std::string> failed;  // dump files, with the reason
};

// Converts one dump file into `out`, which must exist: {dump file name}.{input|output}.{i}.npy, and
// with to_nd {...}.{i}.{shape joined with x}.npy for what was FRACTAL_NZ. Buffers and workspaces
// become .bin files; a debug record of an overflow becomes {...}.output.{i}.json. Returns the
// number of files. Errors: kCorrupt, kIo; kUnsupported names tensor and dtype.
Result<size_t> ConvertFile(const DumpFolderFile& file, const std::string& out,
                           const ConvertOptions& options);

// Converts all dump files directly in `folder`. A file that fails is noted, here and in
// convert_failed_file_list.txt; the others are still converted. Errors: as ListDumpFiles, and kIo
// when `out` cannot be made.
Result<Converted> ConvertFolder(const std::string& folder, const std::string& out,
                                const ConvertOptions& options);

// What NumPy can hold of a tensor: bfloat16 and 8-bit floats as float32, undefined as int8, single
// bits unpacked, a scalar as [1], an empty tensor as float64[0]. Error: kUnsupported names the
// dtype.
Result<Tensor> NumpyForm(const Tensor& tensor);

// A tensor in FRACTAL_NZ storage, [..., N1, M1, M0, N0], as ND of `shape`. Error: kInvalidArgument
// when the storage cannot hold that shape.
Result<Tensor> NzToNd(const Tensor& tensor, const Shape& shape);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_DUMP_CONVERT_H_
