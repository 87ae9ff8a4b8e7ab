#include "runtime/base/log.h"

#include <errno.h>
#include <limits.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>

#include "runtime/base/env/ascend_env.h"
#include "runtime/base/text/parse.h"
#include "runtime/base/text/phrase_book.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

thread_local int log_rank = -1;

constexpr spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kEvent:
      return spdlog::level::critical;
  }
  return spdlog::level::err;
}

// Pattern flag %K: the vendor's word for the level.
class LevelFlag final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& msg, const std::tm&,
              spdlog::memory_buf_t& out) override {
    const std::string_view word = Word(msg.level);
    out.append(word.data(), word.data() + word.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<LevelFlag>();
  }

 private:
  static std::string_view Word(spdlog::level::level_enum level) {
    switch (level) {
      case spdlog::level::debug:
        return "DEBUG";
      case spdlog::level::info:
        return "INFO";
      case spdlog::level::warn:
        return "WARNING";
      case spdlog::level::critical:
        return "EVENT";
      default:
        return "ERROR";
    }
  }
};

// Pattern flag %N: the program's name, the basename of argv[0].
class ProgramFlag final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg&, const std::tm&, spdlog::memory_buf_t& out) override {
    const std::string_view name = program_invocation_short_name;
    out.append(name.data(), name.data() + name.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<ProgramFlag>();
  }
};

// Pattern flag %R: " rank r", or nothing for a thread without a rank.
class RankFlag final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg&, const std::tm&, spdlog::memory_buf_t& out) override {
    if (log_rank >= 0) fmt::format_to(std::back_inserter(out), " rank {}", log_rank);
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<RankFlag>();
  }
};

// Pattern flag %U: the microseconds after the milliseconds, three digits.
class MicrosecondFlag final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& msg, const std::tm&,
              spdlog::memory_buf_t& out) override {
    const auto since_epoch =
        std::chrono::duration_cast<std::chrono::microseconds>(msg.time.time_since_epoch());
    fmt::format_to(std::back_inserter(out), "{:03}", since_epoch.count() % 1000);
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<MicrosecondFlag>();
  }
};

// Standard error, one write(2) a line: short lines of several processes never interleave. stdio
// would be free to split a line.
class StandardErrorSink final : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& msg) override {
    spdlog::memory_buf_t line;
    formatter_->format(msg, line);
    const char* at = line.data();
    const char* end = at + line.size();
    while (at < end) {
      const ssize_t written = write(STDERR_FILENO, at, static_cast<size_t>(end - at));
      if (written < 0 && errno != EINTR) return;  // there is no reader to tell
      if (written > 0) at += written;
    }
  }
  void flush_() override {}
};

std::unique_ptr<spdlog::formatter> MakeFormatter() {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<LevelFlag>('K')
      .add_flag<ProgramFlag>('N')
      .add_flag<RankFlag>('R')
      .add_flag<MicrosecondFlag>('U')
      .set_pattern("[%K] NPUMESH(%P,%N)%R:%Y-%m-%d-%H:%M:%S.%e.%U [%s:%#]%t %v");
  return formatter;
}

// PIPE_BUF less room for the prefix: what is written atomically into a pipe that ranks share.
constexpr size_t kLongestLine = 3584;
static_assert(kLongestLine + 512 <= PIPE_BUF);

// How much of `line` goes out at once: all, or up to where it has to be broken, which is never
// inside a UTF-8 character.
size_t PieceLength(std::string_view line) {
  if (line.size() <= kLongestLine) return line.size();
  size_t at = kLongestLine;
  while (at > kLongestLine - 4 && (static_cast<unsigned char>(line[at]) & 0xC0) == 0x80) --at;
  return at;
}

LogLevel StartLevel() {
  const char* text = std::getenv("TNG_LOG_LEVEL");
  if (text == nullptr) text = std::getenv(kAscendLogLevel);
  if (text == nullptr) return LogLevel::kError;
  const auto level = ParseInt(text, 0, 4, "TNG_LOG_LEVEL");  // Env says what is wrong with it
  return level.ok() ? static_cast<LogLevel>(*level) : LogLevel::kError;
}

// The one log of this process.
struct Log {
  std::atomic<LogLevel> level{StartLevel()};
  spdlog::logger logger{"npumesh", std::make_shared<StandardErrorSink>()};
  std::mutex mutex;
  std::unordered_set<std::string> said;  // guarded by mutex

  Log() {
    logger.set_level(spdlog::level::trace);  // LogEnabled decides
    logger.set_formatter(MakeFormatter());
  }
};

// Never destroyed: threads may log while the process ends.
Log& TheLog() {
  static Log* log = new Log;
  return *log;
}

}  // namespace

void SetLogLevel(LogLevel level) {
  TheLog().level.store(level, std::memory_order_relaxed);
}

void SetLogRank(int rank) {
  log_rank = rank;
}

int LogRank() {
  return log_rank;
}

bool LogEnabled(LogLevel level) {
  if (level == LogLevel::kError) return true;
  const LogLevel current = TheLog().level.load(std::memory_order_relaxed);
  if (level == LogLevel::kEvent || current == LogLevel::kEvent) return level == current;
  return level >= current;
}

void WriteLog(LogLevel level, LogSite site, std::string_view text) {
  const std::string file(site.file.substr(site.file.rfind('/') + 1));
  const spdlog::source_loc where{file.c_str(), site.line, ""};
  const auto now = spdlog::log_clock::now();
  const auto write = [&](std::string_view line) {
    do {
      const std::string_view piece = line.substr(0, PieceLength(line));
      TheLog().logger.log(now, where, ToSpdlog(level),
                          spdlog::string_view_t(piece.data(), piece.size()));
      line.remove_prefix(piece.size());
    } while (!line.empty());
  };
  do {
    const size_t end = std::min(text.find('\n'), text.size());
    write(InUsersLanguage(Printable(text.substr(0, end))));
    text.remove_prefix(std::min(end + 1, text.size()));
  } while (!text.empty());
}

bool FirstTime(std::string_view text) {
  Log& log = TheLog();
  const std::lock_guard lock(log.mutex);
  return log.said.emplace(text).second;
}

}  // namespace npumesh
