// Collectives beside computing: they overlap, results stay what they were, errors name the step.
#include <gmock/gmock.h>

#include <atomic>
#include <random>
#include <thread>

#include "tests/unit/engine/engine_fixture.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A door that a collective waits behind and that an operator opens.
struct Door {
  std::atomic<bool> open{false};
  // Patient, since the test may run on a loaded machine.
  bool Pass() const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!open && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return open;
  }
};

// Gate (x): a collective that copies x once the door is open; fails when no step opens it.
// Slow (x): a collective that copies x after some microseconds.
// Broken (x): a collective that fails.
// Open (x): opens the door and copies x.
OpRegistry OpsWithDoor(Door& door) {
  OpRegistry registry = TinyOps();
  const auto add = [&](std::string_view type, bool collective, auto before) {
    Operator op;
    op.schema = {type, {{"x"}}, {{"y"}}, {}};
    if (collective) op.collective = CollectiveTrait();
    op.infer = [](OpContext& context) {
      context.set_out(0, context.in(0));
      return Status();
    };
    op.make_kernel = [before](const OpContext& context) -> Result<std::unique_ptr<Kernel>> {
      const uint64_t bytes = context.out(0).bytes();
      return MakeKernel([before, bytes](const KernelArgs& args) -> Status {
        NPUMESH_RETURN_IF_ERROR(before());
        std::memcpy(args.out[0], args.in[0], bytes);
        return Status();
      });
    };
    registry.Add(op);
  };
  add("Gate", true, [&door]() -> Status {
    return door.Pass() ? Status() : Error(Code::kTimeout, "the door stayed closed");
  });
  add("Slow", true, [] {
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    return Status();
  });
  add("Broken", true, []() -> Status { return Error(Code::kPeerLost, "rank 1 is gone"); });
  add("Open", false, [&door] {
    door.open = true;
    return Status();
  });
  return registry;
}

class OverlapTest : public testing::Test {
 protected:
  OverlapTest() { options_.overlap_collectives = true; }

  CompiledModel* Compile(const std::vector<TensorType>& types) {
    model_ = std::make_unique<Model>(g_.Build().value());
    auto compiled = CompiledModel::Compile(*model_, registry_, types, {}, nullptr, options_);
    EXPECT_TRUE(compiled.ok()) << compiled.status().ToString();
    compiled_ = compiled.ok() ? std::move(compiled).value() : nullptr;
    executor_ = Executor::Create(*compiled_, memory_).value();
    return compiled_.get();
  }

  void Write(int position, const std::vector<int64_t>& values) {
    std::memcpy(executor_->input_buffer(position), values.data(), values.size() * sizeof(int64_t));
  }
  std::vector<int64_t> Read(int output, size_t count) {
    const auto* data = static_cast<const int64_t*>(executor_->output(output));
    return {data, data + count};
  }
  const Step& StepOf(const std::string& name) const { return compiled_->steps()[IndexOf(name)]; }
  size_t IndexOf(const std::string& name) const {
    size_t i = 0;
    while (compiled_->steps()[i].name != name) ++i;
    return i;
  }
  Value Op(std::string type, Value x, std::string name) {
    return g_.Op(std::move(type), {{"x", x}}, {}, std::move(name));
  }

  Door door_;
  const OpRegistry registry_ = OpsWithDoor(door_);
  CompileOptions options_;
  GraphBuilder g_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<CompiledModel> compiled_;
  DeviceMemory memory_{std::make_unique<SmallSegment>(), 0};
  std::unique_ptr<Executor> executor_;
};

// On one stream this graph could never end: the collective stands in front of what opens the door.
TEST_F(OverlapTest, StepsGoOnWhileACollectiveIsUnderWay) {
  const Value x = g_.Data("x", IntType({2}));
  const Value gate = Op("Gate", x, "gate");
  const Value open = Op("Open", x, "open");
  g_.Output({g_.Op("Plus", {{"x1", gate}, {"x2", open}}, {}, "plus")});
  Compile({IntType({2})});
  EXPECT_TRUE(StepOf("gate").beside);
  EXPECT_FALSE(StepOf("open").beside);
  EXPECT_EQ(StepOf("plus").wait_for, static_cast<int>(IndexOf("gate")));
  Write(0, {3, 4});
  for (int run = 0; run < 3; ++run) {
    door_.open = false;
    const Result<RunStats> stats = executor_->Run();
    ASSERT_TRUE(stats.ok()) << stats.status().ToString();
    EXPECT_EQ(stats->collectives, 1u);
    EXPECT_GE(stats->collective_seconds, stats->hidden_seconds);
    EXPECT_THAT(Read(0, 2), ElementsAre(6, 8));
    const std::vector<StepSpan>& spans = executor_->timeline();
    EXPECT_LT(spans[IndexOf("open")].start, spans[IndexOf("gate")].end);
    EXPECT_LE(spans[IndexOf("gate")].end, spans[IndexOf("plus")].start);
  }
}

TEST_F(OverlapTest, NothingRunsBesideUnlessAsked) {
  options_.overlap_collectives = false;
  const Value x = g_.Data("x", IntType({2}));
  g_.Output({Op("Gate", x, "gate"), Op("Open", x, "open")});
  Compile({IntType({2})});
  EXPECT_FALSE(StepOf("gate").beside);
  door_.open = true;
  Write(0, {3, 4});
  ASSERT_TRUE(executor_->Run().ok());
  EXPECT_THAT(Read(0, 2), ElementsAre(3, 4));
}

// An observer sees each step's tensors whole, so nothing is under way then.
TEST_F(OverlapTest, ObservedRunsKeepToOneStream) {
  class Looker final : public StepObserver {
   public:
    std::vector<std::string> lines;
    Status AfterStep(const StepView& view) override {
      lines.push_back(
          fmt::format("{} {}", view.step.name, *static_cast<const int64_t*>(view.args.out[0])));
      return Status();
    }
  };
  const Value x = g_.Data("x", IntType({2}));
  const Value slow = Op("Slow", x, "slow");
  const Value a = Op("Negate", x, "a");
  g_.Output({slow, a});
  Compile({IntType({2})});
  Write(0, {3, 4});
  Looker looker;
  ASSERT_TRUE(executor_->Run(&looker).ok());
  EXPECT_THAT(looker.lines, ElementsAre("slow 3", "a -3"));
}

TEST_F(OverlapTest, AnInPlaceWriterWaitsForTheCollectiveThatReads) {
  const Value ref = g_.RefData("ref", IntType({2}));
  const Value x = g_.Data("x", IntType({2}));
  const Value slow = Op("Slow", ref, "slow");
  const Value store = g_.Op("Store", {{"ref", ref}, {"value", x}}, {}, "store");
  g_.Output({slow, store});
  Compile({IntType({2}), IntType({2})});
  EXPECT_EQ(StepOf("store").wait_for, static_cast<int>(IndexOf("slow")));
  Write(0, {1, 2});
  Write(1, {8, 9});
  ASSERT_TRUE(executor_->Run().ok());
  EXPECT_THAT(Read(0, 2), ElementsAre(1, 2));
  EXPECT_THAT(Read(1, 2), ElementsAre(8, 9));
}

TEST_F(OverlapTest, AFailedCollectiveIsTheErrorOfTheRun) {
  const Value x = g_.Data("x", IntType({2}));
  const Value broken = Op("Broken", x, "broken");
  const Value after = Op("Slow", x, "after");
  g_.Output({Op("Move", broken, "move"), after});
  Compile({IntType({2})});
  for (int run = 0; run < 2; ++run) {
    const Status status = executor_->Run().status();
    EXPECT_EQ(status.code(), Code::kPeerLost);
    EXPECT_EQ(status.message(), "node \"broken\" (Broken): rank 1 is gone");
  }
}

// No step waits for it before the end of the run.
TEST_F(OverlapTest, AFailureIsSeenAtTheEnd) {
  const Value x = g_.Data("x", IntType({2}));
  g_.Output({Op("Negate", x, "a"), Op("Broken", x, "broken")});
  Compile({IntType({2})});
  EXPECT_THAT(std::string(executor_->Run().status().message()), HasSubstr("\"broken\""));
}

// The run returns only when the collective that was under way has left the buffers.
TEST_F(OverlapTest, AFailedStepLeavesNothingUnderWay) {
  const Value x = g_.Data("x", IntType({2}));
  const Value slow = Op("Slow", x, "slow");
  const Value fail = Op("Fail", x, "fail");
  g_.Output({slow, fail});
  Compile({IntType({2})});
  const Status status = executor_->Run().status();
  EXPECT_EQ(status.message(), "node \"fail\" (Fail): out of luck");
  const std::vector<StepSpan>& spans = executor_->timeline();
  EXPECT_LT(spans[IndexOf("slow")].start, spans[IndexOf("slow")].end);
  executor_.reset();
  EXPECT_EQ(memory_.used_bytes(), 0u);
}

// Random graphs give the same with and without overlap, with plans that spare memory and without.
TEST_F(OverlapTest, RandomGraphsGiveTheSameResults) {
  door_.open = true;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    std::vector<std::vector<int64_t>> results[3];
    for (int way = 0; way < 3; ++way) {
      std::mt19937 random(seed);
      g_ = GraphBuilder();
      options_.overlap_collectives = way > 0;
      options_.spare_memory = way == 2;
      std::vector<Value> values = {g_.Data("x", IntType({50})), g_.RefData("r", IntType({50}))};
      for (int i = 0; i < 30; ++i) {
        const auto pick = [&] { return values[random() % values.size()]; };
        const Value a = pick();
        const auto kind = random() % 8;
        values.push_back(kind < 2    ? Op(kind == 0 ? "Slow" : "Gate", a, "")
                         : kind == 2 ? g_.Op("Accumulate", {{"ref", values[1]}, {"value", a}})
                         : kind == 3 ? Op("Move", a, "")
                         : kind == 4 ? Op("Negate", a, "")
                                     : g_.Op("Plus", {{"x1", a}, {"x2", pick()}}));
      }
      g_.Output({values.back(), values[values.size() / 2], values[values.size() / 3]});
      Result<Model> built = g_.Build();
      ASSERT_TRUE(built.ok());
      model_ = std::make_unique<Model>(std::move(built).value());
      auto compiled = CompiledModel::Compile(*model_, registry_, {IntType({50}), IntType({50})}, {},
                                             nullptr, options_);
      if (!compiled.ok()) continue;  // two in-place operators that need each other's old value
      compiled_ = std::move(compiled).value();
      executor_ = Executor::Create(*compiled_, memory_).value();
      for (int input = 0; input < 2; ++input) {
        std::vector<int64_t> data(50);
        for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<int64_t>(i) + input;
        Write(input, data);
      }
      for (int run = 0; run < 3; ++run) ASSERT_TRUE(executor_->Run().ok());
      for (int output = 0; output < 3; ++output) results[way].push_back(Read(output, 50));
      executor_.reset();
    }
    EXPECT_EQ(results[0], results[1]) << "seed " << seed;
    EXPECT_EQ(results[0], results[2]) << "seed " << seed;
  }
}

}  // namespace
}  // namespace npumesh
