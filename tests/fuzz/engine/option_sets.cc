#include "tests/fuzz/engine/option_sets.h"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "graph/guard/memory_guard.h"
#include "graph/passes/fusion/fusion.h"
#include "graph/session/session_config.h"

namespace npumesh::fuzz {
namespace {

using Configure = std::function<void(CompilerConfig& config)>;

OptionSet Configured(std::string name, const Configure& configure) {
  CompilerConfig config;
  config.experimental_config.topology_sorting_strategy = "StableRDFS";
  configure(config);
  Result<SessionOptions> options = SessionOptionsFor(config);
  if (!options.ok()) return {name + " (refused: " + options.status().ToString() + ")"};
  return {std::move(name), std::move(*options)};
}

void AddOptimisations(std::vector<OptionSet>& sets) {
  sets.push_back(Configured("O1", [](CompilerConfig& c) { c.ge_config.oo_level = "O1"; }));
  sets.push_back(Configured("eager", [](CompilerConfig& c) { c.debug.run_eagerly = true; }));
  sets.push_back(
      Configured("no folding", [](CompilerConfig& c) { c.ge_config.oo_constant_folding = false; }));
  sets.push_back(Configured("no dead code elimination", [](CompilerConfig& c) {
    c.ge_config.oo_dead_code_elimination = false;
  }));
  sets.push_back(Configured("no folding, no dead code elimination", [](CompilerConfig& c) {
    c.ge_config.oo_constant_folding = false;
    c.ge_config.oo_dead_code_elimination = false;
  }));
  std::string all;
  for (const std::string_view pass : kFusionPasses) {
    const std::string off = std::string(pass) + ":off";
    all += (all.empty() ? "" : ";") + off;
    sets.push_back(
        Configured(off, [=](CompilerConfig& c) { c.ge_config.optimization_switch = off; }));
  }
  sets.push_back(
      Configured("no fusion", [=](CompilerConfig& c) { c.ge_config.optimization_switch = all; }));
}

void AddOrders(std::vector<OptionSet>& sets) {
  for (const char* strategy : {"BFS", "DFS", "RDFS", "StableRDFS"}) {
    sets.push_back(Configured(strategy, [=](CompilerConfig& c) {
      c.experimental_config.topology_sorting_strategy = strategy;
    }));
  }
  sets.push_back(Configured(
      "two streams", [](CompilerConfig& c) { c.experimental_config.cc_parallel_enable = true; }));
  sets.push_back(Configured("two streams, RDFS, no dead code elimination", [](CompilerConfig& c) {
    c.experimental_config.cc_parallel_enable = true;
    c.experimental_config.topology_sorting_strategy = "RDFS";
    c.ge_config.oo_dead_code_elimination = false;
  }));
  sets.push_back(Configured("memory efficiency", [](CompilerConfig& c) {
    c.experimental_config.memory_efficiency = true;
    c.experimental_config.topology_sorting_strategy = "BFS";
  }));
}

void AddPlans(std::vector<OptionSet>& sets) {
  for (const int64_t limit : {int64_t{-1}, int64_t{2}}) {
    sets.push_back(Configured("static parts from " + std::to_string(limit), [=](auto& c) {
      c.experimental_config.static_model_ops_lower_limit = limit;
    }));
  }
  sets.push_back(Configured("frozen parameters", [](CompilerConfig& c) {
    c.experimental_config.frozen_parameter = true;
  }));
  sets.push_back(Configured("frozen parameters, no folding", [](CompilerConfig& c) {
    c.experimental_config.frozen_parameter = true;
    c.ge_config.oo_constant_folding = false;
  }));
  sets.push_back(Configured("captured", [](CompilerConfig& c) { c.mode = "reduce-overhead"; }));
  sets.push_back(Configured("inputs made RefData", [](CompilerConfig& c) {
    c.experimental_config.enable_ref_data = true;
  }));
  OptionSet one = {"one plan kept", DefaultSessionOptions()};
  one.options.max_plans = 1;
  sets.push_back(std::move(one));
  OptionSet threads = {"two threads", DefaultSessionOptions()};
  threads.options.compile.threads = 2;
  sets.push_back(std::move(threads));
}

void AddWatched(std::vector<OptionSet>& sets) {
  sets.push_back({"observed", DefaultSessionOptions(), true});
  OptionSet eager =
      Configured("observed, eager", [](CompilerConfig& c) { c.debug.run_eagerly = true; });
  eager.observed = true;
  sets.push_back(std::move(eager));
  sets.push_back({"read back from .air", DefaultSessionOptions(), false, true});
}

void AddGuarded(std::vector<OptionSet>& sets) {
  OptionSet guarded = {"guarded", DefaultSessionOptions()};
  OptionSet parts = Configured("guarded, static parts, memory efficiency", [](CompilerConfig& c) {
    c.experimental_config.static_model_ops_lower_limit = 2;
    c.experimental_config.memory_efficiency = true;
  });
  for (OptionSet* const set : {&guarded, &parts}) {
    set->options.compile.margin = kGuardMargin;
    set->guarded = true;
    sets.push_back(std::move(*set));
  }
}

void AddLent(std::vector<OptionSet>& sets) {
  sets.push_back({"lent memory", DefaultSessionOptions(), false, false, true});
  OptionSet streams = Configured("lent memory, two streams, inputs made RefData", [](auto& c) {
    c.experimental_config.cc_parallel_enable = true;
    c.experimental_config.enable_ref_data = true;
  });
  streams.lent = true;
  sets.push_back(std::move(streams));
}

class NewFolder {
 public:
  NewFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "npumesh_fuzz_XXXXXX").string();
    if (mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~NewFolder() {
    std::error_code ignored;
    if (getpid() == maker_) std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  pid_t maker_ = getpid();
};

}  // namespace

const std::vector<OptionSet>& OptionSets() {
  static const std::vector<OptionSet> sets = [] {
    std::vector<OptionSet> made = {{"default", DefaultSessionOptions()}};
    AddOptimisations(made);
    AddOrders(made);
    AddPlans(made);
    AddWatched(made);
    AddGuarded(made);
    AddLent(made);
    return made;
  }();
  return sets;
}

const OptionSet& StaticKernelSet() {
  static const NewFolder folder;
  static const OptionSet made = [] {
    OptionSet set = Configured("static kernels", [](CompilerConfig& c) {
      c.mode = "reduce-overhead";
      c.experimental_config.aclgraph.aclnn_static_shape_kernel = true;
      c.experimental_config.aclgraph.aclnn_static_shape_kernel_build_dir = folder.path().string();
    });
    if (set.options.static_kernels)
      set.options.static_kernels->store_root = folder.path() / "store";
    return set;
  }();
  return made;
}

}  // namespace npumesh::fuzz
