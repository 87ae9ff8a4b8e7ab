#include "graph/dump/format/format_data.h"

#include <bit>
#include <cstring>
#include <limits>

#include "proto/dump_data.pb.h"

namespace npumesh {
namespace {

namespace wire = toolkit::dumpdata;

static_assert(std::endian::native == std::endian::little, "dump files are little endian");

constexpr std::string_view kFormatVersion = "2.0";

void EncodeShape(const Shape& shape, wire::Shape* message) {
  for (const int64_t dim : shape.dims()) message->add_dim(static_cast<uint64_t>(dim));
}

// Fields that inputs and outputs share.
template <typename Message>
void EncodeTensor(const DumpTensor& tensor, Message* message) {
  message->set_data_type(static_cast<wire::OutputDataType>(DumpTypeNumber(tensor.type.dtype)));
  message->set_format(tensor.format);
  message->set_sub_format(tensor.sub_format);
  EncodeShape(tensor.type.shape, message->mutable_shape());
  EncodeShape(tensor.original_shape, message->mutable_original_shape());
  message->set_size(tensor.size);
  message->set_address(tensor.address);
  message->set_arg_index(tensor.arg_index);
}

void EncodeOutput(const DumpTensor& tensor, wire::OpOutput* message) {
  EncodeTensor(tensor, message);
  if (tensor.original_name.empty()) return;
  wire::OriginalOp* original = message->mutable_original_op();
  original->set_name(tensor.original_name);
  original->set_output_index(tensor.original_port);
  original->set_data_type(message->data_type());
  original->set_format(tensor.format);
}

Result<Shape> DecodeShape(const wire::Shape& message) {
  std::vector<int64_t> dims;
  dims.reserve(static_cast<size_t>(message.dim_size()));
  for (const uint64_t dim : message.dim()) {
    if (dim > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return Error(Code::kCorrupt, "dimension {} does not fit into 63 bits", dim);
    }
    dims.push_back(static_cast<int64_t>(dim));
  }
  return Shape(std::move(dims));
}

template <typename Message>
Result<DumpTensor> DecodeTensor(const Message& message) {
  DumpTensor tensor;
  tensor.type.dtype = DataTypeFromDump(message.data_type());
  NPUMESH_ASSIGN_OR_RETURN(tensor.type.shape, DecodeShape(message.shape()));
  NPUMESH_ASSIGN_OR_RETURN(tensor.original_shape, DecodeShape(message.original_shape()));
  tensor.format = message.format();
  tensor.sub_format = message.sub_format();
  tensor.address = message.address();
  tensor.size = message.size();
  tensor.arg_index = message.arg_index();
  return tensor;
}

// Gives pieces of a file their places, one after the other.
class Layout {
 public:
  Layout(uint64_t begin, uint64_t end) : next_(begin), end_(end) {}

  template <typename Piece>
  Status Place(std::vector<Piece>& pieces, std::string_view kind) {
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (pieces[i].size > end_ - next_) {
        return Error(Code::kCorrupt,
                     "{} {} has {} bytes at offset {}, but the file ends at {}; it was cut short",
                     kind, i, pieces[i].size, next_, end_);
      }
      pieces[i].offset = next_;
      next_ += pieces[i].size;
    }
    return Status();
  }

 private:
  uint64_t next_;
  const uint64_t end_;
};

Result<DumpRecord> DecodeMessage(const wire::DumpData& message) {
  DumpRecord record;
  record.op_name = message.op_name();
  record.time_us = message.dump_time();
  record.dfx_message = message.dfx_message();
  for (int i = 0; i < message.input_size(); ++i) {
    Result<DumpTensor> tensor = DecodeTensor(message.input(i));
    if (!tensor.ok()) return tensor.status().WithContext(fmt::format("input {}", i));
    record.inputs.push_back(*std::move(tensor));
  }
  for (int i = 0; i < message.output_size(); ++i) {
    Result<DumpTensor> tensor = DecodeTensor(message.output(i));
    if (!tensor.ok()) return tensor.status().WithContext(fmt::format("output {}", i));
    tensor->original_name = message.output(i).original_op().name();
    tensor->original_port = message.output(i).original_op().output_index();
    record.outputs.push_back(*std::move(tensor));
  }
  for (const wire::OpBuffer& buffer : message.buffer()) record.buffers.push_back({buffer.size()});
  for (const wire::Workspace& space : message.space()) {
    record.spaces.push_back({space.size(), space.arg_index()});
  }
  return record;
}

Result<DumpRecord> Decode(std::span<const std::byte> bytes) {
  uint64_t length = 0;
  if (bytes.size() <= sizeof(length)) {
    return Error(Code::kCorrupt, "{} bytes are too few for a dump file", bytes.size());
  }
  std::memcpy(&length, bytes.data(), sizeof(length));
  const uint64_t rest = bytes.size() - sizeof(length);
  if (length == 0 || length > std::numeric_limits<int>::max() || length > rest) {
    return Error(Code::kCorrupt, "the header length is {}, expected 1 to {}; is it a dump file?",
                 length, std::min<uint64_t>(rest, std::numeric_limits<int>::max()));
  }
  wire::DumpData message;
  if (!message.ParseFromArray(bytes.data() + sizeof(length), static_cast<int>(length))) {
    return Error(Code::kCorrupt, "its {} header bytes are no DumpData message", length);
  }
  NPUMESH_ASSIGN_OR_RETURN(DumpRecord record, DecodeMessage(message));
  Layout layout(sizeof(length) + length, bytes.size());
  NPUMESH_RETURN_IF_ERROR(layout.Place(record.inputs, "input"));
  NPUMESH_RETURN_IF_ERROR(layout.Place(record.outputs, "output"));
  NPUMESH_RETURN_IF_ERROR(layout.Place(record.buffers, "buffer"));
  NPUMESH_RETURN_IF_ERROR(layout.Place(record.spaces, "workspace"));
  return record;
}

}  // namespace

std::string EncodeDumpHeader(const DumpRecord& record) {
  wire::DumpData message;
  message.set_version(std::string(kFormatVersion));
  message.set_dump_time(record.time_us);
  message.set_op_name(record.op_name);
  message.set_dfx_message(record.dfx_message);
  for (const DumpTensor& tensor : record.inputs) EncodeTensor(tensor, message.add_input());
  for (const DumpTensor& tensor : record.outputs) EncodeOutput(tensor, message.add_output());
  for (const DumpPiece& piece : record.buffers) message.add_buffer()->set_size(piece.size);
  for (const DumpPiece& piece : record.spaces) {
    wire::Workspace* space = message.add_space();
    space->set_size(piece.size);
    space->set_arg_index(piece.arg_index);
  }
  const uint64_t length = message.ByteSizeLong();
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  message.AppendToString(&bytes);
  return bytes;
}

Result<DumpRecord> DecodeDump(std::span<const std::byte> bytes, std::string_view what) {
  Result<DumpRecord> record = Decode(bytes);
  if (!record.ok()) return record.status().WithContext(what);
  return record;
}

Result<DumpFile> DumpFile::Open(const std::string& path) {
  NPUMESH_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  NPUMESH_ASSIGN_OR_RETURN(DumpRecord record, DecodeDump({file->data(), file->size()}, path));
  return DumpFile(std::move(file), std::move(record));
}

}  // namespace npumesh
