// TuningMachine: what of a processor decides which kernel is the fastest.
//
// Thread-safety: pure functions.
#ifndef NPUMESH_GRAPH_TUNING_MACHINE_H_
#define NPUMESH_GRAPH_TUNING_MACHINE_H_

#include <string>
#include <string_view>

namespace npumesh {

struct TuningMachine {
  std::string instructions;  // "x86-64-v4"
  std::string cpu;           // "Intel(R) Xeon(R) Platinum 8375C"; empty: the system does not tell
  static TuningMachine Here();
};

// The model name in the text of a /proc/cpuinfo.
std::string ModelNameIn(std::string_view cpuinfo);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_TUNING_MACHINE_H_
