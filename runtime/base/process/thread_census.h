// ThreadCensus: which threads of this process can still begin something of their own accord. It
// answers one question, for a verdict that must be certain: if these threads stand still, does the
// whole process?
//
// Every thread counts as able to go on unless something here says why not: it is one of those that
// stand still, it works for a queue that is held up by one, it waits for such a queue without an
// end, or it is a helper, which never asks npumesh for anything.
//
// Thread-safety: all functions may be called from any thread.
#ifndef NPUMESH_RUNTIME_BASE_PROCESS_THREAD_CENSUS_H_
#define NPUMESH_RUNTIME_BASE_PROCESS_THREAD_CENSUS_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

namespace npumesh {

// The system's number of the calling thread.
pid_t ThisThread();

// Of this process; empty when the system does not tell.
std::set<pid_t> ThreadsOfProcess();

// A queue of work that threads run and wait for, as it is at one moment.
struct QueueSight {
  bool idle = true;            // nothing is queued or running
  pid_t worker = 0;            // runs what is queued when no other does; 0: none yet
  pid_t runner = 0;            // runs an item now; 0: none yet
  std::vector<pid_t> waiting;  // without an end, for items that are not done
};

// Tells the census of a queue while it lives. `look` may be called from any thread.
class QueueInCensus {
 public:
  explicit QueueInCensus(std::function<QueueSight()> look);
  ~QueueInCensus();
  QueueInCensus(const QueueInCensus&) = delete;
  QueueInCensus& operator=(const QueueInCensus&) = delete;

 private:
  const uint64_t number_;
};

// Threads of libraries that live as long as the process and never ask npumesh for anything.
void AddHelperThreads(const std::set<pid_t>& threads);

// The calling thread never asks npumesh for anything while this lives.
class HelperThread {
 public:
  HelperThread();
  ~HelperThread();
  HelperThread(const HelperThread&) = delete;
  HelperThread& operator=(const HelperThread&) = delete;
};

// The calling thread does nothing but look whether its wait is over while this lives. Destroying it
// waits for a call of StandsStill to end.
class StillThread {
 public:
  StillThread();
  ~StillThread();
  StillThread(const StillThread&) = delete;
  StillThread& operator=(const StillThread&) = delete;
};

// From here on the calling thread, and those that work for queues, are the only ones that ask
// npumesh for anything: for programs that know all of their threads.
void DeclareSoleCaller();

// True when no thread of the process can go on before a StillThread does.
bool StandsStill();

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_PROCESS_THREAD_CENSUS_H_
