// Programs of one host that share memory, notifies and events by keys. The test starts itself again
// as its peers, before it uses a device, and talks to them by pipes.
//
//   acl_processes PEERS    the exporter and its PEERS importers
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "client.h"

extern char** environ;

namespace {

const size_t kBytes = 1 << 20;

// Lines of pipes.
std::string ReadLine(int fd) {
  std::string line;
  for (char c = 0; read(fd, &c, 1) == 1 && c != '\n';) line += c;
  return line;
}

bool WriteLine(int fd, const std::string& line) {
  const std::string text = line + "\n";
  return write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// Another process of this program.
struct Peer {
  pid_t process;
  int to;
  int from;
};

bool Start(const char* role, Peer* peer) {
  int in[2];
  int out[2];
  // Closed in other peers: an end of a pipe that one more process holds never tells of its end.
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) return false;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  std::string program = "acl_processes";
  std::string word = role;
  char* arguments[] = {&program[0], &word[0], NULL};
  const int failed =
      posix_spawn(&peer->process, "/proc/self/exe", &actions, NULL, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(in[0]);
  close(out[1]);
  peer->to = in[1];
  peer->from = out[0];
  return failed == 0;
}

bool EndedWell(const Peer& peer) {
  int status = 0;
  close(peer.to);
  return waitpid(peer.process, &status, 0) == peer.process && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

void Kill(const Peer& peer) {
  kill(peer.process, SIGKILL);
  waitpid(peer.process, NULL, 0);
}

std::string HandleText(const aclrtIpcEventHandle& handle) {
  return std::string(handle.reserved, strnlen(handle.reserved, sizeof handle.reserved));
}

aclrtIpcEventHandle HandleOf(const std::string& text) {
  aclrtIpcEventHandle handle;
  std::memset(&handle, 0, sizeof handle);
  std::memcpy(handle.reserved, text.data(), text.size());
  return handle;
}

const size_t kBlock = 2 << 20;

aclrtPhysicalMemProp OnDevice() {
  aclrtPhysicalMemProp prop;
  std::memset(&prop, 0, sizeof prop);
  prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  return prop;
}

std::string FabricText(const aclrtMemFabricHandle& handle) {
  return std::string(reinterpret_cast<const char*>(handle.data));
}

aclrtMemFabricHandle FabricOf(const std::string& text) {
  aclrtMemFabricHandle handle;
  std::memset(&handle, 0, sizeof handle);
  std::memcpy(handle.data, text.data(), text.size());
  return handle;
}

int Map(aclrtDrvMemHandle block, int32_t** address) {
  CHECK(aclrtReserveMemAddress(reinterpret_cast<void**>(address), kBlock, 0, NULL, 0));
  CHECK(aclrtMapMem(*address, kBlock, 0, block, 0));
  return 0;
}

// A physical block of the exporter, by both of its names: what is written here is there.
int ImportBlock(int index, uint64_t number, const std::string& fabric_text) {
  aclrtDrvMemHandle block = NULL;
  aclrtMemFabricHandle fabric = FabricOf(fabric_text);
  CHECK(aclrtMemImportFromShareableHandle(number, 0, &block));
  int32_t* numbers = NULL;
  if (Map(block, &numbers) != 0) return 1;
  EXPECT(numbers[kBlock / 4 - 1] == 42);
  numbers[index] = 1000 + index;
  aclrtDrvMemHandle same = NULL;
  CHECK(aclrtMemImportFromShareableHandleV2(&fabric, ACL_MEM_SHARE_HANDLE_TYPE_FABRIC, 0, &same));
  int32_t* again = NULL;
  if (Map(same, &again) != 0) return 1;
  EXPECT(again[index] == 1000 + index);
  aclrtMemAccessDesc read_only;
  std::memset(&read_only, 0, sizeof read_only);
  read_only.flags = ACL_RT_MEM_ACCESS_FLAGS_READ;
  read_only.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  CHECK(aclrtMemSetAccess(again, kBlock, &read_only, 1));
  EXPECT(aclrtMemset(again, kBlock, 0, kBlock) == ACL_ERROR_INVALID_PARAM);
  CHECK(aclrtUnmapMem(again));
  CHECK(aclrtFreePhysical(same));
  CHECK(aclrtUnmapMem(numbers));
  CHECK(aclrtFreePhysical(block));
  return 0;
}

// Imports what the exporter offers, adds one to its number there, and tells it by a notify.
int Import() {
  CHECK(aclInit(NULL));
  CHECK(aclrtSetDevice(0));
  int32_t process = 0;
  CHECK(aclrtDeviceGetBareTgid(&process));
  EXPECT(WriteLine(1, std::to_string(process)));
  const int index = std::atoi(ReadLine(0).c_str());
  const std::string memory_key = ReadLine(0);
  const std::string notify_key = ReadLine(0);
  const std::string event_key = ReadLine(0);
  const uint64_t number_of_block = std::strtoull(ReadLine(0).c_str(), NULL, 10);
  const std::string fabric_text = ReadLine(0);
  void* memory = NULL;
  aclrtDrvMemHandle block = NULL;
  EXPECT(aclrtMemImportFromShareableHandle(number_of_block, 0, &block) ==
         ACL_ERROR_RT_NO_PERMISSION);
  EXPECT(aclrtIpcMemImportByKey(&memory, memory_key.c_str(), 0) == ACL_ERROR_RT_NO_PERMISSION);
  EXPECT(WriteLine(1, "refused"));
  EXPECT(ReadLine(0) == "allowed");
  CHECK(aclrtIpcMemImportByKey(&memory, memory_key.c_str(),
                               ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS));
  aclrtNotify notify = NULL;
  CHECK(aclrtNotifyImportByKey(&notify, notify_key.c_str(), 0));
  aclrtEvent event = NULL;
  CHECK(aclrtIpcOpenEventHandle(HandleOf(event_key), &event));
  if (ImportBlock(index, number_of_block, fabric_text) != 0) return 1;
  EXPECT(WriteLine(1, "imported"));
  if (ReadLine(0) != "work") return 0;
  // The exporter's stream writes the numbers, then records the event.
  aclrtStream stream = NULL;
  CHECK(aclrtCreateStream(&stream));
  CHECK(aclrtStreamWaitEvent(stream, event));
  int32_t* const number = static_cast<int32_t*>(memory) + index;
  int32_t* one = NULL;
  CHECK(aclrtMalloc(reinterpret_cast<void**>(&one), 4, ACL_MEM_MALLOC_HUGE_FIRST));
  *one = 1;
  CHECK(
      aclrtReduceAsync(number, one, 4, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_INT32, stream, NULL));
  CHECK(aclrtRecordNotify(notify, stream));
  CHECK(aclrtSynchronizeStream(stream));
  CHECK(aclrtDestroyNotify(notify));
  CHECK(aclrtDestroyEvent(event));
  CHECK(aclrtIpcMemClose(memory_key.c_str()));
  CHECK(aclFinalize());
  return 0;
}

// Shares memory and waits for its end.
int Offer() {
  CHECK(aclInit(NULL));
  CHECK(aclrtSetDevice(0));
  void* memory = NULL;
  CHECK(aclrtMalloc(&memory, kBytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclrtMemset(memory, kBytes, 7, kBytes));
  char key[65];
  CHECK(aclrtIpcMemGetExportKey(memory, kBytes, key, sizeof key,
                                ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION));
  EXPECT(WriteLine(1, key));
  const aclrtPhysicalMemProp prop = OnDevice();
  aclrtDrvMemHandle block = NULL;
  CHECK(aclrtMallocPhysical(&block, kBlock, &prop, 0));
  int32_t* numbers = NULL;
  if (Map(block, &numbers) != 0) return 1;
  for (size_t i = 0; i < kBlock / 4; ++i) numbers[i] = static_cast<int32_t>(i);
  uint64_t number = 0;
  CHECK(aclrtMemExportToShareableHandle(block, ACL_MEM_HANDLE_TYPE_NONE,
                                        ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION, &number));
  EXPECT(WriteLine(1, std::to_string(number)));
  // The owner gives everything back while the other process has it mapped.
  EXPECT(ReadLine(0) == "imported");
  CHECK(aclrtUnmapMem(numbers));
  CHECK(aclrtReleaseMemAddress(numbers));
  CHECK(aclrtFreePhysical(block));
  for (int i = 0; i < 4; ++i) {
    void* other = NULL;
    CHECK(aclrtMalloc(&other, kBlock, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(aclrtMemset(other, kBlock, 9, kBlock));
  }
  EXPECT(WriteLine(1, "freed"));
  ReadLine(0);
  return 0;
}

int ShareWith(const std::vector<Peer>& peers) {
  int32_t* memory = NULL;
  CHECK(aclrtMalloc(reinterpret_cast<void**>(&memory), kBytes, ACL_MEM_MALLOC_HUGE_FIRST));
  char memory_key[65];
  CHECK(aclrtIpcMemGetExportKey(memory, kBytes, memory_key, sizeof memory_key, 0));
  const aclrtPhysicalMemProp prop = OnDevice();
  aclrtDrvMemHandle block = NULL;
  CHECK(aclrtMallocPhysical(&block, kBlock, &prop, 0));
  int32_t* shared = NULL;
  if (Map(block, &shared) != 0) return 1;
  shared[kBlock / 4 - 1] = 42;
  uint64_t number_of_block = 0;
  CHECK(aclrtMemExportToShareableHandle(block, ACL_MEM_HANDLE_TYPE_NONE, 0, &number_of_block));
  aclrtMemFabricHandle fabric;
  CHECK(aclrtMemExportToShareableHandleV2(block, 0, ACL_MEM_SHARE_HANDLE_TYPE_FABRIC, &fabric));
  aclrtEvent event = NULL;
  CHECK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_IPC));
  aclrtIpcEventHandle handle;
  CHECK(aclrtIpcGetEventHandle(event, &handle));
  aclrtStream stream = NULL;
  CHECK(aclrtCreateStream(&stream));
  std::vector<aclrtNotify> notifies(peers.size());
  std::vector<int32_t> processes;
  for (size_t i = 0; i < peers.size(); ++i) {
    processes.push_back(std::atoi(ReadLine(peers[i].from).c_str()));
    EXPECT(processes.back() == peers[i].process);
    CHECK(aclrtCreateNotify(&notifies[i], 0));
    char key[65];
    CHECK(aclrtNotifyGetExportKey(notifies[i], key, sizeof key, 0));
    CHECK(aclrtNotifySetImportPid(notifies[i], &processes[i], 1));
    EXPECT(WriteLine(peers[i].to, std::to_string(i)));
    EXPECT(WriteLine(peers[i].to, memory_key));
    EXPECT(WriteLine(peers[i].to, key));
    EXPECT(WriteLine(peers[i].to, HandleText(handle)));
    EXPECT(WriteLine(peers[i].to, std::to_string(number_of_block)));
    EXPECT(WriteLine(peers[i].to, FabricText(fabric)));
    EXPECT(ReadLine(peers[i].from) == "refused");
  }
  CHECK(aclrtIpcMemSetImportPid(memory_key, &processes[0], processes.size()));
  CHECK(aclrtMemSetPidToShareableHandle(number_of_block, &processes[0], 1));
  CHECK(aclrtMemSetPidToShareableHandleV2(&fabric, ACL_MEM_SHARE_HANDLE_TYPE_FABRIC, &processes[0],
                                          processes.size()));
  for (size_t i = 0; i < peers.size(); ++i) EXPECT(WriteLine(peers[i].to, "allowed"));
  for (size_t i = 0; i < peers.size(); ++i) EXPECT(ReadLine(peers[i].from) == "imported");
  for (size_t i = 0; i < peers.size(); ++i) EXPECT(shared[i] == 1000 + static_cast<int32_t>(i));
  CHECK(aclrtUnmapMem(shared));
  CHECK(aclrtReleaseMemAddress(shared));
  CHECK(aclrtFreePhysical(block));
  std::vector<int32_t> numbers(kBytes / 4);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int32_t>(100 * i);
  CHECK(
      aclrtMemcpyAsync(memory, kBytes, numbers.data(), kBytes, ACL_MEMCPY_HOST_TO_DEVICE, stream));
  CHECK(aclrtRecordEvent(event, stream));
  // One peer dies; the others work.
  Kill(peers.back());
  for (size_t i = 0; i + 1 < peers.size(); ++i) {
    EXPECT(WriteLine(peers[i].to, "work"));
    CHECK(aclrtWaitAndResetNotify(notifies[i], stream, 0));
  }
  CHECK(aclrtSynchronizeStream(stream));
  for (size_t i = 0; i < numbers.size(); ++i) {
    EXPECT(memory[i] == numbers[i] + (i + 1 < peers.size() ? 1 : 0));
  }
  for (size_t i = 0; i + 1 < peers.size(); ++i) EXPECT(EndedWell(peers[i]));
  CHECK(aclrtWaitAndResetNotify(notifies.back(), stream, 0));
  EXPECT(aclrtSynchronizeStream(stream) == ACL_ERROR_RT_SUSPECT_REMOTE_ERROR);
  const std::string words = aclGetRecentErrMsg();
  EXPECT(words.find("process " + std::to_string(peers.back().process)) != std::string::npos);
  CHECK(aclrtIpcMemClose(memory_key));
  return 0;
}

// What was imported outlives its owner; its key does not.
int OutliveOwner(const Peer& owner) {
  const std::string key = ReadLine(owner.from);
  char* memory = NULL;
  CHECK(aclrtIpcMemImportByKey(reinterpret_cast<void**>(&memory), key.c_str(), 0));
  const uint64_t number = std::strtoull(ReadLine(owner.from).c_str(), NULL, 10);
  aclrtDrvMemHandle block = NULL;
  CHECK(aclrtMemImportFromShareableHandle(number, 0, &block));
  int32_t* numbers = NULL;
  if (Map(block, &numbers) != 0) return 1;
  EXPECT(WriteLine(owner.to, "imported"));
  EXPECT(ReadLine(owner.from) == "freed");
  for (size_t i = 0; i < kBlock / 4; ++i) EXPECT(numbers[i] == static_cast<int32_t>(i));
  Kill(owner);
  for (size_t i = 0; i < kBlock / 4; ++i) EXPECT(numbers[i] == static_cast<int32_t>(i));
  aclrtDrvMemHandle none = NULL;
  EXPECT(aclrtMemImportFromShareableHandle(number, 0, &none) == ACL_ERROR_RT_SUSPECT_REMOTE_ERROR);
  CHECK(aclrtUnmapMem(numbers));
  CHECK(aclrtReleaseMemAddress(numbers));
  CHECK(aclrtFreePhysical(block));
  for (size_t i = 0; i < kBytes; ++i) EXPECT(memory[i] == 7);
  void* again = NULL;
  EXPECT(aclrtIpcMemImportByKey(&again, key.c_str(), 0) == ACL_ERROR_RT_SUSPECT_REMOTE_ERROR);
  const std::string words = aclGetRecentErrMsg();
  EXPECT(words.find("process " + std::to_string(owner.process)) != std::string::npos);
  CHECK(aclrtIpcMemClose(key.c_str()));
  return 0;
}

int Export(int count) {
  std::vector<Peer> peers(static_cast<size_t>(count));
  for (size_t i = 0; i < peers.size(); ++i) EXPECT(Start("import", &peers[i]));
  Peer owner;
  EXPECT(Start("offer", &owner));
  CHECK(aclInit(NULL));
  CHECK(aclrtSetDevice(0));
  if (ShareWith(peers) != 0 || OutliveOwner(owner) != 0) return 1;
  CHECK(aclFinalize());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  const std::string role = argc == 2 ? argv[1] : "";
  if (role == "import") return Import();
  if (role == "offer") return Offer();
  return Export(std::atoi(role.c_str()));
}
