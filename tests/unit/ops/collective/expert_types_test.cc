// Types of the operators that send tokens to experts and back, dimensions unknown too.
#include "tests/unit/op_types.h"
#include "tests/unit/ops/collective/group_types.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr DataType kInt = DataType::kInt32;

// Rank 1 of 4 ranks with 8 experts.
Attrs Experts(const Attrs& more = {}) {
  Attrs attrs = {{"group_ep", AttrValue::String("g")},
                 {"ep_world_size", AttrValue::Int(4)},
                 {"ep_rank_id", AttrValue::Int(1)},
                 {"moe_expert_num", AttrValue::Int(8)}};
  attrs.insert(attrs.end(), more.begin(), more.end());
  return attrs;
}

Texts Dispatch(const std::string& version, Shape x, Shape ids, const Attrs& more = {}) {
  return TypesIn(4, 1, "MoeDistributeDispatch" + version,
                 {{"x", kF16, std::move(x)}, {"expert_ids", kInt, std::move(ids)}}, Experts(more));
}

TEST(DispatchTypes, RowsAreWhatCanArrive) {
  const Texts types = Dispatch("V2", {5, 16}, {5, 3});
  EXPECT_THAT(types, ElementsAre("float16[40,16]", "float32[40]", "int32[5120]", "int64[2]",
                                 "int32[8]", "int32[1]", "float32[40]"));
  EXPECT_EQ(Dispatch("", {5, 16}, {5, 3})[2], "int32[15]");
  EXPECT_EQ(Dispatch("V2", {5, 16}, {5, 3}, {{"quant_mode", AttrValue::Int(2)}})[0], "int8[40,16]");
  EXPECT_EQ(Dispatch("V2", {5, 16}, {5, 3}, {{"global_bs", AttrValue::Int(28)}})[0],
            "float16[56,16]");
}

TEST(DispatchTypes, UnknownDimensions) {
  EXPECT_THAT(Dispatch("V2", {-1, 16}, {-1, 3}),
              ElementsAre("float16[-1,16]", "float32[-1]", "int32[-1]", "int64[2]", "int32[8]",
                          "int32[1]", "float32[-1]"));
  EXPECT_EQ(Dispatch("V2", {-1, -1}, {5, 3})[0], "float16[40,-1]");
  EXPECT_EQ(Dispatch("V2", Shape::UnknownRank(), {5, 3})[3], "int64[-1]");
}

TEST(DispatchTypes, Refusals) {
  EXPECT_THAT(Dispatch("", {5, 16}, {4, 3})[0], HasSubstr("expert_ids int32[4,3]; expected"));
  EXPECT_THAT(Dispatch("V2", {5, 16}, {5, 3}, {{"quant_mode", AttrValue::Int(4)}})[0],
              HasSubstr("quant_mode 4 is not supported"));
  EXPECT_THAT(Dispatch("", {5, 16}, {5, 3}, {{"tp_world_size", AttrValue::Int(2)}})[0],
              HasSubstr("tp_world_size 2"));
  EXPECT_THAT(Dispatch("V2", {5, 16}, {5, 3}, {{"shared_expert_rank_num", AttrValue::Int(1)}})[0],
              HasSubstr("8 experts and 1 shared ones on 1 shared ranks"));
}

// Inputs of a combine; the hand-over has the form of its version.
std::vector<In> Results(const std::string& version, int64_t rows, Shape ids) {
  const int64_t tokens = ids[0];
  const bool first = version.empty();
  std::vector<In> inputs = {{"expand_x", kF16, {rows, 16}},
                            {"expert_ids", kInt, ids},
                            {"ep_send_counts", kInt, {8}},
                            {"expert_scales", DataType::kFloat, ids}};
  inputs.push_back({first ? "expand_idx" : "assist_info_for_combine",
                    kInt,
                    {first ? tokens * ids[1] : rows * 128}});
  if (version == "AddRmsNorm") {
    inputs.push_back({"residual_x", kF16, {tokens, 1, 16}});
    inputs.push_back({"gamma", kF16, {16}});
  }
  return inputs;
}

Texts Combine(const std::string& version, const std::vector<In>& inputs, const Attrs& more = {}) {
  return TypesIn(4, 1, "MoeDistributeCombine" + version, inputs, Experts(more));
}

TEST(CombineTypes, ARowForEachToken) {
  for (const std::string version : {"", "V2"}) {
    EXPECT_THAT(Combine(version, Results(version, 40, {5, 3})), ElementsAre("float16[5,16]"));
  }
  EXPECT_THAT(Combine("AddRmsNorm", Results("AddRmsNorm", 40, {5, 3})),
              ElementsAre("float16[5,1,16]", "float32[5,1,1]", "float16[5,1,16]"));
}

TEST(CombineTypes, UnknownDimensions) {
  std::vector<In> inputs = Results("", 40, {5, 3});
  inputs[0].shape = {-1, -1};
  EXPECT_THAT(Combine("", inputs), ElementsAre("float16[5,-1]"));
  inputs[0].shape = Shape::UnknownRank();
  EXPECT_THAT(Combine("", inputs), ElementsAre("float16[-1,-1]"));
  inputs = Results("AddRmsNorm", 40, {5, 3});
  inputs[5].shape = {-1, 1, -1};
  EXPECT_EQ(Combine("AddRmsNorm", inputs)[1], "float32[5,1,1]");
}

TEST(CombineTypes, Refusals) {
  std::vector<In> inputs = Results("AddRmsNorm", 40, {5, 3});
  inputs[5].shape = {5, 1, 15};
  EXPECT_THAT(Combine("AddRmsNorm", inputs)[0],
              HasSubstr("residual_x is float16[5,1,15] and gamma float16[16]; expected float16 "
                        "[5,1,16] and [16]"));
  inputs = Results("", 40, {5, 3});
  inputs[4].shape = {14};
  EXPECT_THAT(Combine("", inputs)[0], HasSubstr("expand_idx int32[14], ep_send_counts int32[8]"));
  EXPECT_THAT(Combine("V2", Results("V2", 40, {5, 3}), {{"comm_quant_mode", AttrValue::Int(2)}})[0],
              HasSubstr("comm_quant_mode 2 is not supported"));
  EXPECT_THAT(Combine("V2", Results("V2", 40, {5, 3}), {{"copy_expert_num", AttrValue::Int(1)}})[0],
              HasSubstr("1 copy and 0 constant experts need ori_x"));
}

}  // namespace
}  // namespace npumesh
