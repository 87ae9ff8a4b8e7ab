#include "tests/fuzz/engine/engine_run.h"

#include <cstring>
#include <list>

#include "graph/engine/run/step_observer.h"
#include "graph/guard/memory_guard.h"
#include "graph/io/model_file.h"
#include "graph/ops/builtin_ops.h"
#include "graph/session/session.h"

namespace npumesh::fuzz {
namespace {

// A tensor in memory of the caller, at an address that is a multiple of its element only.
class LentTensor {
 public:
  explicit LentTensor(TensorType type)
      : type_(std::move(type)),
        memory_(type_.bytes() / kElement + 1 + kShift),
        data_(reinterpret_cast<std::byte*>(memory_.data() + kShift)) {}
  LentTensor(const LentTensor&) = delete;
  LentTensor& operator=(const LentTensor&) = delete;
  explicit LentTensor(const Tensor& tensor) : LentTensor(tensor.type()) {
    if (tensor.bytes() > 0) std::memcpy(data_, tensor.data(), tensor.bytes());
  }

  const TensorType& type() const { return type_; }
  std::byte* data() const { return data_; }
  bool Holds(const Tensor& tensor) const {
    return tensor.bytes() == 0 || std::memcmp(data_, tensor.data(), tensor.bytes()) == 0;
  }
  Tensor Copy() const { return CopyOf(type_, data_); }
  static Tensor CopyOf(const TensorType& type, const void* data) {
    Tensor tensor = Tensor::Allocate(type);
    if (tensor.bytes() > 0) std::memcpy(tensor.mutable_data(), data, tensor.bytes());
    return tensor;
  }

 private:
  static constexpr size_t kElement = sizeof(uint64_t);
  static constexpr size_t kShift = 3;  // elements; no multiple of what vectors have
  TensorType type_;
  std::vector<uint64_t> memory_;
  std::byte* data_;
};

// One step after the other on memory of the caller. RefData are written where they lie; outputs lie
// over inputs, where sizes agree, or beside them.
class LentRun {
 public:
  explicit LentRun(Session& session) : session_(session), inputs_(session.inputs().size()) {}

  Result<EngineStep> Step(const std::vector<Tensor>& fed) {
    for (size_t i = 0; i < fed.size(); ++i) {
      if (fed[i].dtype() != DataType::kUndefined) inputs_[i].emplace(fed[i]);
    }
    covered_.assign(inputs_.size(), false);
    const auto place = [this](const std::vector<TensorType>& types) { return Place(types); };
    NPUMESH_RETURN_IF_ERROR(session_.RunInto(Operands(), place));
    EngineStep step;
    for (size_t i = 0; i < places_.size(); ++i) {
      step.outputs.push_back(LentTensor::CopyOf(types_[i], places_[i]));
    }
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (session_.inputs()[i].ref) {
        step.refs.emplace(static_cast<int>(i), inputs_[i]->Copy());
      } else if (!covered_[i] && !inputs_[i]->Holds(fed[i])) {
        return Error(Code::kInternal, "input {}, which is only lent to be read, has changed", i);
      }
    }
    return step;
  }

 private:
  std::vector<PlanOperand> Operands() const {
    std::vector<PlanOperand> operands;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Lending lending = session_.inputs()[i].ref ? Lending::kInPlace : Lending::kReadOnly;
      operands.push_back(inputs_[i] ? PlanOperand{inputs_[i]->type(), inputs_[i]->data(), lending}
                                    : PlanOperand());
    }
    return operands;
  }

  Result<std::vector<void*>> Place(const std::vector<TensorType>& types) {
    types_ = types;
    own_.clear();
    places_.clear();
    for (const TensorType& type : types) places_.push_back(PlaceOf(type));
    return places_;
  }

  void* PlaceOf(const TensorType& type) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const bool fits = !covered_[i] && !session_.inputs()[i].ref && type.bytes() > 0 &&
                        inputs_[i]->type().bytes() == type.bytes();
      if (!fits) continue;
      covered_[i] = true;
      return inputs_[i]->data();
    }
    return own_.emplace_back(type).data();
  }

  Session& session_;
  std::vector<std::optional<LentTensor>> inputs_;
  std::vector<bool> covered_;  // by an output of this step
  std::vector<TensorType> types_;
  std::vector<void*> places_;
  std::list<LentTensor> own_;
};

Status RunLent(Session& session, const FuzzCase& fuzzed, EngineRun& run) {
  LentRun lent(session);
  for (const std::vector<Tensor>& fed : fuzzed.steps) {
    NPUMESH_ASSIGN_OR_RETURN(EngineStep step, lent.Step(fed));
    run.steps.push_back(std::move(step));
  }
  return Status();
}

class Onlooker final : public StepObserver {};

Status RunSteps(Session& session, const FuzzCase& fuzzed, const OptionSet& set, EngineRun& run) {
  Onlooker onlooker;
  const OpRegistry nothing;
  MemoryGuard guard(BuiltinOps(), nothing);
  StepObserver* const observer = set.guarded    ? static_cast<StepObserver*>(&guard)
                                 : set.observed ? &onlooker
                                                : nullptr;
  for (const std::vector<Tensor>& fed : fuzzed.steps) {
    EngineStep step;
    NPUMESH_ASSIGN_OR_RETURN(step.outputs, session.Run(fed, observer));
    for (size_t i = 0; i < session.inputs().size(); ++i) {
      const auto position = static_cast<int>(i);
      if (!session.inputs()[i].ref) continue;
      NPUMESH_ASSIGN_OR_RETURN(step.refs[position], session.ReadRef(position));
    }
    run.steps.push_back(std::move(step));
  }
  return Status();
}

Result<Model> ModelFor(const FuzzCase& fuzzed, const OptionSet& set) {
  if (!set.read_back) return fuzzed.model;
  NPUMESH_ASSIGN_OR_RETURN(std::string bytes, SerializeAir(fuzzed.model));
  return ParseModel(std::move(bytes), "case.air");
}

Status RunSession(World& world, DeviceMemory& memory, const FuzzCase& fuzzed, const OptionSet& set,
                  EngineRun& run) {
  NPUMESH_ASSIGN_OR_RETURN(Model model, ModelFor(fuzzed, set));
  SessionOptions options = set.options;
  options.parameters = fuzzed.parameters;
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                           Session::Create(world, memory, std::move(model), std::move(options)));
  return set.lent ? RunLent(*session, fuzzed, run) : RunSteps(*session, fuzzed, set, run);
}

}  // namespace

EngineRun RunInEngine(World& world, DeviceMemory& memory, const FuzzCase& fuzzed,
                      const OptionSet& set) {
  EngineRun run;
  run.status = RunSession(world, memory, fuzzed, set, run);
  return run;
}

Status WithDevice(const std::function<void(World& world, DeviceMemory& memory)>& body) {
  Env env;
  env.hbm_bytes = uint64_t{16} << 20;
  env.connect_timeout = std::chrono::seconds(300);
  env.exec_timeout = std::chrono::seconds(300);
  return RunRanks(1, env, [&](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceMemory> memory,
                             DeviceMemory::Create(world));
    body(world, *memory);
    return Status();
  })[0];
}

}  // namespace npumesh::fuzz
