#include "graph/session/system.h"

#include <algorithm>

#include "graph/config/option_tables.h"
#include "graph/config/validation.h"
#include "graph/session/profiling.h"
#include "graph/session/session_config.h"
#include "runtime/base/process/process_safety.h"

namespace npumesh {
namespace {

// The first option in which two differ; none: they are equal.
std::optional<std::string> Difference(SystemOptions mine, SystemOptions other) {
  const OptionTable a = OptionsOf(mine);
  const OptionTable b = OptionsOf(other);
  for (size_t i = 0; i < a.rows.size(); ++i) {
    if (!Differs(a.rows[i], b.rows[i])) continue;
    return fmt::format("{} was {}, now {}", a.rows[i].path, ToText(Get(a.rows[i])),
                       ToText(Get(b.rows[i])));
  }
  return std::nullopt;
}

}  // namespace

System::System() = default;
System::~System() = default;

Status System::Initialize(const Env& env, const SystemOptions& options) {
  if (initialized()) return Initialize(*world_, options);
  NPUMESH_RETURN_IF_ERROR(Validate(options));
  NPUMESH_ASSIGN_OR_RETURN(own_world_, World::Start(env));
  if (own_world_->rank() == 0) WarnAboutProcess();
  return Initialize(*own_world_, options);
}

Status System::Initialize(World& world, const SystemOptions& options) {
  NPUMESH_RETURN_IF_ERROR(Validate(options));
  if (initialized()) {
    const std::optional<std::string> difference = Difference(options_, options);
    if (!difference) return Status();
    return Error(Code::kInvalidArgument,
                 "the system is initialised already, with other options: {}; shut it down first",
                 *difference);
  }
  NPUMESH_ASSIGN_OR_RETURN(TensorDumpOptions tensor_dump, TensorDumpOf(options));
  NPUMESH_ASSIGN_OR_RETURN(PrecisionOptions precision, PrecisionOf(options));
  SayOnce(NoticesOf(options));
  NPUMESH_ASSIGN_OR_RETURN(const DumpEnv env, DumpEnv::FromProcess());
  NPUMESH_ASSIGN_OR_RETURN(const auto profiling, ProfilingOf(options, env.ascend_work_path));
  NPUMESH_ASSIGN_OR_RETURN(memory_, DeviceMemory::Create(world));
  if (profiling) NPUMESH_RETURN_IF_ERROR(StartProfiling(world, *profiling));
  world_ = &world;
  options_ = options;
  tensor_dump_ = std::move(tensor_dump);
  precision_ = std::move(precision);
  groups_ = std::make_unique<GroupSet>(world, *memory_, GroupTable());
  return Status();
}

Status System::Shutdown() {
  NPUMESH_RETURN_IF_ERROR(CheckInitialized("shutdown_system"));
  const Status profiled = FinishProfiling(*world_);
  groups_.reset();
  memory_.reset();
  world_ = nullptr;
  if (own_world_ == nullptr) return profiled;
  const std::unique_ptr<World> world = std::move(own_world_);
  const Status ended = world->Shutdown();
  return ended.ok() ? profiled : ended;
}

Status System::CheckInitialized(std::string_view what) const {
  if (initialized()) return Status();
  return Error(Code::kInvalidArgument,
               "{}: the system is not initialised; call initialize_system (System::Initialize) "
               "first",
               what);
}

Result<GroupProvider::Members> System::MembersWithMe(std::string_view what,
                                                     const std::string& group) {
  NPUMESH_RETURN_IF_ERROR(CheckInitialized(what));
  Result<GroupProvider::Members> members = groups_->MembersOf(group);
  if (!members.ok()) return members.status().WithContext(what);
  if (members->rank >= 0) return members;
  return Error(Code::kInvalidArgument, "{}: rank {} is no member of group \"{}\"", what,
               world_->rank(), group);
}

Result<std::vector<int>> System::LocalMembers(std::string_view what, const std::string& group) {
  NPUMESH_ASSIGN_OR_RETURN(GroupProvider::Members members, MembersWithMe(what, group));
  std::vector<int> local;
  for (const int rank : members.world_ranks) {
    if (world_->node_of()[static_cast<size_t>(rank)] == world_->node()) local.push_back(rank);
  }
  return local;
}

Result<int> System::RankSize(const std::string& group) {
  NPUMESH_ASSIGN_OR_RETURN(const GroupProvider::Members members,
                           MembersWithMe("get_rank_size", group));
  return static_cast<int>(members.world_ranks.size());
}

Result<int> System::RankId(const std::string& group) {
  NPUMESH_ASSIGN_OR_RETURN(const GroupProvider::Members members,
                           MembersWithMe("get_rank_id", group));
  return members.rank;
}

Result<int> System::LocalRankSize(const std::string& group) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int> local,
                           LocalMembers("get_local_rank_size", group));
  return static_cast<int>(local.size());
}

Result<int> System::LocalRankId(const std::string& group) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int> local, LocalMembers("get_local_rank_id", group));
  return static_cast<int>(std::find(local.begin(), local.end(), world_->rank()) - local.begin());
}

Result<int> System::WorldRankFromGroupRank(const std::string& group, int group_rank) {
  constexpr std::string_view kWhat = "get_world_rank_from_group_rank";
  NPUMESH_ASSIGN_OR_RETURN(const GroupProvider::Members members, MembersWithMe(kWhat, group));
  const auto size = static_cast<int>(members.world_ranks.size());
  if (group_rank >= 0 && group_rank < size) {
    return members.world_ranks[static_cast<size_t>(group_rank)];
  }
  return Error(Code::kInvalidArgument, "{}: group \"{}\" has ranks 0 to {}, asked for {}", kWhat,
               group, size - 1, group_rank);
}

Result<int> System::GroupRankFromWorldRank(int world_rank, const std::string& group) {
  constexpr std::string_view kWhat = "get_group_rank_from_world_rank";
  NPUMESH_ASSIGN_OR_RETURN(const GroupProvider::Members members, MembersWithMe(kWhat, group));
  const std::vector<int>& ranks = members.world_ranks;
  const auto found = std::find(ranks.begin(), ranks.end(), world_rank);
  if (found != ranks.end()) return static_cast<int>(found - ranks.begin());
  return Error(Code::kInvalidArgument, "{}: world rank {} is no member of group \"{}\"", kWhat,
               world_rank, group);
}

Result<Communicator*> System::Group(const std::string& group) {
  NPUMESH_RETURN_IF_ERROR(CheckInitialized("a collective"));
  return groups_->Group(group);
}

Result<DeviceMemory*> System::Memory() {
  NPUMESH_RETURN_IF_ERROR(CheckInitialized("device memory"));
  return memory_.get();
}

Result<std::unique_ptr<Session>> System::Compile(Model model, const NpuBackend& backend) {
  NPUMESH_RETURN_IF_ERROR(CheckInitialized("a session"));
  NPUMESH_ASSIGN_OR_RETURN(std::unique_ptr<Session> session,
                           backend(*world_, *memory_, std::move(model)));
  NPUMESH_RETURN_IF_ERROR(session->UsePrecision(precision_));
  if (tensor_dump_.wanted()) session->DumpTensors(tensor_dump_);
  if (const std::optional<TuningOptions> tuning = TuningOf(options_)) {
    NPUMESH_RETURN_IF_ERROR(session->Tune(*tuning));
  }
  NPUMESH_RETURN_IF_ERROR(session->DebugKernels(options_.op_debug_level));
  return session;
}

}  // namespace npumesh
