// Preloaded into a program under test: kills it with SIGKILL at a named step instead of at a random moment.
//
// KILL_SHIM names a file. As long as it is absent nothing happens; once it is there its lines are conditions, met one
// after the other. At the last one the process says where it stands, on stderr, and dies.
//
//   CALL PLACE BYTES NTH     the NTH call (from 1) of that kind at that place that moves at least BYTES
//
//   recv, send    PLACE: port of the peer, or `=` for the connection of the line before; dies after the call
//   write         PLACE: end of the file's path; half of it is written, then it dies
//   sync, rename  PLACE: end of the (new) path; dies before the call
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

struct Condition {
  std::string call, place;
  long bytes = 0, nth = 1;
};

std::mutex mutex;  // protects all below
bool armed = false;
std::vector<Condition> conditions;
std::size_t next_condition = 0;
int last_descriptor = -1;

void arm() {
  const char* const file = std::getenv("KILL_SHIM");
  struct stat found{};
  if (file == nullptr || ::stat(file, &found) != 0) return;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    Condition condition;
    std::istringstream(line) >> condition.call >> condition.place >> condition.bytes >> condition.nth;
    conditions.push_back(std::move(condition));
  }
  armed = true;
}

bool is_peer(int descriptor, const std::string& port) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  if (::getpeername(descriptor, reinterpret_cast<sockaddr*>(&address), &length) != 0) return false;
  if (address.ss_family != AF_INET) return false;
  return std::to_string(ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port)) == port;
}

std::string path_of(int descriptor) {
  std::string path(4096, '\0');
  const ssize_t length = ::readlink(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), path.data(), path.size());
  path.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  return path;
}

// Whether this call meets the last condition.
bool is_the_end(const char* call, int descriptor, const std::string& path, ssize_t bytes) {
  const int saved = errno;
  const std::lock_guard lock(mutex);
  if (!armed) arm();
  bool ends = false;
  if (next_condition < conditions.size()) {
    Condition& condition = conditions[next_condition];
    if (condition.call == call && bytes >= condition.bytes) {
      const bool is_socket = condition.call == "recv" || condition.call == "send";
      const bool is_there = !is_socket ? (path.empty() ? path_of(descriptor) : path).ends_with(condition.place)
                            : condition.place == "=" ? descriptor == last_descriptor
                                                     : is_peer(descriptor, condition.place);
      if (is_there && --condition.nth == 0) {
        last_descriptor = descriptor;
        ends = ++next_condition == conditions.size();
      }
    }
  }
  errno = saved;
  return ends;
}

[[noreturn]] void die(const char* call, ssize_t bytes) {
  std::fprintf(stderr, "kill_shim: killed at %s of %zd bytes\n", call, bytes);
  ::kill(::getpid(), SIGKILL);
  for (;;) ::pause();
}

ssize_t after(const char* call, int descriptor, ssize_t moved) {
  if (moved > 0 && is_the_end(call, descriptor, "", moved)) die(call, moved);
  return moved;
}

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

ssize_t recvmsg(int descriptor, msghdr* message, int flags) {
  static auto* const call = real<ssize_t(int, msghdr*, int)>("recvmsg");
  return after("recv", descriptor, call(descriptor, message, flags));
}

ssize_t recv(int descriptor, void* to, size_t size, int flags) {
  static auto* const call = real<ssize_t(int, void*, size_t, int)>("recv");
  return after("recv", descriptor, call(descriptor, to, size, flags));
}

ssize_t sendmsg(int descriptor, const msghdr* message, int flags) {
  static auto* const call = real<ssize_t(int, const msghdr*, int)>("sendmsg");
  return after("send", descriptor, call(descriptor, message, flags));
}

ssize_t send(int descriptor, const void* from, size_t size, int flags) {
  static auto* const call = real<ssize_t(int, const void*, size_t, int)>("send");
  return after("send", descriptor, call(descriptor, from, size, flags));
}

ssize_t pwrite64(int descriptor, const void* from, size_t size, off64_t at) {
  static auto* const call = real<ssize_t(int, const void*, size_t, off64_t)>("pwrite64");
  if (is_the_end("write", descriptor, "", static_cast<ssize_t>(size))) {
    call(descriptor, from, size / 2, at);
    die("write", static_cast<ssize_t>(size));
  }
  return call(descriptor, from, size, at);
}

int fsync(int descriptor) {
  static auto* const call = real<int(int)>("fsync");
  if (is_the_end("sync", descriptor, "", 0)) die("sync", 0);
  return call(descriptor);
}

int fdatasync(int descriptor) {
  static auto* const call = real<int(int)>("fdatasync");
  if (is_the_end("sync", descriptor, "", 0)) die("sync", 0);
  return call(descriptor);
}

int rename(const char* from, const char* to) noexcept {
  static auto* const call = real<int(const char*, const char*)>("rename");
  if (is_the_end("rename", -1, to, 0)) die("rename", 0);
  return call(from, to);
}

}  // extern "C"
