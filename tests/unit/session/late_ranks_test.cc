// Collectives behind operators whose output shapes differ from rank to rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/session/session_fixture.h"

namespace npumesh {
namespace {

Value Meet(GraphBuilder& g, Value x) {
  return g.Op("Meet", {{"x", x}});
}

// Rank r finds r + 1 elements. Two collectives wait for the count, one in front of the cut and one
// beside it do not; all four meet although nothing orders them.
TEST(LateRanksTest, CollectivesMeetInOneOrder) {
  const std::vector<Status> statuses = OnRanks(3, [](World& world, DeviceMemory& memory) -> Status {
    GraphBuilder g;
    const Value x = g.Data("x", IntType({-1}));
    const Value before = Meet(g, g.Op("Total", {{"x", x}}));
    const Value found = g.Op("NonZero", {{"x", x}});
    const Value behind = Meet(g, g.Op("Total", {{"x", found}}));
    const Value beside = Meet(g, g.Op("Negate", {{"x", before}}));
    const Value shape = Meet(g, g.Op("Shape", {{"x", found}}));
    g.Output({before, behind, beside, shape});
    NPUMESH_ASSIGN_OR_RETURN(Model model, g.Build());
    NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                             Session::Create(world, memory, std::move(model), LateSession()));
    const Tensor mine = IntTensor(std::vector<int64_t>(static_cast<size_t>(world.rank()) + 1, 1));
    for (int run = 0; run < 2; ++run) {
      NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, session->Run({mine}));
      EXPECT_EQ(IntsIn(outputs[0])[0], 6);
      EXPECT_EQ(IntsIn(outputs[1])[0], 0 + 1 + 3);
      EXPECT_EQ(IntsIn(outputs[2])[0], -18);
      EXPECT_EQ(IntsIn(outputs[3]), (std::vector<int64_t>{6, 3}));
    }
    return Status();
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.ToString();
}

}  // namespace
}  // namespace npumesh
