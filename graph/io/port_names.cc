#include "graph/io/port_names.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/io/model_codec.h"
#include "runtime/base/log.h"

namespace npumesh {
namespace {

namespace pb = ge::proto;

struct TableKeys {
  const char* names;
  const char* indexes;
};
constexpr TableKeys kInputs = {"_input_name_key", "_input_name_value"};
constexpr TableKeys kOutputs = {"_output_name_key", "_output_name_value"};

using Table = std::vector<std::pair<std::string, int64_t>>;

// Takes both lists out of `attrs`. Empty when they are absent; nullopt when their lengths differ.
std::optional<Table> TakeTable(TableKeys keys, AttrDefs* attrs) {
  const auto names = attrs->find(keys.names);
  const auto indexes = attrs->find(keys.indexes);
  Table table;
  const bool whole = names != attrs->end() && indexes != attrs->end();
  const bool fits = whole && names->second.list().s_size() == indexes->second.list().i_size();
  for (int i = 0; fits && i < names->second.list().s_size(); ++i) {
    table.emplace_back(names->second.list().s(i), indexes->second.list().i(i));
  }
  const bool bad = whole && !fits;
  attrs->erase(keys.names);
  attrs->erase(keys.indexes);
  if (bad) return std::nullopt;
  return table;
}

void PutTable(TableKeys keys, const Table& table, AttrDefs* attrs) {
  pb::AttrDef::ListValue* names = (*attrs)[keys.names].mutable_list();
  pb::AttrDef::ListValue* indexes = (*attrs)[keys.indexes].mutable_list();
  for (const auto& [name, index] : table) {
    names->add_s(name);
    indexes->add_i(index);
  }
}

void NamePorts(std::string_view who, TableKeys keys, AttrDefs* attrs,
               std::vector<TensorDesc>* descs) {
  std::optional<Table> table = TakeTable(keys, attrs);
  if (!table) {
    NPUMESH_WARNING_ONCE("{}: {} and {} differ in length; the port names are ignored", who,
                         keys.names, keys.indexes);
    return;
  }
  Table surplus;
  for (auto& [name, index] : *table) {
    if (index < 0 || index >= static_cast<int64_t>(descs->size())) {
      surplus.emplace_back(std::move(name), index);
      continue;
    }
    TensorDesc& desc = (*descs)[static_cast<size_t>(index)];
    if (desc.name.empty()) desc.name = std::move(name);
  }
  if (!surplus.empty()) PutTable(keys, surplus, attrs);
}

// The empty name is the right one for the output of a constant, otherwise it means unknown.
Table SortedTable(const std::vector<TensorDesc>& descs, const Table& surplus, bool unnamed) {
  const auto ports = static_cast<int64_t>(descs.size());
  std::map<std::string, int64_t> by_name;
  for (int64_t i = 0; i < ports; ++i) {
    const std::string& name = descs[static_cast<size_t>(i)].name;
    if (unnamed || !name.empty()) by_name.emplace(name, i);
  }
  for (const auto& [name, index] : surplus) {
    if (index < 0 || index >= ports) by_name.emplace(name, index);
  }
  return Table(by_name.begin(), by_name.end());
}

void PutNames(TableKeys keys, const std::vector<TensorDesc>& descs, Form form, bool unnamed,
              AttrDefs* attrs) {
  const Table surplus = TakeTable(keys, attrs).value_or(Table());
  if (form == Form::kGe) {
    const Table table = SortedTable(descs, surplus, unnamed);
    if (!table.empty()) PutTable(keys, table, attrs);
    return;
  }
  Table table;
  for (const TensorDesc& desc : descs) {
    table.emplace_back(desc.name, static_cast<int64_t>(table.size()));
  }
  PutTable(keys, table, attrs);
}

}  // namespace

void TakePortNames(std::string_view who, pb::OpDef& def, Node* node) {
  NamePorts(who, kInputs, def.mutable_attr(), &node->input_descs);
  NamePorts(who, kOutputs, def.mutable_attr(), &node->output_descs);
}

void PutPortNames(const Node& node, Form form, pb::OpDef* def) {
  const bool unnamed = IsConstType(node.type);
  PutNames(kInputs, node.input_descs, form, unnamed, def->mutable_attr());
  PutNames(kOutputs, node.output_descs, form, unnamed, def->mutable_attr());
}

}  // namespace npumesh
