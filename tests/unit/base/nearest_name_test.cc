#include "runtime/base/text/nearest_name.h"

#include <gmock/gmock.h>

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(NearestNames, ByDistanceThenByLastPart) {
  const std::string_view names[] = {"dump_config.dump_mode", "dump_config.dump_path", "mode",
                                    "session.dump_mode"};
  EXPECT_THAT(NearestNames("Mode", names), ElementsAre("mode"));
  EXPECT_THAT(NearestNames("dump_config.dump_mod", names, 1), ElementsAre("dump_config.dump_mode"));
  EXPECT_THAT(NearestNames("dump_mode", names),
              ElementsAre("dump_config.dump_mode", "session.dump_mode"));
  EXPECT_THAT(NearestNames("something else", names), IsEmpty());
  EXPECT_THAT(NearestNames(std::string(1'000'000, 'x'), names), IsEmpty());
  EXPECT_THAT(NearestNames("", {}), IsEmpty());
}

}  // namespace
}  // namespace npumesh
