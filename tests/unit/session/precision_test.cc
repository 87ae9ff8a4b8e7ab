// precision_mode in sessions. Two oracles: plain arithmetic that rounds where docs/precision.md
// says, and the same graph with its Cast nodes written down by hand. Results have equal bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <random>

#include "graph/config/validation.h"
#include "graph/ops/builtin_ops.h"
#include "graph/ops/core/define.h"
#include "graph/session/session_config.h"
#include "graph/session/system.h"
#include "runtime/base/float16.h"
#include "tests/unit/op_values.h"
#include "tests/unit/session/session_fixture.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr DataType kF = DataType::kFloat, kH = DataType::kFloat16, kB = DataType::kBfloat16;

// ---- plain arithmetic ----

double RoundTo(DataType dtype, double x) {
  const auto single = static_cast<float>(x);
  if (dtype == kH) return static_cast<float>(Float16(single));
  return dtype == kB ? static_cast<float>(Bfloat16(single)) : single;
}

struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<double> v;
  double& at(int64_t r, int64_t c) { return v[static_cast<size_t>(r * columns + c)]; }
  double at(int64_t r, int64_t c) const { return v[static_cast<size_t>(r * columns + c)]; }
};

Matrix In(DataType dtype, Matrix m) {
  for (double& x : m.v) x = RoundTo(dtype, x);
  return m;
}

// The sums are exact in float32 in any order, because the numbers are small integers.
Matrix Product(DataType dtype, const Matrix& a, const Matrix& b) {
  Matrix y = {a.rows, b.columns, std::vector<double>(static_cast<size_t>(a.rows * b.columns))};
  for (int64_t r = 0; r < a.rows; ++r) {
    for (int64_t c = 0; c < b.columns; ++c) {
      for (int64_t k = 0; k < a.columns; ++k) {
        y.at(r, c) += RoundTo(dtype, a.at(r, k)) * RoundTo(dtype, b.at(k, c));
      }
    }
  }
  return In(dtype, std::move(y));
}

Matrix Sum(DataType dtype, const Matrix& a, const Matrix& b) {
  Matrix y = a;
  for (size_t i = 0; i < y.v.size(); ++i) {
    y.v[i] = RoundTo(dtype, RoundTo(dtype, a.v[i]) + RoundTo(dtype, b.v[i]));
  }
  return y;
}

// Of rows whose largest elements stand out by more than 104, or are equal: exp has no say.
Matrix Softmax(DataType dtype, const Matrix& x) {
  const Matrix from = In(dtype, x);
  Matrix y = from;
  for (int64_t r = 0; r < x.rows; ++r) {
    double most = -INFINITY, count = 0;
    for (int64_t c = 0; c < x.columns; ++c) most = std::max(most, from.at(r, c));
    for (int64_t c = 0; c < x.columns; ++c) count += from.at(r, c) == most ? 1 : 0;
    for (int64_t c = 0; c < x.columns; ++c) {
      const double gap = most - from.at(r, c);
      EXPECT_TRUE(gap == 0 || gap > 104) << gap;
      y.at(r, c) = RoundTo(dtype, gap == 0 ? 1 / count : 0);
    }
  }
  return y;
}

// Integers of 12 bits, which float16 cannot hold.
Matrix Wide(int64_t rows, int64_t columns, uint32_t seed) {
  Matrix m = {rows, columns, std::vector<double>(static_cast<size_t>(rows * columns))};
  std::mt19937 random(seed);
  for (double& x : m.v) x = 2049 + 2 * static_cast<int>(random() % 1024);
  return m;
}

Matrix Small(int64_t rows, int64_t columns, uint32_t seed) {
  Matrix m = {rows, columns, std::vector<double>(static_cast<size_t>(rows * columns))};
  std::mt19937 random(seed);
  for (double& x : m.v) x = static_cast<int>(random() % 5) - 2;
  return m;
}

Tensor TensorOf(const Matrix& m, DataType dtype = kF) {
  return FromDoubles(dtype, {m.rows, m.columns}, m.v);
}

// ---- sessions ----

SessionOptions Mode(const std::string& mode) {
  SessionOptions options;
  options.precision.mode = mode;
  return options;
}

// Runs the model once; `see` may look into the session.
std::vector<Tensor> Outputs(const Model& model, const std::vector<Tensor>& inputs,
                            const SessionOptions& options,
                            const std::function<void(Session&)>& see = nullptr) {
  std::vector<Tensor> outputs;
  const Status status = OnRanks(1, [&](World& world, DeviceMemory& memory) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                             Session::Create(world, memory, model, options));
    NPUMESH_RETURN_IF_ERROR(session->model().graph.Verify());
    NPUMESH_ASSIGN_OR_RETURN(outputs, session->Run(inputs));
    if (see) see(*session);
    return Status();
  })[0];
  EXPECT_TRUE(status.ok()) << status.ToString();
  return outputs;
}

void ExpectSameBits(const std::vector<Tensor>& seen, const std::vector<Tensor>& expected) {
  ASSERT_EQ(seen.size(), expected.size());
  for (size_t i = 0; i < seen.size(); ++i) {
    ASSERT_EQ(seen[i].type(), expected[i].type()) << i;
    EXPECT_EQ(std::memcmp(seen[i].data(), expected[i].data(), seen[i].bytes()), 0) << i;
  }
}

std::vector<std::string> CastsOf(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes()) {
    if (node.type == "Cast") names.push_back(node.name);
  }
  return names;
}

std::string NoteOf(const Graph& graph, std::string_view node) {
  return graph.node(graph.Find(node)).StringAttr("_precision", "");
}

Value Cast(GraphBuilder& g, Value x, DataType to) {
  return g.Op("Cast", {{"x", x}}, {{"dst_type", AttrValue::Int(static_cast<int64_t>(to))}});
}

class Precision : public testing::Test {
 protected:
  Model Built() {
    Result<Model> model = g_.Build();
    EXPECT_TRUE(model.ok()) << model.status().ToString();
    g_ = GraphBuilder();
    return *std::move(model);
  }
  Value MatMul(Value a, Value b, std::string name = "") {
    return g_.Op("MatMul", {{"x1", a}, {"x2", b}}, {}, std::move(name));
  }

  GraphBuilder g_;
};

// ---- a head of attention, by plain arithmetic ----

// In which types its five operators compute.
struct HeadTypes {
  DataType product, sum, softmax;
};

class Head : public testing::TestWithParam<std::pair<const char*, HeadTypes>> {};

TEST_P(Head, RoundsWhereTheRuleSays) {
  const auto& [mode, types] = GetParam();
  const Matrix x = Wide(4, 4, 1), w = Small(4, 5, 2), b = Wide(4, 5, 3), v = Wide(5, 3, 4);
  GraphBuilder g;
  const Value data = g.Data("x", {kF, {4, 4}});
  const Value logits =
      g.Op("Add",
           {{"x1", g.Op("MatMul", {{"x1", data}, {"x2", g.Const("w", TensorOf(w))}}, {}, "scores")},
            {"x2", g.Data("b", {kF, {4, 5}})}},
           {}, "bias");
  const Value weights = g.Op("SoftmaxV2", {{"x", logits}}, {}, "softmax");
  g.Output({logits,
            g.Op("MatMul", {{"x1", weights}, {"x2", g.Data("v", {kF, {5, 3}})}}, {}, "context")});
  const Model model = g.Build().value();

  const Matrix sums = Sum(types.sum, Product(types.product, x, w), b);
  const Matrix context = Product(types.product, Softmax(types.softmax, sums), v);
  for (SessionOptions options : {SessionOptions(), DefaultSessionOptions()}) {
    options.precision.mode = mode;
    ExpectSameBits(Outputs(model, {TensorOf(x), TensorOf(b), TensorOf(v)}, options),
                   {TensorOf(sums), TensorOf(context)});
  }
}

INSTANTIATE_TEST_SUITE_P(
    Modes, Head,
    testing::Values(std::pair("must_keep_origin_dtype", HeadTypes{kF, kF, kF}),
                    std::pair("allow_fp32_to_fp16", HeadTypes{kH, kF, kF}),
                    std::pair("force_fp16", HeadTypes{kH, kH, kH}),
                    std::pair("force_fp32", HeadTypes{kF, kF, kF}),
                    std::pair("cube_fp16in_fp32out", HeadTypes{kF, kF, kF}),
                    std::pair("allow_mix_precision", HeadTypes{kH, kH, kF}),
                    std::pair("allow_mix_precision_fp16", HeadTypes{kH, kH, kF}),
                    std::pair("allow_mix_precision_bf16", HeadTypes{kB, kB, kF}),
                    std::pair("allow_fp32_to_bf16", HeadTypes{kF, kF, kF})));

TEST_F(Precision, NoModeKeepsTheTypesOfTheGraph) {
  const Value x = g_.Data("x", {kF, {2, 2}});
  g_.Output({MatMul(x, x)});
  const Model model = Built();
  const Matrix a = Wide(2, 2, 5);
  Outputs(model, {TensorOf(a)}, SessionOptions(),
          [](Session& session) { EXPECT_THAT(CastsOf(session.model().graph), ElementsAre()); });
}

// ---- where casts stand ----

TEST_F(Precision, ValuesStayLowBetweenOperatorsThatAreLow) {
  const Value x = g_.Data("x", {kF, {2, 2}});
  g_.Output({MatMul(g_.Op("Relu", {{"x", MatMul(x, x, "a")}}, {}, "r"), x, "b")});
  const Model model = Built();
  const Matrix a = Wide(2, 2, 5);
  const auto casts = [&](const char* mode) {
    std::vector<std::string> names;
    Outputs(model, {TensorOf(Small(2, 2, 6))}, Mode(mode),
            [&](Session& session) { names = CastsOf(session.model().graph); });
    return names;
  };
  EXPECT_THAT(casts("force_fp16"), ElementsAre("a/cast_x1", "b/cast_y"));
  EXPECT_THAT(casts("allow_mix_precision"), ElementsAre("a/cast_x1", "b/cast_y"));
  EXPECT_THAT(casts("allow_fp32_to_fp16"),
              ElementsAre("a/cast_x1", "a/cast_y", "b/cast_x1", "b/cast_y"));
}

TEST_F(Precision, NotesSayWhatWasChosenAndWhy) {
  const Value x = g_.Data("x", {kF, {2, 2}});
  const Value a = g_.Op("Relu", {{"x", MatMul(x, x, "a")}}, {}, "r");
  g_.Output({g_.Op("Exp", {{"x", a}}, {}, "e")});
  const Model model = Built();
  Outputs(model, {TensorOf(Small(2, 2, 6))}, Mode("allow_mix_precision"), [](Session& session) {
    const Graph& graph = session.model().graph;
    EXPECT_EQ(NoteOf(graph, "a"), "float16 for float32: allow_mix_precision, white");
    EXPECT_EQ(NoteOf(graph, "r"), "float16 for float32: allow_mix_precision, grey after \"a\"");
    EXPECT_EQ(NoteOf(graph, "e"), "stays float32: allow_mix_precision, black");
    EXPECT_EQ(NoteOf(graph, "a/cast_x1"), "\"a\" computes in float16");
    EXPECT_EQ(NoteOf(graph, "r/cast_y"), "\"r\" computes in float16");
  });
}

TEST_F(Precision, GreyOperatorsFollowTheOneBeforeThem) {
  const Value x = g_.Data("x", {kF, {2, 2}});
  const Value first = g_.Op("Relu", {{"x", x}}, {}, "no_product_before");
  const Value product = MatMul(first, x, "p");
  const Value second = g_.Op("Add", {{"x1", first}, {"x2", product}}, {}, "after_relu");
  const Value third = g_.Op("Add", {{"x1", product}, {"x2", first}}, {}, "after_product");
  g_.Output({second, third});
  const Model model = Built();
  Outputs(model, {TensorOf(Small(2, 2, 6))}, Mode("allow_mix_precision"), [](Session& session) {
    const Graph& graph = session.model().graph;
    EXPECT_EQ(NoteOf(graph, "no_product_before"), "");
    EXPECT_EQ(NoteOf(graph, "after_relu"), "");
    EXPECT_THAT(NoteOf(graph, "after_product"), HasSubstr("grey after \"p\""));
  });
}

// ---- what the option never touches ----

TEST_F(Precision, IntegersFlagsAndIndicesKeepTheirTypes) {
  const Value x = g_.Data("x", {kF, {3}});
  const Value i = g_.Data("i", {DataType::kInt32, {3}});
  const Value more = g_.Op("Greater", {{"x1", x}, {"x2", g_.Op("Neg", {{"x", x}})}});
  const Value most = g_.Op("ArgMaxV2", {{"x", x}, {"dimension", g_.Int(0)}});
  g_.Output({more, most, g_.Op("Add", {{"x1", i}, {"x2", i}}),
             g_.Op("Cast", {{"x", x}}, {{"dst_type", AttrValue::Int(3)}})});
  const Model model = Built();
  // float16 has no number between 2048 and 2050, and the first of equals is the maximum.
  const Tensor data = FromDoubles(kF, {3}, {2048, 2049, -1});
  const Tensor ints = FromDoubles(DataType::kInt32, {3}, {70000, 2049, 5});
  ExpectSameBits(
      Outputs(model, {data, ints}, Mode("force_fp16")),
      {FromDoubles(DataType::kBool, {3}, {1, 1, 0}), FromDoubles(DataType::kInt64, {}, {0}),
       FromDoubles(DataType::kInt32, {3}, {140000, 4098, 10}),
       FromDoubles(DataType::kInt32, {3}, {2048, 2049, -1})});
}

TEST_F(Precision, AFloatThatDecidesAShapeKeepsIts24Bits) {
  const Value n = g_.Data("n", {DataType::kInt32, {1}});
  const Value scale = g_.Const("scale", FromDoubles(kF, {1}, {1}));
  const Value as_float = g_.Op("Cast", {{"x", n}}, {{"dst_type", AttrValue::Int(0)}});
  const Value scaled = g_.Op("Mul", {{"x1", as_float}, {"x2", scale}});
  const Value dims = g_.Op("Cast", {{"x", scaled}}, {{"dst_type", AttrValue::Int(3)}});
  const Value one = g_.Const("one", FromDoubles(kF, {}, {1}));
  g_.Output({g_.Op("Fill", {{"dims", dims}, {"value", one}})});
  const Model model = Built();
  const std::vector<Tensor> outputs =
      Outputs(model, {FromDoubles(DataType::kInt32, {1}, {2049})}, Mode("force_fp16"));
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].type(), (TensorType{kF, {2049}}));
}

TEST_F(Precision, RefDataAndItsWritersKeepTheirType) {
  const Value ref = g_.RefData("ref", {kF, {2, 2}});
  const Value view = g_.Op("Reshape", {{"x", ref}, {"shape", g_.Ints({2, 2})}}, {}, "view");
  const Value product = MatMul(ref, ref, "p");
  const Value written = g_.Op("Assign", {{"ref", view}, {"value", product}}, {}, "write");
  g_.Output({written, product});
  const Model model = Built();
  const Matrix m = {2, 2, {2049, 1, 0, 2}};
  const Matrix squared = Product(kH, m, m);
  Outputs(model, {TensorOf(m)}, Mode("force_fp16"), [&](Session& session) {
    const Tensor held = session.ReadRef(0).value();
    EXPECT_EQ(held.type(), (TensorType{kF, {2, 2}}));
    EXPECT_EQ(ToDoubles(held), In(kH, squared).v);
    EXPECT_THAT(CastsOf(session.model().graph), ElementsAre("p/cast_x1", "p/cast_y"));
  });
}

TEST_F(Precision, AnOptimizerKeepsItsState) {
  const Value var = g_.RefData("var", {kF, {2, 2}});
  const Value x = g_.Data("x", {kF, {2, 2}});
  const Value rate = g_.Const("rate", FromDoubles(kF, {}, {1}));
  const Value step = g_.Op("ApplyGradientDescent",
                           {{"var", var}, {"alpha", rate}, {"delta", MatMul(x, x, "grad")}});
  g_.Output({step});
  const Model model = Built();
  const Matrix state = {2, 2, {4097, 8193, 16385, 32769}}, one = {2, 2, {1, 0, 0, 1}};
  const std::vector<Tensor> outputs =
      Outputs(model, {TensorOf(state), TensorOf(one)}, Mode("force_fp16"));
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_THAT(ToDoubles(outputs[0]), ElementsAre(4096, 8193, 16385, 32768));
}

TEST_F(Precision, ScalesOfQuantisationKeepTheirType) {
  const Value x = g_.Data("x", {kF, {4}});
  const Value scale = g_.Const("scale", FromDoubles(kF, {4}, {1.0009765625, 1, 1, 1}));
  g_.Output({g_.Op("AscendQuantV2", {{"x", x}, {"scale", scale}}, {}, "q")});
  const Model model = Built();
  Outputs(model, {FromDoubles(kF, {4}, {1, 2, 3, 4})}, Mode("force_fp16"),
          [](Session& session) { EXPECT_THAT(CastsOf(session.model().graph), ElementsAre()); });
}

TEST_F(Precision, CollectivesTravelInTheDeclaredType) {
  const Value x = g_.Data("x", {kF, {2, 2}});
  const Value sum = g_.Op(
      "HcomAllReduce", {{"x", MatMul(x, x, "p")}},
      {{"reduction", AttrValue::String("sum")}, {"group", AttrValue::String("hccl_world_group")}},
      "reduce");
  g_.Output({g_.Op("Relu", {{"x", sum}}, {}, "r")});
  const Model model = Built();
  const std::vector<Status> statuses =
      OnRanks(2, [&](World& world, DeviceMemory& memory) -> Status {
        NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                                 Session::Create(world, memory, model, Mode("force_fp16")));
        const Matrix m = {2, 2, {30000, 0, 0, 1}};
        const Matrix i = {2, 2, {1, 0, 0, 1}};
        // 30000 * 1 would pass float16 in the sum of two ranks, and does in the Relu.
        NPUMESH_ASSIGN_OR_RETURN(
            const std::vector<Tensor> outputs,
            session->Run({TensorOf(world.rank() == 0 ? Matrix{2, 2, {181, 0, 0, 1}} : i)}));
        EXPECT_THAT(ToDoubles(outputs[0]), ElementsAre(32768, 0, 0, 2));  // 181^2 + 1 = 32762
        EXPECT_THAT(CastsOf(session->model().graph),
                    ElementsAre("p/cast_x1", "p/cast_y", "r/cast_x", "r/cast_y"));
        return Status();
      });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.ToString();
}

// ---- types that an operator refuses ----

// y = x + 1 in float16, and nothing else.
const OpRegistry& WithHalfOnly() {
  static const OpRegistry registry = [] {
    OpRegistry made = BuiltinOps();
    made.Add({.schema = Signature("HalfOnly(x) -> y"),
              .infer = [](OpContext& op) -> Status {
                if (op.in(0).dtype != kH) {
                  return Error(Code::kUnsupported, "{}: float16 only", op.Who());
                }
                return SetOutput(op, 0, kH, op.in(0).shape);
              },
              .make_kernel = [](const OpContext& op) -> Result<std::unique_ptr<Kernel>> {
                const int64_t count = op.in(0).shape.elements();
                return MakeKernel([count](const KernelArgs& args) {
                  for (int64_t i = 0; i < count; ++i) {
                    const float x(static_cast<const Float16*>(args.in[0])[i]);
                    static_cast<Float16*>(args.out[0])[i] = Float16(x + 1);
                  }
                  return Status();
                });
              }});
    return made;
  }();
  return registry;
}

TEST_F(Precision, AllowFp32ToFp16TakesWhatAnOperatorHas) {
  const Value x = g_.Data("x", {kF, {-1}});
  const Value y = g_.Op("HalfOnly", {{"x", x}}, {}, "half");
  g_.Output({g_.Op("Add", {{"x1", y}, {"x2", x}}, {}, "sum")});
  const Model model = Built();
  SessionOptions options = Mode("allow_fp32_to_fp16");
  options.registry = &WithHalfOnly();
  const std::vector<Tensor> outputs =
      Outputs(model, {FromDoubles(kF, {2}, {2049, 7})}, options, [](Session& session) {
        EXPECT_EQ(NoteOf(session.model().graph, "half"),
                  "float16 for float32: allow_fp32_to_fp16; it takes no float32");
        EXPECT_EQ(NoteOf(session.model().graph, "sum"), "");
      });
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_THAT(ToDoubles(outputs[0]), ElementsAre(2048 + 2049, 15));
  options = Mode("must_keep_origin_dtype");
  options.registry = &WithHalfOnly();
  const Status refused = OnRanks(1, [&](World& world, DeviceMemory& memory) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                             Session::Create(world, memory, model, options));
    return session->Run({FromDoubles(kF, {1}, {1})}).status();
  })[0];
  EXPECT_THAT(std::string(refused.message()), HasSubstr("float16 only"));
}

TEST_F(Precision, OperatorsWithoutTheTypeStay) {
  const Value x = g_.Data("x", {kH, {2}});
  g_.Output({g_.Op("HalfOnly", {{"x", x}}, {}, "half")});
  const Model model = Built();
  SessionOptions options = Mode("force_fp32");
  options.registry = &WithHalfOnly();
  Outputs(model, {FromDoubles(kH, {2}, {1, 7})}, options, [](Session& session) {
    EXPECT_EQ(NoteOf(session.model().graph, "half"),
              "stays float16: force_fp32; it takes no float32");
    EXPECT_THAT(CastsOf(session.model().graph), ElementsAre());
  });
}

TEST_F(Precision, ForceFp32ComputesAFloat16GraphInFloat32) {
  const Value x = g_.Data("x", {kH, {3}});
  const Value twice = g_.Op("Add", {{"x1", x}, {"x2", x}});
  g_.Output({g_.Op("Sub", {{"x1", twice}, {"x2", x}})});
  const Model model = Built();
  // 65504 + 65504 is no float16.
  ExpectSameBits(Outputs(model, {FromDoubles(kH, {3}, {65504, 1, -65504})}, Mode("force_fp32")),
                 {FromDoubles(kH, {3}, {65504, 1, -65504})});
}

// ---- convolutions and attention, against graphs with casts written down ----

TEST_F(Precision, ConvolutionsAreProducts) {
  const auto conv = [this](Value x, Value f) {
    return g_.Op("Conv2D", {{"x", x}, {"filter", f}},
                 {{"strides", AttrValue::Ints({1, 1, 1, 1})},
                  {"pads", AttrValue::Ints({0, 0, 0, 0})},
                  {"data_format", AttrValue::String("NCHW")}});
  };
  const TensorType x_type = {kF, {1, 2, 4, 4}}, f_type = {kF, {3, 2, 2, 2}};
  Value x = g_.Data("x", x_type);
  Value f = g_.Data("f", f_type);
  g_.Output({conv(x, f)});
  const Model given = Built();
  x = g_.Data("x", x_type);
  f = g_.Data("f", f_type);
  const Value low = conv(Cast(g_, x, kH), Cast(g_, f, kH));
  g_.Output({Cast(g_, low, kF)});
  const Model by_hand = Built();
  const std::vector<Tensor> inputs = {FromDoubles(kF, x_type.shape, Wide(4, 8, 1).v),
                                      FromDoubles(kF, f_type.shape, Small(4, 6, 2).v)};
  ExpectSameBits(Outputs(given, inputs, Mode("allow_fp32_to_fp16")),
                 Outputs(by_hand, inputs, SessionOptions()));
  ExpectSameBits(Outputs(given, inputs, Mode("allow_mix_precision")),
                 Outputs(by_hand, inputs, SessionOptions()));
}

TEST_F(Precision, AttentionIsAProduct) {
  const auto attention = [this](Value q, Value k, Value v) {
    return g_.Op("FlashAttentionScore", {{"query", q}, {"key", k}, {"value", v}},
                 {{"head_num", AttrValue::Int(1)}, {"input_layout", AttrValue::String("BSH")}},
                 "attention", 4);
  };
  const TensorType type = {kF, {1, 3, 4}};
  Value q = g_.Data("q", type), k = g_.Data("k", type), v = g_.Data("v", type);
  const Value given = attention(q, k, v);
  g_.Output({g_.Port(given, 3), given});
  const Model model = Built();
  q = g_.Data("q", type);
  k = g_.Data("k", type);
  v = g_.Data("v", type);
  const Value low = attention(Cast(g_, q, kH), Cast(g_, k, kH), Cast(g_, v, kH));
  g_.Output({Cast(g_, g_.Port(low, 3), kF), low});
  const Model by_hand = Built();
  std::vector<Tensor> inputs;
  for (uint32_t i = 0; i < 3; ++i) {
    std::vector<double> values = Wide(3, 4, i).v;
    for (double& x : values) x = x / 2048 - 1.5;
    inputs.push_back(FromDoubles(kF, type.shape, values));
  }
  ExpectSameBits(Outputs(model, inputs, Mode("allow_mix_precision")),
                 Outputs(by_hand, inputs, SessionOptions()));
}

// ---- subgraphs ----

Graph Finished(GraphBuilder& g) {
  Result<Model> model = g.Build();
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  return model->graph;
}

// x of any type, so that only the caller tells it.
Graph SquareOf(const std::string& name) {
  GraphBuilder g(name);
  const Value x = g.Data("x", {DataType::kUndefined, Shape::UnknownRank()});
  g.Output({g.Op("MatMul", {{"x1", x}, {"x2", x}}, {}, "square")});
  return Finished(g);
}

Graph SameAs(const std::string& name) {
  GraphBuilder g(name);
  g.Output({g.Op("Identity", {{"x", g.Data("x", {DataType::kUndefined, Shape::UnknownRank()})}})});
  return Finished(g);
}

TEST_F(Precision, BranchesComputeLowAndGiveTheDeclaredType) {
  const Value cond = g_.Data("cond", {DataType::kBool, {}});
  const Value x = g_.Data("x", {kF, {2, 2}});
  const Value branch =
      g_.Op("If", {{"cond", cond}, {"input0", MatMul(x, x, "in_front")}}, {}, "if");
  g_.Output({MatMul(branch, x, "behind")});
  Model model = Built();
  model.graph.node(model.graph.Find("if")).subgraphs = {"then", "else"};
  model.subgraphs = {SquareOf("then"), SameAs("else")};
  const Matrix m = {2, 2, {49, 1, 2, 3}};
  const Tensor yes = FromDoubles(DataType::kBool, {}, {1}),
               no = FromDoubles(DataType::kBool, {}, {0});
  const Matrix first = Product(kH, m, m);
  const auto see = [](Session& session) {
    EXPECT_THAT(NoteOf(session.model().graph, "behind"), HasSubstr("float16 for float32"));
    EXPECT_THAT(NoteOf(*session.model().FindSubgraph("then"), "square"),
                HasSubstr("float16 for float32"));
  };
  ExpectSameBits(Outputs(model, {yes, TensorOf(m)}, Mode("force_fp16"), see),
                 {TensorOf(Product(kH, Product(kH, first, first), m))});
  ExpectSameBits(Outputs(model, {no, TensorOf(m)}, Mode("force_fp16"), see),
                 {TensorOf(Product(kH, first, m))});
}

TEST_F(Precision, VariablesOfALoopKeepTheirType) {
  const Value count = g_.Data("count", {DataType::kInt32, {}});
  const Value x = g_.Data("x", {kF, {2, 2}});
  const Value loop = g_.Op("While", {{"input0", count}, {"input1", x}}, {}, "loop", 2);
  g_.Output({g_.Port(loop, 1)});
  Model model = Built();
  GraphBuilder cond("cond");
  cond.Output({cond.Op("Identity", {{"x", cond.Data("left", {DataType::kInt32, {}})}})});
  GraphBuilder body("body");
  const Value left = body.Data("left", {DataType::kInt32, {}});
  const Value now = body.Data("now", {kF, Shape::UnknownRank()});
  const Value minus = body.Const("minus", FromDoubles(DataType::kInt32, {}, {-1}));
  body.Output({body.Op("Add", {{"x1", left}, {"x2", minus}}),
               body.Op("MatMul", {{"x1", now}, {"x2", now}}, {}, "square")});
  model.graph.node(model.graph.Find("loop")).subgraphs = {"cond", "body"};
  const Graph cond_graph = Finished(cond);
  model.subgraphs = {cond_graph, Finished(body)};
  const Matrix m = {2, 2, {3, 1, 2, 5}};
  Matrix expected = m;
  for (int i = 0; i < 3; ++i) expected = Product(kB, expected, expected);
  ExpectSameBits(Outputs(model, {FromDoubles(DataType::kInt32, {}, {3}), TensorOf(m)},
                         Mode("allow_mix_precision_bf16"),
                         [](Session& session) {
                           EXPECT_THAT(NoteOf(*session.model().FindSubgraph("body"), "square"),
                                       HasSubstr("bfloat16 for float32"));
                         }),
                 {TensorOf(expected)});
}

// ---- modify_mixlist ----

TEST_F(Precision, ListsMoveOperatorsBetweenClasses) {
  const Value x = g_.Data("x", {kF, {2, 2}});
  const Value e = g_.Op("Exp", {{"x", MatMul(x, x, "p")}}, {}, "e");
  g_.Output({e, g_.Op("Relu", {{"x", x}}, {}, "r")});
  const Model model = Built();
  const auto notes = [&](MixList lists) {
    SessionOptions options = Mode("allow_mix_precision");
    options.precision.lists = std::move(lists);
    std::string text;
    Outputs(model, {TensorOf(Small(2, 2, 1))}, options, [&](Session& session) {
      for (const char* node : {"p", "e", "r"}) text += NoteOf(session.model().graph, node) + "\n";
    });
    return text;
  };
  const std::string low = "float16 for float32: allow_mix_precision, ";
  EXPECT_EQ(notes({}), low + "white\nstays float32: allow_mix_precision, black\n\n");
  EXPECT_EQ(notes({.black = {.remove = {"Exp"}}}), low + "white\n" + low + "grey after \"p\"\n\n");
  EXPECT_EQ(notes({.black = {.add = {"MatMul"}}}),
            "stays float32: allow_mix_precision, black\nstays float32: allow_mix_precision, "
            "black\n\n");
  EXPECT_EQ(notes({.white = {.add = {"Relu"}, .remove = {"MatMul"}}}),
            "\nstays float32: allow_mix_precision, black\n" + low + "white\n");
  // Neither removes a type from a list that it is not on.
  EXPECT_EQ(notes({.black = {.remove = {"MatMul"}}, .white = {.remove = {"Exp"}}}),
            low + "white\nstays float32: allow_mix_precision, black\n\n");
}

// ---- random chains, against a second writing of the rule ----

enum class Kind { kWhite, kBlack, kGrey };

// Builds one chain twice: as it is, and with the casts that the rule asks for.
class Chain {
 public:
  Chain(uint32_t seed, std::string mode, DataType declared)
      : random_(seed), mode_(std::move(mode)), declared_(declared) {}

  void Build() {
    for (const char* name : {"a", "b"}) {
      values_.push_back({plain_.Data(name, {declared_, {4, 4}}), {}, -1, declared_});
      values_.back().by_type[declared_] = by_hand_.Data(name, {declared_, {4, 4}});
    }
    for (int i = 0; i < 12; ++i) AddOne();
    std::vector<Value> ends, ends_by_hand;
    for (size_t i = values_.size() - 4; i < values_.size(); ++i) {
      ends.push_back(values_[i].plain);
      ends_by_hand.push_back(Read(i, declared_));
    }
    plain_.Output(ends);
    by_hand_.Output(ends_by_hand);
  }
  GraphBuilder& plain() { return plain_; }
  GraphBuilder& by_hand() { return by_hand_; }

 private:
  struct Made {
    Value plain;
    std::map<DataType, Value> by_type;  // in the other graph
    int low = -1;                       // 1: its operator is lowered; 0: it is not; -1: no operator
    DataType natural = kF;
  };

  static bool Mixed(const std::string& mode) { return mode.starts_with("allow_mix"); }

  DataType TypeFor(Kind kind, bool follows) const {
    if (mode_ == "force_fp16") return kH;
    if (mode_ == "force_fp32") return kF;
    if (mode_ == "allow_fp32_to_fp16")
      return kind == Kind::kWhite && declared_ == kF ? kH : declared_;
    if (!Mixed(mode_)) return declared_;
    const bool lowered = kind == Kind::kWhite || (kind == Kind::kGrey && follows);
    if (!lowered) return declared_;
    if (mode_ == "allow_mix_precision_bf16") return declared_ == kF ? kB : declared_;
    return kH;
  }

  Value Read(size_t i, DataType dtype) {
    Made& made = values_[i];
    const auto found = made.by_type.find(dtype);
    if (found != made.by_type.end()) return found->second;
    const Value source = made.by_type.at(made.natural);
    return made.by_type[dtype] = Cast(by_hand_, source, dtype);
  }

  void AddOne() {
    static const struct {
      const char* type;
      Kind kind;
      std::vector<const char*> ports;
    } kOps[] = {{"MatMul", Kind::kWhite, {"x1", "x2"}}, {"BatchMatMul", Kind::kWhite, {"x1", "x2"}},
                {"SoftmaxV2", Kind::kBlack, {"x"}},     {"Exp", Kind::kBlack, {"x"}},
                {"Add", Kind::kGrey, {"x1", "x2"}},     {"Mul", Kind::kGrey, {"x1", "x2"}},
                {"Tanh", Kind::kGrey, {"x"}},           {"Relu", Kind::kGrey, {"x"}},
                {"Identity", Kind::kGrey, {"x"}},       {"Sub", Kind::kGrey, {"x1", "x2"}}};
    const auto& op = kOps[random_() % std::size(kOps)];
    std::vector<size_t> from;
    int before = -1;
    for (size_t i = 0; i < op.ports.size(); ++i) {
      // Near the end, so that chains are long.
      from.push_back(values_.size() - 1 - random_() % std::min<size_t>(values_.size(), 4));
      if (before < 0) before = values_[from.back()].low;
    }
    const DataType dtype = TypeFor(op.kind, before == 1);
    std::vector<GraphBuilder::Input> plain, by_hand;
    for (size_t i = 0; i < from.size(); ++i) {
      plain.emplace_back(op.ports[i], values_[from[i]].plain);
      by_hand.emplace_back(op.ports[i], Read(from[i], dtype));
    }
    Made made;
    made.plain = plain_.Op(op.type, plain);
    made.natural = dtype;
    made.by_type[dtype] = by_hand_.Op(op.type, by_hand);
    made.low = op.kind == Kind::kWhite || (op.kind == Kind::kGrey && before == 1) ? 1 : 0;
    values_.push_back(std::move(made));
  }

  std::mt19937 random_;
  const std::string mode_;
  const DataType declared_;
  GraphBuilder plain_, by_hand_;
  std::vector<Made> values_;
};

class Chains : public testing::TestWithParam<const char*> {};

TEST_P(Chains, GiveTheBitsOfAGraphWithItsCastsWrittenDown) {
  for (const DataType declared : {kF, kH, kB}) {
    for (uint32_t seed = 0; seed < 12; ++seed) {
      SCOPED_TRACE(fmt::format("{} {} {}", GetParam(), Name(declared), seed));
      Chain chain(seed, GetParam(), declared);
      chain.Build();
      const Model plain = chain.plain().Build().value(), by_hand = chain.by_hand().Build().value();
      std::vector<Tensor> inputs;
      for (uint32_t i = 0; i < 2; ++i) {
        std::vector<double> values = Wide(4, 4, seed + i).v;
        for (double& x : values) x = x / 3000 - 1;
        inputs.push_back(FromDoubles(declared, {4, 4}, values));
      }
      SessionOptions fused = DefaultSessionOptions();
      fused.precision.mode = GetParam();
      const std::vector<Tensor> expected = Outputs(by_hand, inputs, SessionOptions());
      ExpectSameBits(Outputs(plain, inputs, Mode(GetParam())), expected);
      if (seed % 4 == 0) ExpectSameBits(Outputs(plain, inputs, fused), expected);
      if (testing::Test::HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, Chains,
                         testing::Values("must_keep_origin_dtype", "allow_fp32_to_fp16",
                                         "force_fp16", "force_fp32", "allow_mix_precision",
                                         "allow_mix_precision_fp16", "allow_mix_precision_bf16",
                                         "allow_fp32_to_bf16"));

// ---- from the options of a session ----

TEST_F(Precision, OptionsOfASessionChooseTheRule) {
  SystemOptions options;
  PrecisionOptions none = PrecisionOf(options).value();
  EXPECT_FALSE(none.wanted());
  options.graph_run_mode = 0;
  EXPECT_EQ(PrecisionOf(options)->mode, "");
  EXPECT_TRUE(PrecisionOf(options)->inference);
  options.precision_mode = "must_keep_origin_dtype";
  EXPECT_EQ(PrecisionOf(options)->mode, "must_keep_origin_dtype");
  options.op_select_implmode = "high_performance";
  options.optypelist_for_implmode = "Pooling";
  SessionOptions session;
  ASSERT_TRUE(ApplySystemOptions(options, session).ok());
  EXPECT_EQ(session.precision.implementation, "high_performance");
}

TEST_F(Precision, ASystemComputesAsItsOptionsSay) {
  const Value x = g_.Data("x", {kF, {2, 2}});
  g_.Output({MatMul(x, x, "p")});
  const Model model = Built();
  const Matrix m = Wide(2, 2, 9);
  for (const auto& [mode, dtype] : {std::pair("allow_fp32_to_fp16", kH), std::pair("", kF)}) {
    const std::vector<Status> statuses = RunRanks(1, SmallEnv(), [&](World& world) -> Status {
      SystemOptions options;
      if (*mode != 0) options.precision_mode = mode;
      System system;
      NPUMESH_RETURN_IF_ERROR(system.Initialize(world, options));
      NPUMESH_ASSIGN_OR_RETURN(const NpuBackend backend, GetNpuBackend());
      {
        NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                                 system.Compile(model, backend));
        NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, session->Run({TensorOf(m)}));
        ExpectSameBits(outputs, {TensorOf(Product(dtype, m, m))});
      }
      return system.Shutdown();
    });
    EXPECT_TRUE(statuses[0].ok()) << statuses[0].ToString();
  }
}

TEST_F(Precision, InferenceFreezesParametersAndTrainingDoesNot) {
  const Value x = g_.Data("x", {kF, {2, 2}});
  const Value w = g_.Data("w", {kF, {2, 2}});
  const Value state = g_.RefData("state", {kF, {2, 2}});
  g_.Output({MatMul(x, w), g_.Op("Assign", {{"ref", state}, {"value", x}})});
  const Model model = Built();
  const Tensor one = TensorOf(Matrix{2, 2, {1, 0, 0, 1}}),
               two = TensorOf(Matrix{2, 2, {2, 0, 0, 2}});
  for (const bool inference : {true, false}) {
    SessionOptions options;
    options.parameters = {1, 2};  // the second one is overwritten, and stays
    options.precision.inference = inference;
    Outputs(model, {one, one, one}, options, [&](Session& session) {
      EXPECT_EQ(session.Run({one, two, one}).ok(), !inference);
    });
  }
}

TEST_F(Precision, AModeWithoutARuleIsRefused) {
  g_.Output({g_.Op("Relu", {{"x", g_.Data("x", {kF, {1}})}})});
  const Model model = Built();
  const Status refused = OnRanks(1, [&](World& world, DeviceMemory& memory) -> Status {
    return Session::Create(world, memory, model, Mode("fp12")).status();
  })[0];
  EXPECT_THAT(std::string(refused.message()), HasSubstr("\"fp12\" is no mode"));
}

// ---- op_select_implmode ----

// float16 sums in the order of the window, each rounded.
double HalfAverage(const std::vector<double>& window) {
  double sum = 0;
  for (const double x : window) sum = RoundTo(kH, sum + x);
  return RoundTo(kH, sum / static_cast<double>(window.size()));
}

TEST_F(Precision, PoolingSumsAsTheImplementationSays) {
  const std::vector<double> image = {2048, 1, 1, 1, 1, 1, 1, 1, 1};
  g_.Output({g_.Op("GlobalAveragePool", {{"x", g_.Data("x", {kH, {1, 1, 3, 3}})}}, {}, "pool")});
  const Model model = Built();
  const auto average = [&](const char* implementation) {
    SessionOptions options;
    options.precision.implementation = implementation;
    const auto outputs = Outputs(model, {FromDoubles(kH, {1, 1, 3, 3}, image)}, options);
    return outputs.empty() ? NAN : ToDoubles(outputs[0])[0];
  };
  const double precise = RoundTo(kH, 2056.0 / 9), fast = HalfAverage(image);
  ASSERT_NE(precise, fast);
  EXPECT_EQ(average(""), precise);
  EXPECT_EQ(average("high_precision"), precise);
  EXPECT_EQ(average("high_performance"), fast);
}

}  // namespace
}  // namespace npumesh
