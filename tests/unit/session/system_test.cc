// initialize_system, the rank functions, shutdown_system.
#include "graph/session/system.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <map>

#include "tests/unit/base/temporary_folder.h"
#include "tests/unit/session/session_fixture.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(System, NothingWorksBeforeItIsInitialised) {
  System system;
  const Status failures[] = {
      system.RankSize().status(),
      system.RankId().status(),
      system.LocalRankSize().status(),
      system.LocalRankId().status(),
      system.WorldRankFromGroupRank("hccl_world_group", 0).status(),
      system.GroupRankFromWorldRank(0, "hccl_world_group").status(),
      system.Group().status(),
      system.Memory().status(),
      system.Compile(Model(), NpuBackend()).status(),
      system.Shutdown(),
  };
  for (const Status& failure : failures) {
    EXPECT_EQ(failure.code(), Code::kInvalidArgument);
    EXPECT_THAT(std::string(failure.message()),
                HasSubstr("the system is not initialised; call initialize_system"));
  }
}

TEST(System, RankFunctionsKnowGroupsAndNodes) {
  const auto body = [](World& world) -> Status {
    System system;
    NPUMESH_RETURN_IF_ERROR(system.Initialize(world));
    NPUMESH_ASSIGN_OR_RETURN(const int size, system.RankSize());
    NPUMESH_ASSIGN_OR_RETURN(const int rank, system.RankId());
    NPUMESH_ASSIGN_OR_RETURN(const int local_size, system.LocalRankSize());
    NPUMESH_ASSIGN_OR_RETURN(const int local_rank, system.LocalRankId());
    EXPECT_EQ(size, 3);
    EXPECT_EQ(rank, world.rank());
    EXPECT_EQ(local_size, world.rank() < 2 ? 2 : 1);
    EXPECT_EQ(local_rank, world.local_rank());
    const std::string group = "tag=x;rank_list=2,0";
    if (world.rank() == 1) {
      EXPECT_THAT(std::string(system.RankId(group).status().message()),
                  HasSubstr("get_rank_id: rank 1 is no member of group"));
      return system.Shutdown();
    }
    NPUMESH_ASSIGN_OR_RETURN(const int in_group, system.RankId(group));
    NPUMESH_ASSIGN_OR_RETURN(const int local, system.LocalRankSize(group));
    NPUMESH_ASSIGN_OR_RETURN(const int first, system.WorldRankFromGroupRank(group, 0));
    NPUMESH_ASSIGN_OR_RETURN(const int zero, system.GroupRankFromWorldRank(0, group));
    EXPECT_EQ(in_group, world.rank() == 2 ? 0 : 1);
    EXPECT_EQ(local, 1);
    EXPECT_EQ(first, 2);
    EXPECT_EQ(zero, 1);
    EXPECT_FALSE(system.WorldRankFromGroupRank(group, 2).ok());
    EXPECT_FALSE(system.GroupRankFromWorldRank(1, group).ok());
    EXPECT_EQ(system.RankSize("unknown").status().code(), Code::kNotFound);
    return system.Shutdown();
  };
  for (const Status& status : RunRanks(3, SmallEnv(), body, {2, 1})) {
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
}

TEST(System, AgainWithEqualOptionsIsNothingWithOthersAnError) {
  const auto statuses = RunRanks(1, SmallEnv(), [](World& world) -> Status {
    System system;
    SystemOptions options;
    options.graph_run_mode = 0;
    NPUMESH_RETURN_IF_ERROR(system.Initialize(world, options));
    NPUMESH_RETURN_IF_ERROR(system.Initialize(world, options));
    EXPECT_THAT(std::string(system.Initialize(world).message()),
                HasSubstr("session.graph_run_mode was 0, now 1; shut it down first"));
    NPUMESH_RETURN_IF_ERROR(system.Shutdown());
    EXPECT_FALSE(system.initialized());
    EXPECT_FALSE(system.RankId().ok());
    EXPECT_FALSE(system.Shutdown().ok());
    NPUMESH_RETURN_IF_ERROR(system.Initialize(world));
    return system.Shutdown();
  });
  EXPECT_TRUE(statuses[0].ok()) << statuses[0].ToString();
}

TEST(System, WrongOptionsAreRefusedBeforeAnythingStarts) {
  System system;
  SystemOptions options;
  options.enable_dump = true;
  EXPECT_THAT(std::string(system.Initialize(Env(), options).message()),
              HasSubstr("session.dump_path: needed"));
  EXPECT_FALSE(system.initialized());
}

// From initialize_system to shutdown_system, on two ranks.
TEST(System, ProfilesWhatItsOptionsSay) {
  const TemporaryFolder folder;
  const auto body = [&](World& world) -> Status {
    SystemOptions options;
    options.profiling_mode = true;
    options.profiling_options = fmt::format(
        R"({{"output": "{}", "training_trace": "on", "task_trace": "on"}})", folder.path());
    options.fp_point = "half";
    options.bp_point = "sum";
    System system;
    NPUMESH_RETURN_IF_ERROR(system.Initialize(world, options));
    NPUMESH_ASSIGN_OR_RETURN(const NpuBackend backend, GetNpuBackend());
    {
      GraphBuilder g;
      const Value x = g.Data("x", {DataType::kFloat, {64}});
      const Value half = g.Op("Mul", {{"x1", x}, {"x2", x}}, {}, "half");
      g.Output({g.Op("HcomAllReduce", {{"x", half}},
                     {{"reduction", AttrValue::String("sum")},
                      {"group", AttrValue::String(std::string(kWorldGroup))}},
                     "sum")});
      NPUMESH_ASSIGN_OR_RETURN(Model model, g.Build());
      NPUMESH_ASSIGN_OR_RETURN(const auto session, system.Compile(std::move(model), backend));
      const Tensor x64 = Tensor::Allocate({DataType::kFloat, Shape({64})});
      for (int step = 0; step < 3; ++step) {
        NPUMESH_RETURN_IF_ERROR(session->Run({x64}).status());
      }
    }
    return system.Shutdown();
  };
  for (const Status& status : RunRanks(2, SmallEnv(), body)) {
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  const auto profiles = ReadProfiles(folder.path());
  ASSERT_TRUE(profiles.ok()) << profiles.status().ToString();
  ASSERT_EQ(profiles->size(), 2u);
  for (const RankProfile& profile : *profiles) {
    EXPECT_TRUE(profile.ended);
    EXPECT_TRUE(profile.owner.training_trace);
    EXPECT_EQ(profile.owner.fp_point, "half");
    std::map<SpanKind, int> spans;
    for (const Span& span : profile.spans) {
      ++spans[span.kind];
      if (span.kind == SpanKind::kTask) {
        EXPECT_EQ(profile.task(span).name, "half");
      }
      if (span.kind != SpanKind::kCollective) continue;
      EXPECT_EQ(profile.task(span).name, "sum");
      EXPECT_EQ(span.bytes, 256u);
      EXPECT_THAT(profile.group(span).world_ranks, ElementsAre(0, 1));
      EXPECT_GE(span.arrived_ns, span.begin_ns);
      EXPECT_GE(span.end_ns, span.arrived_ns);
    }
    EXPECT_EQ(spans[SpanKind::kIteration], 3);
    EXPECT_EQ(spans[SpanKind::kTask], 3);
    EXPECT_EQ(spans[SpanKind::kCollective], 3);
    EXPECT_EQ(spans[SpanKind::kCopy], 6);
    EXPECT_EQ(spans[SpanKind::kCompile], 1);
  }
  EXPECT_TRUE(std::filesystem::is_directory(folder.Path("msprof")));
  EXPECT_TRUE(std::filesystem::is_directory(folder.Path("torch")));
}

TEST(System, CompilesByABackend) {
  const auto statuses = RunRanks(1, SmallEnv(), [](World& world) -> Status {
    System system;
    NPUMESH_RETURN_IF_ERROR(system.Initialize(world));
    NPUMESH_ASSIGN_OR_RETURN(const NpuBackend backend, GetNpuBackend());
    {
      GraphBuilder g;
      g.Output({g.Op("Neg", {{"x", g.Data("x", {DataType::kFloat, {1}})}})});
      NPUMESH_ASSIGN_OR_RETURN(Model model, g.Build());
      NPUMESH_ASSIGN_OR_RETURN(const auto session, system.Compile(std::move(model), backend));
      const Tensor x = Tensor::FromVector<float>({DataType::kFloat, Shape({1})}, {3});
      NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, session->Run({x}));
      EXPECT_EQ(outputs[0].as<float>()[0], -3);
    }
    return system.Shutdown();
  });
  EXPECT_TRUE(statuses[0].ok()) << statuses[0].ToString();
}

}  // namespace
}  // namespace npumesh
