// OutputTree: the folder of records and packages that one rank leaves behind.
//
//   <build_dir>/aclnn_static_shape_kernel_outputs/
//     <timestamp>_<pid>_outputs/          YYYYmmddHHMMSSffffff, local time
//       <pid>/MatMulV2_float_ND_1_2048_0.json        operators that became static kernels
//       <pid>_debug/...                              all operators
//       static_kernel_<datetime>.run                 YYYYmmddHHMMSS
//
// No two processes ever have one folder, also when they share a pid (containers) and a microsecond.
//
// Thread-safety: none.
#ifndef NPUMESH_GRAPH_STATIC_KERNEL_RECORD_OUTPUT_TREE_H_
#define NPUMESH_GRAPH_STATIC_KERNEL_RECORD_OUTPUT_TREE_H_

#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "graph/static_kernel/record/op_record.h"
#include "runtime/base/files/file_system.h"
#include "runtime/base/status.h"

namespace npumesh {

inline constexpr std::string_view kStaticKernelOutputs = "aclnn_static_shape_kernel_outputs";

class OutputTree {
 public:
  using Clock = std::function<std::chrono::system_clock::time_point()>;

  // Whether a tree may be made below `build_dir`; empty: the working folder. Errors
  // (kInvalidArgument): it does not exist, is no folder, may not be read and written, contains
  // "..", a NUL byte or a symbolic link.
  static Status Check(const std::string& build_dir);
  // Makes the folders. A relative path starts at the working folder of this moment. Errors: those
  // of Check; kIo: a folder cannot be made. Two ranks of one node may share `build_dir`.
  static Result<OutputTree> Create(const std::string& build_dir, FileSystem& fs = RealFileSystem(),
                                   Clock now = std::chrono::system_clock::now);

  const std::string& folder() const { return folder_; }  // ..._outputs, absolute

  // Writes a record into <pid>_debug and, when it is `chosen`, into <pid>. Equal ones are written
  // once; numbers count up in each of the two folders ("..._0.json", "..._1.json"), whatever the
  // stems are. After an error (kIo) the same record may be added again.
  Status Add(const OpRecord& record, bool chosen);

  // Path of the package that is to be written; a new one each time.
  std::string PackagePath();

 private:
  struct Kind {
    std::string folder;
    std::set<std::string> written = {};  // contents
  };
  OutputTree(std::string folder, FileSystem& fs, Clock now);
  Status MakeKindFolders();
  Status AddTo(Kind& kind, const OpRecord& record);

  std::string folder_;
  FileSystem* fs_;
  Clock now_;
  Kind chosen_, debug_;
  std::chrono::sys_seconds last_package_{};
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_STATIC_KERNEL_RECORD_OUTPUT_TREE_H_
