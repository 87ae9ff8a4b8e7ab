// Ranks that call collectives in two groups until something happens to them. flight_record.py
// kills or stops one of them, or lets one do something else than the others in step 20:
//
//   record_program STEPS [early|count|circle|create RANK]
//
// early: it ends its work; count: it reduces half as many elements; circle: it calls the collective
// of its half before that of all; create: it stops when the others create the second group.
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <numeric>
#include <random>
#include <thread>

#include "collectives/communicator.h"
#include "runtime/base/text/parse.h"

namespace npumesh {
namespace {

constexpr int64_t kForEver = 1'000'000'000;
constexpr int64_t kFaultStep = 20;

struct Plan {
  int64_t steps = kForEver;
  std::string fault;
  int64_t rank = -1;

  bool Strikes(std::string_view what, int64_t step, int who) const {
    return fault == what && step == kFaultStep && who == rank;
  }
};

Result<Plan> PlanOf(int argc, char** argv) {
  Plan plan;
  if (argc > 1) {
    NPUMESH_ASSIGN_OR_RETURN(plan.steps, ParseInt(argv[1], 1, kForEver, "STEPS"));
  }
  if (argc > 3) {
    plan.fault = argv[2];
    NPUMESH_ASSIGN_OR_RETURN(plan.rank, ParseInt(argv[3], 0, kForEver, "RANK"));
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
  if (plan.fault == "create" && plan.rank == world.rank()) raise(SIGSTOP);
  NPUMESH_ASSIGN_OR_RETURN(const auto part, Communicator::Create(world, *memory, "half", half));
  constexpr uint64_t kCount = 256;
  NPUMESH_ASSIGN_OR_RETURN(void* const block, memory->Allocate(kCount * sizeof(float)));
  std::minstd_rand random(static_cast<unsigned>(world.rank()) + 1);
  const auto reduce = [&](uint64_t count) {
    return all->AllReduce(block, block, count, DataType::kFloat, ReduceOp::kMax, "layer/all");
  };
  const auto send = [&] {
    return part->Broadcast(block, kCount, DataType::kFloat, 0, "layer/half");
  };
  for (int64_t step = 0; step < plan.steps; ++step) {
    if (plan.Strikes("early", step, world.rank())) return Status();
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
    if (plan.Strikes("circle", step, world.rank())) NPUMESH_RETURN_IF_ERROR(send());
    const bool fewer = plan.Strikes("count", step, world.rank());
    NPUMESH_RETURN_IF_ERROR(reduce(fewer ? kCount / 2 : kCount));
    NPUMESH_RETURN_IF_ERROR(send());
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
