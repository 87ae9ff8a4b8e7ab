// The one way npumesh starts a thread: the system may refuse one (RLIMIT_NPROC, pids.max of a
// container), and that is an error as any other.
#ifndef NPUMESH_RUNTIME_BASE_PROCESS_THREAD_H_
#define NPUMESH_RUNTIME_BASE_PROCESS_THREAD_H_

#include <functional>
#include <string_view>
#include <thread>

#include "runtime/base/status.h"

namespace npumesh {

// Starts `body` on `thread`, which must not be running. `purpose`: what it is for, as in "the
// writer of the dump". Error: the system gives no thread (kIo) or no memory for one (kOutOfMemory);
// `body` is dropped then. Any thread.
Status StartThread(std::string_view purpose, std::thread* thread, std::function<void()> body);

// Calls `body` for 0 to count - 1, each on a separate thread, and returns after all have ended.
// Either all are called or, when there are not that many threads, none (kIo): they may wait for
// each other. The first exception that one of them throws is thrown again after all have ended.
Status OnThreads(int count, std::string_view purpose, const std::function<void(int)>& body);

// Whether `count` threads more can be had now, for libraries that end the process when they cannot
// (OpenMP): kIo when not. Starts and ends them.
Status TryThreads(int count, std::string_view purpose);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_PROCESS_THREAD_H_
