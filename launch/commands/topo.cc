// `npumesh topo`: which rank is where, and files that say so to other tools.
#include "launch/catalog/environment.h"
#include "launch/commands/answer.h"
#include "launch/commands/fail_together.h"
#include "launch/topo/cluster_files.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/parse.h"
#include "runtime/world/world.h"

namespace npumesh {
namespace {

constexpr uint32_t kTopoKey = 0x746f706f;
constexpr int kMostRanksOfNode = 1024;

struct TopoOptions {
  std::vector<std::string> write;  // FORM=FILE
  std::vector<std::string> plan;   // HOST[,ADDRESS]:RANKS
  bool as_json = false;
};

Status WriteFiles(const ClusterMap& cluster, const TopoOptions& options) {
  for (const std::string& each : options.write) {
    const size_t equals = each.find('=');
    if (equals == each.npos || equals + 1 == each.size()) {
      return Error(Code::kInvalidArgument, "--write \"{}\": expected FORM=FILE with one of {}",
                   each, ClusterForms());
    }
    NPUMESH_ASSIGN_OR_RETURN(const std::string text,
                             ClusterFile(cluster, std::string_view(each).substr(0, equals)));
    NPUMESH_RETURN_IF_ERROR(WriteFile(each.substr(equals + 1), text, FileKind::kConfig));
  }
  return Status();
}

// "alpha,10.1.0.1:8", one of several `nodes`.
Result<PlannedNode> ParseNode(const std::string& text, size_t nodes, const Topology& topology) {
  const size_t colon = text.rfind(':');
  if (colon == 0 || colon == text.npos) {
    return Error(Code::kInvalidArgument, "--plan \"{}\": expected HOST[,ADDRESS]:RANKS", text);
  }
  NPUMESH_ASSIGN_OR_RETURN(const int64_t ranks,
                           ParseInt(text.substr(colon + 1), 1, kMostRanksOfNode, "--plan: ranks"));
  const std::string name = text.substr(0, colon);
  const size_t comma = std::min(name.find(','), name.size());
  PlannedNode node{name.substr(0, comma), "127.0.0.1", static_cast<int>(ranks), topology};
  if (comma + 1 < name.size()) {
    node.address = name.substr(comma + 1);
  } else if (nodes > 1) {
    PrintFailure("topo",
                 fmt::format("--plan \"{}\" has no address; {} stands in its place, also in "
                             "files: HOST,ADDRESS:RANKS gives one",
                             text, node.address));
  }
  return node;
}

// Every node is like this one, or like NPUMESH_TOPOLOGY says.
Result<ClusterMap> Plan(const Env& env, const std::vector<std::string>& texts) {
  NPUMESH_ASSIGN_OR_RETURN(const Topology topology, env.topology.empty()
                                                        ? Topology::Detect()
                                                        : Topology::FromSynthetic(env.topology));
  std::vector<PlannedNode> nodes;
  for (const std::string& text : texts) {
    NPUMESH_ASSIGN_OR_RETURN(PlannedNode node, ParseNode(text, texts.size(), topology));
    nodes.push_back(std::move(node));
  }
  return PlanCluster(nodes);
}

Status Show(const ClusterMap& cluster, const TopoOptions& options) {
  (void)Tell("topo", options.as_json, Answer{0, ClusterText(cluster), ToReport(cluster)});
  return WriteFiles(cluster, options);
}

// Collective over all ranks.
Status SurveyAndShow(World& world, const TopoOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<Gathering> gathering,
                           Gathering::Create(world, kTopoKey));
  NPUMESH_ASSIGN_OR_RETURN(const ClusterMap cluster, SurveyCluster(world, *gathering));
  return gathering->AgreeOn(world.rank() == 0 ? Show(cluster, options) : Status());
}

int RunTopo(const TopoOptions& options) {
  const Result<Env> env = ReadEnvironment();
  if (!env.ok()) return FailTogether("topo", Outcome::From(env.status()));
  if (!options.plan.empty()) {
    const Result<ClusterMap> cluster = Plan(*env, options.plan);
    const Status shown = cluster.ok() ? Show(*cluster, options) : cluster.status();
    return shown.ok() ? 0 : Fail("topo", shown);
  }
  const Result<std::unique_ptr<World>> world = World::Start(*env);
  if (!world.ok()) return FailTogether("topo", Outcome::From(world.status()));
  const Status shown = SurveyAndShow(**world, options);
  const Status end = (*world)->Shutdown();
  if (!shown.ok()) return (*world)->rank() == 0 ? Fail("topo", shown) : ExitCode(shown);
  return end.ok() ? 0 : Fail("topo", end);
}

}  // namespace

void AddTopo(CLI::App& app, Action& action) {
  auto options = std::make_shared<TopoOptions>();
  CLI::App* command =
      app.add_subcommand("topo", "Show which rank is where, and write files that say so");
  AddFooter(*command, "",
            {"npumesh launch -n 4 -- topo --write rank_table_1.0=ranks.json --write hostfile=hosts",
             "npumesh topo --plan a,10.0.0.1:8 --plan b,10.0.0.2:4"});
  command
      ->add_option("--write", options->write,
                   fmt::format("Write this form of it; FORM is one of {}", ClusterForms()))
      ->type_name("FORM=FILE")
      ->allow_extra_args(false);
  command
      ->add_option("--plan", options->plan, "A cluster of such nodes instead of the running ranks")
      ->type_name("HOST[,ADDRESS]:RANKS")
      ->allow_extra_args(false);
  AddJsonFlag(*command, options->as_json);
  command->callback([options, &action] { action = [options] { return RunTopo(*options); }; });
}

}  // namespace npumesh
