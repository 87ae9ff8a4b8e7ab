// The progress line of a run while the weights of its graph are loaded.
#ifndef NPUMESH_LAUNCH_RUN_WEIGHT_PROGRESS_H_
#define NPUMESH_LAUNCH_RUN_WEIGHT_PROGRESS_H_

#include <string>

#include "graph/engine/analyse/weight_cache.h"

namespace npumesh {

// "\rload weights 50% 512/1024 MiB", and a line break after the last. Empty for less than 16 MiB:
// they are there before the user could read the line.
std::string WeightProgressText(const WeightProgress& progress);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RUN_WEIGHT_PROGRESS_H_
