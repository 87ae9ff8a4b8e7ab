// Collectives beside computing, over ranks: a late rank holds up only those who need it, and
// failures read as ever.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "tests/unit/session/session_fixture.h"

namespace npumesh {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Tiny operators and Open (x): copies x and opens the door. Shared by the ranks, which are threads.
struct Ops {
  std::atomic<bool> open{false};
  OpRegistry registry = TinyOps();

  Ops() {
    Operator op;
    op.schema = {"Open", {{"x"}}, {{"y"}}, {}};
    op.infer = [](OpContext& context) {
      context.set_out(0, context.in(0));
      return Status();
    };
    op.make_kernel = [this](const OpContext& context) -> Result<std::unique_ptr<Kernel>> {
      const uint64_t bytes = context.out(0).bytes();
      return MakeKernel([this, bytes](const KernelArgs& args) {
        open = true;
        std::memcpy(args.out[0], args.in[0], bytes);
        return Status();
      });
    };
    registry.Add(op);
  }
};

SessionOptions Overlapping(const OpRegistry& registry) {
  SessionOptions options;
  options.registry = &registry;
  options.compile.overlap_collectives = true;
  return options;
}

// Lets its rank be late at the collective until the door is open.
class LateAtTheDoor final : public StepObserver {
 public:
  explicit LateAtTheDoor(const std::atomic<bool>& open) : open_(open) {}
  Status BeforeStep(const StepView& view) override {
    if (!view.step.collective) return Status();
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!open_ && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    if (open_) return Status();
    return Error(Code::kTimeout, "the other rank waits instead of computing");
  }

 private:
  const std::atomic<bool>& open_;
};

// Rank 1 comes to the collective only after rank 0 has computed what does not need it. On one
// stream rank 0 would wait in the collective, and the door would stay closed.
TEST(OverlapRanksTest, ALateRankDoesNotStopTheOthersFromComputing) {
  Ops ops;
  const std::vector<Status> statuses =
      OnRanks(2, [&](World& world, DeviceMemory& memory) -> Status {
        GraphBuilder g;
        const Value x = g.Data("x", IntType({2}));
        const Value sum = g.Op("Meet", {{"x", x}}, {}, "sum");
        // On rank 1 an observer keeps to one stream, so its door is a plain copy.
        const Value mine = g.Op(world.rank() == 0 ? "Open" : "Move", {{"x", x}}, {}, "mine");
        g.Output({g.Op("Plus", {{"x1", sum}, {"x2", mine}})});
        NPUMESH_ASSIGN_OR_RETURN(Model model, g.Build());
        NPUMESH_ASSIGN_OR_RETURN(
            const std::unique_ptr<Session> session,
            Session::Create(world, memory, std::move(model), Overlapping(ops.registry)));
        LateAtTheDoor late(ops.open);
        StepObserver* const observer = world.rank() == 1 ? &late : nullptr;
        NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs,
                                 session->Run({IntTensor({world.rank(), 10})}, observer));
        EXPECT_EQ(IntsIn(outputs[0]), (std::vector<int64_t>{1 + world.rank(), 30}));
        EXPECT_EQ(session->stats().run.collectives, 1u);
        return Status();
      });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.ToString();
}

TEST(OverlapRanksTest, AMismatchNamesNodeAndRankOnAll) {
  const std::vector<Status> statuses = OnRanks(2, [](World& world, DeviceMemory& memory) -> Status {
    static const OpRegistry registry = TinyOps();
    GraphBuilder g;
    const Value x = g.Data("x", IntType({-1}));
    const Value sum = g.Op("Meet", {{"x", x}}, {}, "sum");
    g.Output({g.Op("Negate", {{"x", x}}), sum});
    NPUMESH_ASSIGN_OR_RETURN(Model model, g.Build());
    NPUMESH_ASSIGN_OR_RETURN(
        const std::unique_ptr<Session> session,
        Session::Create(world, memory, std::move(model), Overlapping(registry)));
    const Tensor input = world.rank() == 0 ? IntTensor({1, 2}) : IntTensor({1, 2, 3});
    return session->Run({input}).status();
  });
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), Code::kMismatch) << status.ToString();
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("\"sum\""), HasSubstr("rank 1")));
  }
}

TEST(OverlapRanksTest, AFailingRankIsNotWaitedFor) {
  const std::vector<Status> statuses = OnRanks(2, [](World& world, DeviceMemory& memory) -> Status {
    static const OpRegistry registry = TinyOps();
    GraphBuilder g;
    const Value x = g.Data("x", IntType({2}));
    const Value before = g.Op(world.rank() == 1 ? "Fail" : "Move", {{"x", x}}, {}, "unlucky");
    const Value sum = g.Op("Meet", {{"x", before}}, {}, "sum");
    g.Output({g.Op("Negate", {{"x", x}}), sum});
    NPUMESH_ASSIGN_OR_RETURN(Model model, g.Build());
    NPUMESH_ASSIGN_OR_RETURN(
        const std::unique_ptr<Session> session,
        Session::Create(world, memory, std::move(model), Overlapping(registry)));
    return session->Run({IntTensor({1, 2})}).status();
  });
  EXPECT_EQ(statuses[1].message(), "node \"unlucky\" (Fail): out of luck");
  EXPECT_EQ(statuses[0].code(), Code::kPeerLost) << statuses[0].ToString();
  EXPECT_THAT(std::string(statuses[0].message()), HasSubstr("out of luck"));
}

}  // namespace
}  // namespace npumesh
