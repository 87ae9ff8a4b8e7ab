#include "graph/compare/laws/law_check.h"

#include <algorithm>
#include <optional>
#include <set>

#include "graph/compare/sources/input_numbers.h"

namespace npumesh {
namespace {

// The tensors that ranks hold for one law; absent: not in the dump.
using Held = std::vector<std::optional<Tensor>>;

bool Has(const TensorSource& source, const std::string& key, Side side, int index) {
  const SourceOperator* const op = source.Find(key);
  if (op == nullptr) return false;
  const std::vector<int>& indexes = op->indexes(side);
  return std::binary_search(indexes.begin(), indexes.end(), index);
}

Result<Held> LoadHeld(const Law& law, const RankSources& sources) {
  Held held(sources.size());
  for (size_t rank = 0; rank < sources.size(); ++rank) {
    if (sources[rank] == nullptr || law.classes[rank] < 0) continue;
    if (!Has(*sources[rank], law.key, Side::kOutput, law.output)) continue;
    NPUMESH_ASSIGN_OR_RETURN(held[rank], sources[rank]->Load(law.key, Side::kOutput, law.output));
  }
  return held;
}

// Ranks of one class grouped by what they hold, the lowest rank of each group first.
std::vector<std::vector<int>> Opinions(const std::vector<int>& ranks, const Held& held) {
  std::vector<std::vector<int>> opinions;
  for (const int rank : ranks) {
    const auto same = std::find_if(opinions.begin(), opinions.end(), [&](const auto& opinion) {
      return DistanceOf(*held[static_cast<size_t>(rank)],
                        *held[static_cast<size_t>(opinion.front())])
          .same();
    });
    if (same != opinions.end()) {
      same->push_back(rank);
    } else {
      opinions.push_back({rank});
    }
  }
  return opinions;
}

// What is wrong in one class; nullopt: nothing.
std::optional<BrokenLaw> Judge(const Law& law, const std::vector<int>& ranks, const Held& held) {
  const std::vector<std::vector<int>> opinions = Opinions(ranks, held);
  if (opinions.size() < 2) return std::nullopt;
  const auto majority =
      std::max_element(opinions.begin(), opinions.end(),
                       [](const auto& a, const auto& b) { return a.size() < b.size(); });
  const auto as_large = std::count_if(opinions.begin(), opinions.end(), [&](const auto& opinion) {
    return opinion.size() == majority->size();
  });
  BrokenLaw broken;
  broken.law = &law;
  broken.undecided = as_large > 1;
  broken.witness = majority->front();
  for (const auto& opinion : opinions) {
    if (&opinion == &*majority) continue;
    broken.deviating.insert(broken.deviating.end(), opinion.begin(), opinion.end());
  }
  std::sort(broken.deviating.begin(), broken.deviating.end());
  broken.rank = broken.deviating.front();
  broken.distance = DistanceOf(*held[static_cast<size_t>(broken.rank)],
                               *held[static_cast<size_t>(broken.witness)]);
  return broken;
}

std::map<int, std::vector<int>> RanksByClass(const Law& law, const Held& held) {
  std::map<int, std::vector<int>> ranks;
  for (size_t rank = 0; rank < held.size(); ++rank) {
    if (held[rank]) ranks[law.classes[rank]].push_back(static_cast<int>(rank));
  }
  return ranks;
}

// The tensor that a rank got for the input `key`; nullopt: not in its dump.
Result<std::optional<Tensor>> DumpedInput(const Graph& graph, const OpRegistry& registry,
                                          const TensorSource& source, const std::string& key) {
  std::optional<Tensor> found;
  if (Has(source, key, Side::kOutput, 0)) {
    NPUMESH_ASSIGN_OR_RETURN(found, source.Load(key, Side::kOutput, 0));
    return found;
  }
  for (const Node& node : graph.nodes()) {
    if (node.removed) continue;
    const std::string reader = OperatorKey(node.name);
    const std::vector<size_t> fed = DumpedInputs(node, registry);
    for (size_t i = 0; i < fed.size(); ++i) {
      const Node& producer = graph.node(node.inputs[fed[i]]->node);
      const auto number = static_cast<int>(i);
      if (OperatorKey(producer.name) != key || !Has(source, reader, Side::kInput, number)) continue;
      NPUMESH_ASSIGN_OR_RETURN(found, source.Load(reader, Side::kInput, number));
      return found;
    }
  }
  return found;
}

}  // namespace

Result<LawReport> CheckLaws(const LawTable& table, const RankSources& sources,
                            const OperatorOrder& order) {
  LawReport report;
  std::set<std::string> broken_keys;
  for (const Law& law : table) {
    if (!law.binds()) {
      ++report.free;
      continue;
    }
    NPUMESH_ASSIGN_OR_RETURN(const Held held, LoadHeld(law, sources));
    bool checked = false;
    for (const auto& [lowest, ranks] : RanksByClass(law, held)) {
      if (ranks.size() < 2) continue;
      checked = true;
      std::optional<BrokenLaw> broken = Judge(law, ranks, held);
      if (!broken) continue;
      broken->standing =
          order.Sees(law.key, broken_keys) ? Standing::kConsequence : Standing::kOrigin;
      report.broken.push_back(*std::move(broken));
    }
    ++(checked ? report.checked : report.missing);
    if (!report.broken.empty() && report.broken.back().law == &law) broken_keys.insert(law.key);
  }
  return report;
}

InputClasses InputsAsDumped(const RankGraphs& graphs, const OpRegistry& registry,
                            const RankSources& sources, bool assume_equal) {
  return [&graphs, &registry, sources, assume_equal](const std::string& key) {
    RankClasses classes;
    Held held(sources.size());
    for (size_t rank = 0; rank < sources.size(); ++rank) {
      const auto mine = static_cast<int>(rank);
      classes.push_back(assume_equal ? 0 : mine);
      if (sources[rank] == nullptr) continue;
      Result<std::optional<Tensor>> dumped =
          DumpedInput(graphs.models[rank]->graph, registry, *sources[rank], key);
      if (!dumped.ok() || !*dumped) continue;
      held[rank] = **std::move(dumped);
      classes[rank] = mine;
      for (size_t lower = 0; lower < rank; ++lower) {
        if (!held[lower] || !DistanceOf(*held[lower], *held[rank]).same()) continue;
        classes[rank] = classes[lower];
        break;
      }
    }
    return classes;
  };
}

}  // namespace npumesh
