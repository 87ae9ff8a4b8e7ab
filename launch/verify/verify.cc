#include "launch/verify/verify.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "graph/compare/golden/reference_ops.h"
#include "graph/compare/measures/rounding.h"
#include "graph/digest/sha256.h"
#include "graph/io/npy.h"
#include "graph/offline/single_operator.h"
#include "graph/ops/builtin_ops.h"
#include "graph/session/session.h"
#include "launch/atc/single_operators.h"
#include "launch/report/json_parts.h"
#include "launch/run/random_tensor.h"
#include "launch/run/tensor_folder.h"
#include "runtime/base/text/json.h"
#include "runtime/device/device_memory.h"
#include "runtime/world/world.h"

namespace npumesh {
namespace {

using nlohmann::json;

std::string Sha256Of(const Tensor& tensor) {
  return Sha256({reinterpret_cast<const char*>(tensor.data()), tensor.bytes()});
}

VerifiedTensor Facts(int64_t index, const Tensor& tensor, std::string file) {
  return {index, tensor.type(), std::move(file), Sha256Of(tensor)};
}

Result<SingleOperator> ReadOperator(const std::string& path) {
  NPUMESH_ASSIGN_OR_RETURN(std::vector<NamedOperator> ops, ReadSingleOperators(path));
  if (ops.size() != 1) {
    return Error(Code::kInvalidArgument, "{}: expected one operator, seen {}; give each a file",
                 path, ops.size());
  }
  return std::move(ops.front().op);
}

// The reference operators; `float64` is set when the kernel of `type` computes in float64.
OpRegistry NotingReference(const std::string& type, bool* float64) {
  OpRegistry registry;
  for (const std::string_view known : ReferenceOps().Types()) {
    const Operator& reference = *ReferenceOps().Find(known);
    Operator op = reference;
    op.schema.type = known;
    if (known == type && reference.make_kernel != nullptr) {
      op.make_kernel = [&reference, &builtin = *BuiltinOps().Find(known),
                        float64](const OpContext& context) {
        *float64 = *float64 || MakeFloat64Kernel(context, builtin) != nullptr;
        return reference.make_kernel(context);
      };
    }
    registry.Add(std::move(op));
  }
  return registry;
}

// A tensor of a folder as the operator declares it. Its open dimensions are those of the file.
Result<Tensor> ReadInput(const TensorFolder& folder, int64_t index, const TensorType& declared) {
  const std::string file = folder.File(0, index);
  NPUMESH_ASSIGN_OR_RETURN(const Tensor stored, folder.Read(0, index));
  const Result<Tensor> tensor = ReinterpretAs(stored, declared.dtype);
  bool fits = tensor.ok() && stored.shape().rank() == declared.shape.rank();
  for (int axis = 0; fits && axis < declared.shape.rank(); ++axis) {
    fits = declared.shape[axis] < 0 || declared.shape[axis] == stored.shape()[axis];
  }
  if (fits) return tensor;
  return Error(Code::kInvalidArgument, "{}: input {} is {}, expected {}", file, index,
               stored.type(), declared);
}

// One run of the operator, and what is compared with it.
class Verification {
 public:
  explicit Verification(const VerifyOptions& options) : options_(options) {}

  Status Run(World& world) {
    NPUMESH_ASSIGN_OR_RETURN(const SingleOperator single, ReadOperator(options_.op_file));
    NPUMESH_ASSIGN_OR_RETURN(verified_.op_sha256, Sha256OfFile(options_.op_file));
    verified_.op_file = options_.op_file;
    verified_.op_type = single.type;
    const OpRegistry registry = NotingReference(single.type, &verified_.float64);
    NPUMESH_ASSIGN_OR_RETURN(OperatorGraph graph, GraphOf(single, registry));
    NPUMESH_RETURN_IF_ERROR(TakeInputs(single, graph));
    NPUMESH_RETURN_IF_ERROR(Compute(world, std::move(graph.model), registry));
    NPUMESH_RETURN_IF_ERROR(Write());
    return Compare();
  }

  Verified Take() { return std::move(verified_); }

 private:
  Status TakeInputs(const SingleOperator& single, const OperatorGraph& graph) {
    std::optional<TensorFolder> folder;
    if (!options_.inputs.empty()) {
      NPUMESH_ASSIGN_OR_RETURN(folder, TensorFolder::ToRead(options_.inputs, 0, 1));
    }
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
      const auto index = static_cast<int64_t>(i);
      const TensorType& declared = single.inputs[graph.inputs[i]].type;
      const RandomKey key = {options_.seed, 0, i, 0};
      NPUMESH_ASSIGN_OR_RETURN(
          Tensor tensor, folder ? ReadInput(*folder, index, declared) : Draw(index, declared, key));
      verified_.inputs.push_back(
          Facts(index, tensor, folder ? folder->File(0, index) : std::string()));
      inputs_.push_back(std::move(tensor));
    }
    return Status();
  }

  static Result<Tensor> Draw(int64_t index, const TensorType& declared, const RandomKey& key) {
    if (!declared.shape.is_static()) {
      return Error(Code::kInvalidArgument,
                   "input {} is {}: a shape with open dimensions cannot be drawn; give --inputs",
                   index, declared);
    }
    return RandomTensor(declared, key);
  }

  Status Compute(World& world, Model model, const OpRegistry& registry) {
    RoundingEstimate estimate;
    SessionOptions session_options;
    session_options.registry = &registry;
    session_options.compile.observer = [&estimate](std::string_view stage, const Model& typed) {
      if (stage == "AfterInfershape") estimate.Note(typed);
    };
    NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceMemory> memory,
                             DeviceMemory::Create(world));
    NPUMESH_ASSIGN_OR_RETURN(
        const std::unique_ptr<Session> session,
        Session::Create(world, *memory, std::move(model), std::move(session_options)));
    NPUMESH_ASSIGN_OR_RETURN(goldens_, session->Run(inputs_));
    NPUMESH_ASSIGN_OR_RETURN(roundings_, estimate.OutputsOf(session->model(), registry, 1));
    for (size_t i = 0; i < goldens_.size(); ++i) {
      verified_.goldens.push_back(Facts(static_cast<int64_t>(i), goldens_[i], ""));
    }
    return Status();
  }

  Status Write() const {
    if (options_.write.empty()) return Status();
    NPUMESH_RETURN_IF_ERROR(WriteAll(options_.write + "/inputs", inputs_));
    return WriteAll(options_.write + "/golden", goldens_);
  }

  static Status WriteAll(const std::string& path, const std::vector<Tensor>& tensors) {
    NPUMESH_ASSIGN_OR_RETURN(const TensorFolder folder, TensorFolder::ToWrite(path, 0, 1));
    for (size_t i = 0; i < tensors.size(); ++i) {
      NPUMESH_RETURN_IF_ERROR(folder.Write(0, static_cast<int64_t>(i), tensors[i]));
    }
    return Status();
  }

  Status Compare() {
    if (options_.against.empty()) return Status();
    std::error_code ignored;
    const bool is_folder = std::filesystem::is_directory(options_.against, ignored);
    NPUMESH_ASSIGN_OR_RETURN(
        const TolerancePlan plan,
        TolerancePlan::Make(options_.tolerance, is_folder ? options_.against : std::string()));
    if (!is_folder) {
      NPUMESH_ASSIGN_OR_RETURN(const Tensor mine, ReadNpy(options_.against));
      CompareOne(0, mine, options_.against, plan);
      return Status();
    }
    NPUMESH_ASSIGN_OR_RETURN(const TensorFolder folder,
                             TensorFolder::ToRead(options_.against, 0, 1));
    for (size_t i = 0; i < goldens_.size(); ++i) {
      const auto index = static_cast<int64_t>(i);
      NPUMESH_ASSIGN_OR_RETURN(const Tensor mine, folder.Read(0, index));
      CompareOne(i, mine, folder.File(0, index), plan);
    }
    return Status();
  }

  void CompareOne(size_t i, const Tensor& stored, const std::string& file,
                  const TolerancePlan& plan) {
    const Tensor& golden = goldens_[i];
    const Result<Tensor> typed = ReinterpretAs(stored, golden.dtype());
    const Tensor& mine = typed.ok() ? *typed : stored;
    VerifiedOutput output;
    output.mine = Facts(static_cast<int64_t>(i), mine, file);
    const RoundingPath rounding = i < roundings_.size() ? roundings_[i] : RoundingPath();
    output.tolerance = plan.For(static_cast<int>(i), rounding, golden);
    output.difference = CompareTensors(mine, golden, output.tolerance.value);
    if (!output.difference.matches && mine.elements() == golden.elements()) {
      const Tolerance& allowed = output.tolerance.value;
      output.pattern = PatternOf(mine, golden, {allowed.atol, allowed.rtol, 0});
    }
    verified_.outputs.push_back(std::move(output));
  }

  const VerifyOptions& options_;
  Verified verified_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> goldens_;
  std::vector<RoundingPath> roundings_;
};

std::string_view WordOf(PatternKind kind) {
  switch (kind) {
    case PatternKind::kNone:
      return "none";
    case PatternKind::kZeroPart:
      return "zero_part";
    case PatternKind::kCutType:
      return "cut_type";
    case PatternKind::kFactor:
      return "factor";
    case PatternKind::kPermuted:
      return "permuted";
    case PatternKind::kShifted:
      return "shifted";
    case PatternKind::kReordered:
      return "reordered";
  }
  return "none";
}

json TensorJson(const VerifiedTensor& tensor) {
  return {{"index", tensor.index},
          {"dtype", Name(tensor.type.dtype)},
          {"shape", tensor.type.shape.dims()},
          {"sha256", tensor.sha256},
          {"file", OrNull(tensor.file)}};
}

json OutputJson(const VerifiedOutput& output) {
  const Difference& difference = output.difference;
  json object = TensorJson(output.mine);
  object["matches"] = difference.matches;
  object["differing"] = difference.differing;
  object["max_abs"] = difference.max_abs;
  object["tolerance"] = {{"rtol", output.tolerance.value.rtol},
                         {"atol", output.tolerance.value.atol},
                         {"why", output.tolerance.why}};
  object["pattern"] = {{"kind", WordOf(output.pattern.kind)},
                       {"text", ToText(output.pattern, output.mine.type.shape)}};
  return object;
}

// "output 0 float32[2,3] max abs diff 1.5 at [0,1] DIFFERS: 2 of 6 elements, ..."
std::string LineOf(const VerifiedOutput& output) {
  const Difference& difference = output.difference;
  const std::string what = fmt::format("output {} {}", output.mine.index, output.mine.type);
  if (!difference.reason.empty()) return fmt::format("{} DIFFERS: {}", what, difference.reason);
  const Shape& shape = output.mine.type.shape;
  std::string line = fmt::format("{} max abs diff {:.3g}", what, difference.max_abs);
  if (difference.matches) return line + " OK";
  line += fmt::format(" DIFFERS: {} of {} elements, {} at {}, expected {}", difference.differing,
                      shape.elements(), difference.value, PositionOf(difference.where, shape),
                      difference.golden);
  const std::string pattern = ToText(output.pattern, shape);
  return pattern.empty() ? line : line + "\n    " + pattern;
}

}  // namespace

bool Verified::matches() const {
  return std::all_of(outputs.begin(), outputs.end(),
                     [](const VerifiedOutput& output) { return output.difference.matches; });
}

Result<Verified> Verify(const VerifyOptions& options, const Env& env) {
  Verification verification(options);
  for (const Status& status :
       RunRanks(1, env, [&](World& world) { return verification.Run(world); })) {
    NPUMESH_RETURN_IF_ERROR(status);
  }
  return verification.Take();
}

std::string ToText(const Verified& verified) {
  std::string text =
      fmt::format("{}: {}, {}\n", verified.op_file, verified.op_type,
                  verified.float64 ? "in float64" : "by its kernel: it knows no float64");
  for (const VerifiedOutput& output : verified.outputs) {
    text += LineOf(output) + "\n    tolerance " + output.tolerance.why + "\n";
  }
  if (!verified.outputs.empty()) {
    text += fmt::format("verify: {}\n", verified.matches() ? "OK" : "DIFFERS");
  }
  return text;
}

CommandReport ToReport(const Verified& verified) {
  CommandReport report;
  report.verdict = verified.outputs.empty() ? "computed" : verified.matches() ? "same" : "differ";
  for (const VerifiedOutput& output : verified.outputs) {
    if (output.difference.matches) continue;
    report.Add(Severity::kError, LineOf(output), {{"output", output.mine.index}});
  }
  report.details = {{"operator", verified.op_type},
                    {"operator_file", verified.op_file},
                    {"operator_sha256", verified.op_sha256},
                    {"golden", verified.float64 ? "float64" : "kernel"},
                    {"inputs", ListOf(verified.inputs, TensorJson)},
                    {"goldens", ListOf(verified.goldens, TensorJson)},
                    {"outputs", ListOf(verified.outputs, OutputJson)}};
  return report;
}

}  // namespace npumesh
