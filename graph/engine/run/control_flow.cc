#include "graph/engine/run/control_flow.h"

#include <cstring>

#include "graph/engine/run/loop_watch.h"
#include "graph/engine/run/program.h"
#include "graph/passes/rewrite/branches.h"
#include "graph/passes/rewrite/subgraphs.h"

namespace npumesh {
namespace {

std::vector<PlanOperand> OperandsOf(const std::vector<Tensor>& tensors) {
  std::vector<PlanOperand> operands;
  for (const Tensor& tensor : tensors) operands.push_back({tensor.type(), tensor.data()});
  return operands;
}

// The variables of a While before its first turn: copies of its inputs.
Result<std::vector<Tensor>> VariablesOf(const Node& loop, const std::vector<PlanOperand>& inputs) {
  std::vector<Tensor> variables;
  for (const PlanOperand& input : inputs) {
    if (input.type.dtype == DataType::kUndefined) {
      return Error(Code::kInvalidArgument, "input {} is not connected", variables.size());
    }
    Tensor& variable = variables.emplace_back(Tensor::Allocate(input.type));
    if (variable.bytes() > 0) std::memcpy(variable.mutable_data(), input.data, variable.bytes());
  }
  if (variables.size() != loop.output_descs.size()) {
    return Error(Code::kCorrupt, "{} inputs but {} outputs", variables.size(),
                 loop.output_descs.size());
  }
  return variables;
}

// A turn may change the shapes of variables, not their types.
Status CheckNext(const std::vector<Tensor>& variables, const std::vector<Tensor>& next) {
  for (size_t i = 0; i < next.size(); ++i) {
    if (next[i].dtype() == variables[i].dtype()) continue;
    return Error(Code::kInvalidArgument, "the body makes variable {} a {}, expected {}", i,
                 next[i].type().ToString(), Name(variables[i].dtype()));
  }
  return Status();
}

}  // namespace

// One subgraph and how it is connected to the node.
struct ControlFlow::Branch {
  Model model;
  std::unique_ptr<Program> program;
  std::vector<int> inputs;   // by Data node: input of the node
  std::vector<int> outputs;  // by graph output: output of the node
};

ControlFlow::ControlFlow(const Node& node, const Model& library, const PlanSettings& settings,
                         DeviceMemory& memory, ProgramStats& stats)
    : node_(node),
      library_(library),
      settings_(settings),
      memory_(memory),
      stats_(stats),
      branches_(node.subgraphs.size()) {}

ControlFlow::~ControlFlow() = default;

Result<std::vector<Tensor>> ControlFlow::Run(const std::vector<PlanOperand>& inputs,
                                             StepObserver* observer, uint64_t iteration) {
  switch (SubgraphUseOf(node_.type)) {
    case SubgraphUse::kIf:
    case SubgraphUse::kCase: {
      NPUMESH_ASSIGN_OR_RETURN(const size_t index,
                               ChosenBranch(node_, inputs[0].type, inputs[0].data));
      return RunBranch(index, inputs, observer, iteration);
    }
    case SubgraphUse::kWhile:
      return RunWhile(inputs, observer, iteration);
    case SubgraphUse::kCall:
      return RunBranch(0, inputs, observer, iteration);
    case SubgraphUse::kNone:
      break;
  }
  return Error(Code::kUnsupported, "it has subgraphs in a way that is not known");
}

Result<std::vector<Tensor>> ControlFlow::RunWhile(const std::vector<PlanOperand>& inputs,
                                                  StepObserver* observer, uint64_t iteration) {
  NPUMESH_ASSIGN_OR_RETURN(std::vector<Tensor> variables, VariablesOf(node_, inputs));
  WatchedLoop loop(settings_.loops, node_.name);
  for (;;) {
    const std::vector<PlanOperand> now = OperandsOf(variables);
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> condition,
                             RunBranch(0, now, observer, iteration));
    NPUMESH_ASSIGN_OR_RETURN(const bool more, IsTrue(condition[0].type(), condition[0].data()));
    if (!more) return variables;
    loop.NextTurn();
    NPUMESH_ASSIGN_OR_RETURN(std::vector<Tensor> next, RunBranch(1, now, observer, iteration));
    NPUMESH_RETURN_IF_ERROR(CheckNext(variables, next));
    variables = std::move(next);
  }
}

Result<std::vector<Tensor>> ControlFlow::RunBranch(size_t index,
                                                   const std::vector<PlanOperand>& inputs,
                                                   StepObserver* observer, uint64_t iteration) {
  NPUMESH_ASSIGN_OR_RETURN(Branch* const branch, Enter(index));
  const std::string who = fmt::format("subgraph \"{}\"", branch->model.graph.name());
  std::vector<PlanOperand> operands;
  for (const int input : branch->inputs) {
    operands.push_back(inputs[static_cast<size_t>(input)]);
    if (operands.back().type.dtype != DataType::kUndefined) continue;
    return Error(Code::kInvalidArgument, "{} reads input {}, which is not connected", who, input);
  }
  Result<std::vector<Tensor>> results = branch->program->Run(operands, observer, iteration);
  if (!results.ok()) return results.status().WithContext(who);
  std::vector<Tensor> outputs(results->size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    outputs[static_cast<size_t>(branch->outputs[i])] = std::move((*results)[i]);
  }
  return outputs;
}

Result<ControlFlow::Branch*> ControlFlow::Enter(size_t index) {
  if (branches_[index] != nullptr) return branches_[index].get();
  auto branch = std::make_unique<Branch>();
  branch->model.name = library_.name;
  branch->model.path = library_.path;
  branch->model.graph = *library_.FindSubgraph(node_.subgraphs[index]);
  const Graph& graph = branch->model.graph;
  for (const NodeId id : graph.DataNodes()) {
    branch->inputs.push_back(ParentInput(node_, graph.node(id)));
  }
  const bool condition = SubgraphUseOf(node_.type) == SubgraphUse::kWhile && index == 0;
  branch->outputs = condition ? std::vector<int>{0} : ParentOutputs(graph);
  NPUMESH_ASSIGN_OR_RETURN(branch->program,
                           Program::Create(branch->model, library_, settings_, memory_, stats_));
  branches_[index] = std::move(branch);
  return branches_[index].get();
}

uint64_t ControlFlow::arena_bytes() const {
  uint64_t bytes = 0;
  for (const auto& branch : branches_) {
    if (branch != nullptr) bytes += branch->program->arena_bytes();
  }
  return bytes;
}

uint64_t ControlFlow::constant_bytes() const {
  uint64_t bytes = 0;
  for (const auto& branch : branches_) {
    if (branch != nullptr) bytes += branch->program->constant_bytes();
  }
  return bytes;
}

}  // namespace npumesh
