// Types of products and reductions that are fused with an exchange, dimensions unknown too, and
// what they refuse.
#include "tests/unit/op_types.h"
#include "tests/unit/ops/collective/group_types.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr DataType kSmall = DataType::kInt8;

Attrs With(const Attrs& more, int64_t ranks, const std::string& size = "world_size") {
  Attrs attrs = {{"group", AttrValue::String("g")}, {size, AttrValue::Int(ranks)}};
  attrs.insert(attrs.end(), more.begin(), more.end());
  return attrs;
}

// Rank 1 of 2.
Texts Types(const std::string& type, const std::vector<In>& inputs, const Attrs& attrs) {
  return TypesIn(2, 1, type, inputs, attrs);
}

Texts Product(const std::string& type, Shape x1, Shape x2, const Attrs& more = {}) {
  return Types(type, {{"x1", kF16, std::move(x1)}, {"x2", kF16, std::move(x2)}}, With(more, 2));
}

TEST(AllToAllTypes, RowsForColumns) {
  EXPECT_THAT(Product("AlltoAllMatmul", {6, 4}, {8, 5}),
              ElementsAre("float16[3,5]", "float16[3,8]"));
  EXPECT_THAT(
      Product("AlltoAllMatmul", {6, 4}, {8, 5}, {{"alltoall_out_flag", AttrValue::Bool(false)}}),
      ElementsAre("float16[3,5]", "float16[0]"));
  EXPECT_THAT(Product("MatmulAlltoAll", {6, 4}, {4, 10}), ElementsAre("float16[12,5]"));
  EXPECT_THAT(Product("MatmulAlltoAll", {6, 4}, {4, 10}, {{"y_dtype", AttrValue::Int(0)}}),
              ElementsAre("float32[12,5]"));
}

TEST(AllToAllTypes, UnknownDimensions) {
  EXPECT_THAT(Product("AlltoAllMatmul", {-1, 4}, {8, 5}),
              ElementsAre("float16[-1,5]", "float16[-1,8]"));
  EXPECT_THAT(Product("MatmulAlltoAll", {-1, 4}, {4, 10}), ElementsAre("float16[-1,5]"));
  EXPECT_THAT(Product("MatmulAlltoAll", {6, 4}, {4, -1}), ElementsAre("float16[12,-1]"));
  EXPECT_THAT(Product("MatmulAlltoAll", Shape::UnknownRank(), {4, 10}),
              ElementsAre("float16[-1,-1]"));
}

TEST(AllToAllTypes, Refusals) {
  EXPECT_THAT(Product("AlltoAllMatmul", {5, 4}, {8, 5})[0], HasSubstr("5 rows that the 2 ranks"));
  EXPECT_THAT(Product("AlltoAllMatmul", {6, 4}, {4, 5})[0],
              HasSubstr("x1 float16[6,4] of 2 ranks and x2 float16[4,5] cannot be multiplied"));
  EXPECT_THAT(Product("MatmulAlltoAll", {6, 4}, {4, 9})[0],
              HasSubstr("9 columns that the 2 ranks"));
  EXPECT_THAT(Product("MatmulAlltoAll", {6, 4}, {4, 10}, {{"x1_quant_mode", AttrValue::Int(7)}})[0],
              HasSubstr("x1_quant_mode 7 is not supported"));
  EXPECT_THAT(
      Product("AlltoAllMatmul", {6, 4}, {8, 5}, {{"all2all_axes", AttrValue::Ints({-1, -2})}})[0],
      HasSubstr("all2all_axes [-1,-2]; expected no and [-2,-1]"));
  EXPECT_THAT(Types("AlltoAllMatmul", {{"x1", kF16, {6, 4}}, {"x2", kF16, {8, 5}}}, With({}, 3))[0],
              HasSubstr("world_size 3, but group \"g\" has 2 ranks"));
}

// 2 ranks with 2 experts each.
Attrs Experts(const std::vector<int64_t>& sent, const std::vector<int64_t>& received,
              const Attrs& more = {}) {
  Attrs attrs = {{"send_counts", AttrValue::Ints(sent)},
                 {"recv_counts", AttrValue::Ints(received)}};
  attrs.insert(attrs.end(), more.begin(), more.end());
  return With(attrs, 2, "ep_world_size");
}

std::vector<In> ExpertInputs(int64_t rows) {
  return {{"gmm_x", kF16, {rows, 4}}, {"gmm_weight", kF16, {2, 4, 5}}};
}

TEST(ExpertMatmulTypes, RowsAreThoseThatArrive) {
  EXPECT_THAT(Types("AlltoAllvGroupedMatMul", ExpertInputs(6), Experts({1, 2, 3, 0}, {4, 0, 0, 3})),
              ElementsAre("float16[7,5]", "float16[0]", "float16[0]"));
  std::vector<In> inputs = ExpertInputs(6);
  inputs.push_back({"mm_x", kF16, {3, 4}});
  inputs.push_back({"mm_weight", kF16, {4, 6}});
  EXPECT_THAT(
      Types("AlltoAllvGroupedMatMul", inputs,
            Experts({1, 2, 3, 0}, {4, 0, 0, 3}, {{"permute_out_flag", AttrValue::Bool(true)}})),
      ElementsAre("float16[7,5]", "float16[3,6]", "float16[7,4]"));
  EXPECT_THAT(Types("GroupedMatMulAlltoAllv", inputs, Experts({1, 2, 3, 0}, {4, 0, 0, 3})),
              ElementsAre("float16[7,5]", "float16[3,6]"));
}

TEST(ExpertMatmulTypes, UnknownDimensions) {
  std::vector<In> inputs = ExpertInputs(-1);
  inputs[1].shape = {2, -1, 5};
  EXPECT_THAT(Types("GroupedMatMulAlltoAllv", inputs, Experts({1, 2, 3, 0}, {4, 0, 0, 3})),
              ElementsAre("float16[7,5]", "float16[0]"));
  inputs[1].shape = {2, 4, -1};
  EXPECT_THAT(Types("GroupedMatMulAlltoAllv", inputs, Experts({1, 2, 3, 0}, {4, 0, 0, 3})),
              ElementsAre("float16[7,-1]", "float16[0]"));
}

TEST(ExpertMatmulTypes, Refusals) {
  const auto message = [](const std::vector<In>& inputs, const Attrs& attrs) {
    return Types("AlltoAllvGroupedMatMul", inputs, attrs)[0];
  };
  EXPECT_THAT(message(ExpertInputs(6), Experts({1, 2, 3, 1}, {4, 0, 0, 3})),
              HasSubstr("4 send_counts of together 7 rows"));
  EXPECT_THAT(message(ExpertInputs(6), Experts({1, 2, 3, 0}, {4, 3})),
              HasSubstr("and 2 recv_counts"));
  EXPECT_THAT(message(ExpertInputs(6), Experts({1, 2, 4, -1}, {4, 0, 0, 3})),
              HasSubstr("none below 0"));
  std::vector<In> half = ExpertInputs(6);
  half.push_back({"mm_x", kF16, {3, 4}});
  EXPECT_THAT(message(half, Experts({1, 2, 3, 0}, {4, 0, 0, 3})),
              HasSubstr("of mm_x and mm_weight only one is fed"));
  std::vector<In> counts = ExpertInputs(6);
  counts.push_back({"send_counts_tensor", DataType::kInt64, {4}});
  EXPECT_THAT(message(counts, Experts({1, 2, 3, 0}, {4, 0, 0, 3})),
              HasSubstr("\"send_counts_tensor\" is fed, which is not supported"));
  const std::vector<In> scaled = {{"gmm_x", kSmall, {6, 4}},
                                  {"gmm_weight", kSmall, {2, 4, 5}},
                                  {"gmm_x_scale", DataType::kFloat, {1}},
                                  {"gmm_weight_scale", DataType::kFloat, {1}}};
  EXPECT_THAT(Types("AlltoAllvQuantGroupedMatMul", scaled,
                    Experts({1, 2, 3, 0}, {4, 0, 0, 3},
                            {{"gmm_x_quant_mode", AttrValue::Int(6)},
                             {"gmm_weight_quant_mode", AttrValue::Int(6)},
                             {"y_dtype", AttrValue::Int(27)}}))[0],
              HasSubstr("gmm_x_quant_mode 6 is not supported, expected 1"));
}

std::vector<In> SecondInputs(Shape row_scale, Shape column_scale) {
  return {{"x1", kSmall, {6, 4}},
          {"x2", kSmall, {4, 5}},
          {"x1_scale", DataType::kFloat, std::move(row_scale)},
          {"x2_scale", DataType::kFloat, std::move(column_scale)}};
}

TEST(SecondVersionTypes, FollowTheAttribute) {
  const auto attrs = [](int64_t dtype) {
    return With({{"y_dtype", AttrValue::Int(dtype)}}, 2, "rank_size");
  };
  EXPECT_THAT(Types("AllGatherMatmulV2", SecondInputs({6}, {5}), attrs(27)),
              ElementsAre("bfloat16[12,5]", "int8[12,4]", "float32[0]"));
  EXPECT_THAT(Types("MatmulReduceScatterV2", SecondInputs({1}, {1}), attrs(0)),
              ElementsAre("float32[3,5]", "float32[0]"));
  EXPECT_THAT(Types("AllGatherMatmulV2", SecondInputs({6}, {-1}), attrs(27))[0], "bfloat16[12,5]");
}

TEST(SecondVersionTypes, Refusals) {
  const Attrs attrs = With({}, 2, "rank_size");
  EXPECT_THAT(Types("AllGatherMatmulV2", SecondInputs({1, 2}, {5}), attrs)[0],
              HasSubstr("scales of blocks are not supported"));
  EXPECT_THAT(Types("MatmulReduceScatterV2", SecondInputs({6}, {5}),
                    With({{"is_amax_out", AttrValue::Bool(true)}}, 2, "rank_size"))[0],
              HasSubstr("is_amax_out is not supported"));
  EXPECT_THAT(Types("MatmulReduceScatterV2", SecondInputs({6}, {5}),
                    With({{"is_trans_a", AttrValue::Bool(true)}}, 2, "rank_size"))[0],
              HasSubstr("cannot be multiplied"));
  EXPECT_THAT(Types("AllGatherMatmulV2",
                    {{"x1", kSmall, {6, 4}}, {"x2", DataType::kHifloat8, {4, 5}}}, attrs)[0],
              HasSubstr("x1 is int8 and x2 hifloat8; expected two of int8"));
  std::vector<In> floats = SecondInputs({6}, {5});
  floats[0].dtype = floats[1].dtype = kF16;
  EXPECT_THAT(Types("AllGatherMatmulV2", floats, attrs)[0],
              HasSubstr("\"x1_scale\" is fed, which is not supported"));
}

Texts Reduce(const std::string& type, DataType x, Shape shape, DataType scale, Shape scales,
             const Attrs& more = {}) {
  return Types(type, {{"x", x, std::move(shape)}, {"scales", scale, std::move(scales)}},
               With(more, 2));
}

TEST(QuantReduceTypes, ShapesAndRefusals) {
  constexpr DataType kFloat = DataType::kFloat;
  EXPECT_THAT(Reduce("QuantAllReduce", kSmall, {2, 3, 256}, kFloat, {2, 3, 2}),
              ElementsAre("bfloat16[2,3,256]"));
  EXPECT_THAT(Reduce("QuantReduceScatter", DataType::kFloat8E5M2, {2, 3, 256},
                     DataType::kFloat8E8M0, {2, 3, 4, 2}, {{"output_dtype", AttrValue::Int(1)}}),
              ElementsAre("float16[3,256]"));
  EXPECT_THAT(Reduce("QuantReduceScatter", kSmall, {-1, 256}, kFloat, {-1, 2}),
              ElementsAre("bfloat16[-1,256]"));
  EXPECT_THAT(Reduce("QuantReduceScatter", kSmall, {3, 256}, kFloat, {3, 2})[0],
              HasSubstr("and rows that the ranks can divide"));
  EXPECT_THAT(Reduce("QuantAllReduce", kSmall, {4, 250}, kFloat, {4, 2})[0],
              HasSubstr("H a multiple of 128"));
  EXPECT_THAT(Reduce("QuantAllReduce", kSmall, {4, 256}, DataType::kFloat8E8M0, {4, 4, 2})[0],
              HasSubstr("float8 with float8_e8m0 ones"));
  EXPECT_THAT(Reduce("QuantAllReduce", kSmall, {4, 256}, kFloat, {4, 2},
                     {{"reduce_op", AttrValue::String("max")}})[0],
              HasSubstr("\"max\", expected sum"));
}

TEST(NormTypes, AsTheResidual) {
  const std::vector<In> inputs = {{"x1", kF16, {2, 3, 4}},
                                  {"x2", kF16, {4, 5}},
                                  {"residual", kF16, {2, 3, 5}},
                                  {"gamma", kF16, {5}}};
  const Attrs group = {{"group", AttrValue::String("g")}};
  EXPECT_THAT(Types("MatmulAllReduceAddRmsNorm", inputs, group),
              ElementsAre("float16[2,3,5]", "float16[2,3,5]"));
  std::vector<In> other = inputs;
  other[2].shape = {2, -1, 5};
  EXPECT_THAT(Types("MatmulAllReduceAddRmsNorm", other, group)[0], "float16[2,3,5]");
  other[2].shape = {2, 3, 4};
  EXPECT_THAT(Types("MatmulAllReduceAddRmsNorm", other, group)[0],
              HasSubstr("residual is float16[2,3,4] and gamma float16[5] for a product of 6 x 5"));
  EXPECT_THAT(Types("DistributeBarrier", {{"x_ref", kF16, {-1, 3}}}, With({}, 2)),
              ElementsAre("float16[-1,3]"));
  EXPECT_THAT(Types("DistributeBarrier", {{"x_ref", kF16, {2, 3}}}, With({}, 4))[0],
              HasSubstr("world_size 4, but group \"g\" has 2 ranks"));
}

}  // namespace
}  // namespace npumesh
