#include "graph/dump/format/format_data.h"
#include "graph/dump/options/config_file.h"
#include "tests/fuzz/targets.h"

namespace npumesh::fuzz {
namespace {

bool LiesIn(uint64_t offset, uint64_t size, size_t bytes) {
  return offset <= bytes && size <= bytes - offset;
}

bool AllLieIn(const DumpRecord& record, size_t bytes) {
  for (const auto* tensors : {&record.inputs, &record.outputs}) {
    for (const DumpTensor& tensor : *tensors) {
      if (!LiesIn(tensor.offset, tensor.size, bytes)) return false;
    }
  }
  for (const auto* pieces : {&record.buffers, &record.spaces}) {
    for (const DumpPiece& piece : *pieces) {
      if (!LiesIn(piece.offset, piece.size, bytes)) return false;
    }
  }
  return true;
}

// The header of `record`, read again behind as many payload bytes as it speaks of.
std::string ReadAgain(const DumpRecord& record, size_t payload) {
  const std::string header = EncodeDumpHeader(record);
  const std::string file = header + std::string(payload, '\0');
  const Result<DumpRecord> again = DecodeDump(std::as_bytes(std::span(file)), "again");
  if (!again.ok()) return "cannot be read again: " + again.status().ToString();
  return EncodeDumpHeader(*again) == header ? "" : "reads otherwise when written";
}

}  // namespace

std::string CheckDumpData(std::string_view bytes) {
  const Result<DumpRecord> record = DecodeDump(std::as_bytes(std::span(bytes)), "fuzz.dump");
  if (!record.ok()) return FlawOf(record.status());
  if (!AllLieIn(*record, bytes.size())) return "a tensor behind the file";
  return ReadAgain(*record, bytes.size());
}

std::string CheckDumpConfig(std::string_view text) {
  return FlawOf(ParseDumpConfig(text, "fuzz.json").status());
}

}  // namespace npumesh::fuzz
