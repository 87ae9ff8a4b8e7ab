#include "python/torchair_native/log.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <mutex>
#include <string_view>

namespace npumesh::torchair {
namespace {

constexpr const char* kWords[] = {"DEBUG", "INFO", "WARNING", "ERROR", "EVENT"};
constexpr char kLevelVariable[] = "TNG_LOG_LEVEL";

std::mutex mutex;
std::string debug_log;

std::string ProgramName() {
  std::string words;
  std::getline(std::ifstream("/proc/self/cmdline"), words, '\0');
  return words.substr(words.rfind('/') + 1);
}

// "2026-11-25-22:10:09.123.456"
std::string Now() {
  using std::chrono::microseconds;
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto fraction = static_cast<int>(
      std::chrono::duration_cast<microseconds>(now.time_since_epoch()).count() % 1000000);
  std::tm local{};
  localtime_r(&seconds, &local);
  char date[32], rest[16];
  std::strftime(date, sizeof date, "%Y-%m-%d-%H:%M:%S", &local);
  std::snprintf(rest, sizeof rest, ".%03d.%03d", fraction / 1000, fraction % 1000);
  return std::string(date) + rest;
}

void Write(LogLevel level, const std::string& text, const char* file, int line) {
  const std::string_view path(file);
  const std::string name(path.substr(path.rfind('/') + 1));
  const std::string whole = std::string("[") + kWords[static_cast<int>(level)] + "] TORCHAIR(" +
                            std::to_string(getpid()) + "," + ProgramName() + "):" + Now() + " [" +
                            name + ":" + std::to_string(line) + "]" +
                            std::to_string(syscall(SYS_gettid)) + " " + text + "\n";
  const std::lock_guard<std::mutex> lock(mutex);
  std::fputs(whole.c_str(), stderr);
  if (!debug_log.empty()) std::ofstream(debug_log, std::ios::app) << whole;
}

LogLevel ReadLevel() {
  const char* const debug = std::getenv("TORCH_COMPILE_DEBUG");
  if (debug != nullptr && std::string_view(debug) == "1") return LogLevel::kDebug;
  const char* const given = std::getenv(kLevelVariable);
  if (given == nullptr) return LogLevel::kError;
  const std::string_view text(given);
  if (text.size() == 1 && text[0] >= '0' && text[0] <= '4') {
    return static_cast<LogLevel>(text[0] - '0');
  }
  Write(LogLevel::kWarning,
        std::string(kLevelVariable) + ": expected 0 (DEBUG) to 4 (EVENT), seen \"" + given +
            "\"; 3 (ERROR) is taken",
        __FILE__, __LINE__);
  return LogLevel::kError;
}

}  // namespace

bool LogEnabled(LogLevel level) {
  static const LogLevel asked = ReadLevel();
  if (level == LogLevel::kError) return true;
  if (level == LogLevel::kEvent) return asked == LogLevel::kEvent;
  return level >= asked;
}

void Log(LogLevel level, const std::string& text, const char* file, int line) {
  if (LogEnabled(level)) Write(level, text, file, line);
}

void SetDebugLog(const std::string& path) {
  const std::lock_guard<std::mutex> lock(mutex);
  debug_log = path;
}

}  // namespace npumesh::torchair
