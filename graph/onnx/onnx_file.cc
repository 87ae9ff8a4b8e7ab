#include "graph/onnx/onnx_file.h"

#include <utility>

#include "graph/io/foreign_file.h"
#include "graph/io/model_file.h"
#include "graph/onnx/reader.h"
#include "runtime/base/files/mapped_file.h"

namespace npumesh {
namespace {

std::string_view BytesIn(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

// Why a file that is not of a known foreign kind is no ONNX model.
Status NoOnnx(const std::string& path, const MappedFile& file) {
  if (file.size() == 0) return Error(Code::kCorrupt, "{}: no ONNX model: the file is empty", path);
  if (LoadModel(path).ok()) {
    return Error(Code::kUnsupported,
                 "{}: this is a graph of npumesh's own kind already; `npumesh run` and all others "
                 "take it as it is",
                 path);
  }
  return Error(Code::kCorrupt,
               "{}: no ONNX model: the {} bytes do not begin with the fields of a ModelProto; "
               "expected an .onnx file",
               path, file.size());
}

}  // namespace

Result<OnnxModel> LoadOnnxModel(const std::string& path) {
  NPUMESH_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  NPUMESH_RETURN_IF_ERROR(RefuseForeignFile(BytesIn(*file)).WithContext(path));
  if (!LooksLikeOnnx(BytesIn(*file))) return NoOnnx(path, *file);
  // Weights are in memory once: as they are parsed, the pages that they came from are given back.
  return ReadOnnx(BytesIn(*file), path, [&](std::string_view piece) {
    file->Release(reinterpret_cast<const std::byte*>(piece.data()), piece.size());
  });
}

Result<Model> LoadOnnx(const std::string& path, const OpRegistry& registry,
                       const OnnxImportOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(const OnnxModel model, LoadOnnxModel(path));
  return ImportOnnx(model, registry, options);
}

Result<bool> IsOnnxFile(const std::string& path) {
  NPUMESH_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  NPUMESH_RETURN_IF_ERROR(RefuseForeignFile(BytesIn(*file)).WithContext(path));
  return LooksLikeOnnx(BytesIn(*file));
}

Result<Model> LoadAnyModel(const std::string& path, const OpRegistry& registry) {
  NPUMESH_ASSIGN_OR_RETURN(const bool is_onnx, IsOnnxFile(path));
  return is_onnx ? LoadOnnx(path, registry) : LoadModel(path);
}

Result<Model> ParseAnyModel(std::string bytes, const std::string& path,
                            const OpRegistry& registry) {
  if (!RefuseForeignFile(bytes).ok() || !LooksLikeOnnx(bytes)) {
    return ParseModel(std::move(bytes), path);
  }
  NPUMESH_ASSIGN_OR_RETURN(const OnnxModel model, ReadOnnx(bytes, path));
  return ImportOnnx(model, registry);
}

}  // namespace npumesh
