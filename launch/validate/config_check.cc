#include "launch/validate/config_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <optional>
#include <set>
#include <tuple>

#include "graph/export/package_layout.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/foreign_json.h"
#include "runtime/base/text/json.h"
#include "runtime/base/text/json_error.h"
#include "runtime/base/text/parse.h"

namespace npumesh {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kLargestConfig = uint64_t{64} << 20;

// One object of a file, with its place for messages.
class Fields {
 public:
  Fields(const Json& json, std::string place, std::string file, Findings* findings)
      : json_(json), place_(std::move(place)), file_(std::move(file)), findings_(findings) {}

  void Complain(std::string_view key, const std::string& text) const {
    const std::string where = place_.empty() ? std::string(key)
                              : key.empty()  ? place_
                                             : fmt::format("{}.{}", place_, key);
    findings_->Error(file_, fmt::format("{}: {}", where, text));
  }

  std::optional<std::string> String(const char* key) const {
    const Json* value = Find(key);
    if (value != nullptr && value->is_string()) return value->get<std::string>();
    Complain(key, "expected a string");
    return std::nullopt;
  }
  std::optional<int> Int(const char* key) const {
    const Json* value = Find(key);
    if (value != nullptr && value->is_number_integer()) {
      const auto number = value->get<int64_t>();
      if (number >= 0 && number <= std::numeric_limits<int>::max()) return static_cast<int>(number);
    }
    Complain(key, "expected an integer from 0 on");
    return std::nullopt;
  }
  // The objects of a list; `least` of them at least.
  std::vector<Fields> Objects(const char* key, size_t least = 1) const {
    std::vector<Fields> objects;
    const Json* list = Find(key);
    if (list == nullptr || !list->is_array() || list->size() < least) {
      Complain(key, fmt::format("expected a list of {} or more objects", least));
      return objects;
    }
    for (size_t i = 0; i < list->size(); ++i) {
      const std::string place =
          fmt::format("{}{}{}[{}]", place_, place_.empty() ? "" : ".", key, i);
      objects.emplace_back((*list)[i], place, file_, findings_);
      if ((*list)[i].is_object()) continue;
      objects.back().Complain("", "expected an object");
      objects.pop_back();
    }
    return objects;
  }
  bool Has(const char* key) const { return Find(key) != nullptr; }

  // A key that npumesh does not read may be a known one, misspelt.
  using Keys = std::initializer_list<std::string_view>;
  void Expect(Keys keys) const {
    if (!json_.is_object()) return;
    for (const auto& [key, value] : json_.items()) {
      if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
      findings_->Warning(
          file_, fmt::format("{}{}unknown key \"{}\"; known: {}", place_,
                             place_.empty() ? "" : ": ", key.substr(0, 80), fmt::join(keys, ", ")));
    }
  }
  // The same for the objects of a list.
  void ExpectIn(const char* key, Keys keys) const {
    const Json* list = Find(key);
    for (size_t i = 0; list != nullptr && list->is_array() && i < list->size(); ++i) {
      Fields((*list)[i], fmt::format("{}[{}]", key, i), file_, findings_).Expect(keys);
    }
  }

 private:
  const Json* Find(const char* key) const {
    if (!json_.is_object()) return nullptr;
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }

  const Json& json_;
  std::string place_;
  std::string file_;
  Findings* findings_;
};

struct Device {
  int cluster = 0;
  int node = 0;
  int item = 0;
  auto operator<=>(const Device&) const = default;
};

// "0:1:3": cluster, node, item.
std::optional<Device> ParseDevice(std::string_view text) {
  std::vector<int> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t colon = std::min(text.find(':', begin), text.size());
    const Result<int64_t> part =
        ParseInt(text.substr(begin, colon - begin), 0, std::numeric_limits<int>::max(), "device");
    if (!part.ok()) return std::nullopt;
    parts.push_back(static_cast<int>(*part));
    begin = colon + 1;
  }
  if (parts.size() != 3) return std::nullopt;
  return Device{parts[0], parts[1], parts[2]};
}

class RelationCheck {
 public:
  RelationCheck(const PackageFiles& files, const Json& json, Findings* findings)
      : files_(files), top_(json, "", std::string(kRelationConfigName), findings) {}

  void Run() {
    top_.Expect({"deploy_config", "model_name_to_instance_id", "comm_group", "rank_table"});
    top_.ExpectIn("deploy_config", {"submodel_name", "deploy_device_id_list"});
    top_.ExpectIn("model_name_to_instance_id", {"submodel_name", "model_instance_id"});
    top_.ExpectIn("comm_group", {"group_name", "group_rank_list"});
    top_.ExpectIn("rank_table", {"rank_id", "model_instance_id"});
    for (const Fields& entry : top_.Objects("deploy_config")) Deploy(entry);
    for (const Fields& entry : top_.Objects("model_name_to_instance_id")) Instance(entry);
    if (top_.Has("rank_table")) {
      for (const Fields& entry : top_.Objects("rank_table")) Rank(entry);
    } else if (top_.Has("comm_group")) {
      top_.Complain("rank_table", "missing; comm_group needs it");
    }
    EveryGraphIsListed();
  }

  const std::map<Device, std::string>& devices() const { return devices_; }

 private:
  bool IsGraph(const Fields& entry, const std::string& name) const {
    if (files_.Has(name)) return true;
    entry.Complain("submodel_name", fmt::format("\"{}\" is no file of the package", name));
    return false;
  }

  void Deploy(const Fields& entry) {
    const auto name = entry.String("submodel_name");
    const auto list = entry.String("deploy_device_id_list");
    if (!name || !list || !IsGraph(entry, *name)) return;
    deployed_.insert(*name);
    const std::optional<Device> device = ParseDevice(*list);
    if (!device) {
      return entry.Complain("deploy_device_id_list",
                            fmt::format("\"{}\"; expected cluster:node:item", list->substr(0, 80)));
    }
    const auto [other, fresh] = devices_.emplace(*device, *name);
    if (!fresh) {
      entry.Complain("deploy_device_id_list",
                     fmt::format("{} is the device of {} as well", *list, other->second));
    }
  }

  void Instance(const Fields& entry) {
    const auto name = entry.String("submodel_name");
    const auto id = entry.Int("model_instance_id");
    if (!name || !id || !IsGraph(entry, *name)) return;
    const auto [other, fresh] = instances_.emplace(*id, *name);
    if (!fresh) {
      entry.Complain("model_instance_id",
                     fmt::format("{} is that of {} as well", *id, other->second));
    }
  }

  void Rank(const Fields& entry) {
    const auto rank = entry.Int("rank_id");
    const auto id = entry.Int("model_instance_id");
    if (!rank || !id) return;
    if (static_cast<size_t>(*rank) >= files_.airs.size() || !ranks_.insert(*rank).second) {
      return entry.Complain(
          "rank_id", fmt::format("{}; expected 0 to {}, each once", *rank, files_.airs.size() - 1));
    }
    const auto instance = instances_.find(*id);
    if (instance == instances_.end()) {
      return entry.Complain("model_instance_id",
                            fmt::format("{} is not in model_name_to_instance_id", *id));
    }
    const std::string& air = files_.airs[static_cast<size_t>(*rank)];
    if (!air.empty() && instance->second != air) {
      entry.Complain("model_instance_id", fmt::format("{} is {}, but the graph of rank {} is {}",
                                                      *id, instance->second, *rank, air));
    }
  }

  void EveryGraphIsListed() {
    std::set<std::string> named;
    for (const auto& [id, name] : instances_) named.insert(name);
    for (const std::string& air : files_.airs) {
      if (air.empty()) continue;
      if (!deployed_.contains(air)) top_.Complain("deploy_config", fmt::format("lacks {}", air));
      if (!named.contains(air)) {
        top_.Complain("model_name_to_instance_id", fmt::format("lacks {}", air));
      }
    }
    if (top_.Has("rank_table") && ranks_.size() != files_.airs.size()) {
      top_.Complain("rank_table", fmt::format("lists {} ranks; the package has {}", ranks_.size(),
                                              files_.airs.size()));
    }
  }

  const PackageFiles& files_;
  Fields top_;
  std::map<Device, std::string> devices_;  // and the graph it runs
  std::map<int, std::string> instances_;
  std::set<std::string> deployed_;
  std::set<int> ranks_;
};

class NumaCheck {
 public:
  NumaCheck(const Json& json, Findings* findings)
      : top_(json, "", std::string(kNumaConfigName), findings), findings_(findings) {}

  void Run() {
    int cluster = 0;
    for (const Fields& entry : top_.Objects("cluster")) Cluster(entry, cluster++);
    for (const Fields& entry : top_.Objects("item_def")) entry.String("item_type");
    for (const Fields& entry : top_.Objects("node_def")) {
      for (const Fields& item : entry.Objects("item")) item.String("item_type");
    }
    if (sizes_.size() > 1) {
      findings_->Warning(std::string(kNumaConfigName),
                         "the nodes have different numbers of items; ATC expects equal ones");
    }
  }

  const std::set<Device>& devices() const { return devices_; }

 private:
  void Cluster(const Fields& entry, int cluster) {
    std::set<int> nodes;
    for (const Fields& node : entry.Objects("cluster_nodes")) {
      const auto id = node.Int("node_id");
      node.String("node_type");
      node.String("ipaddr");
      node.Int("port");
      if (!id) continue;
      if (!nodes.insert(*id).second) node.Complain("node_id", fmt::format("{} comes twice", *id));
      const std::vector<Fields> items = node.Objects("item_list");
      sizes_.insert(items.size());
      for (const Fields& item : items) Item(item, cluster, *id);
    }
  }

  void Item(const Fields& item, int cluster, int node) {
    const auto id = item.Int("item_id");
    if (id && !devices_.insert({cluster, node, *id}).second) {
      item.Complain("item_id", fmt::format("{} comes twice on node {}", *id, node));
    }
  }

  Fields top_;
  Findings* findings_;
  std::set<Device> devices_;
  std::set<size_t> sizes_;  // items of a node
};

}  // namespace

std::optional<nlohmann::json> ReadJsonObject(const PackageFiles& files, const std::string& name,
                                             Findings* findings) {
  const Result<std::string> text = ReadFile(files.PathOf(name), kLargestConfig);
  if (!text.ok()) {
    findings->Error(name, std::string(text.status().message()));
    return std::nullopt;
  }
  Json json = ParseForeignJson(*text);
  if (json.is_object()) return json;
  findings->Error(
      name, json.is_discarded() ? "is not JSON: " + JsonErrorIn(*text) : "expected a JSON object");
  return std::nullopt;
}

void CheckConfigs(const PackageFiles& files, bool uses_groups, Findings* findings) {
  const std::string relation_name(kRelationConfigName);
  const std::string numa_name(kNumaConfigName);
  const bool has_relation = files.Has(relation_name);
  const bool has_numa = files.Has(numa_name);
  for (const auto& [has, name, other] :
       {std::tuple(has_relation, relation_name, numa_name), {has_numa, numa_name, relation_name}}) {
    if (has) continue;
    if (files.Has(other))
      findings->Error(name, fmt::format("missing beside its companion {}", other));
    if (!files.Has(other) && uses_groups && files.airs.size() > 1) {
      findings->Warning(name, "missing; ATC needs it to place the ranks");
    }
  }
  const auto relation =
      has_relation ? ReadJsonObject(files, relation_name, findings) : std::nullopt;
  const auto numa = has_numa ? ReadJsonObject(files, numa_name, findings) : std::nullopt;
  std::optional<RelationCheck> relation_check;
  std::optional<NumaCheck> numa_check;
  if (relation) relation_check.emplace(files, *relation, findings).Run();
  if (numa) numa_check.emplace(*numa, findings).Run();
  if (!relation || !numa) return;
  for (const auto& [device, air] : relation_check->devices()) {
    if (numa_check->devices().contains(device)) continue;
    findings->Error(relation_name,
                    fmt::format("{} is deployed to {}:{}:{}, which {} does not have", air,
                                device.cluster, device.node, device.item, numa_name));
  }
}

void CheckGroups(const PackageFiles& files, const std::map<std::string, std::vector<int>>& used,
                 const std::map<std::string, std::vector<int>>& listed, Findings* findings) {
  const std::string name(kRelationConfigName);
  if (!files.Has(name)) return;
  for (const auto& [group, ranks] : listed) {
    const auto graph = used.find(group);
    if (graph != used.end() && graph->second != ranks) {
      findings->Error(name,
                      fmt::format("comm_group \"{}\" has the ranks {}, the graphs say {}", group,
                                  fmt::join(ranks, ","), fmt::join(graph->second, ",")));
    }
    if (graph == used.end()) {
      findings->Warning(name, fmt::format("comm_group \"{}\" is used by no graph", group));
    }
  }
  for (const auto& [group, ranks] : used) {
    if (listed.contains(group)) continue;
    findings->Warning(name, fmt::format("comm_group lacks \"{}\" (ranks {}), which graphs use",
                                        group, fmt::join(ranks, ",")));
  }
}

}  // namespace npumesh
