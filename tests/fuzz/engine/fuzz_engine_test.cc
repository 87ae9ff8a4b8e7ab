// Random graphs: the engine agrees with a plain interpreter, under every set of options.
//
//   fuzz_engine --first=1 --seeds=500 --sets=7 --save=failed
//   fuzz_engine --first=1 --seeds=20 --write=cases
//
// runs the graphs of 500 seeds, each with the default options and seven other sets (0: all), and
// writes what fails, made as small as it goes, below the folder `failed`. With --write nothing is
// run: the graphs and what they are fed are written below that folder. With --static-kernels the
// one other set is that of static kernels.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <iostream>

#include "graph/ops/builtin_ops.h"
#include "graph/ops/core/op_registry.h"
#include "runtime/base/text/parse.h"
#include "tests/fuzz/engine/case_check.h"
#include "tests/fuzz/engine/child_process.h"
#include "tests/fuzz/engine/generator.h"
#include "tests/fuzz/engine/interpreter.h"
#include "tests/fuzz/engine/plain_ops.h"
#include "tests/fuzz/engine/saved_case.h"
#include "tests/fuzz/engine/shrinker.h"

namespace npumesh::fuzz {
namespace {

struct Arguments {
  uint64_t first = 1;
  uint64_t seeds = 500;
  uint64_t sets = 7;  // beside the default; 0: all
  uint64_t most_failures = 10;
  bool shrinks = true;
  bool static_kernels = false;
  std::string save;   // folder; empty: nothing is written
  std::string write;  // the same, of all cases, which are not run then
};

Arguments& Asked() {
  static Arguments arguments;
  return arguments;
}

constexpr uint64_t kSeedsOfAChild = 250;
constexpr int64_t kMostNumber = int64_t{1} << 50;

// The default, and others that change from seed to seed.
std::vector<const OptionSet*> SetsFor(uint64_t seed) {
  const std::vector<OptionSet>& all = OptionSets();
  std::vector<const OptionSet*> sets = {&all[0]};
  if (Asked().static_kernels) {
    sets.push_back(&StaticKernelSet());
    return sets;
  }
  const uint64_t others = all.size() - 1;
  const uint64_t count = Asked().sets == 0 ? others : std::min(Asked().sets, others);
  for (uint64_t i = 0; i < count; ++i) sets.push_back(&all[1 + (seed * count + i) % others]);
  return sets;
}

struct Failure {
  uint64_t seed = 0;
  std::string kind;
  std::string text;
};

// Says "!kind\ntext" when the sets disagree. False: the world is spent.
bool CheckAloud(World& world, DeviceMemory& memory, const FuzzCase& fuzzed, uint64_t seed,
                const Say& say) {
  const Verdict verdict = CheckCase(world, memory, fuzzed, SetsFor(seed));
  if (verdict.found) say("!" + verdict.found->kind + "\n" + verdict.found->text);
  return !verdict.spent;
}

// From what CheckAloud says.
Failure Told(uint64_t seed, const std::string& said) {
  const size_t line = said.find('\n');
  return {seed, said.substr(1, line - 1), said.substr(line + 1)};
}

// How the case fails in a separate process; empty kind: it does not.
Failure FailureOf(const FuzzCase& fuzzed, uint64_t seed) {
  const ChildReport report = RunInChild([&](const Say& say) {
    const Status status = WithDevice(
        [&](World& world, DeviceMemory& memory) { CheckAloud(world, memory, fuzzed, seed, say); });
    if (!status.ok()) say("!device\n" + status.ToString());
  });
  if (!report.end.empty()) return {seed, report.end, report.end};
  if (report.said.empty()) return {seed, "", ""};
  return Told(seed, report.said[0]);
}

// The seeds of [first, end) that fail; stops at the seed behind one that ends the process.
std::vector<Failure> RunSeeds(uint64_t& first, uint64_t end) {
  const ChildReport report = RunInChild([&](const Say& say) {
    for (uint64_t seed = first; seed < end;) {
      const Status status = WithDevice([&](World& world, DeviceMemory& memory) {
        for (bool fresh = true; seed < end && fresh; ++seed) {
          say(std::to_string(seed));
          fresh = CheckAloud(world, memory, Generate(seed), seed, say);
        }
      });
      if (!status.ok()) return say("!device\n" + status.ToString());
    }
  });
  std::vector<Failure> failures;
  uint64_t seed = first;
  for (const std::string& said : report.said) {
    if (said[0] != '!') {
      seed = static_cast<uint64_t>(ParseInt(said, 0, kMostNumber, "seed").value());
      continue;
    }
    failures.push_back(Told(seed, said));
  }
  if (!report.end.empty()) failures.push_back({seed, report.end, report.end});
  first = report.end.empty() ? end : seed + 1;
  return failures;
}

FuzzCase Smallest(const Failure& failure) {
  const FuzzCase whole = Generate(failure.seed);
  if (!Asked().shrinks) return whole;
  return Shrink(whole, [&](const FuzzCase& smaller) {
    return FailureOf(smaller, failure.seed).kind == failure.kind;
  });
}

void Tell(const Failure& failure) {
  const FuzzCase smallest = Smallest(failure);
  const Failure shrunk = Asked().shrinks ? FailureOf(smallest, failure.seed) : failure;
  const std::string why =
      fmt::format("seed {}: {}: {}\nagain: fuzz_engine --first={} --seeds=1 --sets={}",
                  failure.seed, failure.kind, shrunk.text, failure.seed, Asked().sets);
  ADD_FAILURE() << why << "\n" << Describe(smallest);
  if (Asked().save.empty()) return;
  const std::string folder = fmt::format("{}/seed{}", Asked().save, failure.seed);
  EXPECT_TRUE(SaveCase(smallest, folder, why).ok());
}

TEST(FuzzEngine, AgreesWithThePlainInterpreter) {
  const Arguments& asked = Asked();
  uint64_t failed = 0;
  for (uint64_t seed = asked.first; seed < asked.first + asked.seeds;) {
    const uint64_t end = std::min(seed + kSeedsOfAChild, asked.first + asked.seeds);
    for (const Failure& failure : RunSeeds(seed, end)) {
      if (++failed <= asked.most_failures) Tell(failure);
    }
  }
  std::cout << asked.seeds << " graphs from seed " << asked.first << ", " << failed
            << " disagreements\n";
  EXPECT_EQ(failed, 0u);
}

// For tests that run the cases by other ways into npumesh.
TEST(FuzzEngine, WritesItsCasesWhenAsked) {
  if (Asked().write.empty()) GTEST_SKIP() << "without --write";
  for (uint64_t seed = Asked().first; seed < Asked().first + Asked().seeds; ++seed) {
    const std::string folder = fmt::format("{}/seed{}", Asked().write, seed);
    const Status written = SaveCase(Generate(seed), folder, "written, not run");
    ASSERT_TRUE(written.ok()) << written.ToString();
  }
}

TEST(FuzzEngine, EveryGeneratedOperatorIsRegisteredAndInterpreted) {
  for (const std::string& type : GeneratedTypes()) {
    const bool furniture = type == "NetOutput" || type == "RefData";
    EXPECT_TRUE(furniture || BuiltinOps().Find(type) != nullptr) << type;
    const bool built_in = furniture || type == "Data" || type == "Const";
    EXPECT_TRUE(built_in || IsControlFlow(type) || PlainOps().count(type) > 0) << type;
  }
  EXPECT_GE(GeneratedTypes().size(), 120u);
}

// What the interpreter calls a view or a writer is what the registry does.
TEST(FuzzEngine, StoragesAreThoseOfTheRegistry) {
  for (const auto& [type, plain] : PlainOps()) {
    const Operator* op = BuiltinOps().Find(type);
    ASSERT_NE(op, nullptr) << type;
    EXPECT_EQ(plain.view, op->view) << type;
    EXPECT_EQ(plain.writes, !op->in_place.empty()) << type;
  }
}

TEST(FuzzEngine, SetsOfOptionsAreAccepted) {
  for (const OptionSet& set : OptionSets()) {
    EXPECT_EQ(set.name.find("refused"), std::string::npos) << set.name;
  }
  EXPECT_EQ(StaticKernelSet().name, "static kernels");
}

bool TakeNumber(std::string_view argument, std::string_view name, uint64_t& number) {
  if (argument.substr(0, name.size()) != name) return false;
  const Result<int64_t> value = ParseInt(argument.substr(name.size()), 0, kMostNumber, name);
  if (value.ok()) number = static_cast<uint64_t>(*value);
  return value.ok();
}

bool Take(std::string_view argument) {
  Arguments& asked = Asked();
  constexpr std::string_view kSave = "--save=", kWrite = "--write=";
  if (argument.starts_with(kWrite)) {
    asked.write = argument.substr(kWrite.size());
    return true;
  }
  if (argument.substr(0, kSave.size()) == kSave) {
    asked.save = argument.substr(kSave.size());
    return true;
  }
  if (argument == "--static-kernels") {
    asked.static_kernels = true;
    return true;
  }
  uint64_t shrinks = 1;
  const bool taken = TakeNumber(argument, "--first=", asked.first) ||
                     TakeNumber(argument, "--seeds=", asked.seeds) ||
                     TakeNumber(argument, "--sets=", asked.sets) ||
                     TakeNumber(argument, "--most-failures=", asked.most_failures) ||
                     TakeNumber(argument, "--shrink=", shrinks);
  if (shrinks == 0) asked.shrinks = false;
  return taken;
}

}  // namespace
}  // namespace npumesh::fuzz

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (npumesh::fuzz::Take(argv[i])) continue;
    std::cerr << "unknown argument " << argv[i]
              << "; expected --first=N, --seeds=N, --sets=N, --most-failures=N, --shrink=0, "
                 "--static-kernels, --save=FOLDER or --write=FOLDER\n";
    return 2;
  }
  // Its folder belongs to this process, not to a child.
  if (npumesh::fuzz::Asked().static_kernels) (void)npumesh::fuzz::StaticKernelSet();
  return RUN_ALL_TESTS();
}
