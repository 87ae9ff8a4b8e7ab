#include "launch/catalog/tables_json.h"

#include "graph/config/option_tables.h"
#include "graph/ops/core/signature.h"
#include "launch/catalog/environment.h"
#include "launch/catalog/op_table.h"
#include "launch/catalog/option_page.h"
#include "launch/report/json_parts.h"
#include "runtime/base/env/ascend_env.h"
#include "runtime/base/env/hccl_env.h"

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

json PortJson(const PortSpec& port) {
  return {{"name", port.name}, {"kind", KindOf(port)}};
}

json AttrJson(const AttrSpec& attr) {
  return {{"name", attr.name},
          {"required", !attr.fallback},
          {"default", attr.fallback ? json(ValueText(*attr.fallback)) : json()}};
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
  const auto row = [&registry](std::string_view type) -> json {
    const Operator& op = *registry.Find(type);
    return {{"type", type},
            {"signature", SignatureText(op.schema)},
            {"inputs", ListOf(op.schema.inputs, PortJson)},
            {"outputs", ListOf(op.schema.outputs, PortJson)},
            {"attributes", ListOf(op.schema.attrs, AttrJson)},
            {"traits", TraitsOf(op)}};
  };
  return {.details = {{"operators", ListOf(registry.Types(), row)}}};
}

CommandReport EnvReport(const std::function<const char*(const char*)>& get) {
  CommandReport report;
  json& variables = report.details["variables"] = json::array();
  AddVariables("npumesh", AllVariables(), get, variables);
  AddVariables("hccl", HcclEnvTable(), get, variables);
  AddVariables("ascend", AscendEnvTable(), get, variables);
  return report;
}

CommandReport OptionsReport() {
  const auto row = [](const Option& option) -> json {
    return {{"name", option.path},
            {"accepted", AcceptedText(option)},
            {"default", ToText(Get(option))},
            {"has_effect", option.effect == OptionEffect::kHere},
            {"meaning", option.does},
            {"modes", ModeText(option.mode)}};
  };
  CompilerConfig config;
  SystemOptions session;
  return {.details = {{"options", ListOf(OptionsOf(config, session).rows, row)}}};
}

}  // namespace npumesh
