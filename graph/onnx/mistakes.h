// The mistakes of an import, which are reported all at once.
#ifndef NPUMESH_GRAPH_ONNX_MISTAKES_H_
#define NPUMESH_GRAPH_ONNX_MISTAKES_H_

#include <vector>

#include "runtime/base/status.h"

namespace npumesh {

// A mistake that has its words elsewhere: in the mistake of a node before, or in the list of
// operators without a translation.
Status Unsaid();
bool IsUnsaid(const Status& status);

// Success without mistakes, the mistake where it is one, and otherwise all of them in one text with
// the code of the first. Unsaid ones count only where there are no others.
Status OneOf(const std::vector<Status>& mistakes);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ONNX_MISTAKES_H_
