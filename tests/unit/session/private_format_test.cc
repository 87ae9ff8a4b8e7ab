// Private formats in whole graphs: results do not depend on them.
#include <gmock/gmock.h>

#include "graph/ir/graph_builder.h"
#include "graph/passes/rewrite/private_formats.h"
#include "runtime/base/float16.h"
#include "tests/unit/op_test.h"
#include "tests/unit/session/session_fixture.h"

namespace npumesh {
namespace {

using testing::HasSubstr;

Tensor Ramp(DataType dtype, Shape shape, int64_t modulus) {
  Tensor tensor = Tensor::Allocate({dtype, std::move(shape)});
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const int64_t value = i * 7 % modulus - modulus / 2;
    const auto at = static_cast<size_t>(i);
    if (dtype == DataType::kFloat) {
      reinterpret_cast<float*>(tensor.mutable_data())[at] = static_cast<float>(value) / 3;
    } else if (dtype == DataType::kFloat16) {
      reinterpret_cast<Float16*>(tensor.mutable_data())[at] =
          Float16(static_cast<float>(value) / 3);
    } else {
      reinterpret_cast<int8_t*>(tensor.mutable_data())[at] = static_cast<int8_t>(value);
    }
  }
  return tensor;
}

Result<std::vector<Tensor>> RunModel(Model model, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> outputs;
  const std::vector<Status> statuses = OnRanks(1, [&](World& world, DeviceMemory& memory) {
    Result<std::unique_ptr<Session>> session = Session::Create(world, memory, std::move(model));
    if (!session.ok()) return session.status();
    Result<std::vector<Tensor>> run = (*session)->Run(inputs);
    if (run.ok()) outputs = *std::move(run);
    return run.status();
  });
  if (!statuses[0].ok()) return statuses[0];
  return outputs;
}

// Products of every kind of weight, a lookup in the same weight, and a convolution.
Model WithWeights() {
  GraphBuilder g("weights");
  const Value x = g.Data("x", {DataType::kFloat, {5, 37}});
  const Value w = g.Const("w", Ramp(DataType::kFloat, {37, 21}, 101));
  const Value y = g.Op("MatMulV2", {{"x1", x}, {"x2", w}});
  const Value row =
      g.Op("GatherV2", {{"x", w}, {"indices", g.Ints({3, 0}, "rows")}, {"axis", g.Int(0)}});
  const Value v = g.Const("v", Ramp(DataType::kFloat, {2, 19, 21}, 67));
  const Value z =
      g.Op("BatchMatMulV2", {{"x1", y}, {"x2", v}}, {{"adj_x2", AttrValue::Bool(true)}});
  const Value q = g.Data("q", {DataType::kInt8, {3, 40}});
  const Value p =
      g.Op("MatMulV2", {{"x1", q}, {"x2", g.Const("i", Ramp(DataType::kInt8, {40, 50}, 11))}});
  const Value image = g.Data("image", {DataType::kFloat16, {1, 3, 6, 6}});
  const Value conv =
      g.Op("Conv2D",
           {{"x", image}, {"filter", g.Const("f", Ramp(DataType::kFloat16, {4, 3, 3, 3}, 13))}},
           {{"strides", AttrValue::Ints({1, 1, 1, 1})},
            {"pads", AttrValue::Ints({0, 0, 0, 0})},
            {"data_format", AttrValue::String("NCHW")}});
  g.Output({y, row, z, p, conv});
  return g.Build().value();
}

std::vector<Tensor> Inputs() {
  return {Ramp(DataType::kFloat, {5, 37}, 29), Ramp(DataType::kInt8, {3, 40}, 23),
          Ramp(DataType::kFloat16, {1, 3, 6, 6}, 17)};
}

TEST(PrivateFormats, InternalWeightsGiveTheSameBits) {
  const auto expected = RunModel(WithWeights(), Inputs());
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  Model model = WithWeights();
  const Result<int> changed = UseInternalFormatWeight(model);
  ASSERT_TRUE(changed.ok()) << changed.status().ToString();
  EXPECT_EQ(*changed, 4);
  const auto seen = RunModel(std::move(model), Inputs());
  ASSERT_TRUE(seen.ok()) << seen.status().ToString();
  ASSERT_EQ(seen->size(), expected->size());
  for (size_t i = 0; i < seen->size(); ++i) EXPECT_TRUE(SameBytes((*seen)[i], (*expected)[i])) << i;
}

TEST(PrivateFormats, InternalWeightsHaveTheirFormatInAllDescriptors) {
  Model model = WithWeights();
  ASSERT_TRUE(UseInternalFormatWeight(model).ok());
  const Node& w = model.graph.node(model.graph.Find("w"));
  EXPECT_EQ(w.type, "Const");
  const TensorDesc& value = *w.FindAttr("value")->get<TensorAttr>()->desc;
  const Node& product = model.graph.node(model.graph.Find("MatMulV2"));
  for (const TensorDesc* desc :
       {&value, &w.output_descs[0],
        &product.input_descs[static_cast<size_t>(product.FindInput("x2"))]}) {
    EXPECT_EQ(desc->layout, "FRACTAL_NZ");
    EXPECT_EQ(desc->shape, Shape({2, 3, 16, 16}));
    EXPECT_THAT(desc->attrs.at("origin_shape").get<ListAttr>()->i, testing::ElementsAre(37, 21));
  }
  EXPECT_EQ(model.graph.node(model.graph.Find("f")).output_descs[0].layout, "FRACTAL_Z");
}

TEST(PrivateFormats, AgainChangesNothing) {
  Model model = WithWeights();
  ASSERT_TRUE(UseInternalFormatWeight(model).ok());
  const Result<int> again = UseInternalFormatWeight(model);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, 0);
  EXPECT_TRUE(RunModel(std::move(model), Inputs()).ok());
}

TensorDesc NzDesc(std::string name, DataType dtype, Shape storage, const Shape& origin) {
  TensorDesc desc;
  desc.name = std::move(name);
  desc.dtype = dtype;
  desc.shape = std::move(storage);
  desc.layout = "FRACTAL_NZ";
  desc.attrs.emplace("origin_shape", AttrValue::Ints(origin.dims()));
  return desc;
}

// As GE compiles y = x w: both operands and the product in FRACTAL_NZ, conversions at the ends.
TEST(PrivateFormats, ACompiledGraphRunsAsThePlainOne) {
  const Tensor x = Ramp(DataType::kFloat16, {20, 40}, 19);
  const Tensor w = Ramp(DataType::kFloat16, {40, 24}, 23);
  const auto build = [&](bool compiled) {
    GraphBuilder g("product");
    const auto to_nz = [&](Value value, const std::string& from, const std::string& to) {
      return compiled ? g.Op("TransData", {{"src", value}},
                             {{"src_format", AttrValue::String(from)},
                              {"dst_format", AttrValue::String(to)}})
                      : value;
    };
    const Value xv = to_nz(g.Data("x", x.type()), "ND", "FRACTAL_NZ");
    const Value wv = to_nz(g.Const("w", w), "ND", "FRACTAL_NZ");
    const Value y = g.Op("MatMulV2", {{"x1", xv}, {"x2", wv}});
    g.Output({to_nz(y, "FRACTAL_NZ", "ND")});
    Model model = g.Build().value();
    if (compiled) {
      Node& product = model.graph.node(model.graph.Find("MatMulV2"));
      product.input_descs[0] = NzDesc("x1", x.dtype(), {3, 2, 16, 16}, {20, 40});
      product.input_descs[1] = NzDesc("x2", x.dtype(), {2, 3, 16, 16}, {40, 24});
      product.output_descs[0] = NzDesc("y", x.dtype(), {2, 2, 16, 16}, {20, 24});
    }
    return model;
  };
  const auto plain = RunModel(build(false), {x});
  const auto compiled = RunModel(build(true), {x});
  ASSERT_TRUE(plain.ok()) << plain.status().ToString();
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  EXPECT_TRUE(SameBytes((*plain)[0], (*compiled)[0]));
}

// The caller brings the storage of x, and gets that of its sum back by a TransData.
TEST(PrivateFormats, InputsAndOutputsKeepTheirFormat) {
  GraphBuilder g("ends");
  const Value x = g.Data("x", {DataType::kFloat, {1, 1, 16, 16}});
  const Value y = g.Op("Add", {{"x1", x}, {"x2", x}});
  g.Output({g.Op("TransData", {{"src", y}},
                 {{"src_format", AttrValue::String("ND")},
                  {"dst_format", AttrValue::String("FRACTAL_NZ")}}),
            y});
  Model model = g.Build().value();
  model.graph.node(model.graph.Find("x")).output_descs[0] =
      NzDesc("y", DataType::kFloat, {1, 1, 16, 16}, {2, 3});
  Tensor stored = Tensor::Allocate({DataType::kFloat, {1, 1, 16, 16}});
  auto* elements = reinterpret_cast<float*>(stored.mutable_data());
  for (int h = 0; h < 2; ++h) {
    for (int w = 0; w < 3; ++w) elements[h * 16 + w] = static_cast<float>(h * 3 + w + 1);
  }
  const auto out = RunModel(std::move(model), {stored});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ((*out)[0].shape(), Shape({1, 1, 16, 16}));
  EXPECT_EQ((*out)[0].as<float>()[17], 10);
  EXPECT_EQ((*out)[1].shape(), Shape({2, 3}));
  EXPECT_THAT((*out)[1].as<float>(), testing::ElementsAre(2, 4, 6, 8, 10, 12));
}

TEST(PrivateFormats, AWeightThatDoesNotFitItsDescriptorIsAnError) {
  Model model = WithWeights();
  ASSERT_TRUE(UseInternalFormatWeight(model).ok());
  Node& w = model.graph.node(model.graph.Find("w"));
  w.attrs.at("value").get<TensorAttr>()->desc->attrs["origin_shape"] = AttrValue::Ints({37, 60});
  const auto out = RunModel(std::move(model), Inputs());
  EXPECT_EQ(out.status().code(), Code::kCorrupt);
  EXPECT_THAT(out.status().message(), HasSubstr("\"w\""));
  EXPECT_THAT(out.status().message(), HasSubstr("[2,3,16,16] in its format, expected [4,3,16,16]"));
}

}  // namespace
}  // namespace npumesh
