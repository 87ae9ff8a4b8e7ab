#include "graph/config/system_options.h"

#include <gmock/gmock.h>

#include "graph/config/validation.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Refusal(const SystemOptions& options) {
  return std::string(Validate(options).message());
}

TEST(ProfilingOptions, ListsAndJson) {
  const struct {
    const char* text;
    bool training;
    bool task;
    bool op;
  } cases[] = {
      {"training_trace", true, false, false},
      {"task_trace", true, true, false},
      {"training_trace:task_trace", true, true, false},
      {"op_trace", false, false, true},
      {R"({"training_trace":"on"})", true, false, false},
      {R"({"task_trace":"l1"})", true, true, false},
      {R"({"output":"./","task_trace":"off"})", false, false, false},
  };
  for (const auto& expected : cases) {
    const auto choice = ParseProfilingOptions(expected.text);
    ASSERT_TRUE(choice.ok()) << expected.text;
    EXPECT_EQ(choice->training_trace, expected.training) << expected.text;
    EXPECT_EQ(choice->task_trace, expected.task) << expected.text;
    EXPECT_EQ(choice->op_trace, expected.op) << expected.text;
  }
  for (const char* text : {"", ":", "task_trace:", "trace", "op_trace:training_trace", "{", "{]",
                           R"({"training_trace":"off"})", R"({"task_trace":1})"}) {
    EXPECT_FALSE(ParseProfilingOptions(text).ok()) << text;
  }
}

TEST(SystemOptions, WhatBelongsTogether) {
  SystemOptions options;
  options.profiling_mode = true;
  EXPECT_THAT(Refusal(options), HasSubstr("session.profiling_options: needed"));
  options.profiling_options = "training_trace:task_trace";
  EXPECT_THAT(Refusal(options), HasSubstr("session.fp_point: needed"));
  options.fp_point = "conv1";
  EXPECT_THAT(Refusal(options), HasSubstr("session.bp_point: needed"));
  options.bp_point = "fc_grad";
  EXPECT_EQ(Refusal(options), "");

  options = {};
  options.enable_dump = true;
  EXPECT_THAT(Refusal(options), HasSubstr("session.dump_path: needed because session.enable_dump"));
  options.dump_path = ".";
  EXPECT_EQ(Refusal(options), "");
  options.enable_dump_debug = true;
  EXPECT_THAT(Refusal(options), HasSubstr("does not go with session.enable_dump"));

  options = {};
  options.optypelist_for_implmode = "Pooling";
  EXPECT_THAT(Refusal(options), HasSubstr("session.op_select_implmode: needed"));
  options.op_select_implmode = "high_precision";
  EXPECT_EQ(Refusal(options), "");
}

TEST(SystemOptions, WhatTheSeedDoesNotSupportSaysSo) {
  SystemOptions options;
  options.enable_dump_debug = true;
  options.dump_path = ".";
  options.dump_debug_mode = "aicore_overflow";
  EXPECT_EQ(Refusal(options), "");
  EXPECT_THAT(NoticesOf(options),
              ElementsAre(HasSubstr("session.enable_dump_debug=true has no effect on a simulated "
                                    "NPU: Not supported"),
                          HasSubstr("session.dump_debug_mode=\"aicore_overflow\"")));
}

}  // namespace
}  // namespace npumesh
