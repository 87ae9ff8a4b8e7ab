// Running compiled models: errors, observers, shared buffers, and that a run allocates nothing.
#include <gmock/gmock.h>

#include "graph/ops/builtin_ops.h"
#include "tests/unit/allocation_count.h"
#include "tests/unit/engine/engine_fixture.h"

namespace npumesh {
namespace {

using testing::ElementsAre;

class ExecutorTest : public EngineTest {
 protected:
  std::unique_ptr<Executor> Make(CompiledModel& model) {
    Result<std::unique_ptr<Executor>> executor = Executor::Create(model, memory_);
    EXPECT_TRUE(executor.ok()) << executor.status().ToString();
    return executor.ok() ? std::move(executor).value() : nullptr;
  }
};

TEST_F(ExecutorTest, RunsWithoutAllocation) {
  const Value x = g_.Data("x", IntType({64}));
  Value y = g_.Op("Plus", {{"x1", x}, {"x2", g_.Const("c", IntTensor(std::vector<int64_t>(64)))}});
  for (int i = 0; i < 10; ++i) y = g_.Op(i % 2 == 0 ? "Move" : "Negate", {{"x", y}});
  g_.Output({y});
  const Compiled model = Compile({IntType({64})});
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const std::unique_ptr<Executor> executor = Make(**model);
  ASSERT_NE(executor, nullptr);
  const uint64_t host_before = AllocationCount();
  const uint64_t device_before = memory_.used_bytes();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(executor->Run().ok());
  EXPECT_EQ(AllocationCount(), host_before);
  EXPECT_EQ(memory_.used_bytes(), device_before);
}

// Normalisation and a chain, one step each. Products: allocation_test.cc.
TEST_F(ExecutorTest, FusedStepsAllocateNothing) {
  const TensorType type{DataType::kFloat, {2, 8, 8}};
  const Value x = g_.Data("x", type);
  const auto two = [this](const char* op, Value a, Value b) {
    return g_.Op(op, {{"x1", a}, {"x2", b}});
  };
  const auto one = [this](const char* op, Value v) { return g_.Op(op, {{"x", v}}); };
  const Value gamma = g_.Data("gamma", {DataType::kFloat, {8}});
  const Value epsilon = g_.Const("epsilon", Tensor::FromVector<float>({DataType::kFloat, {}}, {1}));
  const Value mean = g_.Op("ReduceMean", {{"x", one("Square", x)}, {"axes", g_.Ints({-1})}},
                           {{"keep_dims", AttrValue::Bool(true)}});
  const Value normed = two("Mul", two("Mul", x, one("Rsqrt", two("Add", mean, epsilon))), gamma);
  const Value seen = one("SoftmaxV2", normed);
  g_.Output({one("Gelu", two("Add", seen, gamma))});
  const Result<Model> source = g_.Build();
  ASSERT_TRUE(source.ok()) << source.status().ToString();
  options_.fuses = [](std::string_view) { return true; };
  const Compiled model = CompiledModel::Compile(
      *source, BuiltinOps(), {type, {DataType::kFloat, {8}}}, {}, nullptr, options_);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  EXPECT_EQ((*model)->steps().size(), 3u);
  const std::unique_ptr<Executor> executor = Make(**model);
  ASSERT_NE(executor, nullptr);
  ASSERT_TRUE(executor->Run().ok());
  const uint64_t before = AllocationCount();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(executor->Run().ok());
  EXPECT_EQ(AllocationCount(), before);
}

TEST_F(ExecutorTest, RunsCollectivesBesideWithoutAllocation) {
  options_.overlap_collectives = true;
  const Value x = g_.Data("x", IntType({64}));
  Value y = x;
  for (int i = 0; i < 10; ++i) {
    y = g_.Op("Negate", {{"x", y}});
    g_.Op("Send", {{"x", y}}, {}, "", 0);
  }
  g_.Output({y});
  const Compiled model = Compile({IntType({64})});
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const std::unique_ptr<Executor> executor = Make(**model);
  ASSERT_NE(executor, nullptr);
  // The queue of the stream grows until it holds all collectives, which is when its thread was late
  // by so much: on a busy machine not in the first run.
  uint64_t allocated = 1;
  for (int attempt = 0; attempt < 12 && allocated > 0; ++attempt) {
    const uint64_t before = AllocationCount();
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(executor->Run().ok());
    allocated = AllocationCount() - before;
  }
  EXPECT_EQ(allocated, 0u);
}

TEST_F(ExecutorTest, FreesItsDeviceMemory) {
  g_.Output({g_.Op("Negate", {{"x", g_.Data("x", IntType({64}))}}), g_.Ints({1, 2})});
  const Compiled model = Compile({IntType({64})});
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  ASSERT_NE(Make(**model), nullptr);
  EXPECT_EQ(memory_.used_bytes(), 0u);
}

TEST_F(ExecutorTest, RefDataKeepsItsContent) {
  const Value sum = g_.RefData("sum", IntType({2}));
  const Value x = g_.Data("x", IntType({2}));
  g_.Output({g_.Op("Accumulate", {{"ref", sum}, {"value", x}})});
  const Compiled model = Compile({IntType({2}), IntType({2})});
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const std::unique_ptr<Executor> executor = Make(**model);
  ASSERT_NE(executor, nullptr);
  Write(*executor, 0, IntTensor({0, 100}));
  Write(*executor, 1, IntTensor({1, 2}));
  for (int step = 1; step <= 3; ++step) {
    ASSERT_TRUE(executor->Run().ok());
    EXPECT_THAT(Read(**model, *executor, 0), ElementsAre(step, 100 + 2 * step));
  }
}

TEST_F(ExecutorTest, ListsAreUpdatedInPlace) {
  const Value a = g_.RefData("a", IntType({2}));
  const Value b = g_.RefData("b", IntType({2}));
  const Value constant = g_.Ints({7, 8});
  g_.Op("AccumulateAll",
        {{"value", g_.Data("x", IntType({2}))}, {"refs0", a}, {"refs1", b}, {"refs2", constant}},
        {}, "", 0);
  g_.Output({g_.Op("Move", {{"x", b}}), g_.Op("Move", {{"x", constant}})});
  const Compiled model = Compile({IntType({2}), IntType({2}), IntType({2})});
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const std::unique_ptr<Executor> executor = Make(**model);
  ASSERT_NE(executor, nullptr);
  Write(*executor, 0, IntTensor({0, 100}));
  Write(*executor, 1, IntTensor({10, 20}));
  Write(*executor, 2, IntTensor({1, 2}));
  const auto pair = [&](int position) {
    const auto* buffer = static_cast<const int64_t*>(executor->input_buffer(position));
    return std::vector<int64_t>(buffer, buffer + 2);
  };
  for (int64_t step = 1; step <= 3; ++step) {
    ASSERT_TRUE(executor->Run().ok());
    EXPECT_THAT(pair(0), ElementsAre(step, 100 + 2 * step));
    EXPECT_THAT(pair(1), ElementsAre(10 + step, 20 + 2 * step));
    // Readers of what is overwritten go before, and constants stay as they are.
    EXPECT_THAT(Read(**model, *executor, 0), ElementsAre(9 + step, 18 + 2 * step));
    EXPECT_THAT(Read(**model, *executor, 1), ElementsAre(7, 8));
  }
}

TEST_F(ExecutorTest, RunTimeErrorsNameTheNode) {
  const Value x = g_.Data("x", IntType({2}));
  g_.Output({g_.Op("Fail", {{"x", x}}, {}, "unlucky")});
  const Compiled model = Compile({IntType({2})});
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const std::unique_ptr<Executor> executor = Make(**model);
  ASSERT_NE(executor, nullptr);
  EXPECT_EQ(executor->Run().status().message(), "node \"unlucky\" (Fail): out of luck");
}

// Writes down what it sees; stops where it is told to.
class Scribe final : public StepObserver {
 public:
  std::vector<std::string> lines;
  std::string stop_at;  // "run", "before <step>", "after <step>", "end"

  Status BeforeRun(const RunView& run) override {
    return Write("run", fmt::format(" {} of {}", run.iteration, run.source.graph.name()));
  }
  Status BeforeStep(const StepView& view) override {
    EXPECT_EQ(view.seconds, 0.0);
    std::string operands;
    for (size_t i = 0; i < view.step.input_types.size(); ++i) {
      operands += fmt::format(" {}", *static_cast<const int64_t*>(view.args.in[i]));
    }
    return Write("before " + view.step.name, operands);
  }
  Status AfterStep(const StepView& view) override {
    EXPECT_GE(view.seconds, 0.0);
    EXPECT_EQ(&view.step, &view.run.model.steps()[view.index]);
    EXPECT_EQ(&view.args, &view.run.args[view.index]);
    std::string operands;
    for (size_t i = 0; i < view.step.output_types.size(); ++i) {
      operands += fmt::format(" {}", *static_cast<const int64_t*>(view.args.out[i]));
    }
    return Write("after " + view.step.name, operands);
  }
  void StepFailed(const StepView& view, const Status& error) override {
    lines.push_back("failed " + view.step.name + ": " + std::string(error.message()));
  }
  Status AfterRun(const RunView&) override { return Write("end", ""); }

 private:
  Status Write(const std::string& what, const std::string& operands) {
    if (what == stop_at) return Error(Code::kIo, "stop at {}", what);
    lines.push_back(what + operands);
    return Status();
  }
};

TEST_F(ExecutorTest, ObserverSeesEveryStepAndMayStop) {
  const Value x = g_.Data("x", IntType({2}));
  const Value a = g_.Op("Negate", {{"x", x}}, {}, "a");
  const Value b = g_.Op("Total", {{"x", a}}, {}, "b");
  g_.Op("Send", {{"x", b}}, {}, "send", 0);
  g_.Output({b});
  const Compiled model = Compile({IntType({2})});
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const std::unique_ptr<Executor> executor = Make(**model);
  ASSERT_NE(executor, nullptr);
  Write(*executor, 0, IntTensor({1, 2}));
  Scribe scribe;
  const Result<RunStats> stats = executor->Run(&scribe, 7);
  ASSERT_TRUE(stats.ok()) << stats.status().ToString();
  EXPECT_THAT(scribe.lines,
              ElementsAre("run 7 of " + model_->graph.name(), "before a 1", "after a -1",
                          "before b -1", "after b -3", "before send -3", "after send", "end"));
  EXPECT_EQ(stats->steps, 3u);
  EXPECT_EQ(stats->collectives, 1u);
  for (const char* where : {"run", "before b", "after b", "end"}) {
    Scribe stopper;
    stopper.stop_at = where;
    EXPECT_EQ(executor->Run(&stopper).status().message(), fmt::format("stop at {}", where));
  }
}

TEST_F(ExecutorTest, ObserverIsToldOfTheStepThatFailed) {
  const Value x = g_.Data("x", IntType({2}));
  g_.Output({g_.Op("Fail", {{"x", x}}, {}, "unlucky")});
  const Compiled model = Compile({IntType({2})});
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const std::unique_ptr<Executor> executor = Make(**model);
  ASSERT_NE(executor, nullptr);
  Write(*executor, 0, IntTensor({1, 2}));
  Scribe scribe;
  EXPECT_FALSE(executor->Run(&scribe).ok());
  ASSERT_EQ(scribe.lines.size(), 3u);
  EXPECT_EQ(scribe.lines.back(), "failed unlucky: node \"unlucky\" (Fail): out of luck");
}

// What an observer writes into device memory is what the next operator reads.
TEST_F(ExecutorTest, ObserverMayChangeTensors) {
  class Tamper final : public StepObserver {
    Status AfterStep(const StepView& view) override {
      if (view.step.name == "a") *static_cast<int64_t*>(view.args.out[0]) = 100;
      return Status();
    }
  };
  const Value x = g_.Data("x", IntType({2}));
  g_.Output({g_.Op("Total", {{"x", g_.Op("Negate", {{"x", x}}, {}, "a")}}, {}, "b")});
  const Compiled model = Compile({IntType({2})});
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const std::unique_ptr<Executor> executor = Make(**model);
  ASSERT_NE(executor, nullptr);
  Write(*executor, 0, IntTensor({1, 2}));
  Tamper tamper;
  ASSERT_TRUE(executor->Run(&tamper).ok());
  EXPECT_EQ(Read(**model, *executor, 0), (std::vector<int64_t>{98}));
}

TEST_F(ExecutorTest, PlansOfOnePoolShareBuffersAndConstants) {
  const Value x = g_.Data("x", IntType({-1}));
  const Value c = g_.Const("c", IntTensor({1000}));
  g_.Output({g_.Op("Move", {{"x", g_.Op("Negate", {{"x", x}})}}), g_.Op("Random", {{"x", c}})});
  WeightCache weights;
  options_.weights = &weights;
  const Compiled small = Compile({IntType({2})});
  const Compiled large = Compile({IntType({1000})});
  ASSERT_TRUE(small.ok() && large.ok());
  DevicePool pool(memory_);
  const auto first = Executor::Create(**small, pool);
  ASSERT_TRUE(first.ok());
  const auto second = Executor::Create(**large, pool);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(pool.constant_bytes(), 8u);
  EXPECT_EQ(pool.arena_bytes(), (*large)->arena_bytes());
  EXPECT_EQ((*first)->input_buffer(0), (*second)->input_buffer(0));
  // The areas moved when the second plan was made; the first follows.
  Write(**first, 0, IntTensor({4, 5}));
  ASSERT_TRUE((*first)->Run().ok());
  EXPECT_THAT(Read(**small, **first, 0), ElementsAre(-4, -5));
  EXPECT_THAT(Read(**small, **first, 1), ElementsAre(1000));
}

// Areas at both ends of the memory, constants in theirs; what does not fit is allocated.
TEST_F(ExecutorTest, PlansLieInMemoryOfTheCaller) {
  const Value x = g_.Data("x", IntType({-1}));
  const Value c = g_.Const("c", IntTensor({1000}));
  g_.Output({g_.Op("Move", {{"x", g_.Op("Negate", {{"x", x}})}}), g_.Op("Random", {{"x", c}})});
  WeightCache weights;
  options_.weights = &weights;
  const Compiled small = Compile({IntType({2})});
  const Compiled large = Compile({IntType({1000})});
  ASSERT_TRUE(small.ok() && large.ok());
  const uint64_t work_bytes = (*small)->arena_block_bytes() + (*small)->scratch_block_bytes();
  Result<void*> work = memory_.Allocate(work_bytes);
  Result<void*> held = memory_.Allocate((*small)->constant_block_bytes());
  ASSERT_TRUE(work.ok() && held.ok());
  const uint64_t before = memory_.used_bytes();
  {
    DevicePool pool(memory_);
    pool.UseMemory({*work, work_bytes, *held, (*small)->constant_block_bytes()});
    const auto first = Executor::Create(**small, pool);
    ASSERT_TRUE(first.ok());
    EXPECT_EQ(static_cast<void*>(pool.arena()), *work);
    EXPECT_EQ(memory_.used_bytes(), before + kHbmAlignment);  // the input
    Write(**first, 0, IntTensor({4, 5}));
    ASSERT_TRUE((*first)->Run().ok());
    EXPECT_THAT(Read(**small, **first, 0), ElementsAre(-4, -5));
    EXPECT_THAT(Read(**small, **first, 1), ElementsAre(1000));
    EXPECT_EQ(*static_cast<const int64_t*>(*held), 1000);
    const auto second = Executor::Create(**large, pool);
    ASSERT_TRUE(second.ok());
    EXPECT_NE(static_cast<void*>(pool.arena()), *work);
    ASSERT_TRUE((*first)->Run().ok());
    EXPECT_THAT(Read(**small, **first, 1), ElementsAre(1000));
  }
  EXPECT_EQ(memory_.used_bytes(), before);
  EXPECT_TRUE(memory_.Free(*work).ok() && memory_.Free(*held).ok());
}

TEST_F(ExecutorTest, DeviceMemoryRunsOut) {
  const Value x = g_.Data("x", IntType({-1}));
  g_.Output({g_.Op("Move", {{"x", x}})});
  const Compiled fits = Compile({IntType({1000})});
  const Compiled large = Compile({IntType({100000})});
  ASSERT_TRUE(fits.ok() && large.ok());
  DevicePool pool(memory_);
  const auto first = Executor::Create(**fits, pool);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(Executor::Create(**large, pool).status().code(), Code::kOutOfMemory);
  // The plan that fits takes its memory back.
  EXPECT_TRUE((*first)->Run().ok());
}

}  // namespace
}  // namespace npumesh
