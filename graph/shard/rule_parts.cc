#include "graph/shard/rule_parts.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace npumesh {

RuleOutcome Whole(std::string why) {
  return {std::nullopt, std::nullopt, std::move(why)};
}

bool IsSplit(const RuleInput& input) {
  return input.connected && input.layout.split();
}

RuleAnswer AllReplicated(const RuleQuestion& question) {
  RuleAnswer answer;
  answer.inputs.resize(question.inputs.size());
  answer.outputs.resize(question.outputs.size());
  return answer;
}

std::optional<Common> CommonSplit(const RuleQuestion& question) {
  std::optional<Common> common;
  for (const RuleInput& input : question.inputs) {
    if (!IsSplit(input)) continue;
    const int from_end = input.type.shape.rank() - input.layout.axis;
    if (!common) {
      common = Common{from_end, input.layout.pieces, input.layout.blocks};
      continue;
    }
    if (common->from_end != from_end || common->blocks != input.layout.blocks) return std::nullopt;
    const bool same = common->pieces == input.layout.pieces;
    if (!same && !common->blocks.empty()) return std::nullopt;
    common->pieces = std::lcm(common->pieces, input.layout.pieces);
  }
  return common;
}

std::vector<std::string_view> WordsIn(std::string_view list) {
  std::vector<std::string_view> words;
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find(' ', at), list.size());
    words.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::optional<size_t> InputAt(const RuleQuestion& question, std::string_view port) {
  const std::vector<PortSpec>& ports = question.context.schema().inputs;
  const bool has =
      std::any_of(ports.begin(), ports.end(), [&](const PortSpec& p) { return p.name == port; });
  if (!has || !question.context.has(port)) return std::nullopt;
  return static_cast<size_t>(question.context.input_index(question.context.slot(port)));
}

std::optional<std::vector<int64_t>> IntsOfAttr(const RuleQuestion& question,
                                               std::string_view name) {
  const std::vector<AttrSpec>& attrs = question.context.schema().attrs;
  const auto spec =
      std::find_if(attrs.begin(), attrs.end(), [&](const AttrSpec& a) { return a.name == name; });
  if (spec == attrs.end()) return std::nullopt;
  Node holder;
  const AttrValue* given = question.node.FindAttr(name);
  if (given != nullptr) {
    holder.attrs[std::string(name)] = *given;
  } else if (spec->fallback) {
    holder.attrs[std::string(name)] = *spec->fallback;
  } else {
    return std::nullopt;
  }
  std::vector<int64_t> ints = holder.IntsAttr(name);
  constexpr int64_t kAbsent = std::numeric_limits<int64_t>::min();
  if (ints.empty() && holder.IntAttr(name, kAbsent) != kAbsent) {
    ints.push_back(holder.IntAttr(name, kAbsent));
  }
  return ints;
}

std::optional<std::vector<int64_t>> IntsAt(const RuleQuestion& question, std::string_view name) {
  const std::vector<PortSpec>& ports = question.context.schema().inputs;
  const bool port =
      std::any_of(ports.begin(), ports.end(), [&](const PortSpec& p) { return p.name == name; });
  if (!port) return IntsOfAttr(question, name);
  const std::optional<size_t> input = InputAt(question, name);
  if (!input || !question.inputs[*input].known) return std::nullopt;
  Result<std::vector<int64_t>> ints = question.context.Ints(name);
  if (!ints.ok()) return std::nullopt;
  return *std::move(ints);
}

std::optional<ShardLayout> AsPieces(const RuleInput& input, int axis, const Common& common) {
  const ShardLayout wanted = ShardLayout::Split(axis, common.pieces, common.blocks);
  if (input.known || input.layout == wanted) return wanted;
  if (!common.blocks.empty()) return std::nullopt;
  if (input.layout.split() && (input.layout.axis != axis || !input.layout.blocks.empty())) {
    return std::nullopt;
  }
  return wanted;
}

}  // namespace npumesh
