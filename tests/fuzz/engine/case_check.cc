#include "tests/fuzz/engine/case_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/fuzz/engine/interpreter.h"

namespace npumesh::fuzz {
namespace {

constexpr int kNoises = 3;

// A tensor with how far from it another correct implementation may be.
struct Expected {
  PlainTensor value;
  Number slack = 0;
  bool anything = false;  // not known
};

bool Infinite(Number x) {
  return std::isinf(x) || std::isnan(x);
}

// Widens the slack by what noise in the last places made of it.
void Learn(Expected& expected, const PlainTensor& noisy) {
  if (noisy.dims != expected.value.dims || noisy.trust == Trust::kUnsure) {
    expected.anything = true;
    return;
  }
  for (int64_t i = 0; i < noisy.count(); ++i) {
    const Number a = expected.value.at(i), b = noisy.at(i);
    if (Infinite(a) != Infinite(b)) expected.anything = true;
    if (!Infinite(a) && !Infinite(b)) expected.slack = std::max(expected.slack, std::fabs(a - b));
  }
}

Number LargestOf(const PlainTensor& x) {
  Number most = 0;
  for (const Number v : x.v) {
    if (!Infinite(v)) most = std::max(most, std::fabs(v));
  }
  return most;
}

Expected Expect(const PlainTensor& value, const std::vector<const PlainTensor*>& noisy) {
  Expected expected{value};
  expected.anything = value.trust == Trust::kUnsure;
  if (value.trust != Trust::kRough) return expected;
  for (const PlainTensor* each : noisy) Learn(expected, *each);
  const Number units = 16 * EpsilonOf(value.dtype) * LargestOf(value);
  expected.slack = 16 * expected.slack + units + 1e-6L;
  return expected;
}

// By step.
struct ExpectedStep {
  Meaning meaning = Meaning::kDecided;
  std::vector<Expected> outputs;
  std::map<int, Expected> refs;
};

std::vector<ExpectedStep> ExpectedSteps(const FuzzCase& fuzzed) {
  const std::vector<StepResult> plain = Interpret(fuzzed);
  std::vector<std::vector<StepResult>> noisy;
  for (int i = 0; i < kNoises; ++i) {
    Dice noise(static_cast<uint64_t>(i) + 1);
    noisy.push_back(Interpret(fuzzed, &noise));
  }
  std::vector<ExpectedStep> steps;
  for (size_t s = 0; s < plain.size(); ++s) {
    ExpectedStep step{plain[s].meaning};
    for (const auto& with_noise : noisy) {
      if (with_noise.size() <= s || with_noise[s].meaning != plain[s].meaning) {
        step.meaning = Meaning::kUnknown;
      }
    }
    const bool decided = step.meaning == Meaning::kDecided;
    for (size_t i = 0; decided && i < plain[s].outputs.size(); ++i) {
      std::vector<const PlainTensor*> others;
      for (const auto& each : noisy) others.push_back(&each[s].outputs[i]);
      step.outputs.push_back(Expect(plain[s].outputs[i], others));
    }
    if (decided) {
      for (const auto& [position, ref] : plain[s].refs) {
        std::vector<const PlainTensor*> others;
        for (const auto& each : noisy) others.push_back(&each[s].refs.at(position));
        step.refs[position] = Expect(ref, others);
      }
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

bool Same(Number a, Number b, Number slack) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::fabs(a - b) <= slack;
}

std::string TypeOf(const PlainTensor& x) {
  return TensorType{x.dtype, Shape(x.dims)}.ToString();
}

// Empty when equal.
std::string Difference(const PlainTensor& expected, const Tensor& seen, Number slack) {
  if (TensorType{expected.dtype, Shape(expected.dims)} != seen.type()) {
    return fmt::format("is {}, expected {}", seen.type().ToString(), TypeOf(expected));
  }
  const PlainTensor plain = FromTensor(seen);
  for (int64_t i = 0; i < plain.count(); ++i) {
    if (Same(expected.at(i), plain.at(i), slack)) continue;
    return fmt::format("{}: element {} is {}, expected {}{}", seen.type().ToString(), i,
                       static_cast<double>(plain.at(i)), static_cast<double>(expected.at(i)),
                       slack == 0 ? "" : fmt::format(" within {}", static_cast<double>(slack)));
  }
  return {};
}

std::string Bits(const Tensor& first, const Tensor& other) {
  if (first.type() != other.type()) {
    return fmt::format("is {}, elsewhere {}", other.type().ToString(), first.type().ToString());
  }
  const std::string difference = Difference(FromTensor(first), other, 0);
  if (!difference.empty() || first.bytes() == 0) return difference;
  if (std::memcmp(first.data(), other.data(), first.bytes()) == 0) return {};
  // Which NaN it is may differ; the sign of zero may not.
  const PlainTensor a = FromTensor(first), b = FromTensor(other);
  for (int64_t i = 0; i < a.count(); ++i) {
    if (!std::isnan(a.at(i)) && std::signbit(a.at(i)) != std::signbit(b.at(i))) {
      return fmt::format("{}: element {} has another sign of zero", first.type().ToString(), i);
    }
  }
  return {};
}

// Attention and norms, fused, round elsewhere than the operators do.
bool MayRoundElsewhere(const Model& model) {
  for (const Node& node : model.graph.nodes()) {
    if (node.type == "SoftmaxV2" || node.type == "Rsqrt" || node.type == "Sqrt") return true;
  }
  return false;
}

// What a refusal says, without the names and numbers that change with the case.
std::string KindOf(const Status& status) {
  std::string kind;
  bool quoted = false;
  for (const char c : status.ToString()) {
    if (c == '"') quoted = !quoted;
    if (!quoted && c != '"' && std::isdigit(static_cast<unsigned char>(c)) == 0) kind += c;
    if (c == '\n' || kind.size() > 120) break;
  }
  return kind;
}

// By node id: a graph output comes from it, over data or control edges.
std::vector<bool> ReachedFromOutputs(const Graph& graph) {
  std::vector<bool> reached(graph.nodes().size(), false);
  std::vector<NodeId> pending = {graph.NetOutput()};
  while (!pending.empty()) {
    const NodeId id = pending.back();
    pending.pop_back();
    if (id == kNoNode || reached[static_cast<size_t>(id)]) continue;
    reached[static_cast<size_t>(id)] = true;
    for (const std::optional<Value>& input : graph.node(id).inputs) {
      if (input) pending.push_back(input->node);
    }
    pending.insert(pending.end(), graph.node(id).controls.begin(), graph.node(id).controls.end());
  }
  return reached;
}

// Nodes of the main graph that no output needs.
std::vector<std::string> DeadNames(const Graph& graph) {
  const std::vector<bool> reached = ReachedFromOutputs(graph);
  std::vector<std::string> names;
  for (const Node& node : graph.nodes()) {
    if (!node.removed && !reached[static_cast<size_t>(node.id)]) names.push_back(node.name);
  }
  return names;
}

class Checker {
 public:
  explicit Checker(const FuzzCase& fuzzed)
      : expected_(ExpectedSteps(fuzzed)),
        loose_(MayRoundElsewhere(fuzzed.model)),
        dead_(DeadNames(fuzzed.model.graph)) {}

  std::optional<Disagreement> CheckFirst(const OptionSet& set, const EngineRun& run) const {
    const size_t legal = LegalSteps();
    if (run.steps.size() < legal) {
      return Disagreement{"refused by every set: " + KindOf(run.status),
                          fmt::format("[{}] refuses step {}: {}", set.name, run.steps.size(),
                                      run.status.ToString())};
    }
    return AgainstPlain(set, run);
  }

  std::optional<Disagreement> CheckOther(const OptionSet& first, const EngineRun& a,
                                         const OptionSet& set, const EngineRun& b) const {
    if (b.steps.size() < a.steps.size() && RefusesDeadNode(set, b.status)) return std::nullopt;
    if (a.steps.size() != b.steps.size()) {
      const bool fewer = b.steps.size() < a.steps.size();
      const EngineRun& failed = fewer ? b : a;
      return Disagreement{
          fmt::format("refused by [{}]: {}", fewer ? set.name : first.name, KindOf(failed.status)),
          fmt::format("[{}] refuses step {}, [{}] does not: {}", fewer ? set.name : first.name,
                      failed.steps.size(), fewer ? first.name : set.name,
                      failed.status.ToString())};
    }
    if (loose_) return AgainstPlain(set, b);
    for (size_t s = 0; s < a.steps.size(); ++s) {
      for (size_t i = 0; i < a.steps[s].outputs.size(); ++i) {
        const std::string text = Bits(a.steps[s].outputs[i], b.steps[s].outputs[i]);
        if (!text.empty()) return Differs(first, set, s, fmt::format("output {}", i), text);
      }
      for (const auto& [position, ref] : a.steps[s].refs) {
        const auto other = b.steps[s].refs.find(position);
        if (other == b.steps[s].refs.end()) continue;
        const std::string text = Bits(ref, other->second);
        if (!text.empty()) return Differs(first, set, s, fmt::format("RefData {}", position), text);
      }
    }
    return std::nullopt;
  }

 private:
  // Where dead nodes are kept, one that cannot run is an error of the graph.
  bool RefusesDeadNode(const OptionSet& set, const Status& status) const {
    const bool refusal =
        status.code() == Code::kInvalidArgument || status.code() == Code::kUnsupported;
    if (!refusal || set.options.compile.drop_dead_nodes) return false;
    return std::any_of(dead_.begin(), dead_.end(), [&](const std::string& name) {
      return status.message().find(fmt::format("\"{}\"", name)) != std::string_view::npos;
    });
  }

  // Steps that must run.
  size_t LegalSteps() const {
    size_t steps = 0;
    while (steps < expected_.size() && expected_[steps].meaning == Meaning::kDecided) ++steps;
    return steps;
  }

  static Disagreement Differs(const OptionSet& first, const OptionSet& set, size_t step,
                              const std::string& what, const std::string& text) {
    return {fmt::format("[{}] differs", set.name),
            fmt::format("[{}] and [{}] differ, step {}, {} {}", first.name, set.name, step, what,
                        text)};
  }

  std::optional<Disagreement> AgainstPlain(const OptionSet& set, const EngineRun& run) const {
    const size_t steps = std::min(LegalSteps(), run.steps.size());
    for (size_t s = 0; s < steps; ++s) {
      const EngineStep& seen = run.steps[s];
      const ExpectedStep& step = expected_[s];
      for (size_t i = 0; i < step.outputs.size(); ++i) {
        auto wrong = Wrong(set, s, fmt::format("output {}", i), step.outputs[i], seen.outputs[i]);
        if (wrong) return wrong;
      }
      for (const auto& [position, ref] : step.refs) {
        auto wrong =
            Wrong(set, s, fmt::format("RefData {}", position), ref, seen.refs.at(position));
        if (wrong) return wrong;
      }
    }
    return std::nullopt;
  }

  static std::optional<Disagreement> Wrong(const OptionSet& set, size_t step,
                                           const std::string& what, const Expected& expected,
                                           const Tensor& seen) {
    if (expected.anything) return std::nullopt;
    const std::string text = Difference(expected.value, seen, expected.slack);
    if (text.empty()) return std::nullopt;
    return Disagreement{
        fmt::format("[{}] is wrong", set.name),
        fmt::format("[{}] and the interpreter differ, step {}, {} {}", set.name, step, what, text)};
  }

  std::vector<ExpectedStep> expected_;
  bool loose_;
  std::vector<std::string> dead_;  // names
};

}  // namespace

Verdict CheckCase(World& world, DeviceMemory& memory, const FuzzCase& fuzzed,
                  const std::vector<const OptionSet*>& sets) {
  const Checker checker(fuzzed);
  Verdict verdict;
  const EngineRun first = RunInEngine(world, memory, fuzzed, *sets[0]);
  verdict.spent = !first.status.ok();
  verdict.found = checker.CheckFirst(*sets[0], first);
  for (size_t i = 1; i < sets.size() && !verdict.found; ++i) {
    const EngineRun other = RunInEngine(world, memory, fuzzed, *sets[i]);
    verdict.spent = verdict.spent || !other.status.ok();
    verdict.found = checker.CheckOther(*sets[0], first, *sets[i], other);
  }
  return verdict;
}

}  // namespace npumesh::fuzz
