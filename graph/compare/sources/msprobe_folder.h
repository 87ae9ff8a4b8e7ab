// A folder of msProbe's PrecisionDebugger as a source of tensors: dump.json, which lists calls of
// torch or MindSpore and modules with statistics of their tensors, and dump_tensor_data/, which has
// the tensors (.pt, .npy) unless only statistics were asked for.
//
//   step0/rank3/dump.json construct.json stack.json dump_tensor_data/{name}.{input|output}.{i}.pt
//
// Operators are msProbe's names ("Functional.linear.0.forward"), in the order in which they ended.
// Their arguments are counted through lists and dictionaries, what is no tensor with them; numbers
// are tensors of one element.
#ifndef NPUMESH_GRAPH_COMPARE_SOURCES_MSPROBE_FOLDER_H_
#define NPUMESH_GRAPH_COMPARE_SOURCES_MSPROBE_FOLDER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "graph/compare/sources/tensor_source.h"

namespace npumesh {

inline constexpr std::string_view kMsprobeFile = "dump.json";
inline constexpr std::string_view kMsprobeTensors = "dump_tensor_data";

// What the folders of a path say: "step2" and "rank3". A job of one process has "proc4711" or
// "rank" in its stead, which is rank 0.
struct MsprobePlace {
  std::optional<uint64_t> step;
  int rank = 0;
};
MsprobePlace MsprobePlaceOf(const std::string& folder);

// True when its dump.json is one of msProbe: GE's configuration of dumps often has that name, too.
bool IsMsprobeFolder(const std::string& folder);

// Tensors have elements where dump_tensor_data is there, and statistics where dump.json has them.
// Errors name the file: kNotFound, kIo; kCorrupt for what is no dump.json of msProbe.
Result<std::unique_ptr<TensorSource>> OpenMsprobeFolder(const std::string& folder);

// From the text of a dump.json, for files beside it in `folder`; `has_files`: dump_tensor_data is
// there. Errors as OpenMsprobeFolder.
Result<std::unique_ptr<TensorSource>> ReadMsprobeDump(std::string text, const std::string& folder,
                                                      bool has_files);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_COMPARE_SOURCES_MSPROBE_FOLDER_H_
