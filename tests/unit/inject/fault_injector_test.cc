// Faults in a run of one rank, and the chain through which others look on.
#include "graph/inject/fault_injector.h"

#include <gmock/gmock.h>

#include <chrono>

#include "graph/engine/run/observer_chain.h"
#include "graph/ir/graph_builder.h"
#include "graph/session/session.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// twice = x + x, then "four times" = twice + twice, for x = 1, 2, 3.
Result<std::vector<Tensor>> RunOnce(StepObserver* observer, int runs = 1) {
  GraphBuilder g;
  const TensorType type{DataType::kFloat, {3}};
  const Value x = g.Data("x", type);
  const Value twice = g.Op("Add", {{"x1", x}, {"x2", x}}, {}, "twice");
  g.Output({g.Op("Add", {{"x1", twice}, {"x2", twice}}, {}, "four times")});
  const Model model = *g.Build();
  Env env;
  env.hbm_bytes = uint64_t{4} << 20;
  std::vector<Tensor> outputs;
  const std::vector<Status> statuses = RunRanks(1, env, [&](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
    NPUMESH_ASSIGN_OR_RETURN(const auto session, Session::Create(world, *memory, model));
    for (int run = 0; run < runs; ++run) {
      NPUMESH_ASSIGN_OR_RETURN(
          outputs, session->Run({Tensor::FromVector<float>(type, {1, 2, 3})}, observer));
    }
    return Status();
  });
  if (!statuses[0].ok()) return statuses[0];
  return outputs;
}

std::vector<float> Outcome(const std::string& fault, int runs = 1) {
  FaultInjector injector({*ParseFault(fault)}, 0, 7);
  const Result<std::vector<Tensor>> outputs = RunOnce(&injector, runs);
  EXPECT_TRUE(outputs.ok()) << outputs.status().ToString();
  const auto values = (*outputs)[0].as<float>();
  return {values.begin(), values.end()};
}

TEST(FaultInjector, CorruptsOneElementBeforeAnybodyReadsIt) {
  EXPECT_THAT(Outcome("corrupt:rank=0,op=twice,element=1"), ElementsAre(4, -12, 12));
  EXPECT_THAT(Outcome("corrupt:rank=0,op=four times,element=0"), ElementsAre(-12, 8, 12));
}

TEST(FaultInjector, LeavesOtherRanksAndStepsAlone) {
  EXPECT_THAT(Outcome("corrupt:rank=1,op=twice,element=1"), ElementsAre(4, 8, 12));
  EXPECT_THAT(Outcome("corrupt:rank=0,op=twice,element=1,step=1"), ElementsAre(4, 8, 12));
  EXPECT_THAT(Outcome("corrupt:rank=0,op=twice,element=1,step=1", 2), ElementsAre(4, -12, 12));
}

TEST(FaultInjector, Delays) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(Outcome("delay:rank=0,op=twice,ms=30"), ElementsAre(4, 8, 12));
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(30));
}

TEST(FaultInjector, SaysWhatItCannotHit) {
  const auto error = [](const std::string& fault) {
    FaultInjector injector({*ParseFault(fault)}, 0, 7);
    return RunOnce(&injector).status();
  };
  EXPECT_EQ(error("kill:rank=0,op=nobody").code(), Code::kNotFound);
  EXPECT_THAT(error("kill:rank=0,op=nobody").message(), HasSubstr("no operator \"nobody\""));
  EXPECT_THAT(error("corrupt:rank=0,op=twice,element=3").message(), HasSubstr("has 3 elements"));
  EXPECT_THAT(error("corrupt:rank=0,op=twice,output=1").message(), HasSubstr("has 1 outputs"));
}

// Writes down when it was told, and fails when it is told `fail_at`.
class Witness final : public StepObserver {
 public:
  Witness(char name, char fail_at, std::string& told)
      : name_(name), fail_at_(fail_at), told_(told) {}
  Status BeforeRun(const RunView&) override { return Told('r'); }
  Status BeforeStep(const StepView&) override { return Told('b'); }
  Status AfterStep(const StepView&) override { return Told('a'); }
  Status AfterRun(const RunView&) override { return Told('e'); }

 private:
  Status Told(char what) {
    told_ += name_;
    told_ += what;
    return what == fail_at_ ? Error(Code::kInternal, "witness") : Status();
  }
  char name_;
  char fail_at_;
  std::string& told_;
};

TEST(ObserverChain, TellsAllInOrderUntilOneFails) {
  for (const auto& [fail_at, expected] : std::vector<std::pair<char, std::string>>{
           {' ', "1r2r1b2b1a2a1b2b1a2a1e2e"}, {'r', "1r"}, {'a', "1r2r1b2b1a"}}) {
    std::string told;
    Witness first('1', fail_at, told), second('2', ' ', told);
    ObserverChain chain;
    EXPECT_TRUE(chain.empty());
    chain.Add(&first);
    chain.Add(nullptr);
    chain.Add(&second);
    EXPECT_EQ(RunOnce(&chain).ok(), fail_at == ' ');
    EXPECT_EQ(told, expected);
  }
}

}  // namespace
}  // namespace npumesh
