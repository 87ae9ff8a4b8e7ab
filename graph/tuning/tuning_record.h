// TuningRecord: what was measured for one key, as it stands in a file (docs/tuning.md).
//
// Thread-safety: that of a value.
#ifndef NPUMESH_GRAPH_TUNING_TUNING_RECORD_H_
#define NPUMESH_GRAPH_TUNING_TUNING_RECORD_H_

#include <string>
#include <string_view>
#include <vector>

#include "graph/tuning/trial.h"
#include "runtime/base/status.h"

namespace npumesh {

struct TuningRecord {
  struct Candidate {
    Preferences decisions;  // none: the ordinary choice
    double median_us = 0;
    int runs = 0;
    std::string failure;  // not empty: it failed, and has no time
  };

  std::string key;
  std::string step;                   // "MatMulV2 float[2,3]", for people
  std::vector<Candidate> candidates;  // the ordinary one first; at least this one
  size_t winner = 0;                  // which of them
  std::string instructions;
  std::string cpu;
  std::string npumesh;
  std::string created;  // "2026-11-22T19:20:02Z"

  const Candidate& ordinary() const { return candidates.front(); }
  const Candidate& best() const { return candidates[winner]; }

  // JSON, indent 2, ends with a newline.
  std::string ToText() const;
  // Error (kCorrupt) says what is wrong with it: cut short, no record, that of another key.
  static Result<TuningRecord> Parse(std::string_view text, std::string_view key);
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_TUNING_TUNING_RECORD_H_
