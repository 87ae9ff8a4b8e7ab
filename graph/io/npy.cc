#include "graph/io/npy.h"

#include <cstring>

#include "graph/io/npy_header.h"
#include "runtime/base/files/mapped_file.h"
#include "runtime/base/type_numbers.h"

namespace npumesh {
namespace {

// Bytes of the elements; kCorrupt when the file holds another number of them.
Result<uint64_t> CheckSize(const NpyHeader& header, uint64_t file_bytes) {
  NPUMESH_RETURN_IF_ERROR(header.type.shape.Check());
  const auto bytes =
      BytesOf(header.type.dtype, static_cast<uint64_t>(header.type.shape.elements()));
  const uint64_t held = file_bytes - header.data_offset;
  if (bytes && *bytes == held) return held;
  return Error(Code::kCorrupt, "{} bytes of elements; {} needs {}", held, header.type.ToString(),
               bytes.value_or(0));
}

Result<Tensor> Read(const std::string& path) {
  NPUMESH_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  const std::string_view content(reinterpret_cast<const char*>(file->data()), file->size());
  NPUMESH_ASSIGN_OR_RETURN(const NpyHeader header, ParseNpyHeader(content));
  NPUMESH_ASSIGN_OR_RETURN(const uint64_t bytes, CheckSize(header, file->size()));
  if (bytes != 0 && header.data_offset % kNpyAlignment == 0) {
    return Tensor::FromFile(header.type, file, header.data_offset);
  }
  Tensor tensor = Tensor::Allocate(header.type);
  if (bytes != 0) std::memcpy(tensor.mutable_data(), file->data() + header.data_offset, bytes);
  return tensor;
}

// True when elements of `stored` are the way `wanted` travels in a .npy file; bools may come as
// bytes.
bool StoresAs(DataType stored, DataType wanted) {
  if (stored == wanted) return true;
  if (wanted == DataType::kBool) return stored == DataType::kUint8 || stored == DataType::kInt8;
  const std::string_view text = NpyText(wanted);
  return !text.empty() && DataTypeFromNpy(text.substr(1)) == stored;
}

}  // namespace

Result<Tensor> ReadNpy(const std::string& path) {
  Result<Tensor> tensor = Read(path);
  if (!tensor.ok() && tensor.status().message().find(path) == std::string_view::npos) {
    return tensor.status().WithContext(path);
  }
  return tensor;
}

Status WriteNpy(const std::string& path, const Tensor& tensor, FileKind kind, FileSystem& fs) {
  const Result<std::string> header = FormatNpyHeader(tensor.type());
  if (!header.ok()) return header.status().WithContext(path);
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<SecureFile> file,
                           SecureFile::Create(path, kind, fs));
  NPUMESH_RETURN_IF_ERROR(file->Append(*header));
  NPUMESH_RETURN_IF_ERROR(file->Append(std::span(tensor.data(), tensor.bytes())));
  return file->Commit();
}

Result<std::string> NpyHead(const TensorType& type) {
  return FormatNpyHeader(type);
}

Result<Tensor> ReinterpretAs(const Tensor& tensor, DataType wanted) {
  if (tensor.dtype() == wanted) return tensor;
  if (!StoresAs(tensor.dtype(), wanted)) {
    return Error(Code::kInvalidArgument, "a tensor of {} cannot be read as {}",
                 Name(tensor.dtype()), Name(wanted));
  }
  return tensor.WithType({wanted, tensor.shape()});
}

}  // namespace npumesh
