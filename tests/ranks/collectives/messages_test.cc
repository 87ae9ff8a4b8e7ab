// Send, Recv and BatchSendRecv: who waits for whom, and what both sides are told.
#include <gmock/gmock.h>

#include "collectives/communicator.h"
#include "tests/ranks/run_ranks.h"

namespace npumesh {
namespace {

using ::testing::HasSubstr;

// `body` on every rank, with a group of all of them, on one node and on a node each.
using Body = std::function<Status(Communicator&, DeviceMemory&)>;
void OnEveryLayout(int ranks, const std::function<void(const std::vector<Status>&)>& check,
                   const Body& body) {
  for (const std::vector<int>& nodes :
       {std::vector<int>{}, std::vector<int>(static_cast<size_t>(ranks), 1)}) {
    check(RunRanks(
        ranks, TestEnv(),
        [&](World& world) -> Status {
          std::vector<int> everyone;
          for (int r = 0; r < ranks; ++r) everyone.push_back(r);
          NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
          NPUMESH_ASSIGN_OR_RETURN(const auto group,
                                   Communicator::Create(world, *memory, "pipe", everyone));
          const Status status = body(*group, *memory);
          const Status end = world.Shutdown();
          return status.ok() ? end : status;
        },
        nodes));
  }
}

TEST(Messages, KeepTheirOrder) {
  OnEveryLayout(2, ExpectAllOk, [](Communicator& group, DeviceMemory& memory) -> Status {
    HbmArray<int32_t> data(memory, 4);
    for (int32_t i = 0; i < 20; ++i) {
      if (group.rank() == 0) data[0] = i;
      NPUMESH_RETURN_IF_ERROR(group.rank() == 0 ? group.Send(data.data(), 4, DataType::kInt32, 1)
                                                : group.Recv(data.data(), 4, DataType::kInt32, 0));
      EXPECT_EQ(data[0], i);
    }
    return Status();
  });
}

TEST(Messages, AreBetweenTwoRanksOnly) {
  OnEveryLayout(3, ExpectAllOk, [](Communicator& group, DeviceMemory& memory) -> Status {
    HbmArray<float> data(memory, 8);
    if (group.rank() == 0) return group.Send(data.data(), 8, DataType::kFloat, 2);
    if (group.rank() == 2) return group.Recv(data.data(), 8, DataType::kFloat, 0);
    return Status();
  });
}

// Rank 1 takes rank 0's message only after rank 2's, which rank 2 sends only after its own to rank
// 0: so rank 0 must receive while its send still waits.
TEST(Messages, OfABatchDoNotWaitForEachOther) {
  OnEveryLayout(3, ExpectAllOk, [](Communicator& group, DeviceMemory& memory) -> Status {
    HbmArray<float> in(memory, 8);
    HbmArray<float> out(memory, 8);
    const auto from = [&](int peer) {
      return SendRecvItem{false, in.data(), 8, DataType::kFloat, peer};
    };
    const auto to = [&](int peer) {
      return SendRecvItem{true, out.data(), 8, DataType::kFloat, peer};
    };
    const auto batch = [&](const std::vector<SendRecvItem>& items) {
      return group.BatchSendRecv(items, "batch");
    };
    switch (group.rank()) {
      case 0:
        return batch({to(1), from(2)});
      case 1:
        NPUMESH_RETURN_IF_ERROR(batch({from(2)}));
        return batch({from(0)});
      default:
        NPUMESH_RETURN_IF_ERROR(batch({to(0)}));
        return batch({to(1)});
    }
  });
}

// One side batches what the other asks for one by one, in either order.
TEST(Messages, OfABatchPairWithSingleOnes) {
  for (const bool send_first : {false, true}) {
    OnEveryLayout(2, ExpectAllOk, [&](Communicator& group, DeviceMemory& memory) -> Status {
      HbmArray<int32_t> out(memory, 3);
      HbmArray<int32_t> in(memory, 3);
      out[2] = 10 + group.rank();
      const int peer = 1 - group.rank();
      if (group.rank() == 0) {
        const SendRecvItem items[] = {{true, out.data(), 3, DataType::kInt32, peer},
                                      {false, in.data(), 3, DataType::kInt32, peer}};
        NPUMESH_RETURN_IF_ERROR(group.BatchSendRecv(items, "batch"));
      } else {
        const auto give = [&] { return group.Send(out.data(), 3, DataType::kInt32, peer); };
        const auto take = [&] { return group.Recv(in.data(), 3, DataType::kInt32, peer); };
        NPUMESH_RETURN_IF_ERROR(send_first ? give() : take());
        NPUMESH_RETURN_IF_ERROR(send_first ? take() : give());
      }
      EXPECT_EQ(in[2], 10 + peer);
      return Status();
    });
  }
}

TEST(Messages, ThatDifferAreNamedOnBothSides) {
  const struct {
    uint64_t count;
    DataType dtype;
    const char* says;
  } receivers[] = {
      {7, DataType::kFloat, "count differs: rank 1 has 7"},
      {8, DataType::kInt32, "dtype differs: rank 1 has int32"},
      {8192, DataType::kFloat, "rank 1 cannot take part: its receive buffer of 32768 bytes"},
  };
  for (const auto& receiver : receivers) {
    const auto check = [&](const std::vector<Status>& statuses) {
      for (const Status& status : statuses) {
        EXPECT_EQ(status.code(), Code::kMismatch);
        EXPECT_THAT(std::string(status.message()), HasSubstr(receiver.says));
        EXPECT_THAT(std::string(status.message()), HasSubstr("group pipe, call 1"));
      }
    };
    OnEveryLayout(2, check, [&](Communicator& group, DeviceMemory& memory) -> Status {
      HbmArray<float> data(memory, 8);
      std::vector<float> host(8192);
      if (group.rank() == 0) return group.Send(data.data(), 8, DataType::kFloat, 1);
      void* buffer = receiver.count > 8 ? host.data() : data.data();
      return group.Recv(buffer, receiver.count, receiver.dtype, 0);
    });
  }
}

TEST(Messages, ThatCannotBeAreRefused) {
  using Items = std::vector<SendRecvItem>;
  const struct {
    Items items;
    const char* says;
  } refused[] = {
      {{{true, nullptr, 1, DataType::kFloat, 1}}, "peer 1 is outside the group of 1"},
      {{{false, nullptr, 1, DataType::kFloat, -1}}, "peer -1 is outside"},
      {{{true, nullptr, 1, DataType::kFloat, 0}}, "rank 0 sends itself float32[1] without"},
      {{{false, nullptr, 1, DataType::kFloat, 0}}, "rank 0 receives from itself float32[1]"},
      {{{true, nullptr, 1, DataType::kFloat, 0}, {false, nullptr, 2, DataType::kFloat, 0}},
       "without the counterpart"},
      {{{true, nullptr, 1, DataType::kFloat, 0},
        {false, nullptr, 1, DataType::kFloat, 0},
        {false, nullptr, 1, DataType::kFloat, 0}},
       "two items receive from rank 0"},
      {{{true, nullptr, 1, DataType::kFloat, 0}, {false, nullptr, 1, DataType::kFloat, 0}},
       "its send buffer of 4 bytes is not in its HBM"},
  };
  for (const auto& [items, says] : refused) {
    ExpectAllOk(RunRanks(1, TestEnv(), [&items = items, says = says](World& world) -> Status {
      NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
      NPUMESH_ASSIGN_OR_RETURN(const auto group, Communicator::Create(world, *memory, "g", {0}));
      const Status status = group->BatchSendRecv(items, "batch");
      EXPECT_EQ(status.code(), Code::kInvalidArgument);
      EXPECT_THAT(std::string(status.message()), HasSubstr(says));
      return world.Shutdown();
    }));
  }
}

TEST(Messages, NameThePeerThatHasEnded) {
  const std::vector<Status> statuses = RunRanks(2, TestEnv(), [](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
    NPUMESH_ASSIGN_OR_RETURN(const auto group, Communicator::Create(world, *memory, "g", {0, 1}));
    HbmArray<float> data(*memory, 8);
    if (world.rank() == 1) return Status();
    return group->Recv(data.data(), 8, DataType::kFloat, 1, "stage 2");
  });
  EXPECT_EQ(statuses[0].code(), Code::kPeerLost);
  EXPECT_THAT(std::string(statuses[0].message()), HasSubstr("rank 1"));
  EXPECT_THAT(std::string(statuses[0].message()), HasSubstr("\"stage 2\" (group g)"));
}

}  // namespace
}  // namespace npumesh
