#include "launch/dump/overflow_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "graph/compare/measures/elements.h"
#include "runtime/base/files/secure_file.h"

namespace npumesh {
namespace {

constexpr std::string_view kRecordType = "Opdebug";  // in file names
constexpr uint32_t kMagic = 0x5A5A5A5A;
constexpr size_t kOldRecordBytes = 2048;
constexpr size_t kEntryHead = 16;

using Names = std::vector<std::string_view>;

struct Accelerator {
  std::string_view name;
  std::string_view short_name;  // in JSON
  Names fields;
};

const std::array<Accelerator, 4>& Accelerators() {
  static const Names kCore = {"model_id",   "stream_id", "task_id",  "task_type",
                              "context_id", "thread_id", "pc_start", "para_base",
                              "core_id",    "block_id",  "status"};
  static const std::array<Accelerator, 4> kAll = {
      {{"AI Core", "AIC", kCore},
       {"AI Vector Core", "AIV", kCore},
       {"AI CPU",
        "AICPU",
        {"model_id", "stream_id", "task_id", "task_type", "context_id", "cpu_id", "thread_id",
         "status"}},
       {"SDMA",
        "SDMA",
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

Status NoRecord(size_t bytes, const std::string& what) {
  return Error(Code::kCorrupt,
               "{}: no overflow record: {} bytes without the magic number, expected {}", what,
               bytes, kOldRecordBytes);
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

nlohmann::ordered_json JsonField(std::string_view name, uint64_t value) {
  for (const std::string_view address :
       {"pc_start", "para_base", "src_addr", "dst_addr", "kernel_code"}) {
    if (name == address) return fmt::format("{:#x}", value);
  }
  return value;
}

nlohmann::ordered_json JsonFields(const Names& names, std::span<const std::byte> fields) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (size_t i = 0; i < names.size() && (i + 1) * 8 <= fields.size(); ++i) {
    json[std::string(names[i])] = JsonField(names[i], At<uint64_t>(fields, i * 8));
  }
  return json;
}

// Version 1 has four words of status for cores.
void WidenStatus(std::span<const std::byte> fields, size_t at, nlohmann::ordered_json& json) {
  nlohmann::ordered_json words = nlohmann::ordered_json::array();
  for (size_t i = at; i < at + 4 && (i + 1) * 8 <= fields.size(); ++i) {
    words.push_back(At<uint64_t>(fields, i * 8));
  }
  json["status"] = std::move(words);
}

Result<nlohmann::ordered_json> NewJson(std::span<const std::byte> bytes, const std::string& what) {
  constexpr size_t kFields = 8 + kEntryHead;
  if (bytes.size() < kFields) {
    return Error(Code::kCorrupt, "{}: {} bytes hold no entry of an accelerator", what,
                 bytes.size());
  }
  const auto version = At<uint32_t>(bytes, 4);
  const auto type = At<uint32_t>(bytes, 12);
  const auto length = At<uint32_t>(bytes, 20);
  if (type >= Accelerators().size() || length > bytes.size() - kFields) {
    return Error(Code::kCorrupt,
                 "{}: accelerator {} with {} bytes of fields, expected 0 to 3 and at most {}", what,
                 type, length, bytes.size() - kFields);
  }
  const Accelerator& accelerator = Accelerators()[type];
  const auto fields = bytes.subspan(kFields, length);
  nlohmann::ordered_json data = JsonFields(accelerator.fields, fields);
  const bool is_core = type < 2;
  if (is_core && version == 1) WidenStatus(fields, accelerator.fields.size() - 1, data);
  return nlohmann::ordered_json{{"magic", fmt::format("{:#x}", kMagic)},
                                {"version", version},
                                {"acc_list",
                                 {{"valid", At<uint32_t>(bytes, 8)},
                                  {"acc_type", accelerator.short_name},
                                  {"rsv", At<uint32_t>(bytes, 16)},
                                  {"data_len", length},
                                  {"data", std::move(data)}}}};
}

// REQUIRES: 2048 bytes.
nlohmann::ordered_json OldJson(std::span<const std::byte> bytes) {
  constexpr size_t kDhaStatus = 512, kL2Status = 768, kCoreStatus = 1024;
  nlohmann::ordered_json json;
  for (const OldArea& area : kOldAreas) {
    json[std::string(area.name)] =
        JsonFields(OldFields(), bytes.subspan(area.offset, OldFields().size() * 8));
  }
  json["DHA Atomic Add"]["status"] = At<uint64_t>(bytes, kDhaStatus);
  json["L2 Atomic Add"]["status"] = At<uint64_t>(bytes, kL2Status);
  static const Names kStatusFields = {"kernel_code", "block_idx", "status"};
  json["AI Core"].update(JsonFields(kStatusFields, bytes.subspan(kCoreStatus, 24)));
  return json;
}

// The operator's own dump: same task, and same stream where both know it.
void FindOperator(const std::vector<DumpFolderFile>& files, Overflow& overflow) {
  for (const DumpFolderFile& file : files) {
    const bool same_task = file.name.task == overflow.entry.task_id;
    const bool same_stream = !file.name.stream || *file.name.stream == overflow.entry.stream_id;
    if (file.name.op_type == kRecordType || file.name.stats || !same_task || !same_stream) continue;
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
  return NoRecord(bytes.size(), what);
}

Result<nlohmann::ordered_json> OverflowJson(std::span<const std::byte> bytes,
                                            const std::string& what) {
  if (bytes.size() >= 8 && At<uint32_t>(bytes, 0) == kMagic) return NewJson(bytes, what);
  if (bytes.size() == kOldRecordBytes) return OldJson(bytes);
  return NoRecord(bytes.size(), what);
}

bool IsOverflowRecord(const DumpFileName& name) {
  return name.op_type == kRecordType && !name.stats;
}

Result<size_t> ConvertOverflowRecord(const std::string& path, const std::string& out) {
  NPUMESH_ASSIGN_OR_RETURN(const DumpFile file, DumpFile::Open(path));
  const std::vector<DumpTensor>& outputs = file.record().outputs;
  const std::string stem = out + "/" + path.substr(path.rfind('/') + 1) + ".output.";
  for (size_t i = 0; i < outputs.size(); ++i) {
    NPUMESH_ASSIGN_OR_RETURN(const nlohmann::ordered_json json,
                             OverflowJson(file.payload(outputs[i]), path));
    NPUMESH_RETURN_IF_ERROR(
        WriteFile(fmt::format("{}{}.json", stem, i), json.dump(4), FileKind::kDataDump));
  }
  return outputs.size();
}

Result<std::vector<Overflow>> FindOverflows(const std::vector<DumpStep>& steps) {
  std::vector<Overflow> overflows;
  for (const DumpStep& step : steps) {
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<DumpFolderFile> files, ListDumpFiles(step.path));
    for (const DumpFolderFile& file : files) {
      if (!IsOverflowRecord(file.name)) continue;
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
