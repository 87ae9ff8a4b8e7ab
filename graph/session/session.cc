#include "graph/session/session.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "graph/session/ref_data.h"
#include "runtime/base/log.h"

namespace npumesh {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool IsEmpty(const Tensor& tensor) {
  return tensor.dtype() == DataType::kUndefined;
}

void Append(std::string& text, const void* data, size_t bytes) {
  text.append(static_cast<const char*>(data), bytes);
}

std::vector<Tensor> CopyOutputs(const CompiledModel& model, const Executor& executor) {
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < model.output_types().size(); ++i) {
    Tensor& output = outputs.emplace_back(Tensor::Allocate(model.output_types()[i]));
    if (output.bytes() == 0) continue;
    std::memcpy(output.mutable_data(), executor.output(static_cast<int>(i)), output.bytes());
  }
  return outputs;
}

}  // namespace

struct Session::Plan {
  std::unique_ptr<CompiledModel> model;
  std::unique_ptr<Executor> executor;
  uint64_t last_use = 0;
};

Session::Session(World& world, DeviceMemory& memory, Model model, SessionOptions options)
    : world_(world),
      memory_(memory),
      model_(std::move(model)),
      options_(std::move(options)),
      registry_(options_.registry != nullptr ? options_.registry : &BuiltinOps()),
      groups_(std::make_unique<GroupSet>(world, memory, options_.groups)),
      dump_(options_.graph_dump, world.env(), {world.rank(), world.size(), world.local_rank()}),
      pool_(memory) {
  options_.compile.weights = &weights_;
}

Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::Create(World& world, DeviceMemory& memory, Model model,
                                                 SessionOptions options) {
  std::unique_ptr<Session> session(
      new Session(world, memory, std::move(model), std::move(options)));
  NPUMESH_RETURN_IF_ERROR(session->model_.graph.Verify());
  session->dump_.WriteOriginal(session->model_);
  if (session->options_.ref_data) MarkRefData(session->model_, *session->registry_);
  session->group_names_ = GroupsOf(session->model_, *session->registry_);
  NPUMESH_RETURN_IF_ERROR(session->Publish(session->Check()));
  return session;
}

Status Session::Check() {
  NPUMESH_RETURN_IF_ERROR(CheckModel(model_, *registry_));
  NPUMESH_ASSIGN_OR_RETURN(inputs_, InputsOf(model_));
  shape_deciding_ = ShapeDecidingInputs(model_, *registry_);
  for (const std::string& group : group_names_) {
    NPUMESH_RETURN_IF_ERROR(groups_->MembersOf(group).status());
  }
  return Status();
}

Result<std::vector<Tensor>> Session::Run(const std::vector<Tensor>& inputs,
                                         StepObserver* observer) {
  Result<std::vector<Tensor>> outputs = RunPlan(inputs, observer);
  if (!outputs.ok()) return Publish(outputs.status());
  return outputs;
}

Result<const CompiledModel*> Session::Prepare(const std::vector<Tensor>& inputs) {
  Result<Plan*> plan = PlanFor(inputs);
  if (!plan.ok()) return Publish(plan.status());
  return (*plan)->model.get();
}

Result<std::vector<Tensor>> Session::RunPlan(const std::vector<Tensor>& inputs,
                                             StepObserver* observer) {
  NPUMESH_ASSIGN_OR_RETURN(Plan* const plan, PlanFor(inputs));
  CopyIn(inputs, *plan);
  NPUMESH_ASSIGN_OR_RETURN(const RunStats run, plan->executor->Run(observer, stats_.runs));
  ++stats_.runs;
  stats_.run.steps += run.steps;
  stats_.run.collectives += run.collectives;
  stats_.run.compute_seconds += run.compute_seconds;
  stats_.run.collective_seconds += run.collective_seconds;
  stats_.peak_hbm_bytes = memory_.peak_bytes();
  return CopyOutputs(*plan->model, *plan->executor);
}

Result<Session::Plan*> Session::PlanFor(const std::vector<Tensor>& inputs) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<TensorType> types, TypesOf(inputs));
  const std::vector<Tensor> values = ShapeValues(inputs);
  const std::string signature = Signature(types, values);
  auto known = plans_.find(signature);
  if (known == plans_.end()) {
    auto plan = std::make_unique<Plan>();
    NPUMESH_RETURN_IF_ERROR(Compile(types, values, *plan));
    if (plans_.size() >= std::max<size_t>(options_.max_plans, 1)) ForgetOldestPlan();
    known = plans_.emplace(signature, std::move(plan)).first;
  }
  known->second->last_use = ++clock_;
  return known->second.get();
}

Result<std::vector<TensorType>> Session::TypesOf(const std::vector<Tensor>& inputs) const {
  if (inputs.size() != inputs_.size()) {
    return Error(Code::kInvalidArgument, "the graph has {} inputs, {} were given", inputs_.size(),
                 inputs.size());
  }
  std::vector<TensorType> types;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto position = static_cast<int>(i);
    const auto kept = refs_.find(position);
    if (!IsEmpty(inputs[i])) {
      types.push_back(inputs[i].type());
    } else if (kept != refs_.end() && pool_.input(position) != nullptr) {
      types.push_back(kept->second);
    } else {
      return Error(
          Code::kInvalidArgument, "input {} \"{}\": expected {}, seen none{}", inputs_[i].index,
          inputs_[i].name, inputs_[i].declared.ToString(),
          inputs_[i].ref ? "; a RefData keeps its content only after it was given once" : "");
    }
  }
  NPUMESH_RETURN_IF_ERROR(CheckInputTypes(inputs_, types));
  return types;
}

std::vector<Tensor> Session::ShapeValues(const std::vector<Tensor>& inputs) const {
  std::vector<Tensor> values(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!shape_deciding_[i] || inputs[i].bytes() > kMaxShapeValueBytes) continue;
    values[i] = Tensor::Allocate(inputs[i].type());  // the plan must not share the caller's bytes
    std::memcpy(values[i].mutable_data(), inputs[i].data(), inputs[i].bytes());
  }
  return values;
}

std::string Session::Signature(const std::vector<TensorType>& types,
                               const std::vector<Tensor>& values) const {
  std::string signature;
  for (size_t i = 0; i < types.size(); ++i) {
    const std::vector<int64_t>& dims = types[i].shape.dims();
    const auto head = static_cast<int64_t>(types[i].dtype);
    const auto rank = static_cast<int64_t>(dims.size());
    Append(signature, &head, sizeof head);
    Append(signature, &rank, sizeof rank);
    Append(signature, dims.data(), dims.size() * sizeof(int64_t));
    if (!IsEmpty(values[i])) Append(signature, values[i].data(), values[i].bytes());
  }
  return signature;
}

Status Session::Compile(const std::vector<TensorType>& types, const std::vector<Tensor>& values,
                        Plan& plan) {
  const Clock::time_point start = Clock::now();
  // On every rank in the same order, and before anything that could fail on one rank only.
  NPUMESH_RETURN_IF_ERROR(groups_->Prepare(group_names_));
  NPUMESH_ASSIGN_OR_RETURN(plan.model, CompiledModel::Compile(model_, *registry_, types, values,
                                                              groups_.get(), Observed()));
  NPUMESH_ASSIGN_OR_RETURN(plan.executor, Executor::Create(*plan.model, pool_));
  ++stats_.plans;
  stats_.compile_seconds += SecondsSince(start);
  stats_.arena_bytes = pool_.arena_bytes();
  stats_.constant_bytes = pool_.constant_bytes();
  stats_.peak_hbm_bytes = memory_.peak_bytes();
  return Status();
}

CompileOptions Session::Observed() {
  CompileOptions options = options_.compile;
  if (!dump_.wanted()) return options;
  options.observer = [this, inner = options.observer](std::string_view stage, const Model& model) {
    dump_.WriteStage(stage, model, stats_.plans);
    if (inner) inner(stage, model);
  };
  return options;
}

void Session::ForgetOldestPlan() {
  const auto oldest = std::min_element(
      plans_.begin(), plans_.end(),
      [](const auto& a, const auto& b) { return a.second->last_use < b.second->last_use; });
  plans_.erase(oldest);
  pool_.ForgetUnusedConstants();
}

void Session::CopyIn(const std::vector<Tensor>& inputs, Plan& plan) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (IsEmpty(inputs[i])) continue;
    const auto position = static_cast<int>(i);
    if (inputs_[i].ref) refs_[position] = inputs[i].type();
    if (inputs[i].bytes() == 0) continue;
    std::memcpy(plan.executor->input_buffer(position), inputs[i].data(), inputs[i].bytes());
  }
}

Result<Tensor> Session::ReadRef(int position) const {
  const auto kept = refs_.find(position);
  if (kept == refs_.end()) {
    return Error(Code::kInvalidArgument, "input at position {} is no RefData that was given",
                 position);
  }
  Tensor tensor = Tensor::Allocate(kept->second);
  if (tensor.bytes() > 0) {
    std::memcpy(tensor.mutable_data(), pool_.input(position), tensor.bytes());
  }
  return tensor;
}

Status Session::Publish(const Status& status) {
  if (!status.ok() && !group_names_.empty()) world_.PublishFailure(status);
  return status;
}

}  // namespace npumesh
