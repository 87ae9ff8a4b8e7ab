// CardFindings: what the card would refuse, or compute otherwise, as far as it was seen.
//
// Thread-safety: all members may be called from any thread.
#ifndef NPUMESH_RUNTIME_CARD_FINDINGS_H_
#define NPUMESH_RUNTIME_CARD_FINDINGS_H_

#include <mutex>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/card/card.h"

namespace npumesh {

struct CardFinding {
  std::string rule;   // "fia-tnd-head-dim"
  std::string where;  // node "attention_3" (FusedInferAttentionScore); stream 1985
  std::string node;   // its name; empty: of no node
  std::string text;   // what was seen, and what the card takes
  int code = 0;       // that the card answers with; 0: it says nothing, and is wrong
  std::string mend;   // what to change; may be empty
  std::string source;

  bool refused() const { return code != 0; }
};

// One line: "ascend910b3 refuses node "a" (B): text; code 561002; mend: ..; rule .., source".
std::string TextOf(const CardFinding& finding, const Chip& chip);

class CardFindings {
 public:
  // `says`: each finding is also a line of the log, whatever its level.
  explicit CardFindings(Card card, bool says = true) : card_(card), says_(says) {}

  const Card& card() const { return card_; }
  // Keeps a finding, each once. Error (kInvalidArgument) of one that the card refuses, if the card
  // fails: each time.
  Status Add(CardFinding finding);
  std::vector<CardFinding> all() const;

 private:
  const Card card_;
  const bool says_;
  mutable std::mutex mutex_;
  std::vector<CardFinding> all_;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_CARD_FINDINGS_H_
