// Where a rank's dump goes (docs/dump.md).
#ifndef NPUMESH_GRAPH_DUMP_WRITER_PLACE_H_
#define NPUMESH_GRAPH_DUMP_WRITER_PLACE_H_

#include <cstdint>
#include <string>

#include "graph/dump/options/settings.h"
#include "runtime/base/status.h"
#include "runtime/world/world.h"

namespace npumesh {

// The simulator has one stream for a graph.
inline constexpr uint32_t kDumpStream = 0;

struct DumpPlace {
  int world_size = 1;
  int rank = 0;
  int device_id = 0;      // the logical device: the rank's place on its node
  uint32_t model_id = 1;  // of the session, counted from 1
  std::string time;       // YYYYMMDDHHMMSS, the same on all ranks
};

// The place of the next dump of this world. Its time is that of the world's start, so it is the
// same on all ranks and for all dumps; they are told apart by model_id, which counts them from 1.
// Any thread.
DumpPlace NextDumpPlace(World& world);

// Removes what dumps that were killed have left in the folders of this rank: files on their way.
void ClearKilledDumps(const std::string& rank_root);

// {path}[/worldsize{N}_global_rank{R}]: with settings.always_rank_folder, or several ranks.
std::string RankRoot(const DumpSettings& settings, const DumpPlace& place);

// {rank root}/{time}
std::string TimeFolder(const DumpSettings& settings, const DumpPlace& place);

// {time folder}/{device_id}: operators that run by themselves.
std::string DeviceFolder(const DumpSettings& settings, const DumpPlace& place);

// {device folder}/{model_name}/{model_id}; the step's data_index follows. A name of more than 255
// bytes is replaced as that of a file is (format_mapping.h); the manifest has it in full.
std::string ModelFolder(const DumpSettings& settings, const DumpPlace& place,
                        const std::string& model_name);

// {rank root}/extra-info/data-dump/{device_id}; below settings.exception_path when that is given,
// with a folder for the rank only if there are several.
std::string ExceptionFolder(const DumpSettings& settings, const DumpPlace& place);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_DUMP_WRITER_PLACE_H_
