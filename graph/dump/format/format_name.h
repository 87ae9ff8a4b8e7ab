// Names of dump files and folders (docs/dump.md).
#ifndef NPUMESH_GRAPH_DUMP_FORMAT_FORMAT_NAME_H_
#define NPUMESH_GRAPH_DUMP_FORMAT_FORMAT_NAME_H_

#include <array>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>

namespace npumesh {

// The name of an operator or model as part of a path: blank, '.', '/' and '\' become '_' (the
// reference's table), and so do control characters, NUL among them; an empty name becomes "_". The
// result holds no path separator and is neither "." nor "..".
std::string SanitizedName(std::string_view name);

// {op_type}.{op_name}.{task}.{stream}.{timestamp}, with ".csv" after it for statistics.
struct DumpFileName {
  std::string op_type;
  std::string op_name;  // as in the file name: sanitised
  uint32_t task = 0;
  std::optional<uint32_t> stream;  // absent in exception dumps
  // Microseconds since the epoch, 16 digits; exception dumps: YYYYMMDDHHMMSSmmm.
  uint64_t time = 0;
  // FFTS+: task type, context, thread, device.
  std::optional<std::array<uint32_t, 4>> subtask;
  bool stats = false;

  // Sanitises type and name.
  std::string ToString() const;
  bool operator==(const DumpFileName&) const = default;
};

// `name` without folder. nullopt: not the name of a dump file. Names that only mapping.csv explains
// (digits alone) are resolved first, see format_mapping.h.
std::optional<DumpFileName> ParseDumpFileName(std::string_view name);

// The operator and the watched one of a watch-mode file, "{layer}_To_{watched}"; nullopt: it is
// none. A name that contains "_To_" more than once is cut at the first.
struct WatchedName {
  std::string layer;
  std::string watched;
};
std::string JoinWatchedName(std::string_view layer, std::string_view watched);
std::optional<WatchedName> ParseWatchedName(std::string_view op_name);

// "worldsize4_global_rank2"
std::string RankFolderName(int world_size, int rank);
struct RankFolder {
  int world_size = 0;
  int rank = 0;
};
std::optional<RankFolder> ParseRankFolderName(std::string_view name);

// "YYYYMMDDHHMMSS", local time.
std::string TimeFolderName(std::time_t time);

// "YYYYMMDDHHMMSSffffff" of now, UTC: the files of eager execution.
std::string UtcTimestamp();

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_DUMP_FORMAT_FORMAT_NAME_H_
