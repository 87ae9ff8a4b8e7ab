#include "graph/engine/run/late_step.h"

#include <algorithm>
#include <chrono>

#include "graph/ir/node_origin.h"
#include "graph/passes/analysis/node_error.h"

namespace npumesh {
namespace {

// Where an input comes from, as far as the graph tells: its position when it is a graph input.
Address OriginOf(const Graph& graph, NodeId producer) {
  const std::vector<NodeId> inputs = graph.DataNodes();
  const auto found = std::find(inputs.begin(), inputs.end(), producer);
  if (found == inputs.end()) return {Address::Kind::kArena, 0};
  return {Address::Kind::kInput, static_cast<uint64_t>(found - inputs.begin())};
}

Step StepOf(const Graph& graph, const Node& node, const OpContext& context) {
  Step step;
  step.node = graph.Find(node.name);
  step.name = node.name;
  step.type = node.type;
  step.origin = NodeOrigin(node);
  for (int slot = 0; slot < context.slots(); ++slot) {
    const int input = context.input_index(slot);
    step.input_ports.push_back(input);
    step.input_types.emplace_back();
    step.inputs.emplace_back();
    if (input < 0) continue;
    step.inputs.back() = OriginOf(graph, node.inputs[static_cast<size_t>(input)]->node);
  }
  return step;
}

}  // namespace

Result<std::unique_ptr<LateStep>> LateStep::Create(const Model& source, const Node& node,
                                                   const PlanSettings& settings) {
  const Operator& op = *settings.registry->Find(node.type);
  NPUMESH_ASSIGN_OR_RETURN(OpContext context, OpContext::Bind(node, op.schema));
  context.set_threads(settings.compile.threads);
  context.set_groups(settings.groups);
  return std::unique_ptr<LateStep>(
      new LateStep(source, node, op, std::move(context), settings.compile));
}

LateStep::LateStep(const Model& source, const Node& node, const Operator& op, OpContext context,
                   const CompileOptions& options)
    : op_(op),
      context_(std::move(context)),
      check_operator_(options.check_operator),
      profiler_(options.profiler),
      subject_(ProfiledTask{
          .name = node.name, .type = node.type, .state = "dynamic", .graph = source.graph.name()}) {
  Step step = StepOf(source.graph, node, context_);
  step.kernel = MakeKernel([this](const KernelArgs&) { return Evaluate(); });
  model_ = CompiledModel::OfStep(source, std::move(step));
}

Result<std::vector<Tensor>> LateStep::Run(const std::vector<PlanOperand>& inputs,
                                          StepObserver* observer, uint64_t iteration) {
  Bind(inputs);
  const ScopedSpan span(profiler_, SpanKind::kTask, subject_, kComputeLane);
  NPUMESH_RETURN_IF_ERROR(observer != nullptr ? RunObserved(*observer, iteration) : Evaluate());
  return std::move(outputs_);
}

void LateStep::Bind(const std::vector<PlanOperand>& inputs) {
  in_.assign(static_cast<size_t>(context_.slots()), nullptr);
  for (int slot = 0; slot < context_.slots(); ++slot) {
    if (!context_.has(slot)) continue;
    const PlanOperand& input = inputs[static_cast<size_t>(context_.input_index(slot))];
    context_.set_in(slot, input.type);
    step().input_types[static_cast<size_t>(slot)] = input.type;
    in_[static_cast<size_t>(slot)] = input.data;
  }
  step().outputs.clear();
  step().output_types.clear();
  out_.clear();
  outputs_.clear();
}

Status LateStep::Evaluate() {
  OpContext context = context_;
  if (check_operator_) NPUMESH_RETURN_IF_ERROR(check_operator_(context));
  NPUMESH_RETURN_IF_ERROR(op_.infer(context));
  NPUMESH_ASSIGN_OR_RETURN(outputs_, op_.evaluate(context, in_));
  for (Tensor& output : outputs_) {
    step().outputs.push_back({Address::Kind::kArena, 0});
    step().output_types.push_back(output.type());
    out_.push_back(output.mutable_data());
  }
  return Status();
}

Status LateStep::RunObserved(StepObserver& observer, uint64_t iteration) {
  using Clock = std::chrono::steady_clock;
  KernelArgs args{in_.data(), nullptr, nullptr};
  const RunView run{model_->source(), *model_, {&args, 1}, iteration, /*part=*/true};
  NPUMESH_RETURN_IF_ERROR(observer.BeforeRun(run));
  StepView view{run, 0, step(), args, 0};
  NPUMESH_RETURN_IF_ERROR(observer.BeforeStep(view));
  const Clock::time_point start = Clock::now();
  const Status status = step().kernel->Run(args);
  view.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (!status.ok()) {
    observer.StepFailed(view, AtNode(step().name, step().type, step().origin, status));
    return status;
  }
  args.out = out_.data();
  NPUMESH_RETURN_IF_ERROR(observer.AfterStep(view));
  return observer.AfterRun(run);
}

}  // namespace npumesh
