// Reading and writing whole models in every form that the Ascend tool chain writes.
//
//   .air                      binary ge.proto.ModelDef
//   .om                       of `npumesh atc` (graph/io/offline_file.h): read only here
//   ge_proto*.txt             text ModelDef (or GraphDef, as TorchAir's "txt" dump)
//   .pbtxt                    NodeDef-like text (dynamo.pbtxt)
//   ge_onnx*.pbtxt            text ge.onnx.ModelProto: view only, dtype attributes are lost
//
// Readers take hostile bytes: any input yields a model or one clear error that names file, node and
// field; never a crash, and memory stays in proportion to the file.
#ifndef NPUMESH_GRAPH_IO_MODEL_FILE_H_
#define NPUMESH_GRAPH_IO_MODEL_FILE_H_

#include <string>

#include "graph/ir/graph.h"
#include "runtime/base/files/file_system.h"
#include "runtime/base/files/mapped_file.h"
#include "runtime/base/status.h"

namespace npumesh {

// Loads by content, not by extension; what another tool wrote is refused by its name (kUnsupported,
// foreign_file.h). The result is verified (Graph::Verify on every graph).
Result<Model> LoadModel(const std::string& path);
// The same of a file that is mapped, for callers that read more of it.
Result<Model> LoadModel(const MappedFile& file, const std::string& path);

// The same of a part of a file that is an offline model; weights in it count from its begin.
Result<Model> ParseOfflineFile(std::string_view bytes, const std::string& path);

// Parses bytes in memory; `path` is used in messages and to look for files beside it.
Result<Model> ParseModel(std::string bytes, const std::string& path);

struct SaveOptions {
  // Permission 0400 of the finished file, as GE writes it; otherwise 0640.
  bool read_only = false;
};
// Binary ModelDef with everything a GE loader needs; deterministic bytes.
Status SaveAir(const Model& model, const std::string& path, const SaveOptions& options = {},
               FileSystem& fs = RealFileSystem());
// The bytes SaveAir writes.
Result<std::string> SerializeAir(const Model& model);

// TorchAir's NodeDef-like text of the main graph.
std::string ToPbtxt(const Model& model);
// The ModelDef as JSON, with the names of the messages' fields, but for the bytes of constants.
std::string ToGeProtoJson(const Model& model);
// ge_proto text: level 1 everything, 2 without weights, 3 nodes and edges only.
std::string ToGeProtoText(const Model& model, int level = 1);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_IO_MODEL_FILE_H_
