#include "graph/onnx/tensor_reader.h"

#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include "graph/io/weight_path.h"
#include "runtime/base/files/mapped_file.h"
#include "runtime/base/text/parse.h"
#include "runtime/base/text/printable.h"
#include "runtime/base/type_numbers.h"

namespace npumesh {
namespace {

Result<TensorType> TypeOf(const onnx::TensorProto& proto) {
  TensorType type{DataTypeFromOnnx(proto.data_type()), Shape()};
  if (type.dtype == DataType::kUndefined) {
    return Error(Code::kUnsupported, "has data_type {}, which npumesh has no type for",
                 proto.data_type());
  }
  for (const int64_t dim : proto.dims()) {
    if (dim < 0) return Error(Code::kCorrupt, "has the dimension {}; expected 0 or more", dim);
    type.shape.mutable_dims().push_back(dim);
  }
  NPUMESH_RETURN_IF_ERROR(type.shape.Check());
  return type;
}

// Elements of a repeated field, narrowed to those of the tensor.
template <typename To, typename Field>
Result<Tensor> FromField(const TensorType& type, const Field& field, std::string_view name) {
  const auto count = static_cast<uint64_t>(type.shape.elements());
  if (static_cast<uint64_t>(field.size()) * sizeof(To) != type.bytes()) {
    return Error(Code::kCorrupt, "is {}, {} elements, but {} has {}", type, count, name,
                 field.size());
  }
  Tensor tensor = Tensor::Allocate(type);
  auto* to = reinterpret_cast<To*>(tensor.mutable_data());
  for (const auto value : field) *to++ = static_cast<To>(value);
  return tensor;
}

Result<Tensor> FromTypedField(const TensorType& type, const onnx::TensorProto& proto) {
  switch (type.dtype) {
    case DataType::kFloat:
    case DataType::kComplex64:
      return FromField<float>(type, proto.float_data(), "float_data");
    case DataType::kDouble:
    case DataType::kComplex128:
      return FromField<double>(type, proto.double_data(), "double_data");
    case DataType::kInt64:
      return FromField<int64_t>(type, proto.int64_data(), "int64_data");
    case DataType::kUint32:
      return FromField<uint32_t>(type, proto.uint64_data(), "uint64_data");
    case DataType::kUint64:
      return FromField<uint64_t>(type, proto.uint64_data(), "uint64_data");
    case DataType::kInt32:
      return FromField<int32_t>(type, proto.int32_data(), "int32_data");
    case DataType::kInt16:
    case DataType::kUint16:
    case DataType::kFloat16:
    case DataType::kBfloat16:
      return FromField<uint16_t>(type, proto.int32_data(), "int32_data");
    default:
      return FromField<uint8_t>(type, proto.int32_data(), "int32_data");
  }
}

Result<uint64_t> NumberIn(const std::map<std::string, std::string>& entries, const std::string& key,
                          uint64_t fallback) {
  const auto found = entries.find(key);
  if (found == entries.end()) return fallback;
  NPUMESH_ASSIGN_OR_RETURN(const int64_t number,
                           ParseInt(found->second, 0, INT64_MAX, "external_data " + key));
  return static_cast<uint64_t>(number);
}

Result<std::string> PlaceOfData(const std::string& location, const std::string& path) {
  const std::filesystem::path inside = std::filesystem::path(location).lexically_normal();
  if (inside.is_absolute() || inside.empty() || *inside.begin() == "..") {
    return Error(Code::kInvalidArgument,
                 "external_data location \"{}\" leaves the folder of the model; expected a path "
                 "inside it",
                 Quotable(location));
  }
  const std::filesystem::path folder = PackageFolder(path);
  const std::string file = (folder / inside).string();
  if (const auto target = LinkTargetOutside(file, folder)) {
    return Error(Code::kInvalidArgument, "{} is a link that leaves the folder of the model, to {}",
                 Quotable(file), Quotable(target->string()));
  }
  return file;
}

Result<Tensor> FromFileBeside(const TensorType& type, const onnx::TensorProto& proto,
                              const std::string& path) {
  std::map<std::string, std::string> entries;
  for (const auto& entry : proto.external_data()) entries[entry.key()] = entry.value();
  if (entries.count("location") == 0) {
    return Error(Code::kCorrupt, "has external data without a location");
  }
  NPUMESH_ASSIGN_OR_RETURN(const std::string place, PlaceOfData(entries["location"], path));
  NPUMESH_ASSIGN_OR_RETURN(const uint64_t offset, NumberIn(entries, "offset", 0));
  NPUMESH_ASSIGN_OR_RETURN(const uint64_t length, NumberIn(entries, "length", type.bytes()));
  NPUMESH_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(place));
  if (length != type.bytes() || offset > file->size() || length > file->size() - offset) {
    return Error(Code::kCorrupt,
                 "is {}, {} bytes; its data are {} bytes at offset {} of {}, which has {} bytes",
                 type, type.bytes(), length, offset, Quotable(place), file->size());
  }
  return Tensor::FromFile(type, file, offset);
}

}  // namespace

Result<Tensor> TakeTensor(onnx::TensorProto& proto, const std::string& path) {
  NPUMESH_ASSIGN_OR_RETURN(const TensorType type, TypeOf(proto));
  if (proto.has_segment()) return Error(Code::kUnsupported, "is stored in segments");
  if (type.dtype == DataType::kString) return Tensor().WithType(type);
  const std::optional<uint64_t> bytes =
      BytesOf(type.dtype, static_cast<uint64_t>(type.shape.elements()));
  if (!bytes) return Error(Code::kCorrupt, "is {}, more bytes than 63 bits count", type);
  if (proto.data_location() == onnx::TensorProto::EXTERNAL) {
    return FromFileBeside(type, proto, path);
  }
  if (!proto.has_raw_data()) return FromTypedField(type, proto);
  if (proto.raw_data().size() != *bytes) {
    return Error(Code::kCorrupt, "is {}, {} bytes, but raw_data has {}", type, *bytes,
                 proto.raw_data().size());
  }
  const std::unique_ptr<std::string> raw(proto.release_raw_data());
  return Tensor::FromString(type, std::move(*raw));
}

}  // namespace npumesh
