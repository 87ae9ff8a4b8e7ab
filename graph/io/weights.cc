#include "graph/io/weights.h"

#include <cstring>
#include <optional>

#include "graph/io/weight_path.h"
#include "graph/ir/node_kind.h"
#include "runtime/base/files/mapped_file.h"
#include "runtime/base/log.h"

namespace npumesh {
namespace {

// Mapped bytes serve as a tensor only where kernels may assume the alignment of our own memory.
constexpr uint64_t kMappedAlignment = 64;

// Bytes of a tensor whose type came from a file.
Result<uint64_t> CheckedBytes(const TensorType& type) {
  if (BitsOf(type.dtype) == 0) {
    return Error(Code::kUnsupported, "dtype {}; expected one of fixed width", Name(type.dtype));
  }
  const Status shape = type.shape.Check();
  if (!shape.ok() || !type.shape.is_static()) {
    return Error(Code::kCorrupt, "shape {} of a constant; expected known dimensions",
                 type.shape.ToString());
  }
  const auto bytes = BytesOf(type.dtype, static_cast<uint64_t>(type.shape.elements()));
  if (!bytes) return Error(Code::kCorrupt, "{} does not fit into 63 bits", type.ToString());
  return *bytes;
}

Result<Tensor> LoadConst(const Node& node, const std::string& who) {
  const AttrValue* attr = node.FindAttr("value");
  const TensorAttr* value = attr == nullptr ? nullptr : attr->get<TensorAttr>();
  if (value == nullptr) {
    return Error(Code::kCorrupt, "attr \"value\": {}; expected a tensor",
                 attr == nullptr ? "absent" : attr->kind());
  }
  const TensorType type{value->desc->dtype, value->desc->shape.value_or(Shape())};
  NPUMESH_ASSIGN_OR_RETURN(const uint64_t needed, CheckedBytes(type));
  if (value->data->size() < needed) {
    return Error(Code::kCorrupt, "attr \"value\": {} bytes; {} needs {}", value->data->size(),
                 type.ToString(), needed);
  }
  if (value->data->size() > needed) {
    NPUMESH_WARNING_ONCE("{} attr \"value\": {} bytes where {} needs {}; the first are taken", who,
                         value->data->size(), type.ToString(), needed);
  }
  return Tensor::FromShared(type, value->data);
}

struct FileRange {
  std::string field;  // the attribute that names the file
  std::string path;
  int64_t offset = 0;
  std::optional<int64_t> length;  // absent: as many bytes as the type needs
};

Result<FileRange> RangeOf(const Node& node) {
  FileRange range;
  range.path = node.StringAttr("location", "");
  if (!range.path.empty()) {
    range.field = "location";
    range.offset = node.IntAttr("offset", 0);
    if (node.FindAttr("length") != nullptr) range.length = node.IntAttr("length", -1);
    return range;
  }
  range.field = "file_path";
  range.path = node.StringAttr("file_path", "");
  if (!range.path.empty()) return range;
  return Error(Code::kNotFound, "neither \"location\" nor \"file_path\" names a file");
}

Result<TensorType> FileConstantType(const Node& node) {
  const AttrValue* shape = node.FindAttr("shape");
  if (shape == nullptr || shape->get<ListAttr>() == nullptr) {
    return Error(Code::kCorrupt, "attr \"shape\": absent; expected a list of ints");
  }
  const int64_t number = node.IntAttr("dtype", -1);
  const std::optional<DataType> dtype = DataTypeFromRuntime(number);
  if (!dtype) return Error(Code::kCorrupt, "attr \"dtype\": {} is no dtype", number);
  return TensorType{*dtype, Shape(shape->get<ListAttr>()->i)};
}

Status CheckRange(const FileRange& range, uint64_t needed, uint64_t file_bytes) {
  const auto count = range.length ? static_cast<uint64_t>(*range.length) : needed;
  const auto offset = static_cast<uint64_t>(range.offset);
  const bool negative = range.offset < 0 || range.length.value_or(0) < 0;
  if (!negative && count >= needed && count <= file_bytes && offset <= file_bytes - count) {
    return Status();
  }
  return Error(Code::kCorrupt, "offset {} and length {}; {} bytes are needed and the file has {}",
               range.offset, range.length.value_or(static_cast<int64_t>(needed)), needed,
               file_bytes);
}

Tensor TensorAt(const TensorType& type, std::shared_ptr<const MappedFile> file, uint64_t offset,
                uint64_t bytes) {
  if (offset % kMappedAlignment == 0 && bytes != 0) {
    return Tensor::FromFile(type, std::move(file), offset);
  }
  Tensor tensor = Tensor::Allocate(type);
  if (bytes != 0) std::memcpy(tensor.mutable_data(), file->data() + offset, bytes);
  return tensor;
}

Result<Tensor> LoadFileConstant(const Node& node, const std::string& model_path) {
  NPUMESH_ASSIGN_OR_RETURN(const TensorType type, FileConstantType(node));
  NPUMESH_ASSIGN_OR_RETURN(const uint64_t needed, CheckedBytes(type));
  NPUMESH_ASSIGN_OR_RETURN(const FileRange range, RangeOf(node));
  const std::string field = fmt::format("attr \"{}\"", range.field);
  const Result<WeightPlace> place = FindWeightFile(range.path, model_path);
  if (!place.ok()) return place.status().WithContext(field);
  auto file = MappedFile::Open(place->file);
  if (!file.ok()) return file.status().WithContext(field);
  const Status fits = CheckRange(range, needed, (*file)->size());
  if (!fits.ok()) return fits.WithContext(fmt::format("{} {}", field, place->file));
  return TensorAt(type, *std::move(file), static_cast<uint64_t>(range.offset), needed);
}

}  // namespace

Result<Tensor> LoadWeight(const Node& node, const std::string& model_path) {
  const std::string who = fmt::format("{}{}node \"{}\" ({})", model_path,
                                      model_path.empty() ? "" : ": ", node.name, node.type);
  Result<Tensor> tensor = [&]() -> Result<Tensor> {
    if (node.type == "Const" || node.type == "Constant") return LoadConst(node, who);
    if (IsFileConstant(node)) return LoadFileConstant(node, model_path);
    return Error(Code::kInvalidArgument, "expected Const, Constant or FileConstant");
  }();
  if (!tensor.ok()) return tensor.status().WithContext(who);
  return tensor;
}

}  // namespace npumesh
