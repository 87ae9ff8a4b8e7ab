// NodeWatch: asks the rules of a card about the nodes of graphs.
//
// Thread-safety: all members may be called from any thread.
#ifndef NPUMESH_GRAPH_LIMITS_NODE_WATCH_H_
#define NPUMESH_GRAPH_LIMITS_NODE_WATCH_H_

#include <map>
#include <string>
#include <vector>

#include "graph/limits/rules.h"
#include "runtime/card/findings.h"

namespace npumesh {

class NodeWatch {
 public:
  // `card` names a chip. `rules` must outlive it. `says` as CardFindings has it.
  explicit NodeWatch(Card card, bool says = true, const CardRules& rules = BuiltinCardRules());

  // A node with the types of its inputs, as far as they are known. Errors as CardFindings::Add.
  Status Check(const OpContext& op);

  // What others found. Errors as CardFindings::Add.
  Status Add(CardFinding finding) { return findings_.Add(std::move(finding)); }

  const CardFindings& findings() const { return findings_; }

 private:
  CardFindings findings_;
  std::map<std::string, std::vector<const CardRule*>, std::less<>> rules_;  // by operator
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_LIMITS_NODE_WATCH_H_
