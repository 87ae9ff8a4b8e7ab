// CrashLine: what a rank says when an operator makes it crash.
#ifndef NPUMESH_LAUNCH_RUN_CRASH_LINE_H_
#define NPUMESH_LAUNCH_RUN_CRASH_LINE_H_

namespace npumesh {

// While it lives, SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT on a thread that is in a step
// (runtime/base/process/running_step.h) first write one line to standard error:
//
//   npumesh run: rank 1 of 4: SIGSEGV in operator Polynomial, node "p", step 3 of 9 of the graph
//
// Then, as on any other thread, the signal does what it did before: the process dies of it.
// Thread-safety: one at a time in a process.
class CrashLine {
 public:
  CrashLine(int rank, int ranks);
  ~CrashLine();
  CrashLine(const CrashLine&) = delete;
  CrashLine& operator=(const CrashLine&) = delete;
};

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RUN_CRASH_LINE_H_
