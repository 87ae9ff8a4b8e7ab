#include "graph/session/npu_backend.h"

#include <algorithm>

#include "graph/passes/analysis/node_error.h"
#include "graph/session/session_config.h"

namespace npumesh {
namespace {

using Decompositions = std::map<std::string, Decomposition>;

bool IsRead(const Graph& graph, NodeId id) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [id](const Node& node) {
    if (node.removed) return false;
    const bool data = std::any_of(node.inputs.begin(), node.inputs.end(),
                                  [id](const auto& input) { return input && input->node == id; });
    return data || std::find(node.controls.begin(), node.controls.end(), id) != node.controls.end();
  });
}

Status DecomposeNode(const Decomposition& decomposition, Graph& graph, NodeId id) {
  NPUMESH_RETURN_IF_ERROR(decomposition(graph, id));
  if (!IsRead(graph, id)) {
    graph.Remove(id);
    return Status();
  }
  return Error(Code::kInvalidArgument,
               "its custom decomposition leaves readers behind; give them the new values with "
               "Graph::ReplaceUses");
}

Status Decompose(const Decompositions& decompositions, Graph& graph) {
  const size_t given = graph.nodes().size();
  for (size_t i = 0; i < given; ++i) {
    const auto id = static_cast<NodeId>(i);
    const auto found = decompositions.find(graph.node(id).type);
    if (graph.node(id).removed || found == decompositions.end()) continue;
    const Node node = graph.node(id);  // the decomposition removes it
    NPUMESH_RETURN_IF_ERROR(AtNode(node, DecomposeNode(found->second, graph, id)));
  }
  return graph.Verify();
}

}  // namespace

Result<GraphCompiler> GetCompiler(const CompilerConfig& compiler_config, GroupTable groups,
                                  std::vector<int> parameters) {
  NPUMESH_ASSIGN_OR_RETURN(SessionOptions options, SessionOptionsFor(compiler_config));
  options.groups = std::move(groups);
  options.parameters = std::move(parameters);
  return GraphCompiler([options](World& world, DeviceMemory& memory, Model model) {
    return Session::Create(world, memory, std::move(model), options);
  });
}

Result<NpuBackend> GetNpuBackend(NpuBackendOptions options) {
  GraphCompiler compiler = std::move(options.compiler);
  if (!compiler) {
    NPUMESH_ASSIGN_OR_RETURN(compiler,
                             GetCompiler(options.compiler_config, {}, options.parameters));
  }
  return NpuBackend(
      [compiler, decompositions = std::move(options.custom_decompositions)](
          World& world, DeviceMemory& memory, Model model) -> Result<std::unique_ptr<Session>> {
        NPUMESH_RETURN_IF_ERROR(Decompose(decompositions, model.graph));
        return compiler(world, memory, std::move(model));
      });
}

}  // namespace npumesh
