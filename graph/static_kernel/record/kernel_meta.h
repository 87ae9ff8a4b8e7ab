// KernelMeta: the folder kernel_meta, in which op_debug_level keeps what static kernels were made
// from (docs/static_kernels.md).
//
//   <folder>/kernel_meta/
//     Add_Relu_<32 digits>.json          what it computes, and how and into which object it was
//                                        compiled
//     Add_Relu_<32 digits>.cce           its C++ source, which compiles alone
//     Add_Relu_<32 digits>_loc.json      lines of the .cce -> operators of the graph
//     Add_Relu_<32 digits>_compute.json  its operators, values and edges
//     kernels_<32 digits>.o              a shared object, named by its content
//
// | level | .o, .json | .cce | _loc.json | _compute.json |
// | 1, 2  | x         | x    | x         |               |
// | 3     | x         |      |           |               |
// | 4     | x         | x    |           | x             |
//
// The name of a kernel follows from what it computes and for which operators, so ranks and runs may
// share the folder: what has one name is the same kernel of the same operators.
//
// Thread-safety: none; any number of processes in one folder, because files appear whole.
#ifndef NPUMESH_GRAPH_STATIC_KERNEL_RECORD_KERNEL_META_H_
#define NPUMESH_GRAPH_STATIC_KERNEL_RECORD_KERNEL_META_H_

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ops/core/static_kernels.h"
#include "graph/static_kernel/store/kernel_object.h"
#include "runtime/base/files/file_system.h"
#include "runtime/base/status.h"

namespace npumesh {

inline constexpr std::string_view kKernelMeta = "kernel_meta";

// One kernel on its way into the folder.
struct MetaKernel {
  std::string name;  // KernelMeta::NameOf
  const StaticRegion& region;
  const KernelSource& source;
  std::string source_text;         // CompleteSource of `source`
  std::vector<int> origins;        // by line of source_text (0 is the first), as MappedKernelText
  const KernelObject* object;      // null: it could not be built; then it has sources only
  std::vector<std::string> flags;  // of the compiler
  uint64_t scratch_bytes = 0;
};

class KernelMeta {
 public:
  // Makes kernel_meta below `parent`; empty: the working folder of this moment. Errors:
  // kInvalidArgument: it is a link, no folder, or may not be read and written; kIo: it cannot be
  // made. REQUIRES: `level` is in [1, 4]; `fs` outlives this object.
  static Result<KernelMeta> Open(int level, const std::string& parent,
                                 FileSystem& fs = RealFileSystem());

  int level() const { return level_; }
  const std::string& folder() const { return folder_; }  // absolute
  bool keeps_sources() const { return level_ != 3; }

  // Types of the operators, and 32 digits of the SHA-256 of `content`, which decides the machine
  // code, and of what is written of the operators.
  static std::string NameOf(const StaticRegion& region, std::string_view content);

  // Writes the files of a kernel that the level asks for, once. After an error (kIo: what a file
  // needs is not there, or it cannot be written; kInvalidArgument: a link is in its place) each
  // file is what it was before or whole.
  Status Write(const MetaKernel& kernel);

 private:
  KernelMeta(int level, std::string folder, FileSystem& fs)
      : level_(level), folder_(std::move(folder)), fs_(&fs) {}
  Status Put(const std::string& file, std::string_view content);
  Status WriteObject(const KernelObject& object);

  int level_;
  std::string folder_;
  FileSystem* fs_;
  std::set<std::string> written_;  // names of kernels with their objects, and of objects
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_STATIC_KERNEL_RECORD_KERNEL_META_H_
