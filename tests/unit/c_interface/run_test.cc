// npumesh_run: where inputs are read and outputs are written, and what is copied.
#include <thread>

#include "tests/unit/c_interface/c_world.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CRunTest : public CWorldTest {
 protected:
  // y = x + w
  void LoadAdd(std::vector<int64_t> dims) {
    GraphBuilder g;
    const Value x = g.Data("x", CInts(dims));
    const Value w = g.Data("w", CInts(std::move(dims)));
    g.Output({g.Op("Add", {{"x1", x}, {"x2", w}}, {}, "sum")});
    Load(g);
  }
};

TEST_F(CRunTest, AssignedOutputsAreComputedInPlaceWithoutACopy) {
  LoadAdd({4});
  CVector x({1, 2, 3, 4});
  CVector w({10, 20, 30, 40});
  CVector y({0, 0, 0, 0});
  std::vector<npumesh_tensor> out = {y.tensor()};
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(Run({x.tensor(), w.tensor()}, out), NPUMESH_OK) << npumesh_last_error();
    EXPECT_THAT(y.values(), ElementsAre(11, 22, 33, 44));
    y.values().assign(4, 0);
  }
  EXPECT_EQ(out[0].data, y.values().data());
  EXPECT_EQ(out[0].rank, 1);
  EXPECT_EQ(out[0].dims[0], 4);
  EXPECT_EQ(out[0].dtype, NPUMESH_INT32);
  EXPECT_EQ(Stats().runs, 3u);
  EXPECT_EQ(Stats().input_bytes_copied, 0u);
  EXPECT_EQ(Stats().output_bytes_copied, 0u);
}

TEST_F(CRunTest, OtherMemoryInTheNextRun) {
  LoadAdd({2});
  for (int32_t i = 0; i < 5; ++i) {
    CVector x({i, i + 1});
    CVector w({100 * i, 7});
    CVector y({0, 0});
    std::vector<npumesh_tensor> out = {y.tensor()};
    ASSERT_EQ(Run({x.tensor(), w.tensor()}, out), NPUMESH_OK) << npumesh_last_error();
    EXPECT_THAT(y.values(), ElementsAre(101 * i, i + 8));
  }
  EXPECT_EQ(Stats().plans, 1u);
  EXPECT_EQ(Stats().input_bytes_copied + Stats().output_bytes_copied, 0u);
}

TEST_F(CRunTest, FreshOutputsOutliveSessionAndWorld) {
  LoadAdd({-1});
  CVector x({1, 2, 3});
  CVector w({5, 5, 5});
  std::vector<npumesh_tensor> out = {FreshTensor()};
  ASSERT_EQ(Run({x.tensor(), w.tensor()}, out), NPUMESH_OK) << npumesh_last_error();
  EXPECT_EQ(out[0].bytes, 12u);
  EXPECT_THAT(Values(out[0]), ElementsAre(6, 7, 8));
  EXPECT_EQ(Stats().output_bytes_copied, 0u);
  ASSERT_EQ(npumesh_close(session_), NPUMESH_OK);
  session_ = nullptr;
  EXPECT_THAT(Values(out[0]), ElementsAre(6, 7, 8));
  npumesh_release(out[0].data);
}

struct Arena {
  std::vector<int32_t> memory = std::vector<int32_t>(64);
  size_t used = 0;
  std::vector<std::vector<int64_t>> asked;
  bool full = false;

  static void* Give(void* context, size_t position, const npumesh_tensor* tensor) {
    auto& arena = *static_cast<Arena*>(context);
    EXPECT_EQ(position, arena.asked.size());
    EXPECT_EQ(tensor->data, nullptr);
    arena.asked.emplace_back(tensor->dims, tensor->dims + tensor->rank);
    if (arena.full) return nullptr;
    void* const place = arena.memory.data() + arena.used;
    arena.used += tensor->bytes / sizeof(int32_t);
    return place;
  }
};

TEST_F(CRunTest, TheAllocatorIsAskedOncePerOutputThatIsNotBound) {
  GraphBuilder g;
  const Value x = g.Data("x", CInts({-1, 2}));
  g.Output({g.Op("Neg", {{"x", x}}), g.Op("Add", {{"x1", x}, {"x2", x}})});
  Load(g);
  Arena arena;
  ASSERT_EQ(npumesh_set_allocator(session_, &Arena::Give, &arena), NPUMESH_OK);
  CVector in({1, 2, 3, 4}, {2, 2});
  std::vector<npumesh_tensor> out = {FreshTensor(), FreshTensor()};
  ASSERT_EQ(Run({in.tensor()}, out), NPUMESH_OK) << npumesh_last_error();
  EXPECT_THAT(arena.asked, ElementsAre(ElementsAre(2, 2), ElementsAre(2, 2)));
  EXPECT_THAT(Values(out[0]), ElementsAre(-1, -2, -3, -4));
  EXPECT_THAT(Values(out[1]), ElementsAre(2, 4, 6, 8));
  EXPECT_EQ(out[1].data, arena.memory.data() + 4);
  EXPECT_EQ(Stats().output_bytes_copied, 0u);

  arena = Arena();
  arena.full = true;
  out = {FreshTensor(), FreshTensor()};
  EXPECT_EQ(Run({in.tensor()}, out), NPUMESH_OUT_OF_MEMORY);
  EXPECT_THAT(npumesh_last_error(), HasSubstr("output 0"));
  EXPECT_EQ(out[0].data, nullptr);
}

// In-place updates of a caller: the output is assigned to the input. The step reads its elements
// before it writes them, so that nothing is copied.
TEST_F(CRunTest, AnElementWiseOutputMayLieOnItsInput) {
  LoadAdd({4});
  CVector x({1, 2, 3, 4});
  CVector w({10, 20, 30, 40});
  std::vector<npumesh_tensor> out = {x.tensor()};
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(Run({x.tensor(), w.tensor()}, out), NPUMESH_OK) << npumesh_last_error();
  }
  EXPECT_THAT(x.values(), ElementsAre(21, 42, 63, 84));
  EXPECT_EQ(Stats().output_bytes_copied, 0u);
}

TEST_F(CRunTest, AnOutputOverAnInputThatIsReadLaterIsCopied) {
  GraphBuilder g;
  const Value x = g.Data("x", CInts({2, 2}));
  const Value first = g.Op("Neg", {{"x", x}}, {}, "first");
  const Value second = g.Op("Mul", {{"x1", x}, {"x2", x}}, {}, "second");
  g.Order(first, second);
  g.Output({first, second});
  Load(g);
  CVector in({1, 2, 3, 4}, {2, 2});
  CVector squares({0, 0, 0, 0});
  std::vector<npumesh_tensor> out = {in.tensor(), squares.tensor()};
  ASSERT_EQ(Run({in.tensor()}, out), NPUMESH_OK) << npumesh_last_error();
  EXPECT_THAT(in.values(), ElementsAre(-1, -2, -3, -4));
  EXPECT_THAT(squares.values(), ElementsAre(1, 4, 9, 16));
  EXPECT_EQ(Stats().output_bytes_copied, 16u);
}

TEST_F(CRunTest, OutputsThatAreInputsCanBeSwapped) {
  GraphBuilder g;
  const Value x = g.Data("x", CInts({2}));
  const Value y = g.Data("y", CInts({2}));
  g.Output({y, x});
  Load(g);
  CVector a({1, 2});
  CVector b({3, 4});
  std::vector<npumesh_tensor> out = {a.tensor(), b.tensor()};
  ASSERT_EQ(Run({a.tensor(), b.tensor()}, out), NPUMESH_OK) << npumesh_last_error();
  EXPECT_THAT(a.values(), ElementsAre(3, 4));
  EXPECT_THAT(b.values(), ElementsAre(1, 2));
}

TEST_F(CRunTest, OneValueAsTwoOutputs) {
  GraphBuilder g;
  const Value x = g.Data("x", CInts({2}));
  const Value y = g.Op("Neg", {{"x", x}});
  g.Output({y, y});
  Load(g);
  CVector in({1, 2});
  std::vector<npumesh_tensor> out = {FreshTensor(), FreshTensor()};
  ASSERT_EQ(Run({in.tensor()}, out), NPUMESH_OK) << npumesh_last_error();
  EXPECT_THAT(Values(out[0]), ElementsAre(-1, -2));
  EXPECT_THAT(Values(out[1]), ElementsAre(-1, -2));
  EXPECT_NE(out[0].data, out[1].data);
  EXPECT_EQ(Stats().output_bytes_copied, 8u);
  for (const npumesh_tensor& tensor : out) npumesh_release(tensor.data);
}

TEST_F(CRunTest, ConstantsAndEmptyTensorsAsOutputs) {
  GraphBuilder g;
  const Value x = g.Data("x", CInts({0, 3}));
  const Value c = g.Const("c", Tensor::FromVector<int32_t>(CInts({2}), {7, 8}));
  g.Output({c, g.Op("Neg", {{"x", x}})});
  Load(g);
  CVector in({}, {0, 3});
  std::vector<npumesh_tensor> out = {FreshTensor(), FreshTensor()};
  ASSERT_EQ(Run({in.tensor()}, out), NPUMESH_OK) << npumesh_last_error();
  EXPECT_THAT(Values(out[0]), ElementsAre(7, 8));
  EXPECT_EQ(out[1].bytes, 0u);
  EXPECT_EQ(out[1].rank, 2);
  for (const npumesh_tensor& tensor : out) npumesh_release(tensor.data);
}

// Assign to a Data: the graph changes its input.
class CInPlaceTest : public CWorldTest {
 protected:
  void SetUp() override {
    CWorldTest::SetUp();
    GraphBuilder g;
    const Value x = g.Data("x", CInts({2}));
    const Value w = g.Data("w", CInts({2}));
    const Value sum = g.Op("Add", {{"x1", x}, {"x2", w}});
    const Value set = g.Op("Assign", {{"ref", x}, {"value", sum}});
    g.Output({g.Op("Neg", {{"x", set}})});
    Load(g);
  }
  CVector w_{{10, 10}};
};

TEST_F(CInPlaceTest, WritesTheCallersMemoryWhenItMay) {
  CVector x({1, 2}, NPUMESH_IN_PLACE);
  CVector y({0, 0});
  std::vector<npumesh_tensor> out = {y.tensor()};
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(Run({x.tensor(), w_.tensor()}, out), NPUMESH_OK) << npumesh_last_error();
  }
  EXPECT_THAT(x.values(), ElementsAre(31, 32));
  EXPECT_THAT(y.values(), ElementsAre(-31, -32));
  EXPECT_EQ(Stats().input_bytes_copied + Stats().output_bytes_copied, 0u);
}

TEST_F(CInPlaceTest, LeavesTheCallersMemoryAloneOtherwise) {
  CVector x({1, 2});
  CVector y({0, 0});
  std::vector<npumesh_tensor> out = {y.tensor()};
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(Run({x.tensor(), w_.tensor()}, out), NPUMESH_OK) << npumesh_last_error();
    EXPECT_THAT(x.values(), ElementsAre(1, 2));
    EXPECT_THAT(y.values(), ElementsAre(-11, -12));
  }
  EXPECT_EQ(Stats().input_bytes_copied, 24u);
}

TEST_F(CInPlaceTest, MemoryThatIsNotAlignedIsCopiedAndGoesBack) {
  std::vector<char> bytes(9 + 8);
  const int32_t values[] = {1, 2};
  std::memcpy(bytes.data() + 1, values, sizeof values);
  CVector shape({0, 0});
  npumesh_tensor x = shape.tensor();
  x.data = bytes.data() + 1;
  x.flags = NPUMESH_IN_PLACE;
  std::vector<npumesh_tensor> out = {shape.tensor()};
  ASSERT_EQ(Run({x, w_.tensor()}, out), NPUMESH_OK) << npumesh_last_error();
  int32_t seen[2];
  std::memcpy(seen, bytes.data() + 1, sizeof seen);
  EXPECT_THAT(seen, ElementsAre(11, 12));
  EXPECT_THAT(shape.values(), ElementsAre(-11, -12));
  EXPECT_EQ(Stats().input_bytes_copied, 8u);
  EXPECT_EQ(Stats().output_bytes_copied, 8u);
}

// The output wins over what the operator left in the input.
TEST_F(CInPlaceTest, AnOutputOnTheInputThatIsWritten) {
  CVector x({1, 2}, NPUMESH_IN_PLACE);
  std::vector<npumesh_tensor> out = {x.tensor()};
  ASSERT_EQ(Run({x.tensor(), w_.tensor()}, out), NPUMESH_OK) << npumesh_last_error();
  EXPECT_THAT(x.values(), ElementsAre(-11, -12));
}

TEST_F(CWorldTest, ARefDataKeepsItsContent) {
  GraphBuilder g;
  const Value x = g.RefData("x", CInts({2}));
  const Value w = g.Data("w", CInts({2}));
  const Value set = g.Op("Assign", {{"ref", x}, {"value", g.Op("Add", {{"x1", x}, {"x2", w}})}});
  g.Output({g.Op("Neg", {{"x", set}})});
  Load(g);
  npumesh_port port;
  ASSERT_EQ(npumesh_get_input(session_, 0, &port), NPUMESH_OK);
  EXPECT_EQ(port.ref, 1);
  CVector start({1, 2});
  CVector step({1, 1});
  CVector y({0, 0});
  std::vector<npumesh_tensor> out = {y.tensor()};
  std::vector<npumesh_tensor> absent = {FreshTensor(), step.tensor()};
  EXPECT_EQ(Run(absent, out), NPUMESH_INVALID_ARGUMENT);
  EXPECT_THAT(npumesh_last_error(), HasSubstr("given once"));
  ASSERT_EQ(Run({start.tensor(), step.tensor()}, out), NPUMESH_OK) << npumesh_last_error();
  ASSERT_EQ(Run(absent, out), NPUMESH_OK) << npumesh_last_error();
  EXPECT_THAT(y.values(), ElementsAre(-3, -4));
  EXPECT_THAT(start.values(), ElementsAre(1, 2));
  int32_t held[2];
  ASSERT_EQ(npumesh_read_ref(session_, 0, held, sizeof held), NPUMESH_OK) << npumesh_last_error();
  EXPECT_THAT(held, ElementsAre(3, 4));
  EXPECT_EQ(npumesh_read_ref(session_, 0, held, 4), NPUMESH_INVALID_ARGUMENT);
  EXPECT_EQ(npumesh_read_ref(session_, 9, held, 8), NPUMESH_INVALID_ARGUMENT);
}

// NonZero: the shapes of what follows are known when it has run.
TEST_F(CWorldTest, OutputsWhoseShapesARunDecides) {
  GraphBuilder g;
  const Value x = g.Data("x", CInts({4}));
  const Value w = g.Data("w", CInts({4}));
  const auto int32 = AttrValue::Int(static_cast<int64_t>(DataType::kInt32));
  const Value sum = g.Op("Add", {{"x1", x}, {"x2", w}});
  const Value found = g.Op("NonZero", {{"x", sum}}, {{"dtype", int32}});
  const Value set = g.Op("Assign", {{"ref", x}, {"value", sum}});
  g.Output({g.Op("Neg", {{"x", found}}), g.Op("Neg", {{"x", set}})});
  Load(g);
  CVector a({0, 5, 0, 6}, NPUMESH_IN_PLACE);
  CVector zero({0, 0, 1, 0});
  ASSERT_EQ(npumesh_prepare(session_, nullptr, 0), NPUMESH_INVALID_ARGUMENT);
  const npumesh_tensor types[] = {a.tensor(), zero.tensor()};
  ASSERT_EQ(npumesh_prepare(session_, types, 2), NPUMESH_OK) << npumesh_last_error();
  std::vector<npumesh_tensor> out = {FreshTensor(), FreshTensor()};
  ASSERT_EQ(Run({a.tensor(), zero.tensor()}, out), NPUMESH_OK) << npumesh_last_error();
  EXPECT_THAT(Values(out[0]), ElementsAre(-1, -2, -3));
  EXPECT_THAT(Values(out[1]), ElementsAre(0, -5, -1, -6));
  EXPECT_THAT(a.values(), ElementsAre(0, 5, 1, 6));
  npumesh_port port;
  ASSERT_EQ(npumesh_get_output(session_, 0, &port), NPUMESH_OK);
  EXPECT_EQ(port.rank, 2);
  EXPECT_EQ(port.dims[0], 3);
  for (const npumesh_tensor& tensor : out) npumesh_release(tensor.data);
}

TEST_F(CRunTest, PrepareTellsTheTypesOfOutputs) {
  LoadAdd({-1, 2});
  npumesh_port port;
  ASSERT_EQ(npumesh_get_output(session_, 0, &port), NPUMESH_OK);
  EXPECT_STREQ(port.name, "sum:0");
  int64_t dims[] = {NPUMESH_OPEN_DIM, 2};
  npumesh_tensor types[2];
  for (npumesh_tensor& type : types) type = {nullptr, 0, dims, 2, NPUMESH_INT32, 0};
  ASSERT_EQ(npumesh_prepare(session_, types, 2), NPUMESH_OK) << npumesh_last_error();
  EXPECT_EQ(Stats().plans, 0u);
  dims[0] = 3;
  ASSERT_EQ(npumesh_prepare(session_, types, 2), NPUMESH_OK) << npumesh_last_error();
  ASSERT_EQ(npumesh_get_output(session_, 0, &port), NPUMESH_OK);
  EXPECT_EQ(port.rank, 2);
  EXPECT_EQ(port.dims[0], 3);
  EXPECT_EQ(port.bytes, 24u);
  EXPECT_EQ(Stats().plans, 1u);
  CVector x({1, 2, 3, 4, 5, 6}, {3, 2});
  std::vector<npumesh_tensor> out = {x.tensor()};
  ASSERT_EQ(Run({x.tensor(), x.tensor()}, out), NPUMESH_OK) << npumesh_last_error();
  EXPECT_EQ(Stats().plans, 1u);
  EXPECT_THAT(x.values(), ElementsAre(2, 4, 6, 8, 10, 12));
}

TEST_F(CRunTest, ErrorsNameInputOrOutput) {
  LoadAdd({2});
  CVector x({1, 2});
  CVector small({1});
  CVector y({0, 0});
  std::vector<npumesh_tensor> out = {y.tensor()};
  const auto refused = [&](std::vector<npumesh_tensor> inputs, const char* why) {
    EXPECT_EQ(Run(inputs, out), NPUMESH_INVALID_ARGUMENT);
    EXPECT_THAT(npumesh_last_error(), HasSubstr(why));
  };
  refused({x.tensor()}, "the graph has 2 inputs, 1 were given");
  refused({x.tensor(), small.tensor()}, "input 1 \"w\": expected int32[2], seen int32[1]");
  npumesh_tensor bad = x.tensor();
  bad.bytes = 4;
  refused({bad, x.tensor()}, "input 0 \"x\": int32[2] has 8 bytes, seen memory of 4");
  bad = x.tensor();
  bad.data = nullptr;
  refused({bad, x.tensor()}, "input 0 \"x\": expected memory for int32[2], seen NULL");
  bad = x.tensor();
  bad.dtype = 5;
  refused({bad, x.tensor()}, "input 0 \"x\": expected a dtype with a width, seen 5 (unknown)");
  bad = x.tensor();
  bad.dims = nullptr;
  refused({bad, x.tensor()}, "dims NULL");
  bad = x.tensor();
  bad.rank = NPUMESH_OPEN_RANK;
  refused({bad, x.tensor()}, "expected known dimensions");
  bad = x.tensor();
  bad.flags = 6;
  refused({bad, x.tensor()}, "flags 0x6");
  const int64_t huge[] = {int64_t{1} << 40, int64_t{1} << 40};
  bad = x.tensor();
  bad.dims = huge;
  bad.rank = 2;
  refused({bad, x.tensor()}, "input 0 \"x\"");
  refused({FreshTensor(), x.tensor()}, "input 0 \"x\": expected int32[2], seen none");
  out[0].bytes = 4;
  refused({x.tensor(), x.tensor()}, "output 0: int32[2] has 8 bytes, seen memory of 4");
  out[0] = y.tensor();
  out[0].dtype = NPUMESH_FLOAT32;
  refused({x.tensor(), x.tensor()}, "output 0: it is int32[2], seen memory for dtype 0 (float32)");
  out.clear();
  refused({x.tensor(), x.tensor()}, "the graph has 1 outputs, 0 were given");
  out = {y.tensor()};
  EXPECT_EQ(Run({x.tensor(), x.tensor()}, out), NPUMESH_OK) << npumesh_last_error();
  EXPECT_THAT(y.values(), ElementsAre(2, 4));
}

TEST_F(CWorldTest, OutputsMayNotOverlap) {
  GraphBuilder g;
  const Value x = g.Data("x", CInts({2}));
  g.Output({g.Op("Neg", {{"x", x}}), g.Op("Add", {{"x1", x}, {"x2", x}})});
  Load(g);
  CVector in({1, 2});
  CVector all({0, 0, 0});
  npumesh_tensor first = all.tensor();
  npumesh_tensor second = all.tensor();
  second.data = all.values().data() + 1;
  second.bytes = 8;
  std::vector<npumesh_tensor> out = {first, second};
  EXPECT_EQ(Run({in.tensor()}, out), NPUMESH_INVALID_ARGUMENT);
  EXPECT_THAT(npumesh_last_error(), HasSubstr("outputs 0 and 1"));
}

TEST_F(CRunTest, SessionsOfAWorldTakeTurnsOnManyThreads) {
  LoadAdd({3});
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int32_t t = 0; t < 4; ++t) {
    threads.emplace_back([this, t, &wrong] {
      for (int32_t i = 0; i < 50; ++i) {
        CVector x({t, i, 1});
        CVector w({1, 1, 1});
        CVector y({0, 0, 0});
        std::vector<npumesh_tensor> out = {y.tensor()};
        const bool ran = Run({x.tensor(), w.tensor()}, out) == NPUMESH_OK;
        if (!ran || y.values() != std::vector<int32_t>{t + 1, i + 1, 2}) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(Stats().runs, 200u);
}

TEST_F(CWorldTest, FrozenParametersAreReadWhereTheyAre) {
  GraphBuilder g;
  const Value x = g.Data("x", CInts({2}));
  const Value w = g.Data("w", CInts({2}));
  g.Output({g.Op("Add", {{"x1", x}, {"x2", w}})});
  Load(g, {{"experimental_config.frozen_parameter", "true"}, {"npumesh.parameters", "0,1"}});
  CVector x_now({1, 2});
  CVector weight({5, 6});
  CVector y({0, 0});
  std::vector<npumesh_tensor> out = {y.tensor()};
  const npumesh_tensor typed[] = {x_now.tensor(),
                                  {nullptr, 0, x_now.tensor().dims, 1, NPUMESH_INT32, 0}};
  ASSERT_EQ(npumesh_prepare(session_, typed, 2), NPUMESH_OK) << npumesh_last_error();
  ASSERT_EQ(Run({x_now.tensor(), weight.tensor()}, out), NPUMESH_OK) << npumesh_last_error();
  EXPECT_THAT(y.values(), ElementsAre(6, 8));
  ASSERT_EQ(Run({x_now.tensor(), FreshTensor()}, out), NPUMESH_OK) << npumesh_last_error();
  EXPECT_THAT(y.values(), ElementsAre(6, 8));
  CVector other({7, 7});
  EXPECT_EQ(Run({x_now.tensor(), other.tensor()}, out), NPUMESH_INVALID_ARGUMENT);
  EXPECT_THAT(npumesh_last_error(), HasSubstr("frozen"));
}

}  // namespace
}  // namespace npumesh
