// What tests of the kernel store share: a store in a fresh folder, and a compiler that counts.
#ifndef NPUMESH_TESTS_UNIT_STATIC_KERNEL_STORE_FIXTURE_H_
#define NPUMESH_TESTS_UNIT_STATIC_KERNEL_STORE_FIXTURE_H_

#include <functional>
#include <string>
#include <vector>

#include "graph/static_kernel/store/kernel_store.h"
#include "tests/unit/base/temporary_folder.h"

namespace npumesh::testing {

// Sets a variable of this process while it lives; null: unset.
class Variable {
 public:
  Variable(std::string name, const char* value);
  ~Variable();
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const std::string name_;
  bool had_;
  std::string before_;
};

// Bytes that pass for a shared object of this machine.
std::string ObjectBytes();

// A shell script in the place of the compiler. It answers --version, notes each run and each kernel
// that it compiles, and then does `acts`, shell text that knows $out (the object), $sources,
// $folder and $ready (a file of ObjectBytes). It is $CXX while this object lives.
class FakeCompiler {
 public:
  static constexpr const char* kWorks = "cat $ready $sources > $out";
  static constexpr const char* kIsReal = "exec c++ \"$@\"";
  // Refuses sources with a line "BROKEN".
  static constexpr const char* kRefuses =
      "if grep -q '^// BROKEN' $sources; then echo 'In function f:'; echo 'k.cpp:3: error: broken "
      "kernel'; exit 1; fi; cat $ready $sources > $out";

  explicit FakeCompiler(const std::string& acts = kWorks);

  // Replaces what it does from now on.
  void Act(const std::string& acts) const;
  int runs() const;
  std::vector<std::string> compiled() const;  // symbols, sorted; one for each time
  std::string Path(const std::string& name) const { return folder_.Path(name); }

 private:
  TemporaryFolder folder_;
  Variable variable_;
};

// Kernel number k; the fake compiler notes its symbol. It returns 100 + k.
KernelSource Kernel(int k, const std::string& remark = "");
BuildPlan PlanOf(int kernels);
std::vector<std::string> SymbolsOf(int kernels);  // "k0", "k1", ..., sorted

void Write(const std::string& path, const std::string& text);
// Names in a folder, sorted.
std::vector<std::string> NamesIn(const std::string& folder);
// "file: what" of each.
std::vector<std::string> TextsOf(const std::vector<KernelStore::Damage>& damages);

// The exit code of `body` in a separate process, at most 100 s; 1000 + the signal that ended it.
int InProcess(const std::function<int()>& body);

// What `body` says (at most 4000 bytes) in each of `count` processes, which begin together and end
// when all have come through; empty: that one was killed. At most 100 s.
std::vector<std::string> InProcesses(int count, const std::function<std::string(int)>& body);

}  // namespace npumesh::testing

#endif  // NPUMESH_TESTS_UNIT_STATIC_KERNEL_STORE_FIXTURE_H_
