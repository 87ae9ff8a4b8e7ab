#include "graph/shard/rule_parts.h"

#include <algorithm>

namespace npumesh {

RuleOutcome Whole(std::string why) {
  return {std::nullopt, std::nullopt, std::move(why)};
}

RuleAnswer AllReplicated(const RuleQuestion& question) {
  RuleAnswer answer;
  answer.inputs.resize(question.inputs.size());
  answer.outputs.resize(question.outputs.size());
  return answer;
}

bool IsSplit(const RuleInput& input) {
  return input.connected && input.layout.split();
}

bool AnySplit(const RuleQuestion& question) {
  return std::ranges::any_of(question.inputs, IsSplit);
}

std::optional<ShardLayout> AsPieces(const RuleInput& input, int axis, const ShardLayout& like) {
  ShardLayout wanted = like;
  wanted.axis = axis;
  if (input.known || input.layout == wanted) return wanted;
  if (!like.blocks.empty() || like.padding > 0) return std::nullopt;
  if (input.layout.split() && (input.layout.axis != axis || !input.layout.blocks.empty())) {
    return std::nullopt;
  }
  return wanted;
}

std::optional<size_t> InputAt(const RuleQuestion& question, std::string_view port) {
  const std::vector<PortSpec>& ports = question.context.schema().inputs;
  const bool has = std::ranges::find(ports, port, &PortSpec::name) != ports.end();
  if (!has || !question.context.has(port)) return std::nullopt;
  return static_cast<size_t>(question.context.input_index(question.context.slot(port)));
}

AxisValues KnownValues(const RuleQuestion& question) {
  return [&question, values = ValuesOf(question.context)](
             std::string_view name) -> std::optional<std::vector<int64_t>> {
    const std::optional<size_t> input = InputAt(question, name);
    if (input && !question.inputs[*input].known) return std::nullopt;
    return values(name);
  };
}

std::optional<ScaledSizes> SizesAt(const RuleQuestion& question, std::string_view name,
                                   std::vector<int64_t> divisors) {
  const auto count = static_cast<int64_t>(divisors.size());
  if (const std::optional<size_t> at = InputAt(question, name)) {
    const Shape& sizes = question.inputs[*at].type.shape;
    if (sizes.rank() != 1 || sizes[0] != count) return std::nullopt;
    return ScaledSizes{*at, std::move(divisors)};
  }
  const auto sizes = ValuesOf(question.context)(name);
  if (!sizes || static_cast<int64_t>(sizes->size()) != count) return std::nullopt;
  return ScaledSizes{question.node.inputs.size(), std::move(divisors), std::string(name)};
}

bool ScaleSizes(const RuleQuestion& question, size_t output, int axis, int pieces,
                RuleAnswer* answer) {
  const std::vector<PortSpec>& ports = question.context.schema().outputs;
  for (const AxisSizes& sizes : question.op.axes.sizes()) {
    if (sizes.of != ports[std::min(output, ports.size() - 1)].name) continue;
    std::vector<int64_t> divisors(static_cast<size_t>(question.outputs[output].shape.rank()), 1);
    divisors[static_cast<size_t>(axis)] = pieces;
    answer->sizes = SizesAt(question, sizes.name, std::move(divisors));
    if (!answer->sizes) return false;
  }
  return true;
}

std::optional<int> AxisAfter(const Shape& shape, int64_t before) {
  int64_t passed = 1;
  for (int i = 0; before != 0 && i < shape.rank(); ++i) {
    if (passed == before && shape[i] != 1) return i;
    passed *= shape[i];
  }
  return std::nullopt;
}

}  // namespace npumesh
