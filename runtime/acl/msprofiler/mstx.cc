// The functions of mstx/ms_tools_ext.h.
#include "mstx/ms_tools_ext.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "runtime/acl/msprofiler/stream_place.h"
#include "runtime/acl/process/api_span.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/handle_table.h"

namespace npumesh {
namespace {

struct Domain {
  std::string name;
};

// A range of a program that goes on, and of the stream that it was begun with.
struct GoingOn {
  std::string text;
  int64_t begin_ns = 0;
  aclrtStream stream = nullptr;
  std::shared_ptr<std::atomic<int64_t>> stream_begin_ns;  // null: without a stream
};

struct Extensions {
  HandleTable<Domain> domains;
  std::mutex mutex;  // guards what follows
  uint64_t next_range = 1;
  std::map<uint64_t, GoingOn> ranges;  // by id
};

Extensions& TheExtensions() {
  static auto* const extensions = new Extensions;
  return *extensions;
}

// False, with words, for a null message and a domain that is not live; `text` has both.
bool TextOf(const char* function, const void* domain, bool in_domain, const char* message,
            std::string* text) {
  if (message == nullptr) {
    Fail(ACL_ERROR_INVALID_PARAM, function, "message is null");
    return false;
  }
  *text = message;
  if (!in_domain) return true;
  const auto found = TheExtensions().domains.Find(domain);
  if (found == nullptr) {
    Fail(ACL_ERROR_INVALID_PARAM, function, "{} is not a domain of mstxDomainCreateA",
         fmt::ptr(domain));
    return false;
  }
  text->insert(0, found->name + ": ");
  return true;
}

void Mark(const char* function, std::string text, aclrtStream stream) {
  NoteRange({.name = text, .type = "Mark", .begin_ns = Profiler::Now()});
  if (stream != nullptr) MarkInStream(function, std::move(text), stream);
}

mstxRangeId Start(const char* function, std::string text, aclrtStream stream) {
  GoingOn range{std::move(text), Profiler::Now(), stream, nullptr};
  if (stream != nullptr) {
    range.stream_begin_ns = std::make_shared<std::atomic<int64_t>>(range.begin_ns);
    NoteInStream(function, stream, [begin = range.stream_begin_ns](uint16_t, AclDevice*) {
      begin->store(Profiler::Now());
    });
  }
  Extensions& extensions = TheExtensions();
  const std::lock_guard lock(extensions.mutex);
  const uint64_t id = extensions.next_range++;
  extensions.ranges.emplace(id, std::move(range));
  return id;
}

void End(const char* function, mstxRangeId id) {
  GoingOn range;
  {
    Extensions& extensions = TheExtensions();
    const std::lock_guard lock(extensions.mutex);
    auto found = extensions.ranges.extract(id);
    if (found.empty()) {
      Fail(ACL_ERROR_INVALID_PARAM, function, "no range has the id {}, or it has ended", id);
      return;
    }
    range = std::move(found.mapped());
  }
  NoteRange({.name = range.text, .type = "Range", .begin_ns = range.begin_ns});
  if (range.stream == nullptr) return;
  NoteInStream(function, range.stream, [range](uint16_t lane, AclDevice* device) {
    NoteRange({range.text, "Range", range.stream_begin_ns->load(), lane}, device);
  });
}

// The domain with this name, a new one or that which is there.
mstxDomainHandle_t MakeDomain(const char* name) {
  if (name == nullptr) {
    Fail(ACL_ERROR_INVALID_PARAM, "mstxDomainCreateA", "name is null");
    return nullptr;
  }
  HandleTable<Domain>& domains = TheExtensions().domains;
  for (const auto& domain : domains.All()) {
    if (domain->name == name) return reinterpret_cast<mstxDomainHandle_t>(domain.get());
  }
  return static_cast<mstxDomainHandle_t>(domains.Add(std::make_shared<Domain>(Domain{name})));
}

}  // namespace
}  // namespace npumesh

using namespace npumesh;  // NOLINT: the rest of this file is the C interface

void mstxMarkA(const char* message, aclrtStream stream) try {
  std::string text;
  if (TextOf(__func__, nullptr, false, message, &text)) Mark(__func__, std::move(text), stream);
} catch (...) {
  FailThrown(__func__);
}

mstxRangeId mstxRangeStartA(const char* message, aclrtStream stream) try {
  std::string text;
  if (!TextOf(__func__, nullptr, false, message, &text)) return 0;
  return Start(__func__, std::move(text), stream);
} catch (...) {
  FailThrown(__func__);
  return 0;
}

void mstxRangeEnd(mstxRangeId id) try { End(__func__, id); } catch (...) {
  FailThrown(__func__);
}

mstxDomainHandle_t mstxDomainCreateA(const char* name) try {
  return MakeDomain(name);
} catch (...) {
  FailThrown(__func__);
  return nullptr;
}

void mstxDomainDestroy(mstxDomainHandle_t domain) try {
  if (TheExtensions().domains.Take(domain) != nullptr) return;
  Fail(ACL_ERROR_INVALID_PARAM, __func__, "{} is not a domain of mstxDomainCreateA",
       fmt::ptr(domain));
} catch (...) {
  FailThrown(__func__);
}

void mstxDomainMarkA(mstxDomainHandle_t domain, const char* message, aclrtStream stream) try {
  std::string text;
  if (TextOf(__func__, domain, true, message, &text)) Mark(__func__, std::move(text), stream);
} catch (...) {
  FailThrown(__func__);
}

mstxRangeId mstxDomainRangeStartA(mstxDomainHandle_t domain, const char* message,
                                  aclrtStream stream) try {
  std::string text;
  if (!TextOf(__func__, domain, true, message, &text)) return 0;
  return Start(__func__, std::move(text), stream);
} catch (...) {
  FailThrown(__func__);
  return 0;
}

void mstxDomainRangeEnd(mstxDomainHandle_t /*domain*/, mstxRangeId id) try {
  End(__func__, id);
} catch (...) {
  FailThrown(__func__);
}
