// Operators whose lists on the host are as long as attributes or values say ask before they make
// them: graphs of a kilobyte that would take all memory are errors.
#include <sys/resource.h>

#include "graph/ops/builtin_ops.h"
#include "graph/ops/core/infer_checks.h"
#include "tests/unit/op_values.h"

namespace npumesh {
namespace {

// The process may have 8 GiB, so one operator gets lists of 2; on every machine.
class LongLists : public testing::Test {
 protected:
  LongLists() { getrlimit(RLIMIT_AS, &before_); }
  ~LongLists() override { setrlimit(RLIMIT_AS, &before_); }
  void SetUp() override {
#if defined(NPUMESH_SANITIZED)
    GTEST_SKIP() << "a sanitizer needs more address space";
#endif
    rlimit limit = before_;
    limit.rlim_cur = rlim_t{8} << 30;
    setrlimit(RLIMIT_AS, &limit);
  }

 private:
  rlimit before_{};
};

constexpr int64_t kLong = (int64_t{1} << 31) - 2;

Tensor Int64s(const std::vector<int64_t>& values) {
  return MakeInts(values);
}
Tensor Scalar(int64_t value) {
  return Make<int64_t>(DataType::kInt64, {}, {value});
}

TEST_F(LongLists, AreAskedForFirst) {
  const Tensor byte = Tensor::Allocate({DataType::kInt8, {1}});
  const Tensor image = Tensor::Allocate({DataType::kFloat, {1, 1, 1, 1}});
  const Tensor one = Tensor::Allocate({DataType::kFloat, {1}});
  const auto ints = [](const char* name, std::vector<int64_t> values) {
    return std::pair<std::string, AttrValue>(name, AttrValue::Ints(std::move(values)));
  };
  const auto number = [](const char* name, int64_t value) {
    return std::pair<std::string, AttrValue>(name, AttrValue::Int(value));
  };
  const OpCall calls[] = {
      {.type = "Pad", .inputs = {{"x", byte}, {"paddings", Int64s({kLong, 0})}}},
      {.type = "PadV3",
       .inputs = {{"x", byte}, {"paddings", Int64s({0, kLong})}},
       .attrs = {{"mode", AttrValue::String("edge")}}},
      {.type = "RepeatInterleave", .inputs = {{"x", byte}, {"repeats", Int64s({kLong})}}},
      {.type = "ResizeNearestNeighborV2", .inputs = {{"x", image}, {"size", Int64s({kLong, 1})}}},
      {.type = "LinSpace", .inputs = {{"start", one}, {"stop", one}, {"num", Scalar(kLong)}}},
      {.type = "MultinomialWithReplacement",
       .inputs = {{"x", one}, {"seed", Scalar(1)}, {"offset", Scalar(0)}},
       .attrs = {number("numsamples", kLong), {"replacement", AttrValue::Bool(true)}}},
      {.type = "EmbeddingDenseGrad",
       .inputs = {{"grad", Tensor::Allocate({DataType::kFloat, {1, 1}})}, {"indices", Int64s({0})}},
       .attrs = {number("num_weights", kLong)}},
      {.type = "AdaptiveAvgPool2d",
       .inputs = {{"x", image}},
       .attrs = {ints("output_size", {kLong, 1})}},
      {.type = "MaxPoolV3",
       .inputs = {{"x", image}},
       .attrs = {ints("ksize", {1, 1, 1, 1}),
                 ints("strides", {1, 1, 1, 1}),
                 {"padding_mode", AttrValue::String("CALCULATED")},
                 ints("pads", {kLong, kLong, 0, 0})}},
  };
  for (const OpCall& call : calls) {
    SCOPED_TRACE(call.type);
    ExpectFails(BuiltinOps(), call, Code::kOutOfMemory, {"lists of", "bytes"});
  }
}

TEST_F(LongLists, ThatFitAreGiven) {
  const Tensor byte = Tensor::Allocate({DataType::kInt8, {1}});
  const OpCall call = {.type = "Pad",
                       .inputs = {{"x", byte}, {"paddings", Int64s({int64_t{2} << 20, 0})}}};
  EXPECT_EQ(RunOne(BuiltinOps(), call).bytes(), (uint64_t{2} << 20) + 1);
}

}  // namespace
}  // namespace npumesh
