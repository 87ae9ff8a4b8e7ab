#include "launch/bench/bench_options.h"

#include <gmock/gmock.h>

namespace npumesh {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

BenchWords Sizes(std::string min, std::string max, std::string step = "", std::string factor = "") {
  BenchWords words;
  words.min_bytes = std::move(min);
  words.max_bytes = std::move(max);
  words.step_bytes = std::move(step);
  words.step_factor = std::move(factor);
  return words;
}

TEST(ParseBench, HasTheDefaultsOfHcclTest) {
  const BenchOptions options = *ParseBench({});
  EXPECT_THAT(options.sizes, ElementsAre(64 << 20));
  EXPECT_EQ(options.iterations, 20);
  EXPECT_EQ(options.warm_ups, 10);
  EXPECT_EQ(options.dtype, DataType::kFloat);
  EXPECT_EQ(options.reduce_op, ReduceOp::kSum);
  EXPECT_EQ(options.root, 0);
  EXPECT_EQ(options.check, CheckMode::kQuiet);
  EXPECT_TRUE(options.baseline);
}

TEST(ParseBench, StepsThroughTheSizes) {
  EXPECT_THAT(ParseBench(Sizes("8", "64", "", "2"))->sizes, ElementsAre(8, 16, 32, 64));
  EXPECT_THAT(ParseBench(Sizes("1k", "3K", "1024"))->sizes, ElementsAre(1024, 2048, 3072));
  EXPECT_THAT(ParseBench(Sizes("8", "100", "1", "10"))->sizes, ElementsAre(8, 80));
  EXPECT_THAT(ParseBench(Sizes("0x8", "64")).status().message(), HasSubstr("-b"));
  EXPECT_EQ(ParseBench(Sizes("100", "200"))->sizes.size(), 11u);
  EXPECT_THAT(ParseBench(Sizes("5", "5"))->sizes, ElementsAre(5));
}

struct Wrong {
  BenchWords words;
  std::string message;
};

TEST(ParseBench, NamesTheWrongOption) {
  std::vector<Wrong> all;
  const auto add = [&](std::string BenchWords::*option, std::string value, std::string message) {
    BenchWords words;
    words.*option = std::move(value);
    all.push_back({words, std::move(message)});
  };
  add(&BenchWords::min_bytes, "65M", "expected 1 <= -b <= -e");
  add(&BenchWords::min_bytes, "0", "expected 1 <= -b <= -e");
  add(&BenchWords::step_bytes, "0", "-i: expected an integer in [1,");
  add(&BenchWords::step_factor, "1", "-f: expected an integer in [2,");
  add(&BenchWords::iterations, "0", "-n: expected an integer in [1,");
  add(&BenchWords::iterations, "-5", "-n: expected an integer");
  add(&BenchWords::warm_ups, "ten", "-w: expected an integer");
  add(&BenchWords::reduce_op, "avg", "-o: expected one of sum prod max min; got \"avg\"");
  add(&BenchWords::dtype, "int128", "-d: expected one of int8 int16");
  add(&BenchWords::api, "acl", "--api: expected one of hccl communicator; got \"acl\"");
  add(&BenchWords::check, "3", "-c: expected an integer in [0, 2]");
  add(&BenchWords::npus, "0", "-p: expected an integer in [1,");
  add(&BenchWords::baseline, "maybe", "--baseline: expected true or false");
  for (const Wrong& wrong : all) {
    const Result<BenchOptions> options = ParseBench(wrong.words);
    ASSERT_FALSE(options.ok()) << wrong.message;
    EXPECT_THAT(std::string(options.status().message()), HasSubstr(wrong.message));
  }
}

TEST(ParseBench, RefusesEndlessLists) {
  EXPECT_THAT(ParseBench(Sizes("1", "64M", "1")).status().message(), HasSubstr("100000 sizes"));
}

}  // namespace
}  // namespace npumesh
