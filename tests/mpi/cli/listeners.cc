// A rank that says which sockets it and the mpirun above it listen at beyond loopback, and where
// its shared memory lies; with "hang" it then sleeps.
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace {

namespace fs = std::filesystem;

// "socket:[123]" of the descriptors of a process.
void AddSockets(const fs::path& process, std::set<std::string>& sockets) {
  std::error_code error;
  for (fs::directory_iterator it(process / "fd", error), end; !error && it != end;
       it.increment(error)) {
    std::error_code ignored;
    const std::string target = fs::read_symlink(it->path(), ignored).string();
    if (target.starts_with("socket:[")) sockets.insert(target.substr(8, target.size() - 9));
  }
}

// Lines of /proc/net/tcp and tcp6: number, local address, remote address, state, ..., inode.
int PrintWideListeners(const char* table, const std::set<std::string>& sockets) {
  constexpr const char* kLoopback[] = {"0100007F:", "00000000000000000000000001000000:"};
  std::ifstream file(table);
  int wide = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word[10];
    for (std::string& each : word) words >> each;
    if (word[3] != "0A" || !sockets.contains(word[9])) continue;
    if (word[1].starts_with(kLoopback[0]) || word[1].starts_with(kLoopback[1])) continue;
    std::printf("listens at %s\n", word[1].c_str());
    ++wide;
  }
  return wide;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  std::set<std::string> sockets;
  AddSockets("/proc/self", sockets);
  AddSockets("/proc/" + std::to_string(getppid()), sockets);
  const int wide =
      PrintWideListeners("/proc/net/tcp", sockets) + PrintWideListeners("/proc/net/tcp6", sockets);
  const char* memory = std::getenv("OMPI_MCA_btl_vader_backing_directory");
  if (memory == nullptr) memory = std::getenv("OMPI_MCA_btl_sm_backing_directory");  // Open MPI 5
  std::printf("%d wide listeners; memory in %s.\n", wide, memory == nullptr ? "?" : memory);
  std::fflush(stdout);
  if (argc > 1 && std::strcmp(argv[1], "hang") == 0) sleep(120);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
