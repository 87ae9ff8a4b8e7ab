// The log of the module: lines on standard error, and in the file that TorchAir names.
#ifndef NPUMESH_PYTHON_TORCHAIR_NATIVE_LOG_H_
#define NPUMESH_PYTHON_TORCHAIR_NATIVE_LOG_H_

#include <string>

namespace npumesh::torchair {

// The numbers of TNG_LOG_LEVEL.
enum class LogLevel { kDebug, kInfo, kWarning, kError, kEvent };

// Whether lines of this level are written. TNG_LOG_LEVEL is 0 to 4 and 3 without a word; "4" adds
// events to errors; TORCH_COMPILE_DEBUG=1 asks for all. Read once.
bool LogEnabled(LogLevel level);

// Writes a line if its level is enabled. Any thread, with or without the GIL.
void Log(LogLevel level, const std::string& text, const char* file = __builtin_FILE(),
         int line = __builtin_LINE());

// SetDebugLogPath: from now on lines go to this file as well, at its end. Empty: to none.
void SetDebugLog(const std::string& path);

}  // namespace npumesh::torchair

#endif  // NPUMESH_PYTHON_TORCHAIR_NATIVE_LOG_H_
