#include "launch/catalog/tables_json.h"

#include "graph/config/option_tables.h"
#include "graph/ops/core/signature.h"
#include "launch/catalog/environment.h"
#include "launch/catalog/op_table.h"
#include "launch/catalog/option_page.h"
#include "runtime/base/ascend_env.h"
#include "runtime/base/hccl_env.h"

namespace npumesh {
namespace {

using nlohmann::json;

std::string_view KindOf(const PortSpec& port) {
  switch (port.kind) {
    case PortKind::kOptional:
      return "optional";
    case PortKind::kDynamic:
      return "dynamic";
    case PortKind::kRequired:
      break;
  }
  return "required";
}

json PortsJson(const std::vector<PortSpec>& ports) {
  json list = json::array();
  for (const PortSpec& port : ports) {
    list.push_back({{"name", port.name}, {"kind", KindOf(port)}});
  }
  return list;
}

json AttrsJson(const std::vector<AttrSpec>& attrs) {
  json list = json::array();
  for (const AttrSpec& attr : attrs) {
    list.push_back({{"name", attr.name},
                    {"required", !attr.fallback},
                    {"default", attr.fallback ? json(ValueText(*attr.fallback)) : json()}});
  }
  return list;
}

void AddVariables(std::string_view family, std::span<const EnvVariable> variables,
                  const std::function<const char*(const char*)>& get, json& list) {
  for (const EnvVariable& variable : variables) {
    const char* const value = get(variable.name.data());
    list.push_back({{"name", variable.name},
                    {"family", family},
                    {"value", value == nullptr ? json() : json(value)},
                    {"default", variable.fallback},
                    {"accepted", variable.accepted},
                    {"meaning", variable.meaning}});
  }
}

}  // namespace

CommandReport OpsReport(const OpRegistry& registry) {
  CommandReport report;
  report.verdict = "ok";
  json& operators = report.details["operators"] = json::array();
  for (const std::string_view type : registry.Types()) {
    const Operator& op = *registry.Find(type);
    operators.push_back({{"type", type},
                         {"signature", SignatureText(op.schema)},
                         {"inputs", PortsJson(op.schema.inputs)},
                         {"outputs", PortsJson(op.schema.outputs)},
                         {"attributes", AttrsJson(op.schema.attrs)},
                         {"traits", TraitsOf(op)}});
  }
  return report;
}

CommandReport EnvReport(const std::function<const char*(const char*)>& get) {
  CommandReport report;
  report.verdict = "ok";
  json& variables = report.details["variables"] = json::array();
  AddVariables("npumesh", AllVariables(), get, variables);
  AddVariables("hccl", HcclEnvTable(), get, variables);
  AddVariables("ascend", AscendEnvTable(), get, variables);
  return report;
}

CommandReport OptionsReport() {
  CommandReport report;
  report.verdict = "ok";
  json& options = report.details["options"] = json::array();
  CompilerConfig config;
  SystemOptions session;
  for (const Option& option : OptionsOf(config, session).rows) {
    options.push_back({{"name", option.path},
                       {"accepted", AcceptedText(option)},
                       {"default", ToText(Get(option))},
                       {"has_effect", option.effect == OptionEffect::kHere},
                       {"meaning", option.does},
                       {"modes", ModeText(option.mode)}});
  }
  return report;
}

}  // namespace npumesh
