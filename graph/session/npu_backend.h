// GetCompiler and GetNpuBackend: torchair.get_compiler and torchair.get_npu_backend in C++.
//
//   NPUMESH_ASSIGN_OR_RETURN(const NpuBackend backend, GetNpuBackend({config}));
//   NPUMESH_ASSIGN_OR_RETURN(auto session, backend(world, memory, std::move(model)));
#ifndef NPUMESH_GRAPH_SESSION_NPU_BACKEND_H_
#define NPUMESH_GRAPH_SESSION_NPU_BACKEND_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "graph/config/compiler_config.h"
#include "graph/session/session.h"

namespace npumesh {

// Makes a session of a model. `world` and `memory` must outlive the session. Errors as
// Session::Create.
using NpuBackend = std::function<Result<std::unique_ptr<Session>>(
    World& world, DeviceMemory& memory, Model model)>;
// A compiler is what a backend hands its graph to; the two have one form.
using GraphCompiler = NpuBackend;

// The compiler of npumesh under this config. `groups` names members of communication groups, as
// Session does, and `parameters` the positions of inputs that frozen_parameter freezes. Errors
// (kInvalidArgument) as Validate.
Result<GraphCompiler> GetCompiler(const CompilerConfig& compiler_config = {},
                                  GroupTable groups = {}, std::vector<int> parameters = {});

// Writes other nodes for one: adds them and lets the node's readers read theirs
// (Graph::ReplaceUses). The node itself is removed afterwards.
using Decomposition = std::function<Status(Graph& graph, NodeId node)>;

struct NpuBackendOptions {
  CompilerConfig compiler_config;
  // By operator type; applied to nodes of the main graph as it was given, not to what a
  // decomposition has added.
  std::map<std::string, Decomposition> custom_decompositions;
  // Null: GetCompiler(compiler_config, {}, parameters).
  GraphCompiler compiler;
  // Positions of the inputs that are parameters (nn.Parameter, mark_static_address), for
  // experimental_config.frozen_parameter. ParseFrozenInput reads the vendor's list of flags.
  std::vector<int> parameters;
};

// A backend that decomposes a graph and compiles it. Its errors name the node of a decomposition
// that failed, or whose node is still read. Errors here as GetCompiler.
Result<NpuBackend> GetNpuBackend(NpuBackendOptions options = {});

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_SESSION_NPU_BACKEND_H_
