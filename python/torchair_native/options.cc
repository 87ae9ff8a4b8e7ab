#include "python/torchair_native/options.h"

#include <algorithm>
#include <filesystem>

namespace npumesh::torchair {
namespace {

// How a value is written for the session.
enum class Form {
  kAsIs,
  kBool,   // 0 or 1
  kOrder,  // ge.topoSortingMode
};

struct Key {
  const char* ge;
  const char* session;
  Form form;
};

constexpr Key kEngineKeys[] = {
    {"ge.exec.enableEngineParallel", "experimental_config.cc_parallel_enable", Form::kBool},
    {"ge.enableSingleStream", "ge_config.enable_single_stream", Form::kAsIs},
    {"ge.oo.level", "ge_config.oo_level", Form::kAsIs},
    {"ge.oo.constantFolding", "ge_config.oo_constant_folding", Form::kAsIs},
    {"ge.oo.deadCodeElimination", "ge_config.oo_dead_code_elimination", Form::kAsIs},
    {"ge.exportCompileStat", "ge_config.export_compile_stat", Form::kAsIs},
    {"ge.aicoreNum", "ge_config.aicore_num", Form::kAsIs},
    {"ge.optimizationSwitch", "ge_config.optimization_switch", Form::kAsIs},
    {"ge.fusionSwitchFile", "fusion_config.fusion_switch_file", Form::kAsIs},
};

constexpr Key kGraphKeys[] = {
    {"ge.topoSortingMode", "experimental_config.topology_sorting_strategy", Form::kOrder},
    {"ge.exec.static_model_ops_lower_limit", "experimental_config.static_model_ops_lower_limit",
     Form::kAsIs},
    {"deadlock_check", "debug.deadlock_check", Form::kBool},
    {"aoe_mode", "aoe_config.aoe_mode", Form::kAsIs},
    {"work_path", "aoe_config.work_path", Form::kAsIs},
    {"aoe_config_file", "aoe_config.aoe_config_file", Form::kAsIs},
};

constexpr Key kDumpKeys[] = {
    {"ge.exec.dumpMode", "dump_config.dump_mode", Form::kAsIs},
    {"ge.quant_dumpable", "dump_config.quant_dumpable", Form::kBool},
    {"ge.exec.dumpStep", "dump_config.dump_step", Form::kAsIs},
    {"ge.exec.dumpLayer", "dump_config.dump_layer", Form::kAsIs},
    {"ge.exec.dumpData", "dump_config.dump_data", Form::kAsIs},
};

constexpr const char* kOrders[] = {"BFS", "DFS", "RDFS", "StableRDFS"};
constexpr char kFrozen[] = "frozenInput";

std::string Written(const std::string& value, Form form) {
  switch (form) {
    case Form::kAsIs:
      return value;
    case Form::kBool:
      return value == "1" || value == "true" ? "true" : "false";
    case Form::kOrder:
      break;
  }
  const bool known = value.size() == 1 && value[0] >= '0' && value[0] <= '3';
  return known ? kOrders[value[0] - '0'] : value;
}

template <size_t kCount>
void AddKnown(const Texts& given, const Key (&keys)[kCount], Texts& session) {
  for (const Key& key : keys) {
    const auto found = given.find(key.ge);
    if (found != given.end() && !found->second.empty()) {
      session[key.session] = Written(found->second, key.form);
    }
  }
}

bool IsOn(const Texts& given, const char* key) {
  const auto found = given.find(key);
  return found != given.end() && found->second == "1";
}

}  // namespace

Texts SessionOptions(const Texts& engine, const Texts& graph) {
  Texts session;
  AddKnown(engine, kEngineKeys, session);
  AddKnown(graph, kEngineKeys, session);
  AddKnown(graph, kGraphKeys, session);
  const std::vector<bool> frozen = FrozenFlags(graph);
  if (std::find(frozen.begin(), frozen.end(), true) != frozen.end()) {
    session["npumesh.parameters"] = graph.at(kFrozen);
    session["experimental_config.frozen_parameter"] = "true";
  }
  return session;
}

void AddDumpOptions(const Texts& engine, Texts& session) {
  if (!IsOn(engine, "ge.exec.enableDump")) return;
  session["dump_config.enable_dump"] = "true";
  AddKnown(engine, kDumpKeys, session);
  // TorchAir has added the folder of the rank, as a session does.
  const auto path = engine.find("ge.exec.dumpPath");
  if (path != engine.end()) {
    session["dump_config.dump_path"] = std::filesystem::path(path->second).parent_path().string();
  }
}

std::vector<bool> FrozenFlags(const Texts& graph) {
  std::vector<bool> flags;
  const auto found = graph.find(kFrozen);
  if (found == graph.end()) return flags;
  for (const char each : found->second) {
    if (each != ',' && each != ' ') flags.push_back(each == '1');
  }
  return flags;
}

}  // namespace npumesh::torchair
