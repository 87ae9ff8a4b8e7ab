// DumpPaths: the folders of dumps of a process, as its configurations say them.
//
// Thread-safety: all members may be called from any thread.
#ifndef NPUMESH_RUNTIME_ACL_DUMP_DUMP_PATHS_H_
#define NPUMESH_RUNTIME_ACL_DUMP_DUMP_PATHS_H_

#include <mutex>
#include <string>

#include "acl/acl_dump.h"
#include "runtime/base/status.h"

namespace npumesh {

class DumpPaths {
 public:
  static DumpPaths& OfProcess();

  // The files of aclInit and aclmdlSetDump, of which the last counts for the dumps that it names;
  // empty: none. One that cannot be read names none: who acts on it says what is wrong.
  void ReadInit(const std::string& config_path);
  void ReadModels(const std::string& config_path);
  // aclopStartDumpArgs; empty: stopped.
  void set_arguments(const std::string& path);
  std::string arguments() const;

  // Empty: there are no such dumps.
  std::string Of(acldumpType type) const;
  // That of the kind of exception dumps which is on.
  std::string OfExceptions() const;

 private:
  struct Config {
    std::string path;
    std::string scene;
    bool overflow = false;
  };
  static Config Read(const std::string& config_path);
  static std::string PathOf(const Config& config, acldumpType type);

  mutable std::mutex mutex_;  // guards the rest
  Config init_;
  Config models_;
  std::string arguments_;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_ACL_DUMP_DUMP_PATHS_H_
