// A rank never leaves alone: whatever one rank does wrong, all return, and all say who it was.
#include <gmock/gmock.h>

#include "collectives/communicator.h"
#include "collectives/contract/request.h"
#include "runtime/base/text/rank_list.h"
#include "tests/ranks/run_ranks.h"

namespace npumesh {
namespace {

using ::testing::HasSubstr;

// One collective as a rank may ask for it.
struct Asked {
  std::string kind = "allreduce";
  DataType dtype = DataType::kFloat;
  uint64_t count = 64;
  ReduceOp op = ReduceOp::kSum;
  int root = 0;
  std::string node = "layer7/attn";
};

Status Ask(Communicator& group, DeviceMemory& memory, const Asked& asked) {
  HbmArray<double> send(memory, 1024);
  HbmArray<double> recv(memory, 1024);
  if (asked.kind == "barrier") return group.Barrier(asked.node);
  if (asked.kind == "broadcast") {
    return group.Broadcast(send.data(), asked.count, asked.dtype, asked.root, asked.node);
  }
  if (asked.kind == "allgather") {
    return group.AllGather(send.data(), recv.data(), asked.count, asked.dtype, asked.node);
  }
  return group.AllReduce(send.data(), recv.data(), asked.count, asked.dtype, asked.op, asked.node);
}

struct Deviation {
  const char* name;
  Asked usual;
  Asked deviant;
  const char* field;
};

Asked With(void (*change)(Asked&)) {
  Asked asked;
  change(asked);
  return asked;
}

class Mismatch : public ::testing::TestWithParam<std::tuple<Deviation, int, bool>> {};

TEST_P(Mismatch, IsNamedOnEveryRank) {
  const auto& [deviation, deviant, two_nodes] = GetParam();
  const std::vector<int> nodes = two_nodes ? std::vector<int>{2, 2} : std::vector<int>{};
  const std::vector<Status> statuses = RunRanks(
      4, TestEnv(),
      [&deviation = deviation, deviant = deviant](World& world) -> Status {
        NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
        NPUMESH_ASSIGN_OR_RETURN(const auto group,
                                 Communicator::Create(world, *memory, "tp", {0, 1, 2, 3}));
        NPUMESH_RETURN_IF_ERROR(Ask(*group, *memory, deviation.usual));
        const Status status =
            Ask(*group, *memory, world.rank() == deviant ? deviation.deviant : deviation.usual);
        EXPECT_EQ(group->Barrier().message(), status.message()) << "a broken group stays broken";
        const Status end = world.Shutdown();
        return status.ok() ? end : status;
      },
      nodes);
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), Code::kMismatch);
    EXPECT_EQ(status.message(), statuses[0].message());
    EXPECT_THAT(std::string(status.message()), HasSubstr(fmt::format("rank {} has", deviant)));
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(fmt::format("{} differs", deviation.field)));
    EXPECT_THAT(std::string(status.message()), HasSubstr("(group tp, call"));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Fields, Mismatch,
    ::testing::Combine(
        ::testing::Values(
            Deviation{"kind", {}, With([](Asked& a) { a.kind = "allgather"; }), "kind"},
            Deviation{"dtype", {}, With([](Asked& a) { a.dtype = DataType::kInt32; }), "dtype"},
            Deviation{"count", {}, With([](Asked& a) { a.count = 63; }), "count"},
            Deviation{"reduction", {}, With([](Asked& a) { a.op = ReduceOp::kMax; }), "reduction"},
            Deviation{"root", With([](Asked& a) { a.kind = "broadcast"; }),
                      With([](Asked& a) { a.kind = "broadcast", a.root = 2; }), "root"},
            Deviation{"operator", {}, With([](Asked& a) { a.node = "layer8/attn"; }), "operator"}),
        ::testing::Values(0, 1, 2, 3), ::testing::Bool()),
    [](const auto& info) {
      return fmt::format("{}_rank{}_{}", std::get<0>(info.param).name, std::get<1>(info.param),
                         std::get<2>(info.param) ? "two_nodes" : "one_node");
    });

// TorchAir numbers operators of one type apart, and the ranks' graphs may count differently.
TEST(Contract, NumbersOfOperatorsMayDiffer) {
  ExpectAllOk(RunRanks(2, TestEnv(), [](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
    NPUMESH_ASSIGN_OR_RETURN(const auto group, Communicator::Create(world, *memory, "g", {0, 1}));
    Asked asked;
    asked.node = world.rank() == 0 ? "HcomAllReduce" : "HcomAllReduce_3";
    NPUMESH_RETURN_IF_ERROR(Ask(*group, *memory, asked));
    return world.Shutdown();
  }));
}

// Ranks that run different algorithms would read what no rank wrote.
TEST(Contract, AlgorithmsMustBeEqual) {
  const std::vector<Status> statuses = RunRanks(3, TestEnv(), [](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
    CommunicatorOptions options;
    options.algo = world.rank() == 1 ? "reference" : "direct";
    NPUMESH_ASSIGN_OR_RETURN(const auto group,
                             Communicator::Create(world, *memory, "tp", {0, 1, 2}, options));
    return Ask(*group, *memory, Asked());
  });
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), Code::kMismatch);
    EXPECT_THAT(status.message(), HasSubstr("algorithm (HCCL_ALGO) differs: rank 1 has reference"));
  }
}

// What a rank has said often is not said anew; what it says differently is.
TEST(Contract, DeviationAfterManyEqualCallsIsNamed) {
  const std::vector<Status> statuses = RunRanks(3, TestEnv(), [](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
    NPUMESH_ASSIGN_OR_RETURN(const auto group,
                             Communicator::Create(world, *memory, "tp", {0, 1, 2}));
    HbmArray<float> buffer(*memory, 256);
    for (int i = 0; i < 20; ++i) {
      const bool odd = i == 19 && world.rank() == 2;
      NPUMESH_RETURN_IF_ERROR(
          group->Broadcast(buffer.data(), odd ? 65 : 64, DataType::kFloat, 0, "step"));
    }
    return Status();
  });
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), Code::kMismatch);
    EXPECT_THAT(status.message(), HasSubstr("call 20): count differs: rank 2 has 65"));
  }
}

TEST(Contract, PointerOutsideTheHbmIsRefusedOnAllRanks) {
  const std::vector<Status> statuses = RunRanks(3, TestEnv(), [](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
    NPUMESH_ASSIGN_OR_RETURN(const auto group,
                             Communicator::Create(world, *memory, "g", {0, 1, 2}));
    HbmArray<float> good(*memory, 8);
    std::vector<float> host(8);
    const Status status = group->AllReduce(world.rank() == 1 ? host.data() : good.data(),
                                           good.data(), 8, DataType::kFloat, ReduceOp::kSum, "x");
    const Status end = world.Shutdown();
    return status.ok() ? end : status;
  });
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), Code::kMismatch);
    EXPECT_THAT(
        std::string(status.message()),
        HasSubstr("rank 1 cannot take part: its send buffer of 32 bytes is not in its HBM"));
  }
}

// Uneven counts of an alltoallv that do not fit together.
TEST(Contract, AllToAllVBlocksMustFit) {
  const std::vector<Status> statuses = RunRanks(2, TestEnv(), [](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
    NPUMESH_ASSIGN_OR_RETURN(const auto group, Communicator::Create(world, *memory, "g", {0, 1}));
    HbmArray<float> send(*memory, 16);
    HbmArray<float> recv(*memory, 16);
    const std::vector<uint64_t> two = {2, 2};
    const std::vector<uint64_t> three = {2, 3};
    const std::vector<uint64_t> at = {0, 4};
    const Status status = group->AllToAllV(send.data(), two, at, recv.data(),
                                           world.rank() == 0 ? three : two, at, DataType::kFloat);
    const Status end = world.Shutdown();
    return status.ok() ? end : status;
  });
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), Code::kMismatch) << status.ToString();
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("rank 1 sends 8 bytes to rank 0, which expects 12"));
  }
}

// Lists of the V variants and matrices: a rank that has them wrong is named, and no rank hangs.
TEST(Contract, ListsOfWrongLengthAreNamed) {
  const struct {
    const char* says;
    Status (*call)(Communicator&, float*, const std::vector<uint64_t>& wrong,
                   const std::vector<uint64_t>& right);
  } rows[] = {
      {"recv_counts: 1 entries, expected 2",
       [](Communicator& g, float* x, const std::vector<uint64_t>& wrong,
          const std::vector<uint64_t>& right) {
         return g.AllGatherV(x, 2, x + 8, wrong, right, DataType::kFloat);
       }},
      {"send_displacements: 1 entries, expected 2",
       [](Communicator& g, float* x, const std::vector<uint64_t>& wrong,
          const std::vector<uint64_t>& right) {
         return g.ReduceScatterV(x, right, wrong, x + 8, 2, DataType::kFloat, ReduceOp::kSum);
       }},
      {"send_counts: 1 entries, expected 2",
       [](Communicator& g, float* x, const std::vector<uint64_t>& wrong,
          const std::vector<uint64_t>& right) {
         return g.AllToAllV(x, wrong, right, x + 8, right, right, DataType::kFloat);
       }},
      {"send_count_matrix: 1 entries, expected 4",
       [](Communicator& g, float* x, const std::vector<uint64_t>& wrong,
          const std::vector<uint64_t>&) {
         const std::vector<uint64_t> matrix(4, 2);
         return g.AllToAllVC(x, wrong.size() == 1 ? wrong : matrix, x + 8, DataType::kFloat);
       }},
  };
  for (const auto& row : rows) {
    const std::vector<Status> statuses = RunRanks(2, TestEnv(), [&](World& world) -> Status {
      NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
      NPUMESH_ASSIGN_OR_RETURN(const auto group, Communicator::Create(world, *memory, "g", {0, 1}));
      HbmArray<float> data(*memory, 16);
      const std::vector<uint64_t> right = {2, 2};
      const std::vector<uint64_t> wrong = {2};
      const Status status = row.call(*group, data.data(), world.rank() == 1 ? wrong : right, right);
      const Status end = world.Shutdown();
      return status.ok() ? end : status;
    });
    for (const Status& status : statuses) {
      EXPECT_EQ(status.code(), Code::kMismatch);
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr(fmt::format("rank 1 cannot take part: {}", row.says)));
    }
  }
}

TEST(Contract, CountsOfTheVVariantsMustBeEqual) {
  const auto run = [](Status (*call)(Communicator&, float*, bool)) {
    return RunRanks(2, TestEnv(), [call](World& world) -> Status {
      NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
      NPUMESH_ASSIGN_OR_RETURN(const auto group, Communicator::Create(world, *memory, "g", {0, 1}));
      HbmArray<float> data(*memory, 16);
      const Status status = call(*group, data.data(), world.rank() == 1);
      const Status end = world.Shutdown();
      return status.ok() ? end : status;
    });
  };
  static constexpr uint64_t kUsual[] = {2, 2};
  static constexpr uint64_t kOther[] = {3, 2};
  static constexpr uint64_t kAt[] = {0, 4};
  const auto gather = [](Communicator& g, float* x, bool deviant) {
    return g.AllGatherV(x, 2, x + 8, deviant ? kOther : kUsual, kAt, DataType::kFloat);
  };
  for (const Status& status : run(gather)) {
    EXPECT_EQ(status.code(), Code::kMismatch);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("rank 0 sends 8 bytes to rank 1, which expects 12"));
  }
  const auto reduce = [](Communicator& g, float* x, bool deviant) {
    return g.ReduceScatterV(x, deviant ? kOther : kUsual, kAt, x + 8, 2, DataType::kFloat,
                            ReduceOp::kSum);
  };
  for (const Status& status : run(reduce)) {
    EXPECT_EQ(status.code(), Code::kMismatch);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("rank 1 sends 12 bytes to rank 0, which expects 8"));
  }
}

TEST(Contract, RankThatEndsIsNamed) {
  const std::vector<Status> statuses = RunRanks(3, TestEnv(), [](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
    NPUMESH_ASSIGN_OR_RETURN(const auto group,
                             Communicator::Create(world, *memory, "g", {0, 1, 2}));
    if (world.rank() == 2) return Status();
    return group->Barrier("step 3");
  });
  for (const int rank : {0, 1}) {
    EXPECT_EQ(statuses[static_cast<size_t>(rank)].code(), Code::kPeerLost);
    EXPECT_THAT(std::string(statuses[static_cast<size_t>(rank)].message()), HasSubstr("rank 2"));
  }
}

TEST(Contract, RankThatFailsElsewhereIsNamedWithItsReason) {
  const std::vector<Status> statuses = RunRanks(2, TestEnv(), [](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
    NPUMESH_ASSIGN_OR_RETURN(const auto group, Communicator::Create(world, *memory, "g", {0, 1}));
    if (world.rank() == 1) {
      world.board().PublishFailure(Error(Code::kIo, "weights.bin: disk error"));
      (void)world.Shutdown();
      return Error(Code::kIo, "disk error");
    }
    const Status status = group->Barrier("step 3");
    (void)world.Shutdown();
    return status;
  });
  EXPECT_EQ(statuses[0].code(), Code::kPeerLost);
  EXPECT_THAT(std::string(statuses[0].message()),
              HasSubstr("rank 1 failed: weights.bin: disk error"));
}

TEST(Contract, RankThatDoesNotComeIsNamedAtTheLimit) {
  Env env = TestEnv();
  env.exec_timeout = std::chrono::seconds(1);
  std::atomic<bool> over{false};
  const std::vector<Status> statuses = RunRanks(3, env, [&](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
    NPUMESH_ASSIGN_OR_RETURN(const auto group,
                             Communicator::Create(world, *memory, "g", {0, 1, 2}));
    Status status;
    if (world.rank() != 1) {
      status = group->Barrier("step 3");
      over = true;
    }
    while (!over) std::this_thread::yield();
    const Status end = world.Shutdown();
    return status.ok() ? end : status;
  });
  // One of the two that wait is the first to give up, and the other may hear of it.
  int named = 0;
  for (const int waiting : {0, 2}) {
    const std::string message(statuses[static_cast<size_t>(waiting)].message());
    EXPECT_THAT(message, HasSubstr("\"step 3\""));
    named += message.find("rank(s) 1 did not come within 1 s") != std::string::npos ? 1 : 0;
  }
  EXPECT_GE(named, 1);
  EXPECT_EQ(statuses[0].code(), Code::kTimeout);
}

TEST(Contract, GroupWhoseMemberNeverComesIsAnError) {
  Env env = TestEnv();
  env.connect_timeout = std::chrono::seconds(1);
  std::atomic<bool> over{false};
  const std::vector<Status> statuses = RunRanks(2, env, [&](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
    Status status;
    if (world.rank() == 0) {
      status = Communicator::Create(world, *memory, "late", {0, 1}).status();
      over = true;
    }
    while (!over) std::this_thread::yield();
    (void)world.Shutdown();
    return status;
  });
  EXPECT_EQ(statuses[0].code(), Code::kTimeout);
  EXPECT_THAT(std::string(statuses[0].message()), HasSubstr("creating group \"late\""));
}

TEST(RangeText, JoinsRuns) {
  EXPECT_EQ(RangeText({}), "");
  EXPECT_EQ(RangeText({3}), "3");
  EXPECT_EQ(RangeText({0, 1, 2, 4, 6, 7}), "0-2,4,6-7");
}

}  // namespace
}  // namespace npumesh
