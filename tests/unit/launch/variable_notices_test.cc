#include "launch/catalog/variable_notices.h"

#include <gmock/gmock.h>

namespace npumesh {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

using Names = std::vector<std::string>;

TEST(VariableNotices, KnownAndForeignNamesAreSilent) {
  EXPECT_THAT(VariableNotices(Names{"HOME", "NPUMESH_RECORD", "HCCL_EXEC_TIMEOUT", "TNG_LOG_LEVEL",
                                    "ASCEND_GLOBAL_LOG_LEVEL", "ASCEND_HOME_PATH",
                                    "ASCEND_OPP_PATH", "ASCEND_TOOLKIT_HOME", "NPUMESH_TEST_TAG",
                                    "NPUMESH_LIBRARY", "NPUMESH_COMMAND", "HCCL"}),
              IsEmpty());
}

// A time-out that was misspelt left the default of half an hour in force.
TEST(VariableNotices, MisspeltNamesGetTheNearestOne) {
  EXPECT_THAT(
      VariableNotices(Names{"NPUMESH_RECORDS", "HCCL_EXEC_TIMOUT", "ASCEND_GLOBAL_LOGLEVEL"}),
      ElementsAre("ASCEND_GLOBAL_LOGLEVEL is set, which npumesh does not know; did you mean "
                  "ASCEND_GLOBAL_LOG_LEVEL?",
                  "HCCL_EXEC_TIMOUT is set, which npumesh does not know; did you mean "
                  "HCCL_EXEC_TIMEOUT?",
                  "NPUMESH_RECORDS is set, which npumesh does not know; did you mean "
                  "NPUMESH_RECORD?"));
}

TEST(VariableNotices, WhatHcclMayKnowAndNpumeshDoesNotIsTold) {
  EXPECT_THAT(VariableNotices(Names{"HCCL_SOMETHING_ENTIRELY_NEW"}),
              ElementsAre(StartsWith("HCCL_SOMETHING_ENTIRELY_NEW is set, which npumesh does not "
                                     "know; npumesh env lists")));
}

TEST(VariableNotices, VariablesWithoutEffectAreOneLine) {
  EXPECT_THAT(VariableNotices(Names{"ASCEND_RT_VISIBLE_DEVICES", "ASCEND_LAUNCH_BLOCKING"}),
              ElementsAre("ASCEND_LAUNCH_BLOCKING, ASCEND_RT_VISIBLE_DEVICES are without effect "
                          "here; npumesh env --markdown says why"));
  EXPECT_THAT(VariableNotices(Names{"RANK_TABLE_FILE"}),
              ElementsAre(StartsWith("RANK_TABLE_FILE is without effect here")));
}

}  // namespace
}  // namespace npumesh
