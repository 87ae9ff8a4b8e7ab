#include "runtime/world/position.h"

#include <gtest/gtest.h>

#include <memory>

namespace npumesh {
namespace {

// A line of shared memory begins as zeros.
std::unique_ptr<PositionLine> ClaimedLine() {
  auto line = std::make_unique<PositionLine>();
  EXPECT_TRUE(line->Claim());
  EXPECT_FALSE(line->Claim());
  EXPECT_FALSE(line->Read());
  return line;
}

TEST(PositionLine, SaysWhereARankStands) {
  const auto line = ClaimedLine();
  line->Open(7, "tp", 10);
  line->Enter(1, 3, "layer0/allreduce", 20);
  line->EnterAgain(2, 30);
  const std::optional<Position> position = line->Read();
  ASSERT_TRUE(position);
  EXPECT_EQ(position->group, 7u);
  EXPECT_EQ(position->group_name, "tp");
  EXPECT_EQ(position->node, "layer0/allreduce");
  EXPECT_EQ(position->call, 2u);
  EXPECT_EQ(position->kind, 3u);
  EXPECT_EQ(position->since_ns, 30);
  EXPECT_TRUE(position->active());
}

// Who looks for it in other messages finds it.
TEST(PositionLine, HoldsTheWholeNameThatRootInfoGives) {
  const std::string name = "fe80::1234:5678:9abc:def0%interface15_65535_63_1795329530349705";
  const auto line = ClaimedLine();
  line->Open(7, name, 10);
  EXPECT_EQ(line->Read()->group_name, name);
}

TEST(PositionLine, CutsWhatDoesNotFit) {
  const auto line = ClaimedLine();
  line->Open(7, std::string(200, 'g'), 10);
  line->Enter(1, 3, std::string(200, 'n'), 20);
  EXPECT_EQ(line->Read()->group_name, std::string(PositionLine::kGroupWords * 8, 'g'));
  EXPECT_EQ(line->Read()->node, std::string(PositionLine::kNodeWords * 8, 'n'));
}

}  // namespace
}  // namespace npumesh
