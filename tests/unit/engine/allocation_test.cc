// What whole graphs allocate while they run, counted by a malloc of the test program.
//
// oneDNN 2 keeps the arguments of a primitive in a separate map for the time of each execution:
// small allocations that its interface does not let a caller avoid. Its sgemm, with which it
// computes some convolutions, takes buffers for each call. What is checked is that there is nothing
// else.
#include <gmock/gmock.h>

#include <cstdlib>
#include <new>

#include "graph/ops/builtin_ops.h"
#include "tests/unit/allocation_count.h"
#include "tests/unit/engine/engine_fixture.h"
#include "tests/unit/onednn_isa.h"

namespace npumesh {
namespace {

constexpr int kRuns = 5;
// Allocations of one execution of a primitive with up to five arguments.
constexpr uint64_t kPerPrimitive = 12;
// Buffers of one call of sgemm, for an operand that it packs.
constexpr uint64_t kPerSgemm = 1;

class AllocationTest : public EngineTest {
 protected:
  static constexpr int64_t kWidth = 64, kHeads = 4, kInner = 96;

  struct Count {
    uint64_t all = 0;
    uint64_t buffers = 0;
    uint64_t device_bytes = 0;
  };

  Value Weight(const Shape& shape, DataType dtype = DataType::kFloat) {
    return g_.Const("w" + std::to_string(++weights_), Tensor::Allocate({dtype, shape}));
  }
  Value Two(const std::string& type, Value a, Value b) {
    return g_.Op(type, {{"x1", a}, {"x2", b}});
  }
  Value One(const std::string& type, Value x) { return g_.Op(type, {{"x", x}}); }
  Value Norm(Value x, int64_t width, DataType dtype) {
    return g_.Op("RmsNorm", {{"x", x}, {"gamma", Weight({width}, dtype)}}, {}, {}, 2);
  }
  Value Reshape(Value x, const std::vector<int64_t>& shape) {
    return g_.Op("Reshape", {{"x", x}, {"shape", g_.Ints(shape)}});
  }

  // The heads of [rows, kWidth] as [1, kHeads, rows, kWidth / kHeads].
  Value HeadsOf(Value x, int64_t rows) {
    return g_.Op("Transpose", {{"x", Reshape(x, {1, rows, kHeads, kWidth / kHeads})},
                               {"perm", g_.Ints({0, 2, 1, 3})}});
  }

  // Attention as one fused step.
  Value Attention(Value q, Value k, Value v, int64_t rows) {
    const Value scores = g_.Op("BatchMatMul", {{"x1", HeadsOf(q, rows)}, {"x2", HeadsOf(k, rows)}},
                               {{"adj_x2", AttrValue::Bool(true)}});
    const Value seen = Two("BatchMatMul", One("SoftmaxV2", scores), HeadsOf(v, rows));
    const Value turned = g_.Op("Transpose", {{"x", seen}, {"perm", g_.Ints({0, 2, 1, 3})}});
    return Reshape(turned, {rows, kWidth});
  }

  // A decoder block, whose heads look at nothing but themselves unless it `attends`.
  void PutDecoder(int64_t rows, DataType dtype, bool attends) {
    const Value x = g_.Data("x", {dtype, {rows, kWidth}});
    const Value normed = Norm(x, kWidth, dtype);
    const auto projected = [&] { return Two("MatMul", normed, Weight({kWidth, kWidth}, dtype)); };
    const Value q = projected(), k = projected(), v = projected();
    const Value seen = attends ? Attention(q, k, v, rows) : Two("Mul", Two("Mul", q, k), v);
    const Value attended = Two("Add", x, Two("MatMul", seen, Weight({kWidth, kWidth}, dtype)));
    const Value gate =
        Two("MatMul", Norm(attended, kWidth, dtype), Weight({kWidth, 2 * kInner}, dtype));
    const Value mlp = Two("MatMul", One("SwiGlu", gate), Weight({kInner, kWidth}, dtype));
    g_.Output({One("SoftmaxV2", Two("Add", attended, mlp))});
  }

  void PutConvolutions(int64_t size) {
    const auto ones = AttrValue::Ints({1, 1, 1, 1});
    const auto convolve = [&](Value x, int64_t from, int64_t to) {
      return g_.Op("Conv2D",
                   {{"x", x}, {"filter", Weight({to, from, 3, 3})}, {"bias", Weight({to})}},
                   {{"strides", ones},
                    {"pads", ones},
                    {"dilations", ones},
                    {"data_format", AttrValue::String("NCHW")}});
    };
    const Value x = g_.Data("x", {DataType::kFloat, {1, 3, size, size}});
    const Value deep = One("Relu", convolve(One("Relu", convolve(x, 3, 16)), 16, 8));
    const Value flat = Reshape(deep, {1, 8 * size * size});
    g_.Output({One("SoftmaxV2", Two("MatMul", flat, Weight({8 * size * size, 10})))});
  }

  // What kRuns runs allocate after the first.
  Count CountRuns(const TensorType& input) {
    Result<Model> source = g_.Build();
    EXPECT_TRUE(source.ok()) << source.status().ToString();
    if (!source.ok()) return {};
    options_.fuses = [](std::string_view) { return true; };
    const Compiled model =
        CompiledModel::Compile(*source, BuiltinOps(), {input}, {}, nullptr, options_);
    EXPECT_TRUE(model.ok()) << model.status().ToString();
    if (!model.ok()) return {};
    const auto executor = Executor::Create(**model, memory_);
    EXPECT_TRUE(executor.ok() && (*executor)->Run().ok());
    Count before{AllocationCount(), BufferCount(), memory_.used_bytes()};
    bool ok = true;
    for (int i = 0; i < kRuns; ++i) ok = (*executor)->Run().ok() && ok;
    const Count after{AllocationCount(), BufferCount(), memory_.used_bytes()};
    EXPECT_TRUE(ok);
    return {after.all - before.all, after.buffers - before.buffers,
            after.device_bytes - before.device_bytes};
  }

  void ExpectArgumentsOnly(const Count& count, uint64_t primitives, uint64_t buffers) {
    EXPECT_LE(count.buffers, buffers * kRuns);
    EXPECT_EQ(count.device_bytes, 0u);
    EXPECT_LE(count.all, (primitives * kPerPrimitive + buffers) * kRuns);
    RecordProperty("allocations_of_a_run", static_cast<int>(count.all / kRuns));
  }

  int weights_ = 0;
};

TEST_F(AllocationTest, TheCounterSeesEveryKind) {
  const uint64_t all = AllocationCount(), buffers = BufferCount();
  void* volatile small = ::operator new(8);
  void* volatile large = std::calloc(kSmallAllocation + 1, 1);
  const uint64_t all_after = AllocationCount(), buffers_after = BufferCount();
  ::operator delete(small);
  std::free(large);
#if !defined(NPUMESH_SANITIZED)
  EXPECT_EQ(all_after - all, 2u);
  EXPECT_EQ(buffers_after - buffers, 1u);
#endif
}

TEST_F(AllocationTest, DecoderBlocksAllocateNothing) {
  for (const DataType dtype : {DataType::kFloat, DataType::kFloat16}) {
    for (const int64_t rows : {8, 80}) {
      g_ = GraphBuilder();
      PutDecoder(rows, dtype, false);
      const Count count = CountRuns({dtype, {rows, kWidth}});
      EXPECT_EQ(count.all, 0u) << rows << " rows of " << Name(dtype);
      EXPECT_EQ(count.device_bytes, 0u);
    }
  }
}

// Its products keep their room; a head of 80 rows has two tiles.
TEST_F(AllocationTest, AttentionAllocatesNothing) {
  PutDecoder(80, DataType::kFloat, true);
  const Count count = CountRuns({DataType::kFloat, {80, kWidth}});
  EXPECT_EQ(count.all, 0u);
  EXPECT_EQ(count.device_bytes, 0u);
}

// As one fused step, with halves that fill vectors in part.
TEST_F(AllocationTest, RotaryEmbeddingsAllocateNothing) {
  constexpr int64_t kHalf = 21;
  for (const DataType dtype : {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16}) {
    g_ = GraphBuilder();
    const TensorType type{dtype, {kHeads, 8, 2 * kHalf}};
    const Value x = g_.Data("x", type);
    const Value halves = g_.Op("Split", {{"split_dim", g_.Int(-1)}, {"x", x}},
                               {{"num_split", AttrValue::Int(2)}}, {}, 2);
    const Value turned =
        g_.Op("ConcatV2",
              {{"x0", One("Neg", g_.Port(halves, 1))}, {"x1", halves}, {"concat_dim", g_.Int(-1)}},
              {{"N", AttrValue::Int(2)}});
    const Shape table = {8, 2 * kHalf};
    g_.Output({Two("Add", Two("Mul", x, Weight(table, dtype)),
                   Two("Mul", turned, Weight(table, dtype)))});
    const Count count = CountRuns(type);
    EXPECT_EQ(count.all, 0u) << Name(dtype);
    EXPECT_EQ(count.device_bytes, 0u);
  }
}

// One for each convolution that oneDNN computes as a product of matrices; images make no
// difference.
TEST_F(AllocationTest, ConvolutionsAllocateTheBuffersOfTheirProducts) {
  for (const int64_t size : {int64_t{8}, int64_t{24}}) {
    g_ = GraphBuilder();
    PutConvolutions(size);
    const uint64_t sgemms = OneDnnHasAvx512() ? 0 : 2 * kPerSgemm;
    ExpectArgumentsOnly(CountRuns({DataType::kFloat, {1, 3, size, size}}), 2, 2 + sgemms);
  }
}

}  // namespace
}  // namespace npumesh
