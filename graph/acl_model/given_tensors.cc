#include "graph/acl_model/given_tensors.h"

#include <chrono>
#include <filesystem>
#include <span>

#include "graph/dump/format/format_data.h"
#include "graph/dump/format/format_name.h"
#include "runtime/base/data_type.h"
#include "runtime/base/files/secure_file.h"

namespace npumesh {
namespace {

// The order of the file's payload, too.
constexpr GivenTensor::Role kOrder[] = {GivenTensor::Role::kInput, GivenTensor::Role::kOutput,
                                        GivenTensor::Role::kWorkspace};

std::span<const std::byte> BytesOf(const GivenTensor& tensor) {
  return {static_cast<const std::byte*>(tensor.data), tensor.bytes};
}

Result<DumpTensor> Described(const GivenTensor& given, size_t index) {
  DumpTensor tensor;
  tensor.type.dtype = static_cast<DataType>(given.dtype);
  tensor.type.shape = Shape(given.dims);
  tensor.original_shape = Shape(given.original_dims);
  tensor.format = static_cast<int>(given.format);
  tensor.address = reinterpret_cast<uintptr_t>(given.data);
  tensor.size = given.bytes;
  tensor.arg_index = static_cast<uint32_t>(index);
  const Shape& shape = tensor.type.shape;
  const auto named = [&](const Status& status) {
    return status.WithContext(fmt::format("tensor {}", index));
  };
  if (const Status fits = shape.Check(); !fits.ok()) return named(fits);
  if (const Status fits = tensor.original_shape.Check(); !fits.ok()) return named(fits);
  const auto bytes = shape.is_static()
                         ? BytesOf(tensor.type.dtype, static_cast<uint64_t>(shape.elements()))
                         : std::nullopt;
  if (!bytes || *bytes > given.bytes) {
    return Error(Code::kInvalidArgument,
                 "tensor {}: a {} takes more than the {} bytes that it is said to have", index,
                 tensor.type.ToString(), given.bytes);
  }
  return tensor;
}

Result<DumpRecord> Record(const std::string& name, const std::string& tag, uint64_t time_us,
                          const std::vector<GivenTensor>& tensors) {
  DumpRecord record;
  record.op_name = name;
  record.time_us = time_us;
  record.dfx_message = tag;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].role == GivenTensor::Role::kWorkspace) {
      record.spaces.push_back({tensors[i].bytes, static_cast<uint32_t>(i)});
      continue;
    }
    NPUMESH_ASSIGN_OR_RETURN(DumpTensor tensor, Described(tensors[i], i));
    const bool input = tensors[i].role == GivenTensor::Role::kInput;
    (input ? record.inputs : record.outputs).push_back(std::move(tensor));
  }
  return record;
}

}  // namespace

Status WriteGivenTensors(const std::string& folder, const std::string& name, const std::string& tag,
                         const std::vector<GivenTensor>& tensors) {
  using std::chrono::microseconds;
  using std::chrono::system_clock;
  const auto now = system_clock::now();
  const auto time_us = static_cast<uint64_t>(
      std::chrono::duration_cast<microseconds>(now.time_since_epoch()).count());
  NPUMESH_ASSIGN_OR_RETURN(const DumpRecord record, Record(name, tag, time_us, tensors));
  const std::string path =
      fmt::format("{}{}.custom.{}{:03}", folder, name, TimeFolderName(system_clock::to_time_t(now)),
                  time_us / 1000 % 1000);
  const std::string parent = std::filesystem::path(path).parent_path().string();
  NPUMESH_RETURN_IF_ERROR(MakeFolders(parent, FileKind::kDataDump, RealFileSystem()));
  NPUMESH_ASSIGN_OR_RETURN(const auto file,
                           SecureFile::Create(path, FileKind::kDataDump, RealFileSystem()));
  NPUMESH_RETURN_IF_ERROR(file->Append(EncodeDumpHeader(record)));
  for (const GivenTensor::Role role : kOrder) {
    for (const GivenTensor& tensor : tensors) {
      if (tensor.role == role) NPUMESH_RETURN_IF_ERROR(file->Append(BytesOf(tensor)));
    }
  }
  return file->Commit();
}

}  // namespace npumesh
