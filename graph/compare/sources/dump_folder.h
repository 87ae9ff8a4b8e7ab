// Folders of dump files: what a tree of them holds, and one of them as a source of tensors
// (docs/dump.md).
#ifndef NPUMESH_GRAPH_COMPARE_SOURCES_DUMP_FOLDER_H_
#define NPUMESH_GRAPH_COMPARE_SOURCES_DUMP_FOLDER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/compare/sources/tensor_source.h"
#include "graph/dump/format/format_data.h"
#include "graph/dump/format/format_name.h"

namespace npumesh {

// One file of a folder. Names that mapping.csv explains are resolved.
struct DumpFolderFile {
  DumpFileName name;
  std::string path;
  std::string full_name;  // as it would be without mapping.csv
};

// The dump files of one folder, by time; statistics among them. Errors: kNotFound, kIo.
Result<std::vector<DumpFolderFile>> ListDumpFiles(const std::string& folder);

// The tensor of a record, copied out of its file. A dtype that the file does not say, or whose size
// does not fit its shape, gives int8 of `size` elements.
Tensor TensorOf(const DumpFile& file, const DumpTensor& tensor);

// A folder of dump files as a source. Of several files of one operator, such as one for inputs and
// one for outputs, the latest that has a tensor counts. Statistics and overflow records are passed
// over. Errors: those of ListDumpFiles and DumpFile::Open; kNotFound when nothing is left.
Result<std::unique_ptr<TensorSource>> OpenDumpFolder(const std::string& folder);

// A folder that directly holds dump files, .npy files or a dump.json of msProbe, and what its path
// says about it.
struct DumpStep {
  std::string path;
  int rank = 0;
  int world_size = 1;
  std::string time;   // "20241121145738"; empty: the path does not say
  std::string model;  // model folder; empty: single operators
  std::string model_id;
  std::optional<uint64_t> index;  // data_index: the step
  bool msprobe = false;
};

// All such folders at and below `root` (at most 30 levels), by rank, then time, then step. The rank
// is that of a worldsize{N}_global_rank{R} on the way, or in `root` itself; of msProbe as
// MsprobePlaceOf says. Errors: kNotFound when `root` cannot be read or holds none; kInvalidArgument
// when it holds several of msProbe for one rank and step.
Result<std::vector<DumpStep>> FindDumpSteps(const std::string& root);

// A dump of msProbe, dump files, or .npy files, what there is first. Errors: as OpenMsprobeFolder,
// OpenDumpFolder and OpenNpyFolder.
Result<std::unique_ptr<TensorSource>> OpenTensorFolder(const std::string& folder);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_COMPARE_SOURCES_DUMP_FOLDER_H_
