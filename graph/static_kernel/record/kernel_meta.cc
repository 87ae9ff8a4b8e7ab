#include "graph/static_kernel/record/kernel_meta.h"

#include <errno.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <tuple>
#include <utility>

#include "graph/digest/sha256.h"
#include "graph/static_kernel/record/op_record.h"
#include "graph/static_kernel/store/kernel_store.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/files/system_error.h"
#include "runtime/base/text/json_text.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

using nlohmann::json;

// Leaves room in the 255 bytes of a file name for the digits and the ending.
constexpr size_t kLongestTypes = 120;
constexpr size_t kDigitsOfName = 32;
// Where the model says which module of the program an operator comes from.
constexpr std::string_view kStackAttr = "nn_module_stack";

Status MetaFolderRefused(const std::string& folder, std::string_view why) {
  return Error(Code::kInvalidArgument,
               "op_debug_level: the folder {} {}; remove it, or name another place by "
               "ASCEND_WORK_PATH",
               Quotable(folder), why);
}

Result<std::string> AbsoluteMetaFolder(const std::string& parent) {
  std::error_code error;
  const std::filesystem::path path =
      std::filesystem::absolute(parent.empty() ? "." : parent, error);
  if (error)
    return SystemError("find", parent.empty() ? "the working folder" : parent, error.value());
  return (path / kKernelMeta).lexically_normal().string();
}

// What stands at `folder` itself is a folder, or nothing.
Status CheckMetaFolder(const std::string& folder) {
  struct stat info;
  if (lstat(folder.c_str(), &info) != 0) {
    return errno == ENOENT ? Status() : SystemError("look at", folder, errno);
  }
  if (S_ISLNK(info.st_mode)) return MetaFolderRefused(folder, "is a symbolic link");
  if (!S_ISDIR(info.st_mode)) return MetaFolderRefused(folder, "is no folder");
  if (access(folder.c_str(), R_OK | W_OK | X_OK) == 0) return Status();
  return MetaFolderRefused(folder, "may not be read and written by this user");
}

// ---- what the files say ----

json TypeJson(const TensorType& type) {
  return {{"dtype", RecordedType(type.dtype)}, {"shape", type.shape.dims()}};
}

// Who an operator is: its node, and where in the program the model says that it comes from.
json OriginJson(const OpContext& context) {
  json origin = {{"name", context.node().name}, {"type", context.node().type}};
  const AttrValue* stack = context.node().FindAttr(kStackAttr);
  const auto* text = stack != nullptr ? stack->get<std::string>() : nullptr;
  if (text != nullptr) origin[kStackAttr] = *text;
  return origin;
}

json OperatorJson(const OpContext& context) {
  json described = OriginJson(context);
  described["inputs"] = json::array();
  for (int slot = 0; slot < context.slots(); ++slot) {
    described["inputs"].push_back(context.has(slot) ? TypeJson(context.in(slot)) : json());
  }
  described["outputs"] = json::array();
  for (int port = 0; port < context.outputs(); ++port) {
    described["outputs"].push_back(TypeJson(context.out(port)));
  }
  return described;
}

json OperatorsJson(const StaticRegion& region) {
  json operators = json::array();
  for (const StaticOperator& each : region.operators) {
    operators.push_back(OperatorJson(*each.context));
  }
  return operators;
}

json TypesJson(const std::vector<TensorType>& types) {
  json list = json::array();
  for (const TensorType& type : types) list.push_back(TypeJson(type));
  return list;
}

std::string ObjectName(const KernelObject& object) {
  return "kernels_" + object.sha256.substr(0, kDigitsOfName);
}

// The keys that the vendor's description of a kernel has are spelled as there.
std::string DescriptionText(const MetaKernel& kernel, int level) {
  const KernelObject& object = *kernel.object;
  return JsonText({{"binFileName", ObjectName(object)},
                   {"binFileSuffix", ".o"},
                   {"kernelName", object.symbol},
                   {"sha256", object.sha256},
                   {"workspace", {{"num", 1}, {"size", {kernel.scratch_bytes}}}},
                   {"opDebugLevel", level},
                   {"title", kernel.source.title},
                   {"operators", OperatorsJson(kernel.region)},
                   {"inputs", TypesJson(kernel.region.inputs)},
                   {"outputs", TypesJson(kernel.region.outputs)},
                   {"instructionSet", object.instructions},
                   {"compiler", object.compiler},
                   {"flags", kernel.flags},
                   {"generator", object.generator},
                   {"created", object.created}});
}

std::string LocationsText(const MetaKernel& kernel) {
  json operators = json::array();
  for (const StaticOperator& each : kernel.region.operators) {
    operators.push_back(OriginJson(*each.context));
  }
  json lines = json::array();
  for (size_t i = 0; i < kernel.origins.size(); ++i) {
    if (kernel.origins[i] < 0) continue;
    lines.push_back({{"line", i + 1}, {"operator", kernel.origins[i]}});
  }
  return JsonText({{"source", kernel.name + ".cce"},
                   {"kernelName", kernel.source.symbol},
                   {"operators", std::move(operators)},
                   {"lines", std::move(lines)}});
}

// JSON has no infinities.
json ParamJson(double param) {
  return std::isfinite(param) ? json(param) : json(fmt::format("{}", param));
}

json ValueJson(const LoopInstruction& line, size_t number) {
  json args = json::array();
  for (const LoopValue arg : line.args) args.push_back(fmt::format("v{}", arg));
  json params = json::array();
  for (const double param : line.params) params.push_back(ParamJson(param));
  json value = {{"value", fmt::format("v{}", number)},
                {"instruction", NameOf(line.op)},
                {"args", std::move(args)},
                {"params", std::move(params)},
                {"oneForEachRow", line.row}};
  value["operator"] = line.origin < 0 ? json() : json(line.origin);
  if (line.index >= 0) value["read"] = line.index;
  if (line.dtype != DataType::kUndefined) value["dtype"] = RecordedType(line.dtype);
  return value;
}

json ReadsJson(const LoopProgram& program) {
  json reads = json::array();
  for (const LoopInput& input : program.inputs) {
    reads.push_back({{"input", input.tensor},
                     {"dtype", RecordedType(input.dtype)},
                     {"offset", input.offset},
                     {"strides", input.strides},
                     {"step", input.step}});
  }
  return reads;
}

// From operator to operator, each with the value that one computes and the other takes.
json EdgesJson(const LoopProgram& program) {
  std::set<std::tuple<int, int, LoopValue>> edges;
  for (const LoopInstruction& line : program.instructions) {
    for (const LoopValue arg : line.args) {
      const int from = program.instructions[static_cast<size_t>(arg)].origin;
      if (from >= 0 && line.origin >= 0 && from != line.origin) {
        edges.emplace(from, line.origin, arg);
      }
    }
  }
  json list = json::array();
  for (const auto& [from, to, value] : edges) {
    list.push_back({{"from", from}, {"to", to}, {"value", fmt::format("v{}", value)}});
  }
  return list;
}

std::string ComputationText(const MetaKernel& kernel) {
  const LoopProgram& program = kernel.region.program;
  json values = json::array();
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    values.push_back(ValueJson(program.instructions[i], i));
  }
  json written = json::array();
  for (const LoopOutput& output : program.outputs) {
    written.push_back(
        {{"value", fmt::format("v{}", output.value)}, {"dtype", RecordedType(output.dtype)}});
  }
  return JsonText({{"kernelName", kernel.source.symbol},
                   {"title", kernel.source.title},
                   {"operators", OperatorsJson(kernel.region)},
                   {"edges", EdgesJson(program)},
                   {"inputs", TypesJson(kernel.region.inputs)},
                   {"outputs", TypesJson(kernel.region.outputs)},
                   {"space", {{"outer", program.outer}, {"columns", program.columns}}},
                   {"reads", ReadsJson(program)},
                   {"values", std::move(values)},
                   {"writes", std::move(written)}});
}

}  // namespace

Result<KernelMeta> KernelMeta::Open(int level, const std::string& parent, FileSystem& fs) {
  NPUMESH_ASSIGN_OR_RETURN(std::string folder, AbsoluteMetaFolder(parent));
  NPUMESH_RETURN_IF_ERROR(CheckMetaFolder(folder));
  NPUMESH_RETURN_IF_ERROR(MakeFolders(folder, FileKind::kKernel, fs));
  return KernelMeta(level, std::move(folder), fs);
}

std::string KernelMeta::NameOf(const StaticRegion& region, std::string_view content) {
  std::vector<std::string> types;
  for (const StaticOperator& each : region.operators) {
    types.push_back(FileNamePart(each.context->node().type));
  }
  const std::string joined = fmt::format("{}", fmt::join(types, "_")).substr(0, kLongestTypes);
  const std::string decides = fmt::format("{}\n{}", content, JsonText(OperatorsJson(region)));
  return fmt::format("{}_{}", joined, Sha256(decides).substr(0, kDigitsOfName));
}

Status KernelMeta::Write(const MetaKernel& kernel) {
  const std::string object = kernel.object != nullptr ? kernel.object->sha256 : "";
  const std::string mark = fmt::format("{} {}", kernel.name, object);
  if (written_.contains(mark)) return Status();
  if (keeps_sources()) NPUMESH_RETURN_IF_ERROR(Put(kernel.name + ".cce", kernel.source_text));
  if (level_ <= 2) NPUMESH_RETURN_IF_ERROR(Put(kernel.name + "_loc.json", LocationsText(kernel)));
  if (level_ == 4) {
    NPUMESH_RETURN_IF_ERROR(Put(kernel.name + "_compute.json", ComputationText(kernel)));
  }
  if (kernel.object != nullptr) {
    NPUMESH_RETURN_IF_ERROR(WriteObject(*kernel.object));
    NPUMESH_RETURN_IF_ERROR(Put(kernel.name + ".json", DescriptionText(kernel, level_)));
  }
  written_.insert(mark);
  return Status();
}

Status KernelMeta::WriteObject(const KernelObject& object) {
  const std::string file = ObjectName(object) + ".o";
  if (written_.contains(file)) return Status();
  NPUMESH_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(object.object));
  NPUMESH_RETURN_IF_ERROR(Put(file, bytes));
  written_.insert(file);
  return Status();
}

// Not synced: a run writes them again.
Status KernelMeta::Put(const std::string& file, std::string_view content) {
  NPUMESH_ASSIGN_OR_RETURN(const auto put, SecureFile::Create(fmt::format("{}/{}", folder_, file),
                                                              FileKind::kKernel, *fs_));
  NPUMESH_RETURN_IF_ERROR(put->Append(content));
  return put->CommitUnsynced();
}

}  // namespace npumesh
