// Logger: the log as an object, for programs that know torchair.logger.
//
//   torchair.logger.setLevel(logging.INFO)  ->  Logger().SetLevel(LogLevel::kInfo)
//   torchair.logger.warning_once("slow")    ->  Logger().WarningOnce("slow")
//
// It writes into the one log of runtime/base/log.h, so a level set here holds for the library too.
// Stateless: make one wherever it is needed.
//
// Thread-safety: all functions may be called from any thread.
#ifndef NPUMESH_RUNTIME_BASE_LOGGER_H_
#define NPUMESH_RUNTIME_BASE_LOGGER_H_

#include <source_location>
#include <string_view>

#include "runtime/base/log.h"

namespace npumesh {

class Logger {
 public:
  using Where = std::source_location;

  // From now on; the start value is TNG_LOG_LEVEL, or ERROR.
  void SetLevel(LogLevel level) const { SetLogLevel(level); }
  bool IsEnabledFor(LogLevel level) const { return LogEnabled(level); }

  void Debug(std::string_view text, Where where = Where::current()) const {
    Write(LogLevel::kDebug, text, where);
  }
  void Info(std::string_view text, Where where = Where::current()) const {
    Write(LogLevel::kInfo, text, where);
  }
  void Warning(std::string_view text, Where where = Where::current()) const {
    Write(LogLevel::kWarning, text, where);
  }
  void Error(std::string_view text, Where where = Where::current()) const {
    Write(LogLevel::kError, text, where);
  }
  void Event(std::string_view text, Where where = Where::current()) const {
    Write(LogLevel::kEvent, text, where);
  }
  // The same text only once in this process. A warning suppressed by the level does not count as
  // shown.
  void WarningOnce(std::string_view text, Where where = Where::current()) const {
    if (LogEnabled(LogLevel::kWarning) && FirstTime(text)) Warning(text, where);
  }

 private:
  static void Write(LogLevel level, std::string_view text, const Where& where) {
    if (LogEnabled(level)) {
      WriteLog(level, {where.file_name(), static_cast<int>(where.line())}, text);
    }
  }
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_LOGGER_H_
