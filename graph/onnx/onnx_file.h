// Files of models, ONNX among them.
#ifndef NPUMESH_GRAPH_ONNX_ONNX_FILE_H_
#define NPUMESH_GRAPH_ONNX_ONNX_FILE_H_

#include <string>

#include "graph/ir/graph.h"
#include "graph/onnx/import.h"
#include "graph/ops/core/op_registry.h"

namespace npumesh {

// The ONNX model in a file. Errors: as ReadOnnx and ImportOnnx; kNotFound, kIo; kCorrupt for a file
// that is no ONNX model, kUnsupported for a file of another tool (graph/io/foreign_file.h).
Result<Model> LoadOnnx(const std::string& path, const OpRegistry& registry,
                       const OnnxImportOptions& options = {});

// Whether the bytes of a file are those of an ONNX model. Errors: as MappedFile::Open; kUnsupported
// for a file of another tool.
Result<bool> IsOnnxFile(const std::string& path);

// The model as the file has it. Errors as LoadOnnx, without those of ImportOnnx.
Result<OnnxModel> LoadOnnxModel(const std::string& path);

// LoadModel (graph/io/model_file.h), or LoadOnnx for a file whose bytes say so.
Result<Model> LoadAnyModel(const std::string& path, const OpRegistry& registry);

// The same for bytes; `path` stands in messages, and data in files are looked for beside it.
Result<Model> ParseAnyModel(std::string bytes, const std::string& path, const OpRegistry& registry);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ONNX_ONNX_FILE_H_
