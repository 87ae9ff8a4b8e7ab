#include "launch/dump/overflow_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "graph/compare/elements.h"

namespace npumesh {
namespace {

constexpr uint32_t kMagic = 0x5A5A5A5A;
constexpr size_t kOldRecordBytes = 2048;
constexpr size_t kEntryHead = 16;

using Names = std::vector<std::string_view>;

struct Accelerator {
  std::string_view name;
  Names fields;
};

const std::array<Accelerator, 4>& Accelerators() {
  static const Names kCore = {"model_id",   "stream_id", "task_id",  "task_type",
                              "context_id", "thread_id", "pc_start", "para_base",
                              "core_id",    "block_id",  "status"};
  static const std::array<Accelerator, 4> kAll = {
      {{"AI Core", kCore},
       {"AI Vector Core", kCore},
       {"AI CPU",
        {"model_id", "stream_id", "task_id", "task_type", "context_id", "cpu_id", "thread_id",
         "status"}},
       {"SDMA",
        {"model_id", "stream_id", "task_id", "task_type", "context_id", "thread_id", "src_addr",
         "dst_addr", "channel_id", "status"}}}};
  return kAll;
}

// Areas of the old record: offset, and whether the common six fields stand there.
struct OldArea {
  std::string_view name;
  size_t offset;
};
constexpr std::array<OldArea, 3> kOldAreas = {
    {{"DHA Atomic Add", 0}, {"L2 Atomic Add", 128}, {"AI Core", 256}}};
const Names& OldFields() {
  static const Names kFields = {"model_id",  "stream_id", "task_id",
                                "task_type", "pc_start",  "para_base"};
  return kFields;
}

template <typename T>
T At(std::span<const std::byte> bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

OverflowEntry ReadFields(std::string_view accelerator, const Names& names,
                         std::span<const std::byte> fields) {
  OverflowEntry entry;
  entry.accelerator = accelerator;
  for (size_t i = 0; i < names.size() && (i + 1) * 8 <= fields.size(); ++i) {
    const auto value = At<uint64_t>(fields, i * 8);
    entry.fields[std::string(names[i])] = value;
    if (names[i] == "model_id") entry.model_id = value;
    if (names[i] == "stream_id") entry.stream_id = value;
    if (names[i] == "task_id") entry.task_id = value;
    if (names[i] == "status") entry.status = value;
  }
  return entry;
}

Result<std::vector<OverflowEntry>> ParseNew(std::span<const std::byte> bytes,
                                            const std::string& what) {
  std::vector<OverflowEntry> entries;
  for (size_t offset = 8; offset + kEntryHead <= bytes.size();) {
    const auto valid = At<uint32_t>(bytes, offset);
    const auto type = At<uint32_t>(bytes, offset + 4);
    const auto length = At<uint32_t>(bytes, offset + 12);
    if (valid == 0) {
      if (length == 0) break;  // the rest is padding
    } else if (type >= Accelerators().size()) {
      return Error(Code::kCorrupt, "{}: accelerator {} at byte {}, expected 0 to 3", what, type,
                   offset);
    }
    if (length > bytes.size() - offset - kEntryHead) {
      return Error(Code::kCorrupt, "{}: {} bytes of fields at byte {} end behind the record", what,
                   length, offset);
    }
    if (valid != 0) {
      const Accelerator& accelerator = Accelerators()[type];
      entries.push_back(ReadFields(accelerator.name, accelerator.fields,
                                   bytes.subspan(offset + kEntryHead, length)));
    }
    offset += kEntryHead + length;
  }
  return entries;
}

std::vector<OverflowEntry> ParseOld(std::span<const std::byte> bytes) {
  std::vector<OverflowEntry> entries;
  for (const OldArea& area : kOldAreas) {
    const auto fields = bytes.subspan(area.offset, OldFields().size() * 8);
    OverflowEntry entry = ReadFields(area.name, OldFields(), fields);
    const bool empty = std::all_of(fields.begin(), fields.end(),
                                   [](std::byte byte) { return byte == std::byte{0}; });
    if (!empty) entries.push_back(std::move(entry));
  }
  return entries;
}

// The operator's own dump: same task, and same stream where both know it.
void FindOperator(const std::vector<DumpFolderFile>& files, Overflow& overflow) {
  for (const DumpFolderFile& file : files) {
    const bool same_task = file.name.task == overflow.entry.task_id;
    const bool same_stream = !file.name.stream || *file.name.stream == overflow.entry.stream_id;
    if (file.name.op_type == "Opdebug" || file.name.stats || !same_task || !same_stream) continue;
    overflow.operator_file = file.path;
    overflow.op_type = file.name.op_type;
    overflow.op_name = file.name.op_name;
    return;
  }
}

std::string TensorLine(const DumpFile& file, Side side, size_t index, const DumpTensor& described) {
  const Tensor tensor = TensorOf(file, described);
  const Result<std::vector<double>> elements = ElementsOf(tensor);
  double peak = 0;
  int64_t nans = 0, infinities = 0;
  if (elements.ok()) {
    for (const double v : *elements) {
      nans += std::isnan(v);
      infinities += std::isinf(v);
      if (std::isfinite(v)) peak = std::max(peak, std::abs(v));
    }
  }
  return fmt::format("    {} {} {}: largest finite magnitude {:.6g}, NaN {}, Inf {}\n", Name(side),
                     index, tensor.type().ToString(), peak, nans, infinities);
}

Result<std::string> OperatorText(const Overflow& overflow) {
  if (overflow.operator_file.empty()) return std::string("    no dump of the operator\n");
  NPUMESH_ASSIGN_OR_RETURN(const DumpFile file, DumpFile::Open(overflow.operator_file));
  std::string text = fmt::format("    {}\n", overflow.operator_file);
  for (size_t i = 0; i < file.record().inputs.size(); ++i) {
    text += TensorLine(file, Side::kInput, i, file.record().inputs[i]);
  }
  for (size_t i = 0; i < file.record().outputs.size(); ++i) {
    text += TensorLine(file, Side::kOutput, i, file.record().outputs[i]);
  }
  return text;
}

}  // namespace

Result<std::vector<OverflowEntry>> ParseOverflowRecord(std::span<const std::byte> bytes,
                                                       const std::string& what) {
  if (bytes.size() >= 8 && At<uint32_t>(bytes, 0) == kMagic) return ParseNew(bytes, what);
  if (bytes.size() == kOldRecordBytes) return ParseOld(bytes);
  return Error(Code::kCorrupt,
               "{}: no overflow record: {} bytes without the magic number, expected {}", what,
               bytes.size(), kOldRecordBytes);
}

Result<std::vector<Overflow>> FindOverflows(const std::vector<DumpStep>& steps) {
  std::vector<Overflow> overflows;
  for (const DumpStep& step : steps) {
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<DumpFolderFile> files, ListDumpFiles(step.path));
    for (const DumpFolderFile& file : files) {
      if (file.name.op_type != "Opdebug" || file.name.stats) continue;
      NPUMESH_ASSIGN_OR_RETURN(const DumpFile data, DumpFile::Open(file.path));
      for (const DumpTensor& output : data.record().outputs) {
        NPUMESH_ASSIGN_OR_RETURN(const std::vector<OverflowEntry> entries,
                                 ParseOverflowRecord(data.payload(output), file.path));
        for (const OverflowEntry& entry : entries) {
          Overflow& overflow = overflows.emplace_back();
          overflow.record_file = file.path;
          overflow.entry = entry;
          FindOperator(files, overflow);
        }
      }
    }
  }
  return overflows;
}

Result<std::string> OverflowText(const std::vector<Overflow>& overflows, size_t most) {
  std::string text = fmt::format("{} overflows\n", overflows.size());
  for (size_t i = 0; i < overflows.size() && i < most; ++i) {
    const Overflow& overflow = overflows[i];
    text += fmt::format("  [{}] {} ({}) on {}: model {}, stream {}, task {}, status {:#x}\n", i,
                        overflow.op_name.empty() ? "unknown operator" : overflow.op_name,
                        overflow.op_type, overflow.entry.accelerator, overflow.entry.model_id,
                        overflow.entry.stream_id, overflow.entry.task_id, overflow.entry.status);
    NPUMESH_ASSIGN_OR_RETURN(const std::string lines, OperatorText(overflow));
    text += lines;
  }
  return text;
}

}  // namespace npumesh
