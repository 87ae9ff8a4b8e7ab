#include "graph/onnx/onnx_file.h"

#include "graph/io/foreign_file.h"
#include "graph/io/model_file.h"
#include "graph/onnx/reader.h"
#include "runtime/base/mapped_file.h"

namespace npumesh {
namespace {

std::string_view BytesIn(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

}  // namespace

Result<Model> LoadOnnx(const std::string& path, const OpRegistry& registry,
                       const OnnxImportOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  NPUMESH_RETURN_IF_ERROR(RefuseForeignFile(BytesIn(*file)).WithContext(path));
  if (!LooksLikeOnnx(BytesIn(*file))) {
    return Error(Code::kCorrupt,
                 "{}: no ONNX model: the {} bytes do not begin with the fields of a ModelProto",
                 path, file->size());
  }
  NPUMESH_ASSIGN_OR_RETURN(const OnnxModel model, ReadOnnx(BytesIn(*file), path));
  return ImportOnnx(model, registry, options);
}

Result<Model> LoadAnyModel(const std::string& path, const OpRegistry& registry) {
  bool is_onnx = false;
  {
    NPUMESH_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
    NPUMESH_RETURN_IF_ERROR(RefuseForeignFile(BytesIn(*file)).WithContext(path));
    is_onnx = LooksLikeOnnx(BytesIn(*file));
  }
  return is_onnx ? LoadOnnx(path, registry) : LoadModel(path);
}

}  // namespace npumesh
