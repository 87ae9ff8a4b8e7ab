// Fault: one thing that shall go wrong, as a user writes it after `--inject`.
//
//   corrupt:rank=2,op=NAME[,element=K][,output=I][,step=S]   one element of an output is wrong
//   delay:rank=1,op=NAME,ms=500[,step=S]                     the rank comes late
//   kill:rank=1[,op=NAME][,step=S]                           the rank dies by SIGKILL
//   exit:rank=1[,op=NAME][,code=C][,step=S]                  the rank exits silently
//
// delay, kill and exit strike before the operator runs, corrupt after it has run. Without `op` they
// strike before the first operator; without `step` in every step. Without `element` the seed picks
// the element.
#ifndef NPUMESH_GRAPH_INJECT_FAULT_H_
#define NPUMESH_GRAPH_INJECT_FAULT_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ir/shape.h"
#include "runtime/base/status.h"

namespace npumesh {

struct Fault {
  enum class Kind : uint8_t { kCorrupt, kDelay, kKill, kExit };
  Kind kind = Kind::kCorrupt;
  int rank = 0;
  std::string op;  // node name; empty: the first operator
  std::optional<uint64_t> step;
  std::optional<int64_t> element;      // kCorrupt
  int output = 0;                      // kCorrupt
  std::chrono::milliseconds delay{0};  // kDelay
  int exit_code = 1;                   // kExit
};

// The words before the colon: "corrupt", "delay" ...
std::vector<std::string_view> FaultKinds();

// Errors (kInvalidArgument) quote the text and name the field: an unknown kind or field, a field
// that is missing, given twice, out of range, or of another kind of fault.
Result<Fault> ParseFault(std::string_view text);

// The element that `fault` hits in a tensor of `elements` elements, of which there is at least one:
// always the same for the same seed, rank and operator. Error (kInvalidArgument): the element that
// was asked for does not exist.
Result<int64_t> ElementToHit(const Fault& fault, int64_t elements, uint64_t seed);

// Makes one element wrong, so that any comparison sees it: a floating-point element becomes the
// largest magnitude of the tensor with the opposite sign (1 when all are zero), an integer changes
// its lowest bit, a boolean is negated. `data` holds the tensor. REQUIRES: the element exists.
// Error: kUnsupported names a dtype whose elements are no whole bytes.
Status CorruptElement(const TensorType& type, void* data, int64_t element);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_INJECT_FAULT_H_
