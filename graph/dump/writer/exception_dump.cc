#include "graph/dump/writer/exception_dump.h"

#include <chrono>

#include "graph/dump/format/format_mapping.h"
#include "graph/dump/format/format_name.h"
#include "graph/dump/statistics/operands.h"
#include "graph/engine/plan/compiled_model.h"
#include "runtime/base/files/dump_sink.h"
#include "runtime/base/files/secure_file.h"

namespace npumesh {
namespace {

// YYYYMMDDHHMMSSmmm, local time.
std::string WallTime(std::chrono::system_clock::time_point now) {
  using std::chrono::milliseconds;
  const auto since = std::chrono::duration_cast<milliseconds>(now.time_since_epoch());
  return fmt::format("{}{:03}", TimeFolderName(std::chrono::system_clock::to_time_t(now)),
                     since.count() % 1000);
}

std::string NameOf(const StepView& view, bool brief, const std::string& time) {
  if (brief) return fmt::format("exception_info.{}.{}.{}", kDumpStream, view.index, time);
  return fmt::format("{}.{}.{}.{}", SanitizedName(view.step.type), SanitizedName(view.step.name),
                     view.index, time);
}

std::string Explain(const StepView& view, const Status& error,
                    const std::vector<DumpOperand>& operands) {
  std::string text =
      fmt::format("[Exception] {}\nnode: {}\ntype: {}\niteration: {}\n", error.message(),
                  view.step.name, view.step.type, view.run.iteration);
  for (const DumpOperand& operand : operands) {
    text += fmt::format("arg {}: {} at {:#x}\n", operand.tensor.arg_index,
                        operand.tensor.type.ToString(), operand.tensor.address);
  }
  return text;
}

// The path of the file.
Result<std::string> WriteParts(const std::string& folder, const std::string& name,
                               const DumpSink::Parts& parts, FileSystem& fs) {
  NPUMESH_RETURN_IF_ERROR(MakeFolders(folder, FileKind::kDataDump, fs));
  const std::string stored = StorableName(folder, name);
  if (stored != name) NPUMESH_RETURN_IF_ERROR(AddMapping(folder, stored, name, fs));
  const std::string path = folder + "/" + stored;
  NPUMESH_ASSIGN_OR_RETURN(const auto file, SecureFile::Create(path, FileKind::kDataDump, fs));
  for (const auto& part : parts) NPUMESH_RETURN_IF_ERROR(file->Append(part));
  NPUMESH_RETURN_IF_ERROR(file->Commit());
  return path;
}

}  // namespace

Result<std::string> WriteException(const DumpSettings& settings, const DumpPlace& place,
                                   const StepView& view, const Status& error, FileSystem& fs) {
  const bool brief = settings.exception == ExceptionDump::kBrief;
  const auto now = std::chrono::system_clock::now();
  std::vector<DumpOperand> operands = InputOperands(view);
  const size_t inputs = operands.size();
  for (DumpOperand& output : OutputOperands(view.run, view.index))
    operands.push_back(std::move(output));
  DumpRecord record;
  record.op_name = view.step.name;
  record.time_us = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count());
  for (size_t i = 0; i < operands.size(); ++i) {
    operands[i].tensor.arg_index = static_cast<uint32_t>(i);
    if (brief) operands[i].tensor.size = 0;
    (i < inputs ? record.inputs : record.outputs).push_back(operands[i].tensor);
  }
  const uint64_t scratch = brief ? 0 : view.step.kernel->scratch_bytes();
  if (scratch > 0) record.spaces.push_back({scratch, static_cast<uint32_t>(operands.size())});
  record.dfx_message = Explain(view, error, operands);

  const std::string head = EncodeDumpHeader(record);
  DumpSink::Parts parts = {std::as_bytes(std::span(head))};
  for (const DumpOperand& operand : operands) {
    parts.emplace_back(static_cast<const std::byte*>(operand.data), operand.tensor.size);
  }
  parts.emplace_back(static_cast<const std::byte*>(view.args.scratch), scratch);
  const std::string folder = ExceptionFolder(settings, place);
  const std::string name = NameOf(view, brief, WallTime(now));
  bool taken = false;
  NPUMESH_RETURN_IF_ERROR(DumpSink::Give(folder + "/" + name, parts, &taken));
  return taken ? folder + "/" + name : WriteParts(folder, name, parts, fs);
}

}  // namespace npumesh
