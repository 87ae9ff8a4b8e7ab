// The dump data file, version 2.0:
//
//   8 bytes   length H of the header, little endian
//   H bytes   protobuf message DumpData, without tensor bytes
//   payload   the bytes of all inputs, outputs, buffers and workspaces, in this order, unpadded
//
// Thread-safety: values; a DumpFile is immutable.
#ifndef NPUMESH_GRAPH_DUMP_FORMAT_FORMAT_DATA_H_
#define NPUMESH_GRAPH_DUMP_FORMAT_FORMAT_DATA_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/dump/format/format_types.h"
#include "graph/ir/shape.h"
#include "runtime/base/files/mapped_file.h"
#include "runtime/base/status.h"

namespace npumesh {

// One input or output of a record.
struct DumpTensor {
  TensorType type;             // dtype and storage shape
  Shape original_shape;        // in the original format
  int format = kFormatNd;      // primary format
  int32_t sub_format = 0;      // groups of FRACTAL_Z
  uint64_t address = 0;        // in device memory
  uint64_t size = 0;           // bytes of its payload; 0: not in the file
  uint32_t arg_index = 0;      // exception dump: position among the kernel's arguments
  std::string original_name;   // outputs: the operator before fusion
  uint32_t original_port = 0;  // and its output
  uint64_t offset = 0;         // of its payload in the file; set by the reader
};

// A buffer or workspace: bytes without a type.
struct DumpPiece {
  uint64_t size = 0;
  uint32_t arg_index = 0;
  uint64_t offset = 0;  // set by the reader
};

struct DumpRecord {
  std::string op_name;   // as in the graph
  uint64_t time_us = 0;  // since the Unix epoch
  std::vector<DumpTensor> inputs;
  std::vector<DumpTensor> outputs;
  std::vector<DumpPiece> buffers;
  std::vector<DumpPiece> spaces;
  std::string dfx_message;  // exception dump: what happened
};

// Length and header of a file; its payload follows. The offsets play no part.
std::string EncodeDumpHeader(const DumpRecord& record);

// Reads the header of a file whose whole content is `bytes` and sets the offsets. Errors (kCorrupt)
// begin with `what`, usually the path: shorter than 9 bytes, a header that ends after the file or
// is no DumpData, a tensor that ends after the file, a dimension above 2^63 - 1. Bytes after the
// last tensor are allowed.
Result<DumpRecord> DecodeDump(std::span<const std::byte> bytes, std::string_view what);

// A dump data file, mapped.
class DumpFile {
 public:
  // Errors: as MappedFile::Open and DecodeDump.
  static Result<DumpFile> Open(const std::string& path);

  const DumpRecord& record() const { return record_; }
  // The bytes of one of its inputs or outputs; not aligned.
  std::span<const std::byte> payload(const DumpTensor& tensor) const {
    return {file_->data() + tensor.offset, tensor.size};
  }
  std::span<const std::byte> payload(const DumpPiece& piece) const {
    return {file_->data() + piece.offset, piece.size};
  }

 private:
  DumpFile(std::shared_ptr<const MappedFile> file, DumpRecord record)
      : file_(std::move(file)), record_(std::move(record)) {}
  std::shared_ptr<const MappedFile> file_;
  DumpRecord record_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_DUMP_FORMAT_FORMAT_DATA_H_
