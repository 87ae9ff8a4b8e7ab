// MoeDistributeDispatch and MoeDistributeCombine over ranks when something is wrong: all ranks
// leave together. And that nothing is allocated when all is well.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "tests/ranks/operators/expert_scene.h"
#include "tests/unit/allocation_count.h"

namespace npumesh {
namespace {

// A rank with a wrong expert takes the others along instead of leaving them waiting.
TEST(ExpertParallel, AllLeaveTogether) {
  const Scene scene{3};
  const std::vector<Status> statuses =
      OnRanks(3, [&](Communicator& group, DeviceMemory& memory) -> Status {
        OpCall call = Dispatch(scene, group.rank());
        if (group.rank() == 1) {
          std::vector<int32_t> ids = Ids(scene, 1);
          ids[3] = 6;
          call.inputs[1].value = Make<int32_t>(DataType::kInt32, {kTokens, kChoices}, ids);
        }
        return RunOnRank(BuiltinOps(), call, group, memory).status();
      });
  EXPECT_THAT(statuses[1].message(), testing::HasSubstr("holds 6 for token 1"));
  for (const size_t rank : {0, 2}) {
    EXPECT_EQ(statuses[rank].code(), Code::kPeerLost);
    EXPECT_THAT(statuses[rank].message(), testing::HasSubstr("rank 1 of the group refuses"));
  }
}

TEST(ExpertParallel, CombineNoticesForeignRows) {
  const Scene scene{2};
  const std::vector<Status> statuses =
      OnRanks(2, [&](Communicator& group, DeviceMemory& memory) -> Status {
        const OpCall dispatch = Dispatch(scene, group.rank());
        NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> arrived,
                                 RunOnRank(BuiltinOps(), dispatch, group, memory));
        OpCall combine = Combine(scene, group.rank(), dispatch, arrived);
        if (group.rank() == 0) {
          combine.inputs[1].value =
              Make<int32_t>(DataType::kInt32, {kTokens, kChoices}, {0, 1, 0, 1, 0, 1, 0, 1, 0, 1});
        }
        return RunOnRank(BuiltinOps(), combine, group, memory).status();
      });
  // All of its tokens want expert 0, of which rank 0 has other rows; rank 1 misses its own.
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), Code::kMismatch) << status.ToString();
    EXPECT_THAT(status.message(), testing::HasSubstr("by ep_send_counts the rows of rank 0"));
  }
}

TEST(ExpertParallel, CombineReadsWhereRowsCameFrom) {
  const Scene scene{2};
  const std::vector<Status> statuses =
      OnRanks(2, [&](Communicator& group, DeviceMemory& memory) -> Status {
        const OpCall dispatch = Dispatch(scene, group.rank());
        NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> arrived,
                                 RunOnRank(BuiltinOps(), dispatch, group, memory));
        OpCall combine = Combine(scene, group.rank(), dispatch, arrived);
        if (group.rank() == 0) {
          const Tensor& assist = combine.inputs[2].value;
          combine.inputs[2].value =
              Make<int32_t>(DataType::kInt32, assist.shape(),
                            std::vector<int32_t>(static_cast<size_t>(assist.shape()[0]), 9));
        }
        return RunOnRank(BuiltinOps(), combine, group, memory).status();
      });
  EXPECT_THAT(statuses[0].message(), testing::HasSubstr("row 0 is of rank 9, ep_send_counts that"));
  EXPECT_EQ(statuses[1].code(), Code::kPeerLost) << statuses[1].ToString();
}

// Allocations of both ranks while `work` runs, all of it between two meetings that make none.
template <typename Work>
Result<uint64_t> AllocationsOf(std::atomic<int>& arrived, const Work& work) {
  const auto meet = [&] {
    const int end = (arrived++ / 2 + 1) * 2;
    while (arrived < end) std::this_thread::yield();
  };
  meet();
  const uint64_t before = AllocationCount();
  meet();
  const Status status = work();
  meet();
  const uint64_t count = AllocationCount() - before;
  meet();
  if (!status.ok()) return status;
  return count;
}

// Nothing but what their exchanges allocate.
TEST(ExpertParallel, AllocateNothingOnceTheyRan) {
  const Scene scene{2};
  std::atomic<int> arrived{0};
  ExpectAllOk(OnRanks(2, [&](Communicator& group, DeviceMemory& memory) -> Status {
    const OpCall dispatch = Dispatch(scene, group.rank());
    NPUMESH_ASSIGN_OR_RETURN(const auto there, RankOp::Make(BuiltinOps(), dispatch, group, memory));
    NPUMESH_RETURN_IF_ERROR(there->Run());
    const OpCall combine = Combine(scene, group.rank(), dispatch, there->Outputs());
    NPUMESH_ASSIGN_OR_RETURN(const auto back, RankOp::Make(BuiltinOps(), combine, group, memory));
    HbmArray<int64_t> send(memory, 2), recv(memory, 2);
    const uint64_t counts[] = {1, 1};
    const uint64_t places[] = {0, 1};
    const auto exchange = [&]() -> Status {
      for (int i = 0; i < 20; ++i) {
        NPUMESH_RETURN_IF_ERROR(group.AllToAllV(send.data(), counts, places, recv.data(), counts,
                                                places, DataType::kInt64, "node_under_test"));
      }
      return Status();
    };
    const auto both = [&]() -> Status {
      for (int i = 0; i < 10; ++i) {
        NPUMESH_RETURN_IF_ERROR(there->Run());
        NPUMESH_RETURN_IF_ERROR(back->Run());
      }
      return Status();
    };
    NPUMESH_RETURN_IF_ERROR(exchange());
    NPUMESH_RETURN_IF_ERROR(both());
    NPUMESH_ASSIGN_OR_RETURN(const uint64_t of_exchanges, AllocationsOf(arrived, exchange));
    NPUMESH_ASSIGN_OR_RETURN(const uint64_t of_operators, AllocationsOf(arrived, both));
    EXPECT_EQ(of_operators, of_exchanges);
    return Status();
  }));
}

// A rank with more tokens than the others, and no global_bs that says so: no rank waits for the one
// that finds out. Two of three used to wait until their time was up.
TEST(ExpertParallel, MoreTokensThanOthersNeedGlobalBs) {
  for (const int64_t global : {0, 18}) {
    const std::vector<Status> statuses =
        OnRanks(3, [&](Communicator& group, DeviceMemory& memory) -> Status {
          OpCall call = Dispatch({3}, group.rank());
          call.attrs.push_back({"global_bs", AttrValue::Int(global)});
          if (group.rank() == 1) {
            call.inputs[0].value = Pattern(DataType::kFloat16, {6, kWidth});
            call.inputs[1].value =
                Make<int32_t>(DataType::kInt32, {6, 2}, {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 2, 3});
          }
          return RunOnRank(BuiltinOps(), call, group, memory).status();
        });
    for (const Status& status : statuses) {
      EXPECT_EQ(status.ok(), global > 0) << status.ToString();
      if (global > 0) continue;
      EXPECT_EQ(status.code(), Code::kInvalidArgument);
      EXPECT_THAT(status.message(), testing::HasSubstr("16 tokens together"));
    }
  }
}

TEST(ExpertParallel, RefusesWhatDoesNotFit) {
  const std::vector<Status> statuses =
      OnRanks(2, [&](Communicator& group, DeviceMemory& memory) -> Status {
        OpCall call = Dispatch({2}, 1 - group.rank());
        return RunOnRank(BuiltinOps(), call, group, memory).status();
      });
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(status.message(), testing::HasSubstr("ep_rank_id"));
  }
  OpCall elastic = Dispatch({2}, 0);
  elastic.inputs.push_back({"elastic_info", Pattern(DataType::kInt32, {8})});
  const Status status = OnRanks(2, [&](Communicator& group, DeviceMemory& memory) -> Status {
    return group.rank() > 0 ? Status() : RunOnRank(BuiltinOps(), elastic, group, memory).status();
  })[0];
  EXPECT_EQ(status.code(), Code::kUnsupported) << status.ToString();
  EXPECT_THAT(status.message(),
              testing::HasSubstr("\"elastic_info\" is fed, which is not supported"));
}

}  // namespace
}  // namespace npumesh
