// Ranks that call collectives in two groups until something happens to them. flight_record.py
// kills, stops or sends home one of them.
//
//   record_program STEPS [RANK_THAT_ENDS_EARLY]
#include <unistd.h>

#include <array>
#include <cstdio>
#include <numeric>
#include <random>
#include <thread>

#include "collectives/communicator.h"
#include "runtime/base/parse.h"

namespace npumesh {
namespace {

constexpr int64_t kForEver = 1'000'000'000;
constexpr int64_t kEarlySteps = 20;

struct Plan {
  int64_t steps = kForEver;
  int64_t early = -1;
};

Result<Plan> PlanOf(int argc, char** argv) {
  Plan plan;
  if (argc > 1) {
    NPUMESH_ASSIGN_OR_RETURN(plan.steps, ParseInt(argv[1], 1, kForEver, "STEPS"));
  }
  if (argc > 2) {
    NPUMESH_ASSIGN_OR_RETURN(plan.early, ParseInt(argv[2], 0, kForEver, "RANK"));
  }
  return plan;
}

// Collective over all ranks. Each step: a little work of uneven length, then one collective of all
// and one of half of the ranks.
Status Work(World& world, const Plan& plan) {
  NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
  std::vector<int> everyone(static_cast<size_t>(world.size()));
  std::iota(everyone.begin(), everyone.end(), 0);
  std::vector<int> half;
  for (int rank = world.rank() % 2; rank < world.size(); rank += 2) half.push_back(rank);
  NPUMESH_ASSIGN_OR_RETURN(const auto all, Communicator::Create(world, *memory, "all", everyone));
  NPUMESH_ASSIGN_OR_RETURN(const auto part, Communicator::Create(world, *memory, "half", half));
  constexpr uint64_t kCount = 256;
  NPUMESH_ASSIGN_OR_RETURN(void* const block, memory->Allocate(kCount * sizeof(float)));
  std::minstd_rand random(static_cast<unsigned>(world.rank()) + 1);
  const int64_t steps = plan.early == world.rank() ? kEarlySteps : plan.steps;
  for (int64_t step = 0; step < steps; ++step) {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
    NPUMESH_RETURN_IF_ERROR(
        all->AllReduce(block, block, kCount, DataType::kFloat, ReduceOp::kMax, "layer/all"));
    NPUMESH_RETURN_IF_ERROR(part->Broadcast(block, kCount, DataType::kFloat, 0, "layer/half"));
  }
  return Status();
}

Status Run(int argc, char** argv) {
  NPUMESH_ASSIGN_OR_RETURN(const Plan plan, PlanOf(argc, argv));
  NPUMESH_ASSIGN_OR_RETURN(const Env env, Env::FromProcess());
  NPUMESH_ASSIGN_OR_RETURN(const auto world, World::Start(env));
  NPUMESH_RETURN_IF_ERROR(Work(*world, plan));
  return world->Shutdown();
}

}  // namespace
}  // namespace npumesh

int main(int argc, char** argv) {
  const npumesh::Status status = npumesh::Run(argc, argv);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return npumesh::ExitCode(status);
}
