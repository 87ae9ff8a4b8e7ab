// The log: one line an event, to standard error, through spdlog.
//
// Line format of TorchAir, with our name and the rank after the process name:
//   [LEVEL] NPUMESH(pid,process) rank r:YYYY-MM-DD-HH:MM:SS.mmm.uuu [file:line]tid text
// A message of several lines repeats the prefix on each, and a line too long for one atomic write
// goes on after another prefix. A line is written with one write(2) of at most PIPE_BUF bytes, so
// the lines of several ranks never interleave. TNG_LOG_LEVEL: 0 DEBUG, 1 INFO, 2 WARNING, 3 ERROR
// (default), 4 EVENT; level 4 prints ERROR and EVENT only.
//
// Thread-safety: all functions may be called from any thread.
#ifndef NPUMESH_RUNTIME_BASE_LOG_H_
#define NPUMESH_RUNTIME_BASE_LOG_H_

#include <fmt/format.h>

#include <string_view>

namespace npumesh {

enum class LogLevel { kDebug = 0, kInfo = 1, kWarning = 2, kError = 3, kEvent = 4 };

// Level from now on; the start value is TNG_LOG_LEVEL, or ERROR.
void SetLogLevel(LogLevel level);

// The world rank that log lines of this thread carry; -1 (default) prints none. Threads that a rank
// starts set it again.
void SetLogRank(int rank);
int LogRank();

bool LogEnabled(LogLevel level);

// Where the call stands; filled in by the macros below.
struct LogSite {
  std::string_view file;
  int line;
};

void WriteLog(LogLevel level, LogSite site, std::string_view text);

// True only the first time it is asked about `text` in this process: for warnings said once.
bool FirstTime(std::string_view text);

}  // namespace npumesh

#define NPUMESH_LOG(level, ...)                                                     \
  do {                                                                              \
    if (::npumesh::LogEnabled(level))                                               \
      ::npumesh::WriteLog(level, {__FILE__, __LINE__}, ::fmt::format(__VA_ARGS__)); \
  } while (false)
#define NPUMESH_DEBUG(...) NPUMESH_LOG(::npumesh::LogLevel::kDebug, __VA_ARGS__)
#define NPUMESH_INFO(...) NPUMESH_LOG(::npumesh::LogLevel::kInfo, __VA_ARGS__)
#define NPUMESH_WARNING(...) NPUMESH_LOG(::npumesh::LogLevel::kWarning, __VA_ARGS__)
#define NPUMESH_ERROR(...) NPUMESH_LOG(::npumesh::LogLevel::kError, __VA_ARGS__)
#define NPUMESH_EVENT(...) NPUMESH_LOG(::npumesh::LogLevel::kEvent, __VA_ARGS__)
#define NPUMESH_WARNING_ONCE(...)                                                               \
  do {                                                                                          \
    if (::npumesh::LogEnabled(::npumesh::LogLevel::kWarning)) {                                 \
      if (const auto npumesh_text = ::fmt::format(__VA_ARGS__);                                 \
          ::npumesh::FirstTime(npumesh_text))                                                   \
        ::npumesh::WriteLog(::npumesh::LogLevel::kWarning, {__FILE__, __LINE__}, npumesh_text); \
    }                                                                                           \
  } while (false)

#endif  // NPUMESH_RUNTIME_BASE_LOG_H_
