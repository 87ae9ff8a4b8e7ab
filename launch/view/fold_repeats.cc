#include "launch/view/fold_repeats.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>

#include "graph/ir/node_kind.h"
#include "runtime/base/text/parse.h"

namespace npumesh {
namespace {

constexpr size_t kFewestCopies = 3;
// Operators that a stretch takes out of sight; fewer are not worth a word.
constexpr size_t kFewestFolded = 8;
constexpr size_t kLongestCopy = 4096;
constexpr size_t kNowhere = static_cast<size_t>(-1);

// Copies of `period` operators each, from place `first` of the order on.
struct Stretch {
  size_t first = 0;
  size_t period = 0;
  size_t copies = 0;
  size_t folded() const { return (copies - 1) * period; }
};

class Finder {
 public:
  Finder(const Graph& graph, const std::vector<NodeId>& order)
      : graph_(graph), place_of_(graph.nodes().size(), kNowhere) {
    for (const NodeId id : order) {
      const Node& node = graph.node(id);
      if (node.removed || IsWeightNode(node) || IsInputNode(node) || IsNetOutput(node)) continue;
      place_of_[static_cast<size_t>(id)] = operators_.size();
      operators_.push_back(id);
    }
    for (const NodeId id : operators_) forms_.push_back(FormOf(graph.node(id)));
  }

  const std::vector<NodeId>& operators() const { return operators_; }

  // All stretches, in order.
  std::vector<Stretch> All() {
    std::vector<Stretch> found;
    Search(0, operators_.size(), &found);
    std::sort(found.begin(), found.end(),
              [](const Stretch& a, const Stretch& b) { return a.first < b.first; });
    return found;
  }

 private:
  // A number for type, ports and kinds of inputs.
  int FormOf(const Node& node) {
    std::string form = fmt::format("{}\n{}\n", node.type, node.output_descs.size());
    for (const std::optional<Value>& input : node.inputs) {
      if (!input) {
        form += '-';
      } else if (IsWeightNode(graph_.node(input->node))) {
        form += 'w';
      } else {
        form += IsInputNode(graph_.node(input->node)) ? 'i' : 'o';
      }
    }
    return form_numbers_.emplace(std::move(form), static_cast<int>(form_numbers_.size()))
        .first->second;
  }

  void Search(size_t begin, size_t end, std::vector<Stretch>* found) const {
    const std::optional<Stretch> best = Best(begin, end);
    if (!best) return;
    found->push_back(*best);
    Search(begin, best->first, found);
    Search(best->first + best->copies * best->period, end, found);
  }

  std::optional<Stretch> Best(size_t begin, size_t end) const {
    std::optional<Stretch> best;
    const size_t longest = std::min((end - begin) / kFewestCopies, kLongestCopy);
    for (size_t period = 1; period <= longest; ++period) {
      size_t run = 0;
      for (size_t at = begin; at + period <= end; ++at) {
        const bool same = at + period < end && forms_[at] == forms_[at + period];
        if (same) {
          ++run;
          continue;
        }
        Consider({at - run, period, run / period + 1}, run % period, &best);
        run = 0;
      }
    }
    return best;
  }

  // `slack`: by how much the stretch may begin later. It begins where the fewest values flow from
  // copy to copy, which is between two layers.
  void Consider(Stretch stretch, size_t slack, std::optional<Stretch>* best) const {
    const auto worse = [&](const Stretch& each) {
      return each.copies < kFewestCopies || each.folded() < kFewestFolded ||
             (*best && each.folded() <= (*best)->folded());
    };
    if (worse(stretch)) return;
    const size_t first = stretch.first;
    size_t fewest = kNowhere;
    std::optional<Stretch> chosen;
    for (size_t shift = 0; shift <= slack; ++shift) {
      Stretch moved{first + shift, stretch.period, stretch.copies};
      moved.copies = AlikeCopies(moved);
      if (worse(moved)) continue;
      const size_t crossing = Crossing(moved.first + moved.period);
      if (chosen && moved.copies <= chosen->copies && crossing >= fewest) continue;
      fewest = crossing;
      chosen = moved;
    }
    if (chosen) *best = chosen;
  }

  // Operators before `place` whose values are read at or after it.
  size_t Crossing(size_t place) const {
    std::vector<size_t> sources;
    for (size_t at = place; at < operators_.size(); ++at) {
      for (const std::optional<Value>& input : graph_.node(operators_[at]).inputs) {
        if (!input) continue;
        const size_t source = place_of_[static_cast<size_t>(input->node)];
        if (source < place) sources.push_back(source);
      }
      if (at > place + kLongestCopy) break;
    }
    std::sort(sources.begin(), sources.end());
    return static_cast<size_t>(std::unique(sources.begin(), sources.end()) - sources.begin());
  }

  size_t AlikeCopies(const Stretch& stretch) const {
    size_t copies = 1;
    while (copies < stretch.copies && IsAlike(stretch, copies)) ++copies;
    return copies;
  }

  // Copy number `copy` reads what the one before it reads, one copy later.
  bool IsAlike(const Stretch& stretch, size_t copy) const {
    for (size_t k = 0; k < stretch.period; ++k) {
      const size_t here = stretch.first + copy * stretch.period + k;
      const auto& mine = graph_.node(operators_[here]).inputs;
      const auto& before = graph_.node(operators_[here - stretch.period]).inputs;
      for (size_t i = 0; i < mine.size(); ++i) {
        if (!mine[i] || !before[i]) continue;
        if (mine[i]->port != before[i]->port && copy > 1) return false;
        const size_t a = place_of_[static_cast<size_t>(before[i]->node)];
        const size_t b = place_of_[static_cast<size_t>(mine[i]->node)];
        if (a == kNowhere || b == kNowhere) continue;  // weights and inputs
        const bool shifted = b == a + stretch.period;
        const bool shared = a == b && a < stretch.first;
        const bool entered = copy == 1 && a < stretch.first && b >= stretch.first;
        if (!shifted && !shared && !entered) return false;
      }
    }
    return true;
  }

  const Graph& graph_;
  std::vector<NodeId> operators_;
  std::vector<size_t> place_of_;  // by node
  std::map<std::string, int> form_numbers_;
  std::vector<int> forms_;  // by place
};

// "layers" and 12 of "model.layers.12.mlp": the number at which the names of copies differ.
struct Numbered {
  std::string word;
  int64_t number = 0;
};

std::optional<Numbered> NumberAt(const std::string& name, const std::string& other) {
  size_t at = 0;
  while (at < name.size() && at < other.size() && name[at] == other[at]) ++at;
  while (at > 0 && std::isdigit(static_cast<unsigned char>(name[at - 1])) != 0) --at;
  size_t end = at;
  while (end < name.size() && std::isdigit(static_cast<unsigned char>(name[end])) != 0) ++end;
  const auto number = ParseInt(std::string_view(name).substr(at, end - at), 0, 1'000'000, "number");
  if (!number.ok()) return std::nullopt;
  size_t word = at;
  while (word > 0 && std::isalpha(static_cast<unsigned char>(name[word - 1])) == 0) --word;
  size_t begin = word;
  while (begin > 0 && std::isalpha(static_cast<unsigned char>(name[begin - 1])) != 0) --begin;
  return Numbered{name.substr(begin, word - begin), *number};
}

// One stretch of the whole graph becomes one node of the folded one.
class Folder {
 public:
  Folder(Graph* graph, const std::vector<NodeId>& operators, const Stretch& stretch)
      : graph_(*graph), operators_(operators), stretch_(stretch) {}

  Result<FoldedStretch> Fold(size_t number) {
    folded_.assign(graph_.nodes().size(), false);
    for (size_t k = stretch_.period; k < stretch_.period * stretch_.copies; ++k) {
      folded_[static_cast<size_t>(At(k))] = true;
    }
    NPUMESH_ASSIGN_OR_RETURN(const NodeId id, AddNode(number));
    LeadReaders(id);
    for (size_t k = stretch_.period * stretch_.copies; k-- > stretch_.period;) {
      graph_.Remove(At(k));
    }
    FoldedStretch made{graph_.node(id).name, {}, stretch_.copies - 1};
    for (size_t k = 0; k < stretch_.period; ++k) made.like.push_back(At(k));
    return made;
  }

 private:
  NodeId At(size_t k) const { return operators_[stretch_.first + k]; }
  bool IsFolded(NodeId id) const { return folded_[static_cast<size_t>(id)]; }

  // "layers 1 .. 23" where the names say it, else "23 more".
  std::string Which() const {
    const size_t more = stretch_.copies - 1;
    for (size_t k = 0; k < stretch_.period; ++k) {
      const std::string& first = graph_.node(At(k)).name;
      std::optional<Numbered> begin;
      bool regular = true;
      for (size_t copy = 1; copy < stretch_.copies && regular; ++copy) {
        const std::string& name = graph_.node(At(copy * stretch_.period + k)).name;
        const std::optional<Numbered> here = NumberAt(name, first);
        const auto step = static_cast<int64_t>(copy) - 1;
        if (copy == 1) begin = here;
        regular = here && begin && !here->word.empty() && here->word == begin->word &&
                  here->number == begin->number + step;
      }
      if (!regular) continue;
      return fmt::format("{} {} .. {}", begin->word, begin->number,
                         begin->number + static_cast<int64_t>(more) - 1);
    }
    return fmt::format("{} more", more);
  }

  Result<NodeId> AddNode(size_t number) {
    Node node;
    node.type = kFoldedType;
    node.name = fmt::format("{}: {} operators each, as above", Which(), stretch_.period);
    if (graph_.Find(node.name) != kNoNode) node.name += fmt::format(" ({})", number);
    std::map<Value, bool> seen;
    for (size_t k = stretch_.period; k < stretch_.period * stretch_.copies; ++k) {
      const Node& inner = graph_.node(At(k));
      for (size_t i = 0; i < inner.inputs.size(); ++i) {
        const std::optional<Value>& input = inner.inputs[i];
        if (!input || IsFolded(input->node) || IsWeightNode(graph_.node(input->node))) continue;
        if (!seen.emplace(*input, true).second) continue;
        node.inputs.push_back(*input);
        node.input_descs.push_back(inner.input_descs[i]);
      }
      for (const NodeId control : inner.controls) {
        if (!IsFolded(control)) node.controls.push_back(control);
      }
    }
    for (const Node& reader : graph_.nodes()) {
      if (reader.removed || IsFolded(reader.id)) continue;
      for (const std::optional<Value>& input : reader.inputs) {
        if (!input || !IsFolded(input->node) || outputs_.contains(*input)) continue;
        outputs_.emplace(*input, static_cast<int>(node.output_descs.size()));
        const auto port = static_cast<size_t>(input->port);
        const auto& descs = graph_.node(input->node).output_descs;
        node.output_descs.push_back(port < descs.size() ? descs[port] : TensorDesc());
      }
    }
    return graph_.Add(std::move(node));
  }

  // What the folded operators give, `id` gives.
  void LeadReaders(NodeId id) {
    for (const auto& [value, port] : outputs_) graph_.ReplaceUses(value, {id, port});
    const size_t nodes = graph_.nodes().size();
    for (size_t i = 0; i < nodes; ++i) {
      Node& node = graph_.node(static_cast<NodeId>(i));
      if (node.removed || IsFoldedOld(node.id)) continue;
      bool waits = false;
      std::erase_if(node.controls, [&](NodeId control) {
        waits = waits || IsFoldedOld(control);
        return IsFoldedOld(control);
      });
      if (waits) node.controls.push_back(id);
    }
  }
  // The new node itself is not among those that are folded.
  bool IsFoldedOld(NodeId id) const {
    return static_cast<size_t>(id) < folded_.size() && IsFolded(id);
  }

  Graph& graph_;
  const std::vector<NodeId>& operators_;
  const Stretch& stretch_;
  std::vector<bool> folded_;  // by node
  std::map<Value, int> outputs_;
};

}  // namespace

Result<FoldedGraph> FoldRepeats(const Graph& graph) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph.StableOrder());
  Finder finder(graph, order);
  FoldedGraph folded{graph, {}};
  for (const Stretch& stretch : finder.All()) {
    NPUMESH_ASSIGN_OR_RETURN(
        FoldedStretch made,
        Folder(&folded.graph, finder.operators(), stretch).Fold(folded.stretches.size()));
    folded.stretches.push_back(std::move(made));
  }
  return folded;
}

}  // namespace npumesh
