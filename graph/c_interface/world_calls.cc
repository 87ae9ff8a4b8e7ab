// The functions of npumesh.h about worlds.
#include "graph/c_interface/call.h"
#include "graph/c_interface/handles.h"
#include "graph/c_interface/option_pairs.h"
#include "graph/dump/options/config_file.h"
#include "graph/session/profiling.h"
#include "runtime/base/log.h"
#include "runtime/base/process/process_safety.h"

namespace npumesh {

void SpeakAs(const npumesh_world& world) {
  const int rank = world.world->rank();
  if (LogRank() != rank) SetLogRank(rank);
}

WorldTurn::WorldTurn(npumesh_world& world) : lock_(world.turn) {
  SpeakAs(world);
}

namespace {

Status StartWorld(const npumesh_option* options, size_t count, npumesh_world** world) {
  NPUMESH_RETURN_IF_ERROR(CheckPointer(world, "world"));
  NPUMESH_ASSIGN_OR_RETURN(const WorldPairs pairs, ReadWorldPairs(options, count));
  if (pairs.log_level_given) SetLogLevel(static_cast<LogLevel>(pairs.env.log_level));
  auto made = std::make_unique<npumesh_world>();
  NPUMESH_ASSIGN_OR_RETURN(made->world, World::Start(pairs.env));
  if (made->world->rank() == 0) WarnAboutProcess();
  if (const Status started = made->system.Initialize(*made->world, pairs.session); !started.ok()) {
    made->world->board().PublishFailure(started);
    return started;
  }
  NPUMESH_ASSIGN_OR_RETURN(made->memory, made->system.Memory());
  *world = made.release();
  return Status();
}

Status EndWorld(npumesh_world* world) {
  if (world == nullptr) return Status();
  SpeakAs(*world);
  if (world->sessions > 0 || world->groups > 0) {
    return Error(Code::kInvalidArgument,
                 "{} sessions and {} groups of this world are open; close them first",
                 world->sessions.load(), world->groups.load());
  }
  const std::unique_ptr<npumesh_world> owned(world);
  const Status profiled = owned->system.Shutdown();
  const Status ended = owned->world->Shutdown();
  return ended.ok() ? profiled : ended;
}

void Describe(npumesh_world& world, npumesh_world_info& info) {
  const World& ranks = *world.world;
  info.rank = ranks.rank();
  info.size = ranks.size();
  info.local_rank = ranks.local_rank();
  info.local_size = ranks.local_size();
  info.node = ranks.node();
  info.node_count = ranks.node_count();
  info.memory_bytes = world.memory->total_bytes();
  info.memory_used = world.memory->used_bytes();
  info.memory_peak = world.memory->peak_bytes();
}

Status ChooseDumpFile(npumesh_world& world, const char* path) {
  if (path == nullptr) {
    world.dump = TensorDumpOptions();
    return Status();
  }
  NPUMESH_ASSIGN_OR_RETURN(std::optional<DumpSettings> settings, ReadDumpConfig(path));
  world.dump = TensorDumpOptions();
  world.dump.operators = std::move(settings);
  return Status();
}

Status BeginProfile(npumesh_world& world, const char* folder) {
  NPUMESH_RETURN_IF_ERROR(CheckPointer(folder, "folder"));
  if (Profiler::Of(*world.world).on()) {
    return Error(Code::kInvalidArgument,
                 "a profile is being written already; call npumesh_stop_profile first");
  }
  ProfilingOptions options;
  options.folder = folder;
  options.training_trace = true;
  return StartProfiling(*world.world, options);
}

}  // namespace
}  // namespace npumesh

extern "C" npumesh_code npumesh_init(const npumesh_option* options, size_t count,
                                     npumesh_world** world) {
  return npumesh::Call(__func__, [&] { return npumesh::StartWorld(options, count, world); });
}

extern "C" npumesh_code npumesh_finalize(npumesh_world* world) {
  return npumesh::Call(__func__, [&] { return npumesh::EndWorld(world); });
}

extern "C" npumesh_code npumesh_get_world_info(npumesh_world* world, npumesh_world_info* info) {
  return npumesh::Call(__func__, [&] {
    NPUMESH_RETURN_IF_ERROR(npumesh::CheckPointer(world, "world"));
    NPUMESH_RETURN_IF_ERROR(npumesh::CheckPointer(info, "info"));
    npumesh::Describe(*world, *info);
    return npumesh::Status();
  });
}

extern "C" npumesh_code npumesh_fail(npumesh_world* world, const char* message) {
  return npumesh::Call(__func__, [&] {
    NPUMESH_RETURN_IF_ERROR(npumesh::CheckPointer(world, "world"));
    NPUMESH_RETURN_IF_ERROR(npumesh::CheckPointer(message, "message"));
    world->world->board().PublishFailure(npumesh::Error(npumesh::Code::kInternal, "{}", message));
    return npumesh::Status();
  });
}

extern "C" npumesh_code npumesh_alloc(npumesh_world* world, uint64_t bytes, void** address) {
  return npumesh::Call(__func__, [&]() -> npumesh::Status {
    NPUMESH_RETURN_IF_ERROR(npumesh::CheckPointer(world, "world"));
    NPUMESH_RETURN_IF_ERROR(npumesh::CheckPointer(address, "address"));
    NPUMESH_ASSIGN_OR_RETURN(*address, world->memory->Allocate(bytes));
    return npumesh::Status();
  });
}

extern "C" npumesh_code npumesh_free(npumesh_world* world, void* address) {
  return npumesh::Call(__func__, [&] {
    NPUMESH_RETURN_IF_ERROR(npumesh::CheckPointer(world, "world"));
    return address == nullptr ? npumesh::Status() : world->memory->Free(address);
  });
}

extern "C" npumesh_code npumesh_set_dump(npumesh_world* world, const char* config_path) {
  return npumesh::Call(__func__, [&] {
    NPUMESH_RETURN_IF_ERROR(npumesh::CheckPointer(world, "world"));
    const npumesh::WorldTurn turn(*world);
    return npumesh::ChooseDumpFile(*world, config_path);
  });
}

extern "C" npumesh_code npumesh_start_profile(npumesh_world* world, const char* folder) {
  return npumesh::Call(__func__, [&] {
    NPUMESH_RETURN_IF_ERROR(npumesh::CheckPointer(world, "world"));
    const npumesh::WorldTurn turn(*world);
    return npumesh::BeginProfile(*world, folder);
  });
}

extern "C" npumesh_code npumesh_stop_profile(npumesh_world* world) {
  return npumesh::Call(__func__, [&] {
    NPUMESH_RETURN_IF_ERROR(npumesh::CheckPointer(world, "world"));
    const npumesh::WorldTurn turn(*world);
    return npumesh::FinishProfiling(*world->world);
  });
}
