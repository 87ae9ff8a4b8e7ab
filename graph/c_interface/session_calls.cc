// The functions of npumesh.h about sessions.
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "graph/c_interface/call.h"
#include "graph/c_interface/handles.h"
#include "graph/c_interface/option_pairs.h"
#include "graph/c_interface/stand_ins.h"
#include "graph/c_interface/tensor_binding.h"
#include "graph/engine/analyse/model_inputs.h"
#include "graph/io/model_file.h"
#include "graph/io/weight_places.h"
#include "graph/onnx/onnx_file.h"
#include "graph/ops/builtin_ops.h"
#include "graph/session/group_table.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/log.h"

namespace npumesh {
namespace {

constexpr char kNoPath[] = "model";

// Where a model comes from.
struct ModelSource {
  const char* path = nullptr;
  const void* bytes = nullptr;  // null: the file at `path`
  size_t size = 0;
};

Result<Model> ReadModel(const ModelSource& source) {
  if (source.bytes == nullptr) return LoadAnyModel(source.path, BuiltinOps());
  return ParseAnyModel(std::string(static_cast<const char*>(source.bytes), source.size),
                       source.path, BuiltinOps());
}

int ThreadsOf(const World& world) {
  if (world.env().num_threads > 0) return world.env().num_threads;
  return std::max(1, static_cast<int>(world.placement().cpus.size()));
}

// What NetOutput says of each output, or the node that computes it; a shape that neither says
// leaves the dtype open as well, because writers put FLOAT where they know nothing.
TensorType DeclaredOutput(const Graph& graph, const Node& sink, size_t input) {
  const TensorDesc& read = sink.input_descs[input];
  if (read.shape) return TensorType{read.dtype, *read.shape};
  if (const auto& source = sink.inputs[input]) {
    const TensorDesc& made = graph.node(source->node).output_descs[source->port];
    if (made.shape) return TensorType{made.dtype, *made.shape};
  }
  return TensorType{DataType::kUndefined, Shape::UnknownRank()};
}

void NoteOutputs(npumesh_session& session) {
  const Graph& graph = session.session->model().graph;
  const NodeId sink = graph.NetOutput();
  if (sink == kNoNode) return;
  const Node& node = graph.node(sink);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    session.declared_outputs.push_back(DeclaredOutput(graph, node, i));
    session.output_names.push_back(
        node.inputs[i]
            ? fmt::format("{}:{}", graph.node(node.inputs[i]->node).name, node.inputs[i]->port)
            : std::string());
  }
  session.output_types = session.declared_outputs;
}

// The operators with stand-ins for those that the model has and npumesh lacks; null: none is
// lacking.
std::shared_ptr<const OpRegistry> RegistryWithStandIns(const Model& model) {
  StandIns made = StandInsFor(model, BuiltinOps());
  if (made.types.empty()) return nullptr;
  NPUMESH_WARNING("graph \"{}\": npumesh does not have {}; outputs of these operators are zero",
                  model.graph.name(), fmt::join(made.types, ", "));
  return std::move(made.registry);
}

Status Load(npumesh_world& world, const ModelSource& source, const npumesh_option* options,
            size_t count, npumesh_session** session) {
  GroupTable groups;
  if (source.bytes == nullptr) {
    const std::string folder = std::filesystem::path(source.path).parent_path().string();
    NPUMESH_ASSIGN_OR_RETURN(groups, ReadGroupTable(folder.empty() ? "." : folder));
  }
  NPUMESH_ASSIGN_OR_RETURN(SessionPairs pairs,
                           ReadSessionPairs(options, count, groups, ThreadsOf(*world.world)));
  if (!pairs.session.tensor_dump.wanted()) pairs.session.tensor_dump = world.dump;
  // What an operator writes into an input is wanted, also when no output shows it.
  pairs.session.ref_data = true;
  NPUMESH_ASSIGN_OR_RETURN(Model model, ReadModel(source));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::string> warnings,
                           CheckWeightPlaces(model, {pairs.allow_outside}));
  for (const std::string& warning : warnings) NPUMESH_WARNING("{}", warning);
  auto made = std::make_unique<npumesh_session>();
  made->world = &world;
  if (pairs.stand_ins) made->registry = RegistryWithStandIns(model);
  pairs.session.registry = made->registry ? made->registry.get() : &BuiltinOps();
  const NpuBackend backend = [&pairs](World& ranks, DeviceMemory& memory, Model loaded) {
    return Session::Create(ranks, memory, std::move(loaded), pairs.session);
  };
  NPUMESH_ASSIGN_OR_RETURN(made->session, world.system.Compile(std::move(model), backend));
  NoteOutputs(*made);
  ++world.sessions;
  *session = made.release();
  return Status();
}

Status LoadNamed(npumesh_world* world, const ModelSource& source, const npumesh_option* options,
                 size_t count, npumesh_session** session) {
  NPUMESH_RETURN_IF_ERROR(CheckPointer(world, "world"));
  NPUMESH_RETURN_IF_ERROR(CheckPointer(source.path, "path"));
  NPUMESH_RETURN_IF_ERROR(CheckPointer(session, "session"));
  const WorldTurn turn(*world);
  const Status loaded = Load(*world, source, options, count, session);
  const bool named = loaded.message().find(source.path) != std::string_view::npos;
  return named ? loaded : loaded.WithContext(source.path);
}

Status Close(npumesh_session* session) {
  if (session == nullptr) return Status();
  npumesh_world& world = *session->world;
  const WorldTurn turn(world);
  const std::unique_ptr<npumesh_session> owned(session);
  const DumpReport dump = owned->session->FinishDump();
  owned->session.reset();
  --world.sessions;
  return dump.error.WithContext("dump");
}

void SetType(const TensorType& type, npumesh_port& port) {
  const npumesh_tensor tensor = DescribeTensor(type);
  port.dims = tensor.dims;
  port.rank = tensor.rank;
  port.dtype = tensor.dtype;
  port.bytes = tensor.bytes;
}

Status DescribeInput(npumesh_session& session, size_t position, npumesh_port& port) {
  const std::vector<InputSpec>& inputs = session.session->inputs();
  if (position >= inputs.size()) {
    return Error(Code::kInvalidArgument, "the graph has {} inputs, asked for position {}",
                 inputs.size(), position);
  }
  const InputSpec& input = inputs[position];
  SetType(input.declared, port);
  port.name = input.name.c_str();
  port.index = input.index;
  port.ref = input.ref ? 1 : 0;
  port.host = input.host ? 1 : 0;
  return Status();
}

Status DescribeOutput(npumesh_session& session, size_t position, npumesh_port& port) {
  if (position >= session.output_types.size()) {
    return Error(Code::kInvalidArgument, "the graph has {} outputs, asked for position {}",
                 session.output_types.size(), position);
  }
  SetType(session.output_types[position], port);
  port.name = session.output_names[position].c_str();
  port.index = static_cast<int64_t>(position);
  port.ref = 0;
  port.host = 0;
  return Status();
}

// Errors that only this rank sees are said to the others, which would wait for it.
Status Publish(npumesh_session& session, const Status& status) {
  return status.ok() ? status : session.session->Fail(status);
}

Status Prepare(npumesh_session& session, const npumesh_tensor* inputs, size_t count) {
  NPUMESH_RETURN_IF_ERROR(Publish(session, BindInputs(session.session->inputs(), inputs, count,
                                                      BindFor::kTypes, session.operands)));
  NPUMESH_ASSIGN_OR_RETURN(std::vector<TensorType> types,
                           session.session->OutputTypes(session.operands));
  for (size_t i = 0; i < types.size(); ++i) {
    const bool known = types[i].dtype != DataType::kUndefined;
    session.output_types[i] = known ? std::move(types[i]) : session.declared_outputs[i];
  }
  return Status();
}

Status CheckOutputs(const npumesh_session& session, const npumesh_tensor* outputs, size_t count) {
  if (count != session.output_types.size()) {
    return Error(Code::kInvalidArgument, "the graph has {} outputs, {} were given",
                 session.output_types.size(), count);
  }
  return count > 0 ? CheckPointer(outputs, "outputs") : Status();
}

Status Run(npumesh_session& session, const npumesh_tensor* inputs, size_t input_count,
           npumesh_tensor* outputs, size_t output_count) {
  NPUMESH_RETURN_IF_ERROR(Publish(session, CheckOutputs(session, outputs, output_count)));
  NPUMESH_RETURN_IF_ERROR(Publish(
      session,
      BindInputs(session.session->inputs(), inputs, input_count, BindFor::kRun, session.operands)));
  OutputBinding binding(outputs, session.allocator, session.allocator_context);
  const PlaceOutputs place = [&binding, &session](const std::vector<TensorType>& types) {
    if (session.output_types != types) session.output_types = types;
    return binding.Place(types);
  };
  NPUMESH_RETURN_IF_ERROR(session.session->RunInto(session.operands, place));
  binding.HandOver(session.output_types);
  return Status();
}

Status ReadRef(npumesh_session& session, size_t position, void* data, uint64_t bytes) {
  const auto at = static_cast<int>(std::min<size_t>(position, session.session->inputs().size()));
  NPUMESH_ASSIGN_OR_RETURN(const Tensor content, session.session->ReadRef(at));
  if (content.bytes() != bytes) {
    return Error(Code::kInvalidArgument, "input at position {} is {}, {} bytes; seen memory of {}",
                 position, content.type().ToString(), content.bytes(), bytes);
  }
  if (bytes == 0) return Status();
  NPUMESH_RETURN_IF_ERROR(CheckPointer(data, "data"));
  std::memcpy(data, content.data(), bytes);
  return Status();
}

npumesh_session_stats StatsOf(const npumesh_session& session) {
  const SessionStats& stats = session.session->stats();
  npumesh_session_stats told{};
  told.runs = stats.runs;
  told.plans = stats.plans;
  told.input_bytes_copied = stats.input_bytes;
  told.output_bytes_copied = stats.output_bytes;
  told.arena_bytes = stats.arena_bytes;
  told.constant_bytes = stats.constant_bytes;
  told.compile_seconds = stats.compile_seconds;
  told.compute_seconds = stats.run.compute_seconds;
  told.collective_seconds = stats.run.collective_seconds;
  return told;
}

Status CheckNoLink(const char* path) {
  std::error_code none;
  if (!std::filesystem::is_symlink(path, none)) return Status();
  return Error(Code::kInvalidArgument, "{}: it is a symbolic link; name a file", path);
}

Status SaveText(const char* model_path, const char* path) {
  NPUMESH_RETURN_IF_ERROR(CheckPointer(model_path, "model"));
  NPUMESH_RETURN_IF_ERROR(CheckPointer(path, "path"));
  NPUMESH_RETURN_IF_ERROR(CheckNoLink(path));
  NPUMESH_ASSIGN_OR_RETURN(const Model model, ReadModel({model_path}));
  return WriteFile(path, ToGeProtoText(model), FileKind::kData);
}

Status Save(const void* bytes, size_t size, const char* path) {
  NPUMESH_RETURN_IF_ERROR(CheckPointer(bytes, "bytes"));
  NPUMESH_RETURN_IF_ERROR(CheckPointer(path, "path"));
  NPUMESH_RETURN_IF_ERROR(CheckNoLink(path));
  NPUMESH_ASSIGN_OR_RETURN(const Model model,
                           ParseModel(std::string(static_cast<const char*>(bytes), size), kNoPath));
  return SaveAir(model, path);
}

// A call on a session, in its turn.
template <typename Body>
npumesh_code CallSession(const char* call, npumesh_session* session, Body body) {
  return Call(call, [&] {
    NPUMESH_RETURN_IF_ERROR(CheckPointer(session, "session"));
    const WorldTurn turn(*session->world);
    return body(*session);
  });
}

}  // namespace
}  // namespace npumesh

extern "C" npumesh_code npumesh_load_file(npumesh_world* world, const char* path,
                                          const npumesh_option* options, size_t count,
                                          npumesh_session** session) {
  return npumesh::Call(__func__,
                       [&] { return npumesh::LoadNamed(world, {path}, options, count, session); });
}

extern "C" npumesh_code npumesh_load_bytes(npumesh_world* world, const void* bytes, size_t size,
                                           const char* path, const npumesh_option* options,
                                           size_t count, npumesh_session** session) {
  return npumesh::Call(__func__, [&] {
    NPUMESH_RETURN_IF_ERROR(npumesh::CheckPointer(bytes, "bytes"));
    const char* const name = path == nullptr ? npumesh::kNoPath : path;
    return npumesh::LoadNamed(world, {name, bytes, size}, options, count, session);
  });
}

extern "C" npumesh_code npumesh_close(npumesh_session* session) {
  return npumesh::Call(__func__, [&] { return npumesh::Close(session); });
}

extern "C" npumesh_code npumesh_count_ports(npumesh_session* session, size_t* inputs,
                                            size_t* outputs) {
  return npumesh::CallSession(__func__, session, [&](npumesh_session& at) {
    NPUMESH_RETURN_IF_ERROR(npumesh::CheckPointer(inputs, "inputs"));
    NPUMESH_RETURN_IF_ERROR(npumesh::CheckPointer(outputs, "outputs"));
    *inputs = at.session->inputs().size();
    *outputs = at.output_types.size();
    return npumesh::Status();
  });
}

extern "C" npumesh_code npumesh_get_input(npumesh_session* session, size_t position,
                                          npumesh_port* port) {
  return npumesh::CallSession(__func__, session, [&](npumesh_session& at) {
    NPUMESH_RETURN_IF_ERROR(npumesh::CheckPointer(port, "port"));
    return npumesh::DescribeInput(at, position, *port);
  });
}

extern "C" npumesh_code npumesh_get_output(npumesh_session* session, size_t position,
                                           npumesh_port* port) {
  return npumesh::CallSession(__func__, session, [&](npumesh_session& at) {
    NPUMESH_RETURN_IF_ERROR(npumesh::CheckPointer(port, "port"));
    return npumesh::DescribeOutput(at, position, *port);
  });
}

extern "C" npumesh_code npumesh_set_allocator(npumesh_session* session, npumesh_allocator allocator,
                                              void* context) {
  return npumesh::CallSession(__func__, session, [&](npumesh_session& at) {
    at.allocator = allocator;
    at.allocator_context = context;
    return npumesh::Status();
  });
}

extern "C" npumesh_code npumesh_prepare(npumesh_session* session, const npumesh_tensor* inputs,
                                        size_t input_count) {
  return npumesh::CallSession(__func__, session, [&](npumesh_session& at) {
    return npumesh::Prepare(at, inputs, input_count);
  });
}

extern "C" npumesh_code npumesh_run(npumesh_session* session, const npumesh_tensor* inputs,
                                    size_t input_count, npumesh_tensor* outputs,
                                    size_t output_count) {
  return npumesh::CallSession(__func__, session, [&](npumesh_session& at) {
    return npumesh::Run(at, inputs, input_count, outputs, output_count);
  });
}

extern "C" void npumesh_release(void* data) {
  std::free(data);
}

extern "C" npumesh_code npumesh_read_ref(npumesh_session* session, size_t position, void* data,
                                         uint64_t bytes) {
  return npumesh::CallSession(__func__, session, [&](npumesh_session& at) {
    return npumesh::ReadRef(at, position, data, bytes);
  });
}

extern "C" npumesh_code npumesh_get_stats(npumesh_session* session, npumesh_session_stats* stats,
                                          size_t size) {
  return npumesh::CallSession(__func__, session, [&](npumesh_session& at) {
    NPUMESH_RETURN_IF_ERROR(npumesh::CheckPointer(stats, "stats"));
    const npumesh_session_stats told = npumesh::StatsOf(at);
    std::memset(stats, 0, size);
    std::memcpy(stats, &told, std::min(size, sizeof told));
    return npumesh::Status();
  });
}

extern "C" npumesh_code npumesh_save_air(const void* bytes, size_t size, const char* path) {
  return npumesh::Call(__func__, [&] { return npumesh::Save(bytes, size, path); });
}

extern "C" npumesh_code npumesh_save_text(const char* model, const char* path) {
  return npumesh::Call(__func__, [&] { return npumesh::SaveText(model, path); });
}
